/* SPDX-License-Identifier: MIT */
/* Progress of a training on standard error. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weft/internal/text.h>

#include "cli.h"

void progress_start(struct progress *p)
{
    *p = (struct progress){.terminal = isatty(STDERR_FILENO), .first = -1, .last_draw = -1, .last_line = 0, .loss = NAN};
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

static void time_left(double seconds, char *text, size_t size)
{
    if (seconds < 60)
        snprintf(text, size, "%.0f s", ceil(seconds));
    else if (seconds < 3600)
        snprintf(text, size, "%d:%02d min", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, size, "%d:%02d h", (int)seconds / 3600, (int)seconds / 60 % 60);
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

static void describe(const struct progress *p, const struct wf_event *e, char *text, size_t size)
{
    char left[32];
    double done = (double)(e->step - p->first), seconds = e->seconds - p->start;
    time_left(done > 0 ? seconds / done * (double)(e->steps - e->step) : 0, left, sizeof left);
    snprintf(text, size, "%lld/%lld  loss %.4f  %.1fk tok/s  %s left", (long long)e->step, (long long)e->steps, p->loss, p->speed / 1000,
             left);
}

/* At most ten times a second; the width is asked for each time, so that a resized window is fine. */
static void draw(struct progress *p, const struct wf_event *e)
{
    if (e->seconds - p->last_draw < 0.1 && e->step < e->steps)
        return;
    p->last_draw = e->seconds;
    char text[160];
    describe(p, e, text, sizeof text);
    int width = columns() - 1, bar = width - (int)strlen(text) - 3;
    bar = bar > 40 ? 40 : bar;
    fputs("\r\033[K", stderr);
    if (bar >= 4) {
        int full = (int)((double)bar * (double)e->step / (double)(e->steps > 0 ? e->steps : 1));
        fputc('[', stderr);
        for (int i = 0; i < bar; i++)
            fputc(i < full ? '#' : '.', stderr);
        fputs("] ", stderr);
    }
    fprintf(stderr, "%.*s", width, text);
    fflush(stderr);
    p->drawn = true;
}

static void line(struct progress *p, const struct wf_event *e)
{
    int64_t every = e->steps / 20 > 0 ? e->steps / 20 : 1;
    if (e->step % every != 0 && e->seconds - p->last_line < 10)
        return;
    p->last_line = e->seconds;
    char text[160];
    describe(p, e, text, sizeof text);
    fprintf(stderr, "step %s\n", text);
}

/* Before the training: on a terminal, and gone when it is done; elsewhere a line now and then, once it takes a while. */
static void prepare(struct progress *p, const struct wf_event *e)
{
    double share = e->total > 0 ? 100.0 * (double)e->done / (double)e->total : 0;
    if (p->terminal) {
        fprintf(stderr, "\r\033[K%.*s %.0f %%", columns() - 8, e->text, share);
        fflush(stderr);
        p->drawn = true;
    } else if (e->seconds >= (p->last_line > 0 ? p->last_line + 10 : 2)) {
        fprintf(stderr, "%s %.0f %%\n", e->text, share);
        p->last_line = e->seconds;
    }
}

static void begin(struct progress *p, const struct wf_event *e)
{
    const char *target = e->train_pairs > 0 ? "target " : "";
    progress_clear(p);
    p->first = e->step;
    p->start = e->seconds;
    char parameters[WF_NUMBER_SIZE], types[WF_NUMBER_SIZE], tokens[WF_NUMBER_SIZE];
    fprintf(stderr, "%s parameters, %s types; %s %stokens to train on, ", wf_text_count(e->parameters, parameters),
            wf_text_count(e->vocab_size, types), wf_text_count(e->train_tokens, tokens), target);
    if (e->valid_tokens > 0)
        fprintf(stderr, "%s to validate\n", wf_text_count(e->valid_tokens, tokens));
    else
        fputs("no validation\n", stderr);
    if (e->step > 0)
        fprintf(stderr, "going on after step %lld of %lld\n", (long long)e->step, (long long)e->steps);
}

void progress_event(void *progress, const struct wf_event *e)
{
    struct progress *p = progress;
    switch (e->kind) {
    case WF_EVENT_PREPARE:
        prepare(p, e);
        break;
    case WF_EVENT_DATA:
        progress_clear(p);
        fprintf(stderr, "%s\n", e->text);
        break;
    case WF_EVENT_START:
        begin(p, e);
        break;
    case WF_EVENT_STEP:
        p->loss = isnan(p->loss) ? e->loss : 0.9 * p->loss + 0.1 * e->loss;
        p->speed = p->speed == 0 ? e->tokens_per_second : 0.9 * p->speed + 0.1 * e->tokens_per_second;
        if (p->terminal)
            draw(p, e);
        else
            line(p, e);
        break;
    case WF_EVENT_VALID:
        progress_clear(p);
        fprintf(stderr, "step %lld  validation loss %.4f  best %.4f\n", (long long)e->step, e->loss, e->best);
        break;
    case WF_EVENT_SAVE:
        break;
    case WF_EVENT_WARNING:
        progress_clear(p);
        fprintf(stderr, "weft: warning: %s\n", e->text);
        break;
    case WF_EVENT_END:
        progress_clear(p);
        fprintf(stderr, "step %lld of %lld: %s\n", (long long)e->step, (long long)e->steps, e->text);
        break;
    case WF_EVENT_SAMPLE: /* for metrics.jsonl and TensorBoard */
        break;
    }
}

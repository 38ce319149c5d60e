/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <math.h>
#include <stdio.h>

#include <weft/internal/text.h>

void progress_start(struct progress *p)
{
    *p = (struct progress){.first = -1, .loss = NAN};
    display_open(&p->display);
}

void progress_clear(struct progress *p)
{
    display_clear(&p->display);
}

static void describe(const struct progress *p, const struct wf_event *e, char *text, size_t size)
{
    char left[DISPLAY_TIME], loss[32] = "-", speed[32];
    double done = (double)(e->step - p->first), seconds = e->seconds - p->start;
    if (!isnan(p->loss))
        snprintf(loss, sizeof loss, "%.4f", p->loss);
    if (p->speed < 1e3)
        snprintf(speed, sizeof speed, "%.0f", p->speed);
    else
        snprintf(speed, sizeof speed, p->speed < 1e6 ? "%.1fk" : "%.1fM", p->speed / (p->speed < 1e6 ? 1e3 : 1e6));
    snprintf(text, size, "%lld/%lld  loss %s  %s tok/s  %s left", (long long)e->step, (long long)e->steps, loss, speed,
             display_time(done > 0 ? seconds / done * (double)(e->steps - e->step) : 0, left));
}

static void step(struct progress *p, const struct wf_event *e)
{
    char text[DISPLAY_TEXT];
    int64_t every = e->steps / 20 > 0 ? e->steps / 20 : 1;
    bool last = e->step >= e->steps;
    p->loss = isnan(p->loss) ? e->loss : 0.9 * p->loss + 0.1 * e->loss;
    p->speed = p->speed == 0 ? e->tokens_per_second : 0.9 * p->speed + 0.1 * e->tokens_per_second;
    describe(p, e, text, sizeof text);
    if (p->display.terminal)
        display_show(&p->display, e->steps > 0 ? (double)e->step / (double)e->steps : 1, last, "%s", text);
    else if (last || e->step % every == 0)
        display_line(&p->display, "step %s", text);
    else /* slow ones: a line now and then all the same */
        display_show(&p->display, -1, false, "step %s", text);
}

/* Before the training. */
static void prepare(struct progress *p, const struct wf_event *e)
{
    double share = e->total > 0 ? (double)e->done / (double)e->total : 0;
    if (p->display.drawn_at < 0 && display_seconds(&p->display) < 0.5) /* a short preparation would only flash up */
        return;
    display_show(&p->display, share, false, "%s %.0f %%", e->text, 100 * share);
}

static void begin(struct progress *p, const struct wf_event *e)
{
    char parameters[WF_NUMBER_SIZE], types[WF_NUMBER_SIZE], tokens[WF_NUMBER_SIZE], valid[WF_NUMBER_SIZE];
    display_clear(&p->display);
    p->first = e->step;
    p->start = e->seconds;
    wf_text_count(e->valid_tokens, valid);
    display_line(&p->display, "%s parameters, vocabulary size %s; %s %stokens to train on, %s%s to validate",
                 wf_text_count(e->parameters, parameters), wf_text_count(e->vocab_size, types), wf_text_count(e->train_tokens, tokens),
                 e->train_pairs > 0 ? "target " : "", e->valid_tokens > 0 ? valid : "none",
                 e->valid_tokens > 0 && e->masked ? " masked tokens" : "");
    if (e->step > 0)
        display_line(&p->display, "resuming after step %lld of %lld", (long long)e->step, (long long)e->steps);
}

void progress_event(void *progress, const struct wf_event *e)
{
    struct progress *p = progress;
    switch (e->kind) {
    case WF_EVENT_PREPARE:
        prepare(p, e);
        break;
    case WF_EVENT_DATA:
    case WF_EVENT_CHANGE:
        display_clear(&p->display);
        display_line(&p->display, "%s", e->text);
        break;
    case WF_EVENT_START:
        begin(p, e);
        break;
    case WF_EVENT_STEP:
        step(p, e);
        break;
    case WF_EVENT_VALID:
        display_line(&p->display, "step %lld  validation loss %.4f  best %.4f", (long long)e->step, e->loss, e->best);
        break;
    case WF_EVENT_WARNING:
        display_line(&p->display, "weft: warning: %s", e->text);
        break;
    case WF_EVENT_END:
        display_clear(&p->display);
        display_line(&p->display, "step %lld of %lld: %s", (long long)e->step, (long long)e->steps, e->text);
        break;
    default: /* saves, samples of text: in the run's folder */
        break;
    }
}

/* SPDX-License-Identifier: MIT */
/* Turns the events of a training into the bar and the lines of a display. */
#include "train_progress.h"

#include <math.h>
#include <stdio.h>

#include "cli.h"

static void describe(const struct training_progress *p, const struct wf_event *e, char *text, size_t size)
{
    char left[DISPLAY_TIME], loss[32] = "-", speed[32];
    if (!isnan(p->loss))
        snprintf(loss, sizeof loss, "%.4f", p->loss);
    if (p->speed < 1e3)
        snprintf(speed, sizeof speed, "%.0f", p->speed);
    else
        snprintf(speed, sizeof speed, p->speed < 1e6 ? "%.1fk" : "%.1fM", p->speed / (p->speed < 1e6 ? 1e3 : 1e6));
    snprintf(text, size, "%lld/%lld  loss %s  %s tok/s  %s left", (long long)e->step, (long long)e->steps, loss, speed,
             display_time(e->left, left));
}

static void step(struct training_progress *p, const struct wf_event *e)
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
    else /* if steps are slow, print a line every ten seconds */
        display_show(&p->display, -1, false, "step %s", text);
}

/* Shows the progress of a validation or a save. On a terminal its start is drawn at once if it is expected to take more than 0.3 s; all
 * other events are shown only if display_show draws or prints at that time. */
static void during(struct training_progress *p, const struct wf_event *e)
{
    char text[DISPLAY_TEXT], share[32] = "", left[DISPLAY_TIME + 16] = "", time[DISPLAY_TIME];
    if (e->total > 0)
        snprintf(share, sizeof share, " %.0f %%", 100 * (double)e->done / (double)e->total);
    if (!isnan(e->left))
        snprintf(left, sizeof left, "  %s left", display_time(e->left, time));
    snprintf(text, sizeof text, "%lld/%lld  %s%s%s", (long long)e->step, (long long)e->steps, e->text, share, left);
    if (p->display.terminal)
        display_show(&p->display, e->steps > 0 ? (double)e->step / (double)e->steps : 1, e->total == 0 && e->expected > 0.3, "%s", text);
    else
        display_show(&p->display, -1, false, "step %s", text);
}

/* Shows the progress of the preparation before the training. */
static void prepare(struct training_progress *p, const struct wf_event *e)
{
    double share = e->total > 0 ? (double)e->done / (double)e->total : 0;
    if (p->display.drawn_at < 0 && display_seconds(&p->display) < 0.5) /* the progress of a short preparation would only flash up */
        return;
    display_show(&p->display, share, false, "%s %.0f %%", e->text, 100 * share);
}

static void begin(struct training_progress *p, const struct wf_event *e)
{
    char parameters[WF_NUMBER_SIZE], types[WF_NUMBER_SIZE], tokens[WF_NUMBER_SIZE], valid[WF_NUMBER_SIZE];
    display_clear(&p->display);
    p->begun = true;
    tell_precision(p->precision);
    wf_text_count(e->valid_tokens, valid);
    display_line(&p->display, "%s parameters, vocabulary size %s; %s %stokens to train on, %s%s to validate",
                 wf_text_count(e->parameters, parameters), wf_text_count(e->vocab_size, types), wf_text_count(e->train_tokens, tokens),
                 e->train_pairs > 0 ? "target " : "", e->valid_tokens > 0 ? valid : "none",
                 e->valid_tokens > 0 && e->masked ? " masked tokens" : "");
    if (e->step > 0)
        display_line(&p->display, "resuming after step %lld of %lld", (long long)e->step, (long long)e->steps);
}

void show_training(void *progress, const struct wf_event *e)
{
    struct training_progress *p = progress;
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
        if (isnan(e->bleu))
            display_line(&p->display, "step %lld  validation loss %.4f  best %.4f", (long long)e->step, e->loss, e->best);
        else
            display_line(&p->display, "step %lld  validation loss %.4f  BLEU %.2f  chrF %.2f  best %.4f", (long long)e->step, e->loss,
                         e->bleu, e->chrf, e->best);
        break;
    case WF_EVENT_PROGRESS:
        during(p, e);
        break;
    case WF_EVENT_WARNING:
        display_line(&p->display, "%s: warning: %s", program(), e->text);
        break;
    case WF_EVENT_END:
        display_clear(&p->display);
        display_line(&p->display, "step %lld of %lld: %s", (long long)e->step, (long long)e->steps, e->text);
        break;
    default: /* the end of a save and samples of text are not shown; the saved files and the samples are in the run's folder */
        break;
    }
}

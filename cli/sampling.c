/* SPDX-License-Identifier: MIT */
/* How the next token is chosen: the run's settings and the command line's. */
#include "sampling.h"

struct wf_sampler sampling_of(const struct sampling_options *a, const struct wf_run *run)
{
    struct wf_sampler s = run->sampler;
    const bool asks = a->temperature > 0 || a->top_k >= 0 || a->top_p > 0 || a->min_p >= 0;
    s.temperature = a->temperature >= 0 ? a->temperature : asks && s.temperature == 0 ? 1 : s.temperature;
    s.top_k = a->top_k >= 0 ? a->top_k : s.top_k;
    s.top_p = a->top_p > 0 ? a->top_p : s.top_p;
    s.min_p = a->min_p >= 0 ? a->min_p : s.min_p;
    s.repetition_penalty = a->repetition_given ? a->repetition_penalty : s.repetition_penalty;
    s.presence_penalty = a->presence_given ? a->presence_penalty : s.presence_penalty;
    s.frequency_penalty = a->frequency_given ? a->frequency_penalty : s.frequency_penalty;
    s.greedy = a->greedy || s.temperature == 0 || (s.greedy && !asks);
    return s;
}

wf_status sampling_check(const char *folder, const struct wf_run *run, wf_error *error)
{
    if (!run->refused[0])
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT,
                        "%s/generation_config.json: key \"%s\": this setting of generation is not supported: remove the key", folder,
                        run->refused);
}

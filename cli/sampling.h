/* SPDX-License-Identifier: MIT */
/* The options of commands that generate text: how the next token is chosen. */
#ifndef WEFT_CLI_SAMPLING_H
#define WEFT_CLI_SAMPLING_H

#include <weft/run.h>

struct sampling_options {
    int64_t top_k;                                                  /* -1: the run's setting, and so on */
    double temperature;                                             /* -1 */
    double top_p;                                                   /* 0 */
    double min_p;                                                   /* -1 */
    double repetition_penalty, presence_penalty, frequency_penalty; /* used if `given` is not NULL */
    const char *repetition_given, *presence_given, *frequency_given;
    bool greedy;
};
/* Values that stand for the run's settings. */
#define SAMPLING_DEFAULTS                                                                                                                  \
    {                                                                                                                                      \
        .top_k = -1, .temperature = -1, .min_p = -1                                                                                        \
    }
#define SAMPLING_ROWS(s)                                                                                                                   \
    {"temperature", "X",        "softmax temperature; below 1 less random, above 1 more random; 0: as --greedy", .real = &(s).temperature, \
     .least = 0,    .most = 1e6},                                                                                                          \
        {"top-k", "K", "sample from the K most likely tokens; 0: all", .number = &(s).top_k, .low = 0, .high = INT32_MAX},                 \
        {"top-p", "P", "sample from the most likely tokens with a total probability of P", .real = &(s).top_p, .least = 1e-9, .most = 1},  \
        {"min-p",    "P",      "sample from tokens that are at least P times as likely as the likeliest; 0: all", .real = &(s).min_p,      \
         .least = 0, .most = 1},                                                                                                           \
        {"repetition-penalty",                                                                                                             \
         "X",                                                                                                                              \
         "divide positive logits, and multiply others, by X, of tokens of the prompt and tokens already generated; 1: no penalty",         \
         .real = &(s).repetition_penalty,                                                                                                  \
         .least = 1e-3,                                                                                                                    \
         .most = 1e3,                                                                                                                      \
         .given = &(s).repetition_given},                                                                                                  \
        {"presence-penalty",                                                                                                               \
         "X",                                                                                                                              \
         "subtract X from logits of tokens already generated",                                                                             \
         .real = &(s).presence_penalty,                                                                                                    \
         .least = -1e3,                                                                                                                    \
         .most = 1e3,                                                                                                                      \
         .given = &(s).presence_given},                                                                                                    \
        {"frequency-penalty",                                                                                                              \
         "X",                                                                                                                              \
         "subtract X from logits of tokens for each time that they were generated",                                                        \
         .real = &(s).frequency_penalty,                                                                                                   \
         .least = -1e3,                                                                                                                    \
         .most = 1e3,                                                                                                                      \
         .given = &(s).frequency_given},                                                                                                   \
    {                                                                                                                                      \
        "greedy", NULL, "always take the most likely token", .flag = &(s).greedy                                                           \
    }

/* The settings of the run with what the command line replaces. An option that restricts or shapes sampling, such as --top-k, asks for
 * sampling where the run's settings are greedy. */
struct wf_sampler sampling_of(const struct sampling_options *s, const struct wf_run *run);

/* Refuses to generate with a folder whose generation_config.json asks for what Weft does not do. */
wf_status sampling_check(const char *folder, const struct wf_run *run, wf_error *error);

#endif

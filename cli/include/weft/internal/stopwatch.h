/* SPDX-License-Identifier: MIT */
/* The speed of a training step or of generation, on cases of fixed size: what `weft bench` prints.
 *
 * A training case is the whole step: gradients forgotten, forward, loss, backward, Adam, AdamW or the optimizer that is set, without
 * clipping, on one batch of random ids. The cases are those of other libraries' benchmarks by the same names, so that they can be compared.
 */
#ifndef WEFT_BENCH_STOPWATCH_H
#define WEFT_BENCH_STOPWATCH_H

#include <weft/config.h>

WF_BEGIN_DECLS

struct wf_bench_case {
    const char *name;                  /* "nanogpt-char-small", "generate-nanogpt-char" */
    const char *preset;                /* the model's row in the zoo */
    const char *purpose;               /* one line: sizes and what is measured */
    int64_t batch, length, vocab_size; /* rows and tokens a row of a step; generation: 1 and the new tokens */
    bool generate;                     /* tokens with a cache, the most likely one each time, instead of training steps */
    bool decoupled;                    /* AdamW, else Adam */
    /* `batch` pairs of sentences of `length` ids a side, for a model that translates */
    bool pairs;
    int64_t shortest; /* lengths are drawn from shortest .. length instead; 0: all are alike */
    double label_smoothing;
    bool of_preset; /* made of a preset: operations are counted as if all parameters were matrices */
};
int wf_bench_count(void);
const struct wf_bench_case *wf_bench_at(int index);
/* Finds the case of that name. A preset's name, or "generate-" and a preset's name, is a case too: a micro-batch as the preset trains it,
 * at its context, or pairs of 32 + 32 tokens; with a vocabulary of 65 tokens if the preset sets no size. The strings of *out are those of
 * `name` and of the preset. An unknown name is WF_ERR_ARGUMENT with the nearest one. */
wf_status wf_bench_find(const char *name, struct wf_bench_case *out, wf_error *error) WF_CHECKED;
/* The configuration of a case's model: the preset's, with the case's sizes and this dropout. */
wf_status wf_bench_config(const struct wf_bench_case *c, double dropout, struct wf_config *config, wf_error *error) WF_CHECKED;
/* Other sizes: settings, each "KEY=VALUE", NULL after the last; NULL: none. The keys of the model's family, `batch`, rows of a step,
 * and of a training step `optimizer` with its keys; `context` also sets the tokens of a row (of generation and of pairs what fits),
 * `vocab_size` the ids. *config is of wf_bench_config. WF_ERR_ARGUMENT, with the setting: a key that is unknown or that a step does not
 * use, a value out of its range, more than 2^31 tokens. */
wf_status wf_bench_set(struct wf_bench_case *c, struct wf_config *config, const char *const *settings, wf_error *error) WF_CHECKED;

struct wf_bench_options {
    double seconds; /* how long to measure; at least three steps, or `steps`. 0: 4 */
    int64_t steps;  /* at most so many; 0: as the time allows */
    double dropout; /* 0 <= p < 1, wherever the model has dropout */
    uint64_t seed;
    const char *const *settings;  /* as for wf_bench_set */
    bool (*cancelled)(void *ctx); /* looked at after each step: true ends with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};
struct wf_bench_result {
    const char *name;
    int64_t parameters, tokens; /* of the model; of a step (of pairs: both sides), or generated */
    int64_t steps;              /* measured, after two that were not */
    double ms, ms_min, ms_max;  /* of a step, or of generating all tokens: median, least, most */
    double ms_mean;             /* beside other programs more than the median says */
    double gflop;               /* counted operations, 10^9, of a step: 6 x matrix parameters x tokens + 12 B T^2 d each attention; of
                                   pairs of different lengths those that are done, not what padding would add */
    double gflops;              /* gflop a second, at the median */
    double peak_rss_mib;        /* of the process while this case ran, where the system tells; else since its start */
    double loss;                /* of the last step; generation: 0 */
    int threads;
    const char *isa;
};
/* Runs a case; the name as for wf_bench_find. */
wf_status wf_bench_run(const char *name, const struct wf_bench_options *options, struct wf_bench_result *result,
                       wf_error *error) WF_CHECKED;
/* A result as one line of JSON, an object without a newline: the keys case, parameters, tokens, ms, ms_min, ms_max, gflops,
 * peak_rss_mib, threads, isa, and ms_mean, steps, tokens_per_second, loss. Returns text; 512 bytes hold any. The same in every locale. */
char *wf_bench_json(const struct wf_bench_result *result, char *text, size_t size);

WF_END_DECLS

#endif

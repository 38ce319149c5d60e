/* SPDX-License-Identifier: MIT */
/* Benchmark cases of fixed size, which `weft bench` runs. A case measures the speed of a training step or of generation.
 *
 * A training case measures the whole step on one batch of random ids: clearing the gradients, forward, loss, backward, and the update by
 * Adam, AdamW or the optimiser that a setting chooses. Gradients are not clipped. Cases have the names and sizes of other libraries'
 * benchmarks, so that the times can be compared. */
#ifndef WEFT_BENCH_STOPWATCH_H
#define WEFT_BENCH_STOPWATCH_H

#include <weft/config.h>

WF_BEGIN_DECLS

struct wf_bench_case {
    const char *name;       /* such as "nanogpt-char-small" or "generate-nanogpt-char" */
    const char *preset;     /* name of the preset that gives the model */
    const char *purpose;    /* one line for the help: the sizes, and what is measured */
    int64_t batch;          /* rows of a training step; with `pairs` the number of pairs; 1 for generation */
    int64_t length;         /* tokens in a row; with `pairs` the tokens on each side; for generation the number of new tokens */
    int64_t vocab_size;     /* ids are drawn from 0 .. vocab_size-1 */
    bool generate;          /* measures greedy generation with a cache instead of training steps */
    bool decoupled;         /* trains with AdamW; false: with Adam */
    bool pairs;             /* the model translates, and a step takes pairs of sentences */
    int64_t shortest;       /* each sentence of a pair has a random length from `shortest` to `length`; 0: all have `length` tokens */
    double label_smoothing; /* label smoothing of the loss on pairs */
    bool of_preset;         /* the case was made from a preset: the operations of a step are estimated from all parameters */
};
int wf_bench_count(void);
const struct wf_bench_case *wf_bench_at(int index);
/* Finds the case with this name. A preset's name is also a case: one micro-batch of the preset's training, with rows of `crop` tokens,
 * or if the preset's `crop` is 0, with rows as long as the context. For a model that translates, the case is a batch of 32 pairs of 32 + 32
 * tokens. "generate-" and the name of a preset is the case that generates 256 tokens. A shorter `crop` or context takes the place of
 * these 32 or 256 tokens. If the preset sets no vocabulary size, the case has 65 different tokens. The strings in *out may be parts of
 * `name` and of the preset, which must outlive *out. An unknown name is WF_ERR_ARGUMENT, and the message suggests the nearest name. */
wf_status wf_bench_find(const char *name, struct wf_bench_case *out, wf_error *error) WF_CHECKED;
/* Makes the configuration of a case's model: the preset with the sizes of the case and this dropout. */
wf_status wf_bench_config(const struct wf_bench_case *c, double dropout, struct wf_config *config, wf_error *error) WF_CHECKED;
/* Changes the case, and its configuration from wf_bench_config, by settings: strings "KEY=VALUE" with NULL after the last one, or NULL for
 * no settings. Allowed keys are those of the model's family, `batch` (rows of a training step without pairs), and for a training step
 * `optimizer` and the keys of that optimiser. `context` also sets the number of tokens in a row; for pairs and generation it can only
 * lower their length. `vocab_size` also sets the range of the random ids. WF_ERR_ARGUMENT: a key is unknown or has no effect on the
 * measured step, a value is out of its range, or a step would have more than 2^31 tokens. */
wf_status wf_bench_set(struct wf_bench_case *c, struct wf_config *config, const char *const *settings, wf_error *error) WF_CHECKED;

struct wf_bench_options {
    double seconds; /* steps are measured for this time, and at least three of them (or `steps` if that is fewer); 0: 4 seconds */
    int64_t steps;  /* maximum number of measured steps; 0: as the time allows */
    double dropout; /* rate p of every dropout in the model, 0 <= p < 1 */
    uint64_t seed;  /* seed of weights, ids and dropout */
    enum wf_precision precision;  /* arithmetic of matrix products */
    const char *const *settings;  /* settings for wf_bench_set; may be NULL */
    bool (*cancelled)(void *ctx); /* called after each step; true ends the measurement with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;                    /* argument of `cancelled` */
};
struct wf_bench_result {
    const char *name;            /* name of the case */
    int64_t parameters;          /* number of the model's parameters */
    int64_t tokens;              /* tokens of a step (for pairs on both sides together), or generated tokens */
    int64_t steps;               /* number of measured steps; two more ran before them as a warm-up */
    double ms;                   /* median time in milliseconds of a step, or of generating all tokens */
    double ms_min;               /* shortest of these times */
    double ms_max;               /* longest of these times */
    double ms_mean;              /* mean of these times, which is a better measure than the median if other programs run at the same time */
    double gflop;                /* counted operations of a step, in units of 10^9: 6 x matrix parameters x tokens + 12 B T^2 d for each
                                    attention, with B rows of T tokens and width d; for generation 2 x matrix parameters x tokens. Pairs are
                                    packed, so there is no padding to count */
    double gflops;               /* gflop per second, at the median time */
    double peak_rss_mib;         /* peak resident memory of the process in MiB while this case ran; since the process started if the system
                                    cannot reset the peak */
    double loss;                 /* loss of the last step; 0 for generation */
    int threads;                 /* number of threads */
    const char *isa;             /* instruction set of the kernels */
    enum wf_precision precision; /* arithmetic of matrix products */
};
/* Runs the case that wf_bench_find finds for `name`, and writes the times to *result. */
wf_status wf_bench_run(const char *name, const struct wf_bench_options *options, struct wf_bench_result *result,
                       wf_error *error) WF_CHECKED;
/* Writes a result to `text` as one JSON object without a newline, and returns `text`. 512 bytes are enough. The keys are case, parameters,
 * tokens, ms, ms_min, ms_max, gflops, peak_rss_mib, threads, isa, precision, ms_mean, steps, tokens_per_second and loss. Numbers are
 * written with a decimal point in every locale. */
char *wf_bench_json(const struct wf_bench_result *result, char *text, size_t size);

WF_END_DECLS

#endif

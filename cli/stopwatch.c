/* SPDX-License-Identifier: MIT */
/* Runs a benchmark case: makes its model and data, times training steps or generation, and reports the times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <weft/encoder.h>
#include <weft/generate.h>
#include <weft/internal/family.h>
#include <weft/internal/gemm.h>
#include <weft/internal/grow.h>
#include <weft/internal/locale_c.h>
#include <weft/memory.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/random.h>
#include <weft/runtime.h>
#include <weft/seq2seq.h>

#include <weft/internal/optimizers.h>
#include <weft/internal/stopwatch.h>

enum { WARM = 2, LEAST = 3 };

struct bench {
    struct wf_bench_case c;
    const struct wf_bench_options *options;
    struct wf_config config;
    wf_model *model;
    wf_tape *tape;
    struct wf_optimizer optimizer;
    int32_t *x;              /* input ids [batch,length]; for pairs the packed ids of the sources; for generation the prompt */
    int32_t *y;              /* target ids [batch,length]; for pairs the packed ids of the targets; for generation the new ids */
    int32_t *input;          /* packed input ids of the decoder, for pairs */
    int32_t *source_offsets; /* [batch + 1]: index in x where each source of the pairs begins */
    int32_t *target_offsets; /* [batch + 1]: index in y and input where each target of the pairs begins */
    int32_t *places;         /* [batch * length] indices of the tokens that an encoder predicts: 0, 1, ..., all of them */
    struct wf_pairs pairs;   /* points to x, input, y and the offsets */
    uint64_t step;
    double loss;
    double *sample;  /* time of each measured step in ms; `report` sorts it */
    int64_t samples; /* number of measured steps */
    int64_t room;    /* capacity of `sample` */
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static wf_tensor *cross_entropy_of(struct bench *b)
{
    const struct wf_bench_case *c = &b->c;
    if (c->pairs)
        return wf_pairs_loss(b->model, b->tape, &b->pairs, .label_smoothing = c->label_smoothing);
    wf_tensor *x = wf_ids(b->tape, b->x, c->batch, c->length);
    if (wf_config_kind(&b->config) == WF_MODEL_ENCODER)
        return wf_encoder_loss(b->model, x, NULL, b->places, b->y, c->batch * c->length, 0);
    return wf_model_loss(b->model, x, wf_ids(b->tape, b->y, c->batch, c->length));
}

/* The training loss: the cross-entropy with the additional terms of the model's family. */
static wf_tensor *loss_of(struct bench *b)
{
    struct wf_loss_terms terms;
    wf_tensor *term;
    wf_loss_terms_begin(&terms, b->model, b->tape, 1, 1);
    return wf_loss_terms_end(&terms, cross_entropy_of(b), &term);
}

static wf_status train_once(struct bench *b, wf_error *error)
{
    wf_tape_reset(b->tape, WF_TRAIN, .seed = b->options->seed, .step = b->step++, .precision = b->options->precision);
    wf_tensor *loss = loss_of(b);
    if (wf_backward(loss) != WF_OK || wf_item(loss, &b->loss) != WF_OK)
        return wf_tape_status(b->tape, error);
    return wf_optimizer_step(&b->optimizer, error);
}

static wf_status generate_once(struct bench *b, wf_error *error)
{
    const struct wf_generate_options o = {.sampler = {.greedy = true}, .max_tokens = b->c.length};
    int64_t count;
    return wf_generate_with(b->model, b->tape, b->x, 1, &o, b->y, &count, error);
}

static void random_ids(wf_rng *rng, int64_t n, int64_t types, int32_t *ids)
{
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)wf_rng_below(rng, (uint64_t)types);
}

/* Makes a batch of random ids: rows with the same length, or pairs packed end to end. */
static wf_status make_batch(struct bench *b, wf_error *error)
{
    const struct wf_bench_case *c = &b->c;
    int64_t n = c->batch * c->length;
    b->x = wf_alloc_zero((size_t)(4 * n + 2 * (c->batch + 1)), sizeof *b->x); /* one block of memory for all arrays */
    b->y = b->x + n;
    b->input = b->y + n;
    b->places = b->input + n;
    b->source_offsets = b->places + n;
    b->target_offsets = b->source_offsets + c->batch + 1;
    if (!b->x)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a batch of %lld ids", (long long)n);
    if (c->generate)
        return WF_OK;
    for (int64_t i = 0; i < n; i++)
        b->places[i] = (int32_t)i;
    wf_rng rng = wf_rng_new(b->options->seed, wf_stream_of("bench"));
    for (int64_t i = 0, least = c->shortest > 0 ? c->shortest : c->length; i < c->batch; i++) {
        b->source_offsets[i + 1] = b->source_offsets[i] + (int32_t)(least + (int64_t)wf_rng_below(&rng, (uint64_t)(c->length - least + 1)));
        b->target_offsets[i + 1] = b->target_offsets[i] + (int32_t)(least + (int64_t)wf_rng_below(&rng, (uint64_t)(c->length - least + 1)));
    }
    random_ids(&rng, b->source_offsets[c->batch], c->vocab_size, b->x);
    random_ids(&rng, b->target_offsets[c->batch], c->vocab_size, b->y);
    random_ids(&rng, b->target_offsets[c->batch], c->vocab_size, b->input);
    b->pairs = (struct wf_pairs){.count = c->batch,
                                 .source = b->x,
                                 .source_offsets = b->source_offsets,
                                 .input = b->input,
                                 .target = b->y,
                                 .target_offsets = b->target_offsets};
    return WF_OK;
}

static wf_status setup(struct bench *b, wf_error *error)
{
    wf_status status = wf_bench_config(&b->c, b->options->dropout, &b->config, error);
    if (status == WF_OK)
        status = wf_bench_set(&b->c, &b->config, b->options->settings, error);
    b->config.training.precision = b->options->precision;
    if (status != WF_OK || !(b->model = wf_model_new(&b->config, error)) || !(b->tape = wf_tape_new(error)))
        return status != WF_OK ? status : error ? error->code : WF_ERR_MEMORY;
    wf_registry *registry = wf_model_registry(b->model);
    status = wf_registry_build(registry, b->options->seed, error);
    if (status == WF_OK && !b->c.generate && b->config.optimizer.kind != WF_OPTIMIZER_ADAMW)
        status = wf_config_optimizer_init(&b->config, registry, &b->optimizer, error);
    else if (status == WF_OK && !b->c.generate)
        status = wf_adam_init(&b->optimizer, registry, error, .lr = 1e-4, .weight_decay = b->c.decoupled ? 0.01 : 0,
                              .decoupled = b->c.decoupled);
    return status == WF_OK ? make_batch(b, error) : status;
}

static wf_status measure(struct bench *b, wf_error *error)
{
    double seconds = b->options->seconds > 0 ? b->options->seconds : 4, start = 0;
    int64_t least = b->options->steps > 0 && b->options->steps < LEAST ? b->options->steps : LEAST;
    for (int64_t i = -WARM; i < least || (now_ms() - start < seconds * 1e3 && (b->options->steps < 1 || i < b->options->steps)); i++) {
        if (i == 0)
            start = now_ms();
        if (!wf_grow(&b->sample, &b->room, i + 1, sizeof *b->sample))
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for the times of %lld steps", (long long)i + 1);
        double begin = now_ms();
        wf_status status = b->c.generate ? generate_once(b, error) : train_once(b, error);
        if (status != WF_OK)
            return status;
        if (i >= 0)
            b->sample[b->samples++] = now_ms() - begin;
        if (b->options->cancelled && b->options->cancelled(b->options->ctx))
            return wf_error_set(error, WF_ERR_CANCELLED, "cancelled after %lld steps", (long long)b->samples);
    }
    return WF_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t tokens(const struct bench *b)
{
    return b->c.pairs ? b->source_offsets[b->c.batch] + b->target_offsets[b->c.batch] : b->c.batch * b->c.length;
}

/* Counts the operations of a step on pairs, in units of 10^9. The decoder computes the keys and values of its cross-attention from the
 * source, so the products with these two weight matrices count for each source token. */
static double pair_operations(const struct bench *b)
{
    struct wf_model_shape c = wf_config_shape(&b->config);
    double d = (double)c.width, encoder = (double)c.encoder_layers, decoder = (double)c.layers, ffn = (double)c.ffn_weights;
    double source = b->source_offsets[b->c.batch], target = b->target_offsets[b->c.batch], scores = 0;
    for (int64_t i = 0; i < b->c.batch; i++) {
        double s = b->source_offsets[i + 1] - b->source_offsets[i], t = b->target_offsets[i + 1] - b->target_offsets[i];
        scores += encoder * s * s + decoder * (t * t + t * s);
    }
    double products =
        source * (encoder * (4 * d * d + ffn) + decoder * 2 * d * d) + target * (decoder * (6 * d * d + ffn) + d * (double)c.vocab_size);
    return 1e-9 * (6 * products + 12 * d * scores);
}

/* Counts the operations of a step, in units of 10^9. As usual in such counts, only matrix products count, and causal attention counts as if
 * each token attended to all tokens of its row. If the case was made from a preset for sentence pairs, each parameter counts for half of
 * the sum of source and target tokens, as if it were used on one side only and both sides were equally long. */
static double operations(const struct bench *b)
{
    struct wf_model_shape c = wf_config_shape(&b->config);
    double d = (double)c.width, layers = (double)c.layers;
    double matrices = layers * (2 * d * d + 2 * d * (double)c.kv_width + (double)c.ffn_weights) + d * (double)c.vocab_size;
    double rows = (double)b->c.batch, T = (double)b->c.length;
    if (b->c.of_preset) /* the shapes of the family's matrices are not known here, so all parameters count as matrices */
        matrices = (double)wf_registry_parameters(wf_model_registry(b->model));
    if (b->c.pairs)
        return b->c.of_preset ? 1e-9 * 6 * matrices * (double)tokens(b) / 2 : pair_operations(b);
    if (b->c.generate)
        return 1e-9 * 2 * matrices * T; /* without attention, which takes few operations compared with the matrices */
    return 1e-9 * (6 * matrices * rows * T + 12 * rows * T * T * d * layers);
}

/* Peak resident memory in MiB, from the high-water mark of this process in /proc. getrusage is used only if /proc has no such mark, because
 * the peak of getrusage includes memory that the parent process had before exec. */
static double peak_rss_mib(void)
{
    char line[256];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    struct rusage usage;
    if (kib == 0 && getrusage(RUSAGE_SELF, &usage) == 0)
        kib = usage.ru_maxrss;
    return (double)kib / 1024;
}

static void peak_reset(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

static void report(struct bench *b, struct wf_bench_result *r)
{
    double sum = 0;
    for (int64_t i = 0; i < b->samples; i++)
        sum += b->sample[i];
    qsort(b->sample, (size_t)b->samples, sizeof *b->sample, compare);
    *r = (struct wf_bench_result){.name = b->c.name,
                                  .parameters = wf_registry_parameters(wf_model_registry(b->model)),
                                  .tokens = tokens(b),
                                  .steps = b->samples,
                                  .ms = b->sample[b->samples / 2],
                                  .ms_mean = sum / (double)b->samples,
                                  .ms_min = b->sample[0],
                                  .ms_max = b->sample[b->samples - 1],
                                  .gflop = operations(b),
                                  .peak_rss_mib = peak_rss_mib(),
                                  .loss = b->loss,
                                  .threads = wf_threads(),
                                  .isa = wf_isa(),
                                  .precision = b->options->precision};
    r->gflops = r->gflop / (r->ms * 1e-3);
}

wf_status wf_bench_run(const char *name, const struct wf_bench_options *options, struct wf_bench_result *result, wf_error *error)
{
    struct bench b = {.options = options};
    if (wf_bench_find(name, &b.c, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    peak_reset();
    wf_status status = setup(&b, error);
    if (status == WF_OK)
        status = measure(&b, error);
    if (status == WF_OK)
        report(&b, result);
    wf_optimizer_free(&b.optimizer);
    wf_tape_free(b.tape);
    wf_model_free(b.model);
    wf_free(b.x);
    wf_free(b.sample);
    return status;
}

char *wf_bench_json(const struct wf_bench_result *r, char *text, size_t size)
{
    locale_t before = locale_c_enter();
    snprintf(text, size,
             "{\"case\":\"%s\",\"parameters\":%lld,\"tokens\":%lld,\"ms\":%.4f,\"ms_min\":%.4f,\"ms_max\":%.4f,\"gflops\":%.2f,"
             "\"peak_rss_mib\":%.1f,\"threads\":%d,\"isa\":\"%s\",\"precision\":\"%s\",\"ms_mean\":%.4f,\"steps\":%lld,\"tokens_per_"
             "second\":%.1f,\"loss\":%.6f}",
             r->name, (long long)r->parameters, (long long)r->tokens, r->ms, r->ms_min, r->ms_max, r->gflops, r->peak_rss_mib, r->threads,
             r->isa, wf_precision_name(r->precision), r->ms_mean, (long long)r->steps, (double)r->tokens / (r->ms * 1e-3), r->loss);
    locale_c_leave(before);
    return text;
}

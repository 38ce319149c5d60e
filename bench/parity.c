/* SPDX-License-Identifier: MIT */
/* Writes the inputs and results of a training case to a safetensors file, for a comparison with another library: weights, batches, loss,
 * logits, all gradients, and the losses of some updates. bench/parity.py and ./bench/compare read the file.
 *
 *   parity [-t threads] [-n updates] [-a activation] [-l] CASE FILE        -l: only weights, the first batch and its loss
 *
 * The cases are defined in stopwatch.h; this program computes them without dropout. The updates train with the settings of the case's
 * preset (AdamW, clipping, schedule), one batch each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/encoder.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/random.h>
#include <weft/runtime.h>
#include <weft/seq2seq.h>

#include <weft/internal/stopwatch.h>

#include "measure.h"

struct parity {
    struct wf_bench_case c;
    struct wf_config config;
    wf_model *model;
    wf_registry *registry;
    wf_tape *tape;
    wf_safetensors_writer *writer;
    int64_t updates;
    int32_t *x;          /* ids [updates, batch, length]; for pairs: ids of the sources, end to end in each update */
    int32_t *y;          /* ids of the targets, laid out like x */
    int32_t *places;     /* for encoders: indices of the tokens that have a target: 0, 1, 2, ..., because every token has a target */
    int32_t *input;      /* for pairs: ids that the decoder reads, laid out like y */
    int32_t *offsets[2]; /* for pairs: offsets of the sources and of the targets, [updates, batch + 1] each */
    bool loss_only;
    double loss, *losses;
};

/* Each target is a function of the id at its place, so that the model can learn it. No id in x is 0, because models of other libraries may
 * take 0 for padding. */
static void make_batches(struct parity *p)
{
    int64_t n = p->updates * p->c.batch * p->c.length;
    wf_rng rng = wf_rng_new(5, wf_stream_of("parity"));
    p->x = room(n, sizeof *p->x);
    p->y = room(n, sizeof *p->y);
    p->places = room(n, sizeof *p->places);
    for (int64_t i = 0; i < n; i++) {
        p->places[i] = (int32_t)i;
        p->x[i] = 1 + (int32_t)wf_rng_below(&rng, (uint64_t)p->c.vocab_size - 1);
        p->y[i] = (int32_t)((3 * (int64_t)p->x[i] + 1) % p->c.vocab_size);
    }
}

/* Makes pairs of sequences. Lengths vary from the case's `shortest` to its `length`. If the case has no `shortest`, they vary from half of
 * `length`, or with -l are all equal. A target is a function of its input and of the first id of the source. */
static void make_pairs(struct parity *p)
{
    int64_t rows = p->c.batch, length = p->c.length, least = p->loss_only ? length : (length + 1) / 2;
    least = p->c.shortest > 0 ? p->c.shortest : least;
    uint64_t types = (uint64_t)p->c.vocab_size - 1;
    wf_rng rng = wf_rng_new(5, wf_stream_of("parity"));
    int32_t **ids[] = {&p->x, &p->y, &p->input};
    for (int i = 0; i < 3; i++)
        *ids[i] = room(p->updates * rows * length, sizeof(int32_t));
    for (int i = 0; i < 2; i++)
        p->offsets[i] = room(p->updates * (rows + 1), sizeof(int32_t));
    for (int64_t u = 0; u < p->updates; u++) {
        int32_t *x = p->x + u * rows * length, *y = p->y + u * rows * length, *input = p->input + u * rows * length;
        for (int64_t i = 0; i < rows; i++) {
            int32_t *s = p->offsets[0] + u * (rows + 1) + i, *t = p->offsets[1] + u * (rows + 1) + i;
            s[1] = s[0] + (int32_t)(least + (int64_t)wf_rng_below(&rng, (uint64_t)(length - least + 1)));
            t[1] = t[0] + (int32_t)(least + (int64_t)wf_rng_below(&rng, (uint64_t)(length - least + 1)));
            for (int32_t k = s[0]; k < s[1]; k++)
                x[k] = 1 + (int32_t)wf_rng_below(&rng, types);
            for (int32_t k = t[0]; k < t[1]; k++) {
                input[k] = 1 + (int32_t)wf_rng_below(&rng, types);
                y[k] = 1 + (int32_t)(((int64_t)3 * input[k] + x[s[0]]) % (int64_t)types);
            }
        }
    }
}

static struct wf_pairs pairs_of(const struct parity *p, int64_t update)
{
    int64_t rows = p->c.batch, at = update * rows * p->c.length;
    return (struct wf_pairs){.count = rows,
                             .source = p->x + at,
                             .source_offsets = p->offsets[0] + update * (rows + 1),
                             .input = p->input + at,
                             .target = p->y + at,
                             .target_offsets = p->offsets[1] + update * (rows + 1)};
}

static wf_tensor *loss_of(struct parity *p, int64_t update)
{
    int64_t rows = p->c.batch, length = p->c.length, at = update * rows * length;
    wf_tape_reset(p->tape, WF_TRAIN);
    if (p->c.pairs) {
        struct wf_pairs pairs = pairs_of(p, update);
        return wf_pairs_loss(p->model, p->tape, &pairs, .label_smoothing = p->c.label_smoothing);
    }
    wf_tensor *x = wf_ids(p->tape, p->x + at, rows, length);
    if (wf_model_kind_of(p->model) == WF_MODEL_ENCODER)
        return wf_encoder_loss(p->model, x, NULL, p->places, p->y + at, rows * length, 0);
    return wf_model_loss(p->model, x, wf_ids(p->tape, p->y + at, rows, length));
}

/* Adds a copy of an array to the file. A copy, because the writer reads the elements only when it commits the file, after the updates. */
static void put(struct parity *p, const char *prefix, const char *name, const wf_array *a)
{
    char key[512];
    wf_shape shape = wf_array_shape(a);
    wf_array copy = wf_array_contiguous(room(wf_array_count(a), wf_dtype_size(a->dtype)), a->dtype, &shape);
    wf_array_copy(&copy, a);
    snprintf(key, sizeof key, "%s%s", prefix, name);
    wf_safetensors_put(p->writer, key, &copy);
}

static void put_numbers(struct parity *p, const char *name, const double *x, int64_t n)
{
    wf_array a = wf_array_contiguous((void *)x, WF_F64, &(wf_shape){1, {n}});
    put(p, "", name, &a);
}

static void put_weights(struct parity *p)
{
    for (int i = 0; i < wf_registry_count(p->registry); i++)
        if (!wf_registry_is_buffer(p->registry, i)) {
            const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(p->registry, i));
            put(p, "weights.", info->name, &info->value);
        }
}

static void put_text(struct parity *p)
{
    static const char *const keys[] = {
        "model",          "family",   "layers",       "heads",           "activation", "lr",  "min_lr", "warmup",
        "steps",          "schedule", "weight_decay", "beta1",           "beta2",      "eps", "clip",   "encoder_layers",
        "decoder_layers", "norm",     "final_norm",   "scale_embeddings"};
    for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++) {
        char text[256];
        if (strcmp(keys[i], "model") == 0 || strcmp(keys[i], "family") == 0)
            snprintf(text, sizeof text, "%s", i == 0 ? p->config.model : wf_config_family(&p->config));
        else if (!wf_config_get(&p->config, keys[i], text, sizeof text))
            continue;
        wf_safetensors_put_metadata(p->writer, keys[i], text);
    }
    char number[32];
    snprintf(number, sizeof number, "%.17g", p->c.label_smoothing);
    wf_safetensors_put_metadata(p->writer, "smoothing", number);
    wf_safetensors_put_metadata(p->writer, "isa", wf_isa());
    wf_safetensors_put_metadata(p->writer, "precision", sizeof(wf_real) == 8 ? "float64" : "float32");
}

static void put_ids(struct parity *p, const char *name, int32_t *ids, wf_shape shape)
{
    wf_array a = wf_array_contiguous(ids, WF_I32, &shape);
    put(p, "", name, &a);
}

/* Puts the batches of all updates, then the first batch once more under other names. In a batch of pairs, the ids lie end to end and may
 * leave elements at the end unused. */
static void put_batches(struct parity *p)
{
    int64_t rows = p->c.batch, n = rows * p->c.length;
    put_ids(p, "batches", p->x, (wf_shape){3, {p->updates, rows, p->c.length}});
    put_ids(p, "targets", p->y, (wf_shape){3, {p->updates, rows, p->c.length}});
    if (!p->c.pairs) {
        put_ids(p, "x", p->x, (wf_shape){2, {rows, p->c.length}});
        put_ids(p, "y", p->y, (wf_shape){2, {rows, p->c.length}});
        return;
    }
    put_ids(p, "inputs", p->input, (wf_shape){2, {p->updates, n}});
    put_ids(p, "offsets.source", p->offsets[0], (wf_shape){2, {p->updates, rows + 1}});
    put_ids(p, "offsets.target", p->offsets[1], (wf_shape){2, {p->updates, rows + 1}});
    put_ids(p, "source", p->x, (wf_shape){1, {p->offsets[0][rows]}});
    put_ids(p, "input", p->input, (wf_shape){1, {p->offsets[1][rows]}});
    put_ids(p, "target", p->y, (wf_shape){1, {p->offsets[1][rows]}});
    put_ids(p, "source_offsets", p->offsets[0], (wf_shape){1, {rows + 1}});
    put_ids(p, "target_offsets", p->offsets[1], (wf_shape){1, {rows + 1}});
    put_numbers(p, "label_smoothing", &p->c.label_smoothing, 1);
}

static wf_tensor *logits_of(struct parity *p)
{
    struct wf_pairs pairs = pairs_of(p, 0);
    if (p->c.pairs)
        return wf_pairs_logits(p->model, p->tape, &pairs, NULL);
    wf_tensor *x = wf_ids(p->tape, p->x, p->c.batch, p->c.length);
    return wf_model_kind_of(p->model) == WF_MODEL_ENCODER ? wf_encoder_logits(p->model, x, 0) : wf_model_logits(p->model, x, NULL);
}

static wf_status first(struct parity *p)
{
    wf_array view;
    put_weights(p);
    if (!p->loss_only) {
        wf_tape_reset(p->tape, WF_INFER);
        wf_status status = wf_view(logits_of(p), &view);
        if (status != WF_OK)
            return status;
        put(p, "", "logits", &view);
    }
    wf_tensor *loss = loss_of(p, 0);
    wf_status status = wf_item(loss, &p->loss);
    put_numbers(p, "loss", &p->loss, 1);
    if (status != WF_OK || p->loss_only)
        return status;
    status = wf_backward(loss);
    for (int i = 0; status == WF_OK && i < wf_registry_count(p->registry); i++)
        if (!wf_registry_is_buffer(p->registry, i)) {
            status = wf_grad(wf_registry_at(p->registry, i), &view);
            put(p, "grad.", wf_parameter_info(wf_registry_at(p->registry, i))->name, &view);
        }
    wf_grads_zero(wf_registry_grads(p->registry));
    return status;
}

static wf_status train(struct parity *p, wf_error *error)
{
    const struct wf_config *c = &p->config;
    const struct wf_schedule schedule = {(enum wf_schedule_kind)c->training.schedule, c->training.lr, c->training.min_lr,
                                         c->training.warmup, c->training.steps};
    struct wf_optimizer opt;
    wf_status status = wf_adamw_init(&opt, p->registry, error, .beta1 = c->training.beta1, .beta2 = c->training.beta2,
                                     .eps = c->training.eps, .weight_decay = c->training.weight_decay); /* a decay of 0 gives Adam */
    if (status != WF_OK)
        return status;
    wf_optimizer_decay_matrices_only(&opt);
    p->losses = room(p->updates, sizeof *p->losses);
    for (int64_t t = 0; status == WF_OK && t < p->updates; t++) {
        wf_tensor *loss = loss_of(p, t);
        if (wf_backward(loss) != WF_OK || wf_item(loss, &p->losses[t]) != WF_OK)
            status = WF_ERR_STATE;
        opt.lr = wf_schedule_lr(&schedule, t);
        if (status == WF_OK)
            status = wf_clip_norm(wf_registry_grads(p->registry), c->training.clip, NULL, error);
        if (status == WF_OK)
            status = wf_adam_step(&opt, error);
    }
    wf_optimizer_free(&opt);
    put_numbers(p, "losses", p->losses, p->updates);
    return status;
}

int main(int argc, char **argv)
{
    struct parity p = {0};
    wf_error error = {0};
    const char *given[128] = {NULL};
    if (!read_options(argc, argv, "t:n:a:l", given))
        return 2;
    p.loss_only = given['l'];
    p.updates = p.loss_only ? 1 : (int64_t)number_or(given['n'], 20);
    if (argc - optind != 2 || p.updates < 1)
        return fail("usage: parity [-t threads] [-n updates] [-a activation] [-l] CASE FILE"), 2;
    if (wf_bench_find(argv[optind], &p.c, &error) != WF_OK || p.c.generate)
        return fail("no such training case");
    if (wf_init(&error, .threads = (int)number_or(given['t'], 0)) != WF_OK || wf_bench_config(&p.c, 0, &p.config, &error) != WF_OK)
        return fail(error.message);
    if (given['a'] && wf_config_set(&p.config, "activation", given['a'], &error) != WF_OK)
        return fail(error.message);
    (p.c.pairs ? make_pairs : make_batches)(&p);
    p.model = wf_model_new(&p.config, &error);
    p.tape = wf_tape_new(&error);
    p.writer = wf_safetensors_writer_new();
    if (!p.model || !p.tape)
        return fail(error.message);
    p.registry = wf_model_registry(p.model);
    put_text(&p);
    put_batches(&p);
    wf_status status = wf_registry_build(p.registry, 1, &error);
    if (status == WF_OK)
        status = first(&p);
    if (status == WF_OK && !p.loss_only)
        status = train(&p, &error);
    if (status != WF_OK)
        return fail(error.code != WF_OK ? error.message : wf_tape_error(p.tape)->message);
    if (wf_safetensors_commit(p.writer, argv[optind + 1], &error) != WF_OK)
        return fail(error.message);
    printf("%s %.17g\n", p.c.name, p.loss);
    return 0; /* the copies are freed with the process */
}

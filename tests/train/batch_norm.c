/* SPDX-License-Identifier: MIT */
/* wf_fit with a small convolution net with batch normalisation, as a program from outside: it learns, the running statistics are in all
 * files, and a training that is interrupted or killed and resumed has the bytes of one that was not. */
#include "scenarios.h"

enum { PICTURES = 192, HELD = 64, EDGE = 8, STRIPES = 3, ROWS = 12, FILTERS = 6 };
struct stripes {
    struct seen seen; /* first, since it is the context of the events */
    wf_registry *registry;
    struct wf_convolution conv[2];
    struct wf_batch_norm norm[2];
    struct wf_linear out;
    struct wf_optimizer adam;
    double accuracy;
    wf_real picture[PICTURES + HELD][EDGE * EDGE];
    int32_t kind[PICTURES + HELD];
};

static void stripes_init(wf_scope s, struct stripes *n)
{
    for (int i = 0; i < 2; i++) {
        wf_conv2d_init(wf_sub_at(s, "conv", i), &n->conv[i], i ? FILTERS : 1, FILTERS, 3, .padding = 1, .no_bias = true);
        wf_batch_norm_init(wf_sub_at(s, "norm", i), &n->norm[i], FILTERS);
    }
    wf_linear_init(wf_sub(s, "out"), &n->out, FILTERS, STRIPES);
}

/* pictures [B,1,EDGE,EDGE] -> logits [B,STRIPES] */
static wf_tensor *stripes_forward(const struct stripes *n, wf_tensor *x)
{
    for (int i = 0; i < 2; i++) {
        x = wf_relu(wf_batch_norm_forward(&n->norm[i], wf_convolution_forward(&n->conv[i], x)));
        x = i ? wf_adaptive_avg_pool(x, 1, 1) : wf_max_pool(x, 2);
    }
    return wf_linear_forward(&n->out, wf_reshape(x, wf_dim(x, 0), FILTERS));
}

static wf_tensor *logits_of(const struct stripes *n, wf_tape *tape, int64_t first, int64_t rows, wf_tensor **kinds)
{
    *kinds = wf_ids_of(tape, n->kind + first, WF_SHAPE(rows));
    return stripes_forward(n, wf_input(tape, n->picture[first], WF_SHAPE(rows, 1, EDGE, EDGE), false));
}

static wf_status next_rows(void *ctx, int64_t step, double *weight, wf_error *error)
{
    (void)ctx, (void)step, (void)error;
    *weight = ROWS;
    return WF_OK;
}

static wf_tensor *stripes_loss(void *ctx, struct wf_micro_batch *b)
{
    const int64_t begin = ROWS * b->index / b->count, rows = ROWS * (b->index + 1) / b->count - begin;
    wf_tensor *kinds, *logits = logits_of(ctx, b->tape, b->step * ROWS % PICTURES + begin, rows, &kinds);
    return wf_cross_entropy(logits, kinds, .normalizer = b->weight);
}

/* In small batches: the running statistics give the same numbers for any. */
static wf_status stripes_validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    enum { FEW = 2 };
    struct stripes *n = ctx;
    n->accuracy = value[0] = 0;
    for (int64_t first = PICTURES; first < PICTURES + HELD; first += FEW) {
        wf_real logit[FEW][STRIPES];
        wf_tensor *kinds;
        double loss;
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *logits = logits_of(n, tape, first, FEW, &kinds);
        if (wf_item(wf_cross_entropy(logits, kinds), &loss) || wf_read(logits, logit[0], FEW * STRIPES))
            return wf_tape_status(tape, error);
        value[0] += loss * FEW / HELD;
        for (int i = 0; i < FEW; i++) {
            int best = 0;
            for (int k = 1; k < STRIPES; k++)
                best = logit[i][k] > logit[i][best] ? k : best;
            n->accuracy += (best == n->kind[first + i]) / (double)HELD;
        }
    }
    return WF_OK;
}

static const struct wf_metric stripes_metrics[] = {{"loss"}};
static const struct wf_task stripes_task = {.abi = WF_TASK_ABI,
                                            .name = "stripes",
                                            .metric = stripes_metrics,
                                            .metrics = 1,
                                            .next = next_rows,
                                            .loss = stripes_loss,
                                            .validate = stripes_validate};

/* Stripes along one axis or the other, or none, in noise. */
static struct stripes *stripes_open(void)
{
    struct stripes *n = calloc(1, sizeof *n);
    for (int i = 0; i < PICTURES + HELD; i++) {
        n->kind[i] = i * 7 % STRIPES;
        wf_fill_normal(n->picture[i], EDGE * EDGE, 3, 0.5, 9, (uint64_t)i); /* far from 0: without statistics nothing works */
        for (int p = 0; p < EDGE * EDGE && n->kind[i] < 2; p++)
            n->picture[i][p] += (n->kind[i] ? p % EDGE : p / EDGE) % 2 ? 1 : -1;
    }
    n->registry = wf_registry_new(NULL);
    stripes_init(wf_root(n->registry), n);
    ck_ok(wf_registry_build(n->registry, 1, error));
    ck_ok(wf_adamw_init(&n->adam, n->registry, error, .weight_decay = 0.1));
    n->adam.ema = 0.5;
    return n;
}

static void stripes_close(struct stripes *n)
{
    wf_optimizer_free(&n->adam);
    wf_registry_free(n->registry);
    free(n);
}

static struct wf_fit_options stripes_options(struct stripes *n, const char *out)
{
    static struct wf_fit_registry registry;
    static struct wf_fit_optimizer optimizer;
    registry = (struct wf_fit_registry){.registry = n->registry};
    optimizer = (struct wf_fit_optimizer){.optimizer = &n->adam, .schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 0.02, .min = 0.001}};
    return (struct wf_fit_options){.out = out,
                                   .registry = &registry,
                                   .registries = 1,
                                   .optimizer = &optimizer,
                                   .optimizers = 1,
                                   .steps = 60,
                                   .accumulate = 2,
                                   .clip = 1,
                                   .save_every = 7,
                                   .valid_every = 10,
                                   .keep = 2,
                                   .event = see_fit,
                                   .cancelled = cancel,
                                   .ctx = n};
}

static wf_status train_stripes(const struct trainee *t, const struct wf_fit_options *want, struct seen *seen, wf_error *problem)
{
    (void)t;
    struct stripes *n = stripes_open();
    struct wf_fit_options o = stripes_options(n, lasting(want->out));
    const wf_status status = fit_program(&stripes_task, &o, want, seen, problem);
    stripes_close(n);
    return status;
}
static const struct trainee trainee = {"stripes", train_stripes};

static const wf_real *value_of(const wf_registry *registry, const char *name)
{
    const wf_tensor *x = wf_registry_find(registry, name);
    ck_assert_msg(x != NULL, "%s", name);
    return wf_parameter_info(x)->value.data;
}

START_TEST(learns_and_saves)
{
    static const char *const files[] = {"run/model.safetensors", "run/best.safetensors", "run/ema.safetensors",
                                        "run/checkpoints/step-00000060.safetensors"};
    struct stripes *n = stripes_open(), *again = stripes_open();
    struct wf_fit_options o = stripes_options(n, in_folder("run"));
    struct wf_fit_result result;
    ck_ok(wf_fit(&stripes_task, &o, &result, error));
    ck_assert_msg(result.step == 60 && n->accuracy > 0.95, "accuracy %g", n->accuracy);
    ck_assert(value_of(n->registry, "norm.0.running_mean")[0] != 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        wf_safetensors *file = tensors_of(files[i]);
        const struct wf_safetensors_entry *e = wf_safetensors_find(file, "norm.1.running_var");
        ck_assert_msg(e && e->count == FILTERS, "%s", files[i]);
        ck_ok(wf_registry_load(again->registry, file, NULL, error));
        if (i != 1) /* all but the best are of the last update */
            ck_assert_mem_eq(value_of(again->registry, "norm.1.running_var"), value_of(n->registry, "norm.1.running_var"),
                             FILTERS * sizeof(wf_real));
        wf_safetensors_close(file);
    }
    wf_safetensors *state = tensors_of("run/state.safetensors");
    ck_assert(wf_safetensors_find(state, "model.norm.0.running_mean"));
    for (int64_t i = 0; i < wf_safetensors_count(state); i++) { /* no moments of a buffer */
        const char *name = wf_safetensors_at(state, i)->name;
        ck_assert_msg(!strstr(name, "running") || strncmp(name, "model.norm.", 11) == 0, "%s", name);
    }
    wf_safetensors_close(state);
    ck_assert_int_eq(wf_registry_parameters(n->registry), 9 * FILTERS + 9 * FILTERS * FILTERS + 4 * FILTERS + (FILTERS + 1) * STRIPES);
    stripes_close(n);
    stripes_close(again);
}
END_TEST

/* Two micro-batches change the statistics twice: r = 0.9 (0.9 r + 0.1 a) + 0.1 b, in the first update from 0. */
START_TEST(each_micro_batch_counts_once)
{
    struct stripes *n = stripes_open();
    double want[FILTERS] = {0};
    wf_tape *tape = wf_tape_new(NULL);
    for (int part = 0; part < 2; part++) { /* the mean of the first convolution's channels */
        wf_real y[FILTERS];
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *x = wf_input(tape, n->picture[part * ROWS / 2], WF_SHAPE(ROWS / 2, 1, EDGE, EDGE), false);
        ck_assert(wf_read(wf_mean_dim(wf_reshape(wf_transpose(wf_convolution_forward(&n->conv[0], x), 0, 1), FILTERS, -1), 1, false), y,
                          FILTERS) == WF_OK);
        for (int c = 0; c < FILTERS; c++)
            want[c] = 0.9 * want[c] + 0.1 * (double)y[c];
    }
    wf_tape_free(tape);
    struct wf_fit_options o = stripes_options(n, in_folder("once"));
    o.steps = 1;
    ck_ok(wf_fit(&stripes_task, &o, NULL, error));
    for (int c = 0; c < FILTERS; c++)
        ck_assert_double_eq_tol((double)value_of(n->registry, "norm.0.running_mean")[c], want[c], 1e-6);
    stripes_close(n);
}
END_TEST

START_TEST(cancelled_and_resumed)
{
    cancelled_anywhere(&trainee);
}
END_TEST

START_TEST(resumed_after_an_update)
{
    cancelled_after_an_update(&trainee);
}
END_TEST

START_TEST(killed_and_resumed)
{
    if (sanitized()) /* see interrupted.c */
        return;
    killed(&trainee);
}
END_TEST

START_TEST(memory)
{
    short_of_memory(&trainee);
    const struct seen seen = completes(
        &trainee, &(struct wf_fit_options){
                      .out = run_of(&trainee, "steady"), .steps = 30, .log_every = 1000, .save_every = 1000, .valid_every = 1000});
    ck_assert_int_eq(seen.most, 0); /* allocations of an update */
}
END_TEST

WF_TEST_MAIN("train/batch_norm", learns_and_saves, each_micro_batch_counts_once, cancelled_and_resumed, resumed_after_an_update,
             killed_and_resumed, memory)

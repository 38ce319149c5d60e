/* SPDX-License-Identifier: MIT */
/* nanogpt-char-small (12 x 64, 65 types) and char-rms (16 x 256, 70 types) against PyTorch, from the same weights, on the same batches:
 * libweft-f64 against torch.float64, libweft against torch.float32 (tests/golden/make_torch.py wrote both).
 *
 * Of big tensors the file has the norm, up to 2048 values at even distances, and 32 projections on vectors s of random signs. For the
 * difference d of two tensors E (s.d)^2 = |d|^2, so the root of the mean of (s.d)^2 over the 32 estimates |d|; the mean has a relative
 * deviation of sqrt(2/32) = 1/4, and a norm twice what is allowed passes in about one of a million cases. bench/parity.py compares
 * every element, with PyTorch at hand. */
#include <weft/optim.h>

#include "golden_model.h"

enum { SAMPLE = 2048, STEPS = 20 };

#ifdef WF_DOUBLE
static const char *const kind = "f64";
#else
static const char *const kind = "f32";
#endif

struct subject {
    const char *name;
    wf_safetensors *file;
    wf_model *model;
    wf_registry *registry;
    wf_tape *tape;
    int64_t rows, columns;
    int32_t types, *x, *y;
};

static struct subject make(const char *name, int64_t rows, int32_t types)
{
    struct subject s = {.name = name, .file = golden_open(name), .rows = rows, .types = types};
    struct wf_config config;
    ck_ok(wf_config_preset(&config, name, error));
    set_key(&config, "vocab_size", types);
    s.columns = key_of(&config, "context");
    golden_model(&config, name, &s.model, &s.registry, &s.tape);
    s.x = malloc((size_t)(rows * s.columns) * sizeof *s.x);
    s.y = malloc((size_t)(rows * s.columns) * sizeof *s.y);
    return s;
}

static void drop(struct subject *s)
{
    wf_safetensors_close(s->file);
    wf_tape_free(s->tape);
    wf_model_free(s->model);
    free(s->x);
    free(s->y);
}

static void batch(struct subject *s, int step)
{
    uint64_t stream = formula_name(s->name, "/ids");
    int64_t n = s->rows * s->columns;
    for (int64_t i = 0; i < n; i++) {
        s->x[i] = formula_id(stream, step * n + i, s->types);
        s->y[i] = (3 * s->x[i] + 1) % s->types;
    }
}

static wf_tensor *loss_of(struct subject *s, wf_mode mode)
{
    wf_tape_reset(s->tape, mode);
    return wf_model_loss(s->model, wf_ids(s->tape, s->x, s->rows, s->columns), wf_ids(s->tape, s->y, s->rows, s->columns));
}

/* |have - reference| <= relative * max(norm, norm_floor), for a tensor with statistics under `what` in the file. */
static void near(const struct subject *s, const char *what, const wf_array *array, double relative, double norm_floor)
{
    char key[256];
    int64_t n = wf_array_count(array), stride = (n + SAMPLE - 1) / SAMPLE;
    double *have = golden_elements(array);
    snprintf(key, sizeof key, "%s/norm", what);
    double norm = golden_number(s->file, kind, key), allowed = relative * fmax(norm, norm_floor);

    double difference = golden_apart(s->file, kind, s->name, what, array);
    ck_assert_msg(difference <= allowed, "%s: %s differs by about %g, allowed %g (norm %g)", s->name, what, difference, allowed, norm);

    /* Elements of a sample differ no more than the whole. */
    snprintf(key, sizeof key, "%s/%s/sample", kind, what);
    double *want = golden_read(s->file, key, (n + stride - 1) / stride), part = 0;
    for (int64_t i = 0; i < n; i += stride)
        part += (have[i] - want[i / stride]) * (have[i] - want[i / stride]);
    ck_assert_msg(sqrt(part) <= allowed, "%s: a sample of %s differs by %g, allowed %g (norm %g)", s->name, what, sqrt(part), allowed,
                  norm);
    ck_assert_msg(fabs(golden_norm(have, NULL, n) - norm) <= allowed, "%s: the norm of %s is not %g", s->name, what, norm);
    free(want);
    free(have);
}

static void compare(const char *name, int64_t rows, int32_t types)
{
    const bool is_double = sizeof(wf_real) == 8;
    const double tolerance = is_double ? 1e-9 : 1e-5;
    struct subject s = make(name, rows, types);
    wf_array view;
    double value;

    batch(&s, 0);
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        if (mode == WF_TRAIN && real_key(wf_model_config(s.model), "dropout") > 0)
            continue;
        wf_tape_reset(s.tape, (wf_mode)mode);
        wf_tensor *logits = wf_model_logits(s.model, wf_ids(s.tape, s.x, s.rows, s.columns), NULL);
        view = view_of(logits);
        near(&s, "logits", &view, tolerance, 0);
    }

    wf_tensor *loss = loss_of(&s, WF_GRADIENTS);
    value = backward(loss);
    ck_assert(fabs(value - golden_number(s.file, kind, "loss")) <= (is_double ? 1e-9 : 1e-6) * value);
    double global = golden_number(s.file, kind, "global_norm"), squares = 0;
    int compared = 0;
    for (int i = 0; i < wf_registry_count(s.registry); i++) {
        char key[256];
        if (wf_registry_is_buffer(s.registry, i))
            continue;
        snprintf(key, sizeof key, "d.%s", wf_parameter_info(wf_registry_at(s.registry, i))->name);
        ck_assert_int_eq(wf_grad(wf_registry_at(s.registry, i), &view), WF_OK);
        near(&s, key, &view, tolerance, 1e-3 * global);
        double *g = golden_elements(&view), norm = golden_norm(g, NULL, wf_array_count(&view));
        squares += norm * norm;
        free(g);
        compared++;
    }
    ck_assert(fabs(sqrt(squares) - global) <= tolerance * global);
    /* The reference has no other gradient: 3 tensors each, 3 of the logits, and loss, global_norm, losses; for two precisions. */
    ck_assert_int_eq(wf_safetensors_count(s.file), 2 * (3 * compared + 6));
    drop(&s);
}

/* 20 updates as the preset trains, with its clipping, decay and schedule, a fresh batch each. */
static void train(const char *name, int64_t rows, int32_t types)
{
    struct subject s = make(name, rows, types);
    const struct wf_config *c = wf_model_config(s.model);
    const struct wf_schedule schedule = {(enum wf_schedule_kind)c->training.schedule, c->training.lr, c->training.min_lr,
                                         c->training.warmup, c->training.steps};
    struct wf_optimizer opt;
    char key[64];
    snprintf(key, sizeof key, "%s/losses", kind);
    double *want = golden_read(s.file, key, STEPS), tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-4;
    ck_ok(wf_adamw_init(&opt, s.registry, error, .beta1 = c->training.beta1, .beta2 = c->training.beta2, .eps = c->training.eps,
                        .weight_decay = c->training.weight_decay));
    wf_optimizer_decay_matrices_only(&opt);
    int steps = sampled() ? 5 : STEPS;
    for (int t = 0; t < steps; t++) {
        double value;
        batch(&s, t);
        wf_tensor *loss = loss_of(&s, WF_TRAIN);
        value = backward(loss);
        ck_assert_msg(fabs(value - want[t]) <= tolerance * want[t], "%s: the loss of step %d is %.12g, not %.12g", name, t, value, want[t]);
        opt.lr = wf_schedule_lr(&schedule, t);
        ck_ok(wf_clip_norm(wf_registry_grads(s.registry), c->training.clip, NULL, error));
        ck_ok(wf_adam_step(&opt, error));
    }
    ck_assert(want[STEPS - 1] < want[0] - 0.2); /* it learned: without that the comparison would prove little */
    wf_optimizer_free(&opt);
    free(want);
    drop(&s);
}

START_TEST(gpt)
{
    compare("nanogpt-char-small", 12, 65);
}
END_TEST

START_TEST(gpt_trains)
{
    train("nanogpt-char-small", 12, 65);
}
END_TEST

START_TEST(rms)
{
    compare("char-rms", 16, 70);
}
END_TEST

START_TEST(rms_trains)
{
    train("char-rms", 16, 70);
}
END_TEST

WF_TEST_MAIN("golden", gpt, gpt_trains, rms, rms_trains)

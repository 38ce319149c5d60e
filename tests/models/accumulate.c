/* SPDX-License-Identifier: MIT */
/* Micro-batches with their first_row and the number of all targets as normalizer give the gradients of the large batch; also with
 * dropout, whose masks depend on the row in the large batch. */
#include <math.h>

#include <weft/models.h>

#include "../golden/formula.h"
#include "gradients_test.h"

enum { ROWS = 6, T = 16, V = 11 };

/* A batch of ROWS rows in micro-batches of the given numbers of rows. */
static struct result run(wf_model *m, wf_tape *tape, const int *rows, bool ignore, bool shifted)
{
    int32_t x[ROWS * T], y[ROWS * T];
    wf_registry *registry = wf_model_registry(m);
    struct result r = {0};
    int64_t targets = 0;
    for (int i = 0; i < ROWS * T; i++) {
        x[i] = formula_id(formula_name("accumulate", NULL), i, V);
        y[i] = (3 * x[i] + 1) % V;
        if (ignore && i > ROWS * T / 2 && i % 3 == 0) /* more of them in the later rows */
            y[i] = -1;
        targets += y[i] >= 0;
    }
    wf_grads_zero(wf_registry_grads(registry));
    for (int first = 0; first < ROWS; first += *rows++) {
        double loss;
        wf_tape_reset(tape, WF_TRAIN, .seed = 5, .step = 3, .first_row = (uint64_t)(shifted ? first + 1 : first), .exact = true);
        wf_tensor *l = wf_model_loss(m, wf_ids(tape, x + first * T, *rows, T), wf_ids(tape, y + first * T, *rows, T), .has_ignore = true,
                                     .ignore = -1, .label_smoothing = 0.1, .normalizer = (double)targets);
        loss = backward(l);
        r.loss += loss;
    }
    result_take(&r, registry);
    return r;
}

static void compare(const char *name, double dropout, bool ignore)
{
    static const int splits[][ROWS + 1] = {{3, 3}, {1, 1, 1, 1, 1, 1}, {4, 2}, {1, 5}};
    const double tolerance = sizeof(wf_real) == 8 ? 1e-12 : 1e-6;
    struct wf_config c = small_config(name, T, V);
    set_key(&c, "dropout", dropout);
    wf_model *m = model_of(&c, 2);
    wf_tape *tape = new_tape();
    struct result whole = run(m, tape, (int[]){ROWS}, ignore, false);
    for (int i = 0; i < (int)(sizeof splits / sizeof *splits); i++)
        ck_same(name, i, &whole, run(m, tape, splits[i], ignore, false), tolerance);
    if (dropout > 0)
        ck_other(&whole, run(m, tape, splits[0], ignore, true));
    free(whole.gradient);
    wf_tape_free(tape);
    wf_model_free(m);
}

START_TEST(micro_batches)
{
    compare("nanogpt-char-small", 0, false);
    compare("char-rms", 0, false);
}
END_TEST

START_TEST(of_unequal_weight)
{
    compare("nanogpt-char-small", 0, true);
    compare("char-rms", 0, true);
}
END_TEST

START_TEST(with_dropout)
{
    compare("nanogpt-char-small", 0.3, true);
    compare("char-rms", 0.3, true);
}
END_TEST

/* Grouped heads, whose attention has gradients of another shape. */
START_TEST(masks_do_not_depend_on_the_split)
{
    const double tolerance = sizeof(wf_real) == 8 ? 1e-12 : 1e-6;
    struct wf_config c = small_config("nanogpt-char-small", T, V);
    set_keys(&c, "dropout=0.5 kv_heads=2");
    wf_model *m = model_of(&c, 2);
    wf_tape *tape = new_tape();
    struct result whole = run(m, tape, (int[]){ROWS}, false, false);
    ck_same("grouped heads", 0, &whole, run(m, tape, (int[]){2, 4}, false, false), tolerance);
    free(whole.gradient);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("accumulate", micro_batches, of_unequal_weight, with_dropout, masks_do_not_depend_on_the_split)

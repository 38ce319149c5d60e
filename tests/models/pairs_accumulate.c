/* SPDX-License-Identifier: MIT */
/* Micro-batches of pairs give the loss and the gradients of the whole batch, with every dropout on: the masks depend on the places of
 * source and target tokens in the whole batch, which differ. */
#include "gradients_test.h"
#include "pairs_test.h"

#include <weft/op.h>

enum { PAIRS = 9 };

/* The batch in parts of the given numbers of pairs (0 is an empty part; -1 ends). wrong: the first row that the caller leaves out. */
enum wrong { NOTHING, SOURCE, TARGET };
static struct result run(const wf_model *m, wf_tape *tape, const struct wf_pairs *whole, const int *parts, enum wrong wrong)
{
    wf_registry *registry = wf_model_registry(m);
    struct result r = {0};
    wf_grads_zero(wf_registry_grads(registry));
    for (int64_t first = 0; *parts >= 0; first += *parts++) {
        int32_t s[PAIRS + 1], t[PAIRS + 1];
        double loss;
        struct wf_pairs part = part_of(whole, first, *parts, s, t);
        part.first_source = wrong == SOURCE ? 0 : part.first_source;
        part.first_target = wrong == TARGET ? 0 : part.first_target;
        wf_tape_reset(tape, WF_TRAIN, .seed = 5, .step = 3, .exact = true);
        wf_tensor *l = wf_pairs_loss(m, tape, &part, .label_smoothing = 0.1, .normalizer = (double)whole->target_offsets[whole->count]);
        loss = backward(l);
        r.loss += loss;
    }
    result_take(&r, registry);
    return r;
}

static void compare(const char *name, double dropout, bool inner)
{
    static const int splits[][12] = {{4, 5, -1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, -1}, {0, 7, 0, 2, 0, -1}, {2, 3, 4, -1}};
    const double tolerance = sizeof(wf_real) == 8 ? 1e-12 : 2e-6;
    static struct some_pairs p;
    struct wf_config c = small_pairs_config(name, dropout);
    set_key(&c, "inner_dropout", inner);
    wf_model *m = model_of(&c, 2);
    wf_tape *tape = new_tape();
    random_pairs(&p, PAIRS, 12, key_of(&c, "vocab_size"), key_of(&c, "vocab_size"), 3);
    struct result whole = run(m, tape, &p.pairs, (int[]){PAIRS, -1}, NOTHING);
    for (int i = 0; i < (int)(sizeof splits / sizeof *splits); i++)
        ck_same(name, i, &whole, run(m, tape, &p.pairs, splits[i], NOTHING), tolerance);
    for (int wrong = SOURCE; dropout > 0 && wrong <= TARGET; wrong++)
        ck_other(&whole, run(m, tape, &p.pairs, splits[0], (enum wrong)wrong));
    free(whole.gradient);
    wf_tape_free(tape);
    wf_model_free(m);
}

START_TEST(without_dropout)
{
    compare("seq2seq-postnorm", 0, false);
    compare("multi30k", 0, false);
}
END_TEST

START_TEST(with_outer_dropout)
{
    compare("multi30k", 0.3, false);
}
END_TEST

START_TEST(with_dropout_everywhere)
{
    compare("seq2seq-tiny", 0.3, true);
    compare("transformer-base", 0.3, true);
}
END_TEST

/* Each place drops: the loss with it differs from the loss without, and from step to step. */
START_TEST(each_place_of_dropout)
{
    static struct some_pairs p;
    double loss[4];
    for (int i = 0; i < 4; i++) {
        struct wf_config c = small_pairs_config("transformer-base", i == 0 ? 0 : 0.5);
        set_key(&c, "inner_dropout", i > 1);
        wf_model *m = model_of(&c, 2);
        wf_tape *tape = new_tape();
        random_pairs(&p, PAIRS, 12, key_of(&c, "vocab_size"), key_of(&c, "vocab_size"), 3);
        wf_tape_reset(tape, WF_TRAIN, .seed = 5, .step = (uint64_t)(i == 3));
        loss[i] = item_of(wf_pairs_loss(m, tape, &p.pairs));
        for (int k = 0; k < i; k++)
            ck_assert(fabs(loss[i] - loss[k]) > 1e-4);
        double plain[2]; /* and none in the other modes */
        for (int mode = 0; mode < 2; mode++) {
            wf_tape_reset(tape, mode ? WF_GRADIENTS : WF_INFER, .seed = 5);
            plain[mode] = item_of(wf_pairs_loss(m, tape, &p.pairs));
            ck_assert(fabs(plain[mode] - loss[0]) < 1e-5);
        }
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* wf_tape_first_row holds for the ops that follow, in backward too. */
START_TEST(first_rows_of_a_pass)
{
    enum { N = 40, D = 32, CUT = 17 };
    static wf_real ones[N * D], gradient[2][N * D];
    wf_tape *tape = new_tape();
    wf_array view;
    for (int i = 0; i < N * D; i++)
        ones[i] = 1;
    for (int parts = 0; parts < 2; parts++)
        for (int part = 0; part <= parts; part++) {
            int64_t begin = part * CUT, rows = parts ? (part ? N - CUT : CUT) : N;
            wf_tape_reset(tape, WF_TRAIN, .seed = 2, .step = 1, .first_row = 1000, .exact = true);
            wf_tensor *x = wf_input(tape, ones, WF_SHAPE(rows, D), true);
            wf_tape_first_row(tape, (uint64_t)begin);
            wf_tensor *y = wf_dropout(x, 0.5);
            wf_tape_first_row(tape, 500); /* of later ops */
            backward(wf_sum(y));
            ck_assert_int_eq(wf_grad(x, &view), WF_OK);
            for (int64_t i = 0; i < rows * D; i++)
                gradient[parts][begin * D + i] = ((const wf_real *)view.data)[i % D * view.stride[1] + i / D * view.stride[0]];
        }
    ck_assert_int_eq(memcmp(gradient[0], gradient[1], sizeof gradient[0]), 0);
    wf_tape_free(tape);
}
END_TEST

WF_TEST_MAIN("pairs_accumulate", without_dropout, with_outer_dropout, with_dropout_everywhere, each_place_of_dropout, first_rows_of_a_pass)

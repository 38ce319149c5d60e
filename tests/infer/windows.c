/* SPDX-License-Identifier: MIT */
/* Losses in overlapping windows against the loop of transformers' guide on perplexity, which computes one window after the other. */
#include <weft/run.h>

#include "../models/memory_test.h"
#include "../models/tape_values.h"

#ifdef WF_DOUBLE
static const double tolerance = 1e-12;
#else
static const double tolerance = 2e-5;
#endif

enum { V = 13, T = 16, N = 90 };
static const char *const names[] = {"nanogpt-char-small", "char-rms"};

struct tested {
    wf_model *model;
    wf_tape *tape;
    int32_t ids[N];
};

static struct tested begin(const char *name)
{
    struct wf_config c = small_config(name, T, V);
    struct tested t = {.model = model_of(&c, 2), .tape = new_tape()};
    random_ids(t.ids, N, V, 1);
    return t;
}

static void end(struct tested *t)
{
    wf_tape_free(t->tape);
    wf_model_free(t->model);
}

static struct wf_evaluation evaluate(struct tested *t, int64_t count, struct wf_window_options o)
{
    struct wf_evaluation e;
    ck_ok(wf_evaluate_windows(t->model, t->tape, wf_id_view_of(t->ids, count), &o, &e, error));
    return e;
}

/* The guide's loop, with the mean over the scored tokens. */
static struct wf_evaluation reference(struct tested *t, int64_t count, int64_t context, int64_t stride)
{
    struct wf_evaluation e = {0};
    wf_real logits[T * V];
    for (int64_t first = 0, before = 0;; first += stride) {
        const int64_t last = first + context < count ? first + context : count;
        wf_tape_reset(t->tape, WF_INFER);
        read_values(wf_model_logits(t->model, wf_ids(t->tape, t->ids + first, 1, last - first), NULL), logits, (last - first) * V);
        for (int64_t i = first + 1; i < last; i++)
            if (i >= before) {
                e.loss += loss_of_id(logits + (i - first - 1) * V, V, t->ids[i]);
                e.tokens++;
            }
        before = last;
        if (last == count)
            break;
    }
    e.loss /= (double)e.tokens;
    return e;
}

START_TEST(is_the_guide)
{
    static const int64_t windows[][2] = {{16, 16}, {16, 1}, {16, 5}, {16, 15}, {9, 4}, {2, 1}, {2, 2}, {16, 8}};
    static const int64_t counts[] = {N, 2, 3, 16, 17, 18, 33, 65};
    for (int which = 0; which < 2; which++) {
        struct tested t = begin(names[which]);
        for (int w = 0; w < 8; w++)
            for (int n = 0; n < 8; n++) {
                const int64_t context = windows[w][0], stride = windows[w][1];
                struct wf_evaluation want = reference(&t, counts[n], context, stride);
                struct wf_evaluation e = evaluate(&t, counts[n], (struct wf_window_options){context, stride, 0});
                ck_assert_int_eq(e.tokens, want.tokens);
                ck_assert_int_eq(e.pairs, 0);
                ck_assert_msg(fabs(e.loss - want.loss) < tolerance * want.loss, "%lld of %lld, %lld tokens: %.12g instead of %.12g",
                              (long long)stride, (long long)context, (long long)counts[n], e.loss, want.loss);
                if (stride < context)
                    ck_assert_int_eq(e.tokens, counts[n] - 1);
            }
        end(&t);
    }
}
END_TEST

START_TEST(the_batch_changes_no_bit)
{
    for (int which = 0; which < 2; which++) {
        struct tested t = begin(names[which]);
        for (int64_t stride = 1; stride <= T; stride += 5) {
            struct wf_evaluation e = evaluate(&t, N, (struct wf_window_options){T, stride, 0});
            for (int64_t rows = 1; rows < 9; rows++) {
                struct wf_evaluation other = evaluate(&t, N, (struct wf_window_options){T, stride, rows});
                ck_assert_msg(memcmp(&other.loss, &e.loss, sizeof e.loss) == 0, "%lld windows at once: %.17g instead of %.17g",
                              (long long)rows, other.loss, e.loss);
            }
        }
        end(&t);
    }
}
END_TEST

/* Ids before each window: those of a window are as in a row that begins with them. */
START_TEST(ids_before_a_window)
{
    static const int32_t begin_ids[3] = {5, 0, 12};
    static const int64_t windows[][3] = {{16, 13, 3}, {16, 4, 3}, {16, 1, 1}, {16, 15, 1}, {8, 0, 2}, {2, 1, 1}, {16, 0, 1}};
    static const int64_t counts[] = {N, 1, 2, 13, 14, 33};
    for (int which = 0; which < 2; which++) {
        struct tested t = begin(names[which]);
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
            for (int n = 0; n < 6; n++) {
                const int64_t begins = windows[w][2], rest = windows[w][0] - begins, stride = windows[w][1] ? windows[w][1] : rest;
                wf_real logits[T * V];
                double sum = 0;
                int64_t scored = 0;
                for (int64_t first = 0; scored < counts[n]; first += stride) {
                    int32_t row[T];
                    const int64_t count = first + rest < counts[n] ? rest : counts[n] - first;
                    memcpy(row, begin_ids, sizeof begin_ids);
                    memcpy(row + begins, t.ids + first, (size_t)count * sizeof *row);
                    wf_tape_reset(t.tape, WF_INFER);
                    read_values(wf_model_logits(t.model, wf_ids(t.tape, row, 1, begins + count), NULL), logits, (begins + count) * V);
                    for (int64_t i = scored; i < first + count; i++)
                        sum += loss_of_id(logits + (begins + i - first - 1) * V, V, t.ids[i]);
                    scored = first + count;
                }
                for (int64_t rows = 0; rows < 3; rows++) {
                    const struct wf_evaluation e =
                        evaluate(&t, counts[n],
                                 (struct wf_window_options){windows[w][0], windows[w][1], rows, .begin = begin_ids, .begins = begins});
                    ck_assert_int_eq(e.tokens, counts[n]);
                    ck_assert_msg(fabs(e.loss - sum / (double)scored) < tolerance * e.loss, "%zu, %lld: %.12g instead of %.12g", w,
                                  (long long)counts[n], e.loss, sum / (double)scored);
                }
            }
        end(&t);
    }
}
END_TEST

/* Without a stride this is wf_model_evaluate, to the bit. */
START_TEST(without_stride)
{
    struct tested t = begin(names[1]);
    struct wf_evaluation e, other;
    ck_ok(wf_model_evaluate(t.model, t.tape, wf_id_view_of(t.ids, N), 0, &e, error));
    other = evaluate(&t, N, (struct wf_window_options){0});
    ck_assert(memcmp(&e.loss, &other.loss, sizeof e.loss) == 0 && e.tokens == other.tokens);
    ck_ok(wf_evaluate_windows(t.model, t.tape, wf_id_view_of(t.ids, N), NULL, &other, error));
    ck_assert(memcmp(&e.loss, &other.loss, sizeof e.loss) == 0 && e.tokens == other.tokens);
    other = evaluate(&t, N, (struct wf_window_options){.context = 4});
    ck_assert(other.loss != e.loss && other.tokens == N - 1);
    end(&t);
}
END_TEST

static const int32_t two_ids[2] = {1, 2};

START_TEST(errors)
{
    struct tested t = begin(names[0]);
    static const struct {
        struct wf_window_options o;
        int64_t count;
        const char *says;
    } cases[] = {{{.context = T + 1}, N, "context: 17 is out of range: 1 to 16"},
                 {{.context = -1}, N, "context"},
                 {{.stride = T + 1}, N, "stride: 17 is out of range: 1 to 16"},
                 {{.context = 4, .stride = 5}, N, "1 to 4, the tokens of"},
                 {{.stride = -1}, N, "stride"},
                 {{.rows = -1}, N, "rows"},
                 {{.context = 1, .stride = 1}, N, "one token predict nothing"},
                 {{.stride = 4}, 1, "a text of 1 tokens has nothing"},
                 {{.stride = 0}, 1, "a text of 1 tokens has nothing"},
                 {{.begins = 2}, N, "or begin is NULL"},
                 {{.begin = two_ids, .begins = -1}, N, "begins: -1 is out of range, 0 to 15"},
                 {{.context = 2, .begin = two_ids, .begins = 2}, N, "begins: 2 is out of range, 0 to 1 for windows of 2 tokens"},
                 {{.stride = 16, .begin = two_ids, .begins = 1}, N, "1 to 15, the tokens of a window less those of .begin"},
                 {{.begin = two_ids, .begins = 1}, 0, "a text of 0 tokens"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wf_evaluation e;
        ck_fails(wf_evaluate_windows(t.model, t.tape, wf_id_view_of(t.ids, cases[i].count), &cases[i].o, &e, error), WF_ERR_ARGUMENT,
                 cases[i].says);
        ck_assert(isnan(e.loss) && e.tokens == 0);
    }
    struct wf_evaluation e;
    t.ids[40] = V;
    ck_assert_int_ne(
        wf_evaluate_windows(t.model, t.tape, wf_id_view_of(t.ids, N), &(struct wf_window_options){.stride = 3}, &e, &(wf_error){0}), WF_OK);
    ck_assert(isnan(e.loss));
    end(&t);
}
END_TEST

static wf_status in_windows(const wf_model *m, wf_tape *tape, wf_error *error)
{
    int32_t ids[N];
    struct wf_evaluation e;
    random_ids(ids, N, V, 1);
    return wf_evaluate_windows(m, tape, wf_id_view_of(ids, N), &(struct wf_window_options){.stride = 3, .rows = 2}, &e, error);
}

START_TEST(out_of_memory)
{
    struct tested t = begin(names[0]);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){t.model, in_windows}), 4);
    end(&t);
}
END_TEST

WF_TEST_MAIN("infer/windows", is_the_guide, ids_before_a_window, the_batch_changes_no_bit, without_stride, errors, out_of_memory)

/* SPDX-License-Identifier: MIT */
/* The order in which wf_fit adds the gradients of an update's micro-batches: within a leaf one after the other, the leaves as a binary
 * tree; with bits that are computed here by hand. */
#include "train_test.h"

enum { WIDTH = 37, MOST = 40 };
struct sums {
    struct seen seen;
    wf_registry *registry;
    wf_tensor *weight, *spare;
    struct wf_optimizer sgd;
    wf_real gradient[MOST][WIDTH];
    bool empty[MOST], both; /* both: the last micro-batch has a gradient for `spare`, too */
};

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    (void)ctx, (void)step, (void)error;
    *weight = 1;
    return WF_OK;
}

/* A loss whose gradient is the micro-batch's row, exactly. */
static wf_tensor *loss(void *ctx, struct wf_micro_batch *p)
{
    struct sums *s = ctx;
    if (s->empty[p->index])
        return NULL;
    wf_tensor *x = wf_input(p->tape, s->gradient[p->index], WF_SHAPE(WIDTH), false), *y = wf_sum(wf_mul(s->weight, x));
    return s->both && p->index == p->count - 1 ? wf_add(y, wf_sum(wf_mul(s->spare, x))) : y;
}

static struct sums *sums_open(void)
{
    struct sums *s = calloc(1, sizeof *s);
    ck_ok(wf_init(error, .threads = 2));
    s->registry = wf_registry_new(NULL);
    s->weight = wf_parameter(wf_root(s->registry), "weight", WF_SHAPE(WIDTH));
    s->spare = wf_parameter(wf_root(s->registry), "spare", WF_SHAPE(WIDTH));
    ck_ok(wf_registry_build(s->registry, 1, error));
    ck_ok(wf_sgd_init(&s->sgd, s->registry, error, .lr = 1));
    for (int i = 0; i < MOST; i++)
        wf_fill_normal(s->gradient[i], WIDTH, 0, i % 3 ? 1 : 1000, 3, (uint64_t)i);
    return s;
}

static void sums_close(struct sums *s)
{
    wf_optimizer_free(&s->sgd);
    wf_registry_free(s->registry);
    free(s);
}

static wf_status train(struct sums *s, const char *out, int64_t steps, int64_t parts, int64_t leaves, bool resume, wf_error *error)
{
    static const struct wf_task task = {WF_TASK_ABI, .name = "sums", .next = next, .loss = loss};
    return wf_fit_one(&task, s->registry, &s->sgd, NULL, NULL, error, .out = out, .steps = steps, .accumulate = parts, .leaves = leaves,
                      .resume = resume, .event = see_fit, .ctx = s);
}

/* The sum over the micro-batches first .. first + count - 1 in `leaves` leaves; false: none of them has a gradient. */
static bool expect(const struct sums *s, int64_t first, int64_t count, int64_t leaves, wf_real out[WIDTH])
{
    bool any = false;
    if (leaves > 1) {
        wf_real right[WIDTH];
        any = expect(s, first, count / 2, leaves / 2, out);
        if (!expect(s, first + count / 2, count / 2, leaves / 2, right))
            return any;
        for (int i = 0; i < WIDTH; i++)
            out[i] = any ? out[i] + right[i] : right[i];
        return true;
    }
    for (int64_t part = first; part < first + count; part++)
        if (!s->empty[part]) {
            for (int i = 0; i < WIDTH; i++)
                out[i] = any ? out[i] + s->gradient[part][i] : s->gradient[part][i];
            any = true;
        }
    return any;
}

static void assert_sum(const struct sums *s, int64_t parts, int64_t leaves, const char *what)
{
    wf_real sum[WIDTH];
    ck_assert(expect(s, 0, parts, leaves, sum));
    const wf_real *weight = wf_parameter_info(s->weight)->value.data;
    for (int i = 0; i < WIDTH; i++)
        ck_assert_msg(weight[i] == 0 - sum[i], "%s, %d parts, %d leaves: element %d is %.9g, not %.9g", what, (int)parts, (int)leaves, i,
                      (double)weight[i], (double)-sum[i]);
}

static const struct {
    int64_t parts, asked, leaves;
} cases[] = {{1, 0, 1}, {2, 0, 2}, {3, 0, 1},  {4, 0, 4},    {6, 0, 2},  {8, 0, 8},  {8, 1, 1}, {8, 2, 2},
             {8, 4, 4}, {8, 8, 8}, {32, 0, 8}, {32, 32, 32}, {40, 0, 8}, {40, 4, 4}, {12, 0, 4}};

START_TEST(in_the_order_of_the_tree)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int empty = 0; empty < 4; empty++) {
            struct sums *s = sums_open();
            /* none, every third, the first half, all but the last */
            for (int64_t part = 0; part < cases[i].parts - 1; part++)
                s->empty[part] = empty == 1 ? part % 3 == 1 : empty == 2 ? part < cases[i].parts / 2 : empty == 3;
            char name[32];
            snprintf(name, sizeof name, "sums-%d-%d", (int)i, empty);
            const char *out = in_folder(name);
            ck_ok(train(s, out, 1, cases[i].parts, cases[i].asked, false, error));
            assert_sum(s, cases[i].parts, cases[i].leaves, "one step");
            sums_close(s);
        }
}
END_TEST

/* The bits differ between trees: else the test above could not fail. */
START_TEST(trees_differ)
{
    struct sums *s = sums_open();
    wf_real one[WIDTH], eight[WIDTH];
    expect(s, 0, 8, 1, one);
    expect(s, 0, 8, 8, eight);
    ck_assert_mem_ne(one, eight, sizeof one);
    sums_close(s);
}
END_TEST

/* A gradient that only the last micro-batch has is added to nothing, and does not come back in the next step. */
START_TEST(a_parameter_of_one_part)
{
    struct sums *s = sums_open();
    s->both = true;
    const char *out = lasting("both");
    ck_ok(train(s, out, 1, 4, 0, false, error));
    const wf_real *spare = wf_parameter_info(s->spare)->value.data;
    for (int i = 0; i < WIDTH; i++)
        ck_assert(spare[i] == -s->gradient[3][i]);
    s->both = false;
    ck_ok(train(s, out, 2, 4, 0, true, error));
    for (int i = 0; i < WIDTH; i++)
        ck_assert(spare[i] == -s->gradient[3][i]);
    sums_close(s);
}
END_TEST

/* A resume keeps the leaves of the state, reports another number, and refuses an impossible one. */
START_TEST(resumes)
{
    struct sums *s = sums_open();
    const char *out = lasting("again");
    ck_ok(train(s, out, 1, 8, 2, false, error));
    ck_ok(train(s, out, 2, 8, 0, true, error));
    ck_assert_str_eq(s->seen.text[WF_EVENT_CHANGE], "");
    ck_ok(train(s, out, 3, 8, 8, true, error));
    ck_assert_msg(strstr(s->seen.text[WF_EVENT_CHANGE], "leaves 8 instead of 2") != NULL, "%s", s->seen.text[WF_EVENT_CHANGE]);
    s->seen.text[WF_EVENT_CHANGE][0] = 0;
    ck_ok(train(s, out, 4, 12, 0, true, error));
    ck_assert_msg(strstr(s->seen.text[WF_EVENT_CHANGE], "leaves 4 instead of 8") != NULL, "%s", s->seen.text[WF_EVENT_CHANGE]);
    ck_fails(train(s, out, 5, 12, 3, true, error), WF_ERR_ARGUMENT,
             "wf_fit: leaves is 3, which is not a power of two that divides accumulate, 12; 0 chooses");
    ck_fails(train(s, out, 5, 12, 8, true, error), WF_ERR_ARGUMENT, "leaves is 8");
    sums_close(s);
}
END_TEST

WF_TEST_MAIN("leaves", in_the_order_of_the_tree, trees_differ, a_parameter_of_one_part, resumes)

/* SPDX-License-Identifier: MIT */
/* Registries: names, ties, freezing, refusals, memory. */
#include "registry_test.h"

static const char *name_at(const wf_registry *registry, int i)
{
    return wf_parameter_info(wf_registry_at(registry, i))->name;
}

START_TEST(names_and_counts)
{
    wf_registry *registry = new_registry();
    struct model m;
    declare(wf_root(registry), &m);
    ck_assert_int_eq(wf_registry_count(registry), NAMES);
    for (int i = 0; i < NAMES; i++) {
        ck_assert_str_eq(name_at(registry, i), all_names[i]);
        ck_assert_ptr_eq(wf_registry_find(registry, all_names[i]), wf_registry_at(registry, i));
        ck_assert_int_eq(wf_registry_is_buffer(registry, i), i == 1);
    }
    ck_assert_ptr_null(wf_registry_find(registry, "head.weight"));
    ck_assert_ptr_null(wf_registry_at(registry, NAMES));
    ck_assert_ptr_null(wf_registry_at(registry, -1));
    /* Counted without memory; the tie once, the table not. */
    ck_assert_int_eq(wf_registry_parameters(registry), 11 * 8 + 2 * (24 * 8 + 24 + 8 * 8 + 8) + 16 + 11 + 3);
    ck_assert_ptr_null(wf_registry_values(registry));
    ck_assert_ptr_null(wf_registry_grads(registry));
    ck_assert_ptr_eq(m.head.weight, m.embed.weight);
    ck_ok(wf_registry_build(registry, 1, error));
    ck_assert_ptr_nonnull(wf_registry_grads(registry));
    for (int i = 0; i < NAMES; i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(registry, i));
        ck_assert_int_eq(info->index, i);
        ck_assert_int_eq(info->offset % 16, 0);
        ck_assert_ptr_eq(info->value.data, wf_registry_values(registry) + info->offset);
        ck_assert_int_le(info->offset + wf_array_count(&info->value), wf_registry_slab(registry));
        ck_assert_int_eq(info->frozen, i == 1 || i == NAMES - 1);
    }
    wf_registry_free(registry);
    wf_registry_free(NULL);
}
END_TEST

/* Both uses of a tied weight add to one gradient, and a frozen one gets none. */
START_TEST(ties_share_a_gradient)
{
    wf_registry *registry = new_registry();
    struct model m;
    declare(wf_root(registry), &m);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = new_tape();
    const int32_t id[] = {4, 4, 7};
    double squares[3] = {0};
    wf_real sum[88] = {0};
    for (int use = 0; use < 3; use++) { /* the first, the second, both */
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_grads_zero(wf_registry_grads(registry));
        wf_tensor *x = wf_embedding_forward(&m.embed, wf_ids(tape, id, 1, 3)), *y;
        if (use == 0)
            y = wf_mul(x, wf_detach(x));
        else
            y = wf_linear_forward(&m.head, wf_detach(x));
        if (use == 2)
            y = wf_add(wf_sum(y), wf_sum(wf_mul(x, wf_detach(x))));
        ck_backward(wf_sum(y));
        const wf_real *g = gradient_of(m.embed.weight);
        for (int i = 0; i < 88; i++) {
            wf_real v = g[i];
            sum[i] += use < 2 ? v : -v;
            squares[use] += (double)v * v;
        }
    }
    double left = 0;
    for (int i = 0; i < 88; i++)
        left += (double)sum[i] * sum[i];
    ck_assert(squares[0] > 0 && squares[1] > 0 && squares[2] > squares[0]);
    ck_assert(left < 1e-10 * squares[2]);
    ck_assert(!wf_registry_grads(registry)->valid[NAMES - 1]);
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

START_TEST(freezing)
{
    wf_registry *registry = new_registry();
    struct wf_linear m;
    wf_linear_init(wf_root(registry), &m, 4, 3);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = new_tape();
    for (int frozen = 1; frozen >= 0; frozen--) {
        wf_registry_freeze(registry, m.weight, frozen);
        wf_grads_zero(wf_registry_grads(registry));
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_tensor *x = wf_input(tape, (wf_real[]){1, 2, 3, 4}, WF_SHAPE(1, 4), false);
        ck_backward(wf_sum(wf_linear_forward(&m, x)));
        ck_assert_int_eq(wf_registry_grads(registry)->valid[wf_parameter_info(m.weight)->index], !frozen);
        ck_assert(wf_registry_grads(registry)->valid[wf_parameter_info(m.bias)->index]);
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

static bool at_the_second(void *asked)
{
    return ++*(int *)asked == 2;
}

/* The embeddings of a large model alone take a second: cancelling must not wait for all parameters. */
START_TEST(building_can_be_cancelled)
{
    wf_registry *registry = new_registry();
    struct wf_linear m;
    int asked = 0;
    wf_linear_init(wf_root(registry), &m, 4, 3);
    wf_registry_cancel(registry, at_the_second, &asked);
    ck_fails(wf_registry_build(registry, 1, error), WF_ERR_CANCELLED, "");
    ck_assert_int_eq(asked, 2);
    wf_registry_cancel(registry, NULL, NULL);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_registry_free(registry);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------------------------------- */

START_TEST(errors_of_declaring)
{
    wf_registry *r = new_registry();
    wf_parameter(wf_sub(wf_root(r), "a"), "w", WF_SHAPE(3), .init = {0});
    wf_parameter(wf_sub(wf_root(r), "a"), "w", WF_SHAPE(4), .init = {0});
    wf_parameter(wf_root(r), "z", WF_SHAPE(0), .init = {0}); /* the first error wins */
    declared_wrong(r, "a.w: declared twice");

    static const struct {
        wf_shape shape;
        const char *message;
    } bad[] = {{{2, {3, 0}}, "w: the shape [3,0] is invalid for a parameter: a size is below 1, or the product is too large"},
               {{1, {-2}}, "w: the shape [-2] is invalid for a parameter: a size is below 1, or the product is too large"},
               {{2, {1LL << 40, 1LL << 40}},
                "w: the shape [1099511627776,1099511627776] is invalid for a parameter: a size is below 1, or the product is too large"}};
    for (int i = 0; i < 3; i++) {
        r = new_registry();
        wf_tensor *p = wf_parameter(wf_root(r), "w", &bad[i].shape, .init = {0});
        ck_assert_ptr_nonnull(p);
        declared_wrong(r, bad[i].message);
    }

    r = new_registry();
    struct wf_embedding e;
    struct wf_linear m;
    wf_embedding_init(wf_sub(wf_root(r), "embed"), &e, 11, 8);
    wf_linear_init(wf_sub(wf_root(r), "head"), &m, 8, 12, .tied = e.weight);
    ck_fails(wf_registry_build(r, 1, error), WF_ERR_SHAPE, "head: the tied weight is not [12,8]");
    wf_registry_free(r);

    r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(3), .init = {0});
    ck_ok(wf_registry_build(r, 1, error));
    wf_parameter(wf_root(r), "late", WF_SHAPE(3), .init = {0});
    ck_fails(wf_registry_build(r, 1, error), WF_ERR_STATE, "late: declared after the registry was built");
    wf_registry_free(r);

    ck_fails_null(wf_registry_new_abi(WF_ABI ^ 12, error), WF_ERR_ARGUMENT, ""); /* the other precision */
}
END_TEST

/* --- memory -------------------------------------------------------------------------------------------------------- */

/* Each allocation fails in turn: an error of memory, and nothing is lost. */
START_TEST(without_memory)
{
    wf_error warm = {0};
    wf_registry_free(wf_registry_new(&warm)); /* allocations that are made once */
    int64_t live = wf_alloc_live(), n;
    for (n = 0;; n++) {
        wf_error e = {0};
        struct model m;
        wf_alloc_fail_after(n);
        wf_registry *r = wf_registry_new(&e);
        wf_status status = r ? WF_OK : e.code;
        if (r) {
            declare(wf_root(r), &m);
            for (int i = 0; i < 100; i++) /* so that the table of parameters grows, and the names' arena with it */
                wf_parameter(wf_sub_at(wf_root(r), "many", i), "weight", WF_SHAPE(30000), .init = {0});
            status = wf_registry_build(r, 1, &e);
        }
        wf_alloc_fail_after(-1);
        wf_registry_free(r);
        ck_assert_int_eq(wf_alloc_live(), live);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
        ck_assert_int_eq(e.code, WF_ERR_MEMORY);
        ck_assert_int_lt(n, 1000);
    }
    ck_assert_int_ge(n, 6);
}
END_TEST

/* The gradient slab of another thread: that of the registry stays as it is. */
START_TEST(separate_gradients)
{
    wf_registry *r = new_registry();
    wf_error e = {0};
    struct wf_linear m;
    wf_linear_init(wf_root(r), &m, 4, 3);
    ck_ok(wf_registry_build(r, 1, error));
    wf_grads *own = wf_grads_new(r, &e);
    wf_tape *tape = new_tape();
    ck_assert(own && tape);
    wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
    wf_tensor *x = wf_input(tape, (wf_real[]){1, 2, 3, 4}, WF_SHAPE(1, 4), false);
    ck_backward(wf_sum(wf_linear_forward(&m, x)));
    ck_assert(own->valid[0] && own->valid[1]);
    ck_assert(!wf_registry_grads(r)->valid[0] && !wf_registry_grads(r)->valid[1]);
    for (int i = 0; i < 12; i++)
        ck_assert(wf_grads_at(own, m.weight)[i] == (wf_real)(i % 4 + 1));
    wf_tape_free(tape);
    wf_grads_free(own);
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("registry", names_and_counts, ties_share_a_gradient, freezing, building_can_be_cancelled, errors_of_declaring, without_memory,
             separate_gradients)

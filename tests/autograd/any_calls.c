/* SPDX-License-Identifier: MIT */
/* Random calls with random, often wrong arguments: whatever is given, a call returns a tensor, and poison comes with a line on the tape.
 * Under the sanitizers it shows that nothing outside is touched. */
#include <weft/nn.h>

#include "check_weft.h"

enum { POOL = 24, CALLS = 7, PASSES = 20000 };

static wf_rng rng;
static wf_tensor *pool[POOL];
static wf_tape *tape, *other;
static const wf_tensor *of_other;

static int64_t below(int64_t n)
{
    return (int64_t)wf_rng_below(&rng, (uint64_t)n);
}

static int64_t size(void)
{
    static const int64_t often[] = {1, 2, 2, 3, 4, 6},
                         seldom[] = {0, -1, -7, 5, 17, (int64_t)1 << 31, (int64_t)1 << 40, INT64_MAX, INT64_MIN};
    return below(100) ? often[below(6)] : seldom[below(9)];
}

static wf_shape shape(void)
{
    static const wf_shape usual[] = {{2, {4, 6}}, {1, {6}}, {3, {2, 4, 6}}, {2, {6, 6}}, {3, {2, 3, 6}}, {2, {2, 4}}, {0}};
    if (below(8))
        return usual[below(7)];
    wf_shape s = {.ndim = below(100) ? (int)below(4) + (int)below(2) : (int)below(12) - 3};
    for (int d = 0; d < WF_MAX_DIMS; d++)
        s.dim[d] = size();
    return s;
}

static int dim(void)
{
    return below(100) ? (int)below(3) - 1 - (int)below(2) : below(2) ? INT32_MAX : INT32_MIN;
}

static wf_tensor *any(void)
{
    return below(300) ? pool[below(POOL)] : NULL;
}

/* Mostly a real tensor. */
static wf_tensor *real(void)
{
    for (int i = 0; i < 20; i++) {
        wf_tensor *x = any();
        if (x && wf_dtype_of(x) == WF_REAL && !wf_is_poison(x) && x != of_other)
            return x;
    }
    return any();
}

/* Mostly one that suits a. */
static wf_tensor *like(wf_tensor *a, bool matrix)
{
    for (int i = 0; a && i < 60; i++) {
        wf_tensor *x = real();
        if (matrix ? wf_ndim(x) == 2 && wf_dim(x, 1) == wf_dim(a, -1)
                   : wf_ndim(x) <= wf_ndim(a) && (wf_ndim(x) == 0 || wf_dim(x, -1) == wf_dim(a, -1)))
            return x;
    }
    return any();
}

/* As many data as a shape can ask for here; larger shapes are refused or need no data. */
static const wf_real data[6 * 6 * 6 * 6 * 6];

static bool small(const wf_shape *s)
{
    int64_t count = wf_shape_count(s);
    return count <= (int64_t)(sizeof data / sizeof *data);
}

static wf_tensor *make(int kind)
{
    int32_t ids[64];
    bool may[64];
    wf_shape s = shape();
    for (int i = 0; i < 64; i++) {
        ids[i] = (int32_t)(below(3000) ? below(2) : below(3) - 4);
        may[i] = below(2);
    }
    int64_t count = wf_shape_count(&s);
    switch (kind < 2 ? kind : below(9) ? 4 : 2 + (int)below(2)) {
    case 0:
        return count <= 64 ? wf_ids_of(tape, ids, &s) : NULL;
    case 1:
        return count <= 64 ? wf_bools(tape, may, &s) : NULL;
    case 2:
        return small(&s) ? wf_zeros(tape, &s) : NULL;
    case 3: {
        wf_array a = wf_array_dense((void *)data, below(200) ? WF_REAL : (wf_dtype)below(40), &s);
        return small(&s) && (a.dtype == WF_REAL || count <= 64) ? wf_borrow(tape, &a) : NULL;
    }
    default:
        return small(&s) ? wf_input(tape, below(500) ? data : NULL, &s, below(2)) : NULL;
    }
}

static wf_tensor *call(void)
{
    wf_tensor *a = below(50) ? real() : any(), *b = below(50) ? like(a, false) : any(), *c = below(50) ? like(a, false) : any(), *parts[8];
    wf_tensor *m = below(50) ? like(a, true) : b, *ids = pool[4 + below(3)];
    wf_shape s = shape();
    const int32_t lengths[] = {1, 2, 0, 3, 2, 1}, offsets[] = {0, (int32_t)below(4), (int32_t)below(8), (int32_t)below(8)};
    switch (below(34)) {
    case 0:
        return wf_add(a, b);
    case 1:
        return wf_subtract(a, b);
    case 2:
        return wf_mul(a, b);
    case 3:
        return wf_div(a, b);
    case 4:
        return wf_affine(a, 2, 1);
    case 5:
        return wf_gelu(a);
    case 6:
        return wf_relu(a);
    case 7:
        return wf_reshape_to(a, &s);
    case 8:
        return wf_transpose(a, dim(), dim());
    case 9:
        return wf_slice(a, dim(), size() - 1, size());
    case 10: {
        int n = (int)below(9);
        for (int i = 0; i < 8; i++)
            parts[i] = a;
        wf_split(a, dim(), n, parts);
        return parts[0];
    }
    case 11:
        return wf_dense(a);
    case 12:
        return parts[0] = a, parts[1] = b, parts[2] = c, wf_concat(parts, 1 + (int)below(3), dim());
    case 13:
        return wf_expand_to(a, &s);
    case 14:
        return wf_sum(a);
    case 15:
        return wf_mean(a);
    case 16:
        return wf_sum_dim(a, dim(), below(2));
    case 17:
        return wf_matmul(a, b);
    case 18:
        return wf_matmul(a, wf_transpose(m, -1, -2));
    case 19:
        return wf_linear(a, m, below(9) ? NULL : c);
    case 20:
        return wf_embedding(m, below(9) ? ids : b);
    case 21:
        return wf_softmax(a);
    case 22:
        return wf_layer_norm(a, below(9) ? NULL : b, below(9) ? NULL : c, below(90) ? 1e-5 : -1);
    case 23:
        return wf_rms_norm(a, below(9) ? NULL : b, 1e-5);
    case 24:
        return wf_dropout(a, below(90) ? 0.3 : 1.5);
    case 25:
        return wf_attention(a, a, a, .heads = (int)below(5) - 1, .kv_heads = (int)below(3), .causal = below(2));
    case 26:
        return wf_attention(a, b, c, .heads = 2, .mask = any(), .dropout = 0.1);
    case 27:
        return wf_attention(a, a, a, .heads = 1, .q_offsets = offsets, .sequences = (int)below(5) - 1);
    case 28:
        return wf_dim(a, 0) <= 6 ? wf_attention(a, a, a, .heads = 1, .key_lengths = lengths) : a;
    case 29:
        return wf_cross_entropy(a, below(9) ? ids : b, .has_ignore = below(2), .ignore = -3, .label_smoothing = below(90) ? 0.1 : 3);
    case 30:
        return wf_linear_cross_entropy(a, m, NULL, below(9) ? ids : c);
    case 31:
        return wf_detach(a);
    case 32:
        return wf_retain_grad(a);
    default:
        return below(2) ? wf_keep(a) : make((int)below(9));
    }
}

/* The tape goes on after this: from its next pass. */
static void look(wf_tensor *x)
{
    static wf_real out[1 << 16];
    const wf_error *e = wf_tape_error(tape);
    ck_assert_ptr_nonnull(x);
    if (e->code != WF_OK) {
        ck_assert(*e->message && !strchr(e->message, '\n'));
        return;
    }
    if (wf_is_poison(x)) { /* of the pass before, handed on: whoever reads it is told */
        double value;
        ck_assert_int_ne(wf_item(x, &value), WF_OK);
        ck_assert_msg(wf_tape_of(x) != tape || e->code != WF_OK, "poison without a message");
        return;
    }
    wf_shape s = wf_shape_of(x);
    int64_t count = wf_shape_count(&s);
    ck_assert(count >= 0);
    if (wf_tape_of(x) == tape && wf_dtype_of(x) == WF_REAL && count <= 1 << 16)
        ck_assert_msg(wf_read(x, out, count) == WF_OK || e->code != WF_OK, "a read failed without a message");
}

START_TEST(any_calls)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    wf_scope root = wf_root(registry);
    wf_tensor *parameter[] = {wf_parameter(root, "a", WF_SHAPE(4, 6)), wf_parameter(root, "b", WF_SHAPE(6)),
                              wf_parameter(root, "c", WF_SHAPE(3, 2), .frozen = true), wf_parameter(root, "d", WF_SHAPE(2, 2))};
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_set_threads(1, error));
    tape = wf_tape_new(&e);
    other = wf_tape_new(&e);
    ck_assert_msg(tape && other, "%s", e.message);
    rng = wf_rng_new(11, 5);
    int good = 0, failed = 0, backward = 0;
    for (int pass = 0; pass < (sanitized() ? PASSES / 5 : PASSES); pass++) {
        wf_tape_reset(other, WF_TRAIN);
        of_other = wf_zeros(other, WF_SHAPE(2, 2));
        wf_tape_reset(tape, (wf_mode)below(3), .seed = (uint64_t)pass);
        for (int i = 0; i < POOL; i++)
            if (pass == 0 || below(400)) /* else of the pass before */
                pool[i] = i < 4 ? parameter[i] : below(400) ? make(i < 7 ? 0 : i == 7 ? 1 : (int)below(60)) : (wf_tensor *)of_other;
        if (wf_tape_error(tape)->code != WF_OK)
            continue;
        for (int64_t i = below(CALLS); i >= 0 && wf_tape_error(tape)->code == WF_OK; i--) {
            wf_tensor *x = call();
            if (x || wf_tape_error(tape)->code != WF_OK) {
                look(x ? x : wf_zeros(tape, WF_SHAPE(1)));
                pool[8 + below(POOL - 8)] = x;
                good++;
            }
        }
        failed += wf_tape_error(tape)->code != WF_OK;
        wf_tensor *loss = below(3) ? wf_sum(real()) : any();
        wf_status status = wf_backward(loss);
        ck_assert(status == WF_OK || !loss || wf_tape_of(loss) != tape || wf_tape_error(tape)->code == status);
        backward += status == WF_OK;
    }
    ck_assert_msg(good > 1000 && failed > 100 && backward > 50, "%d calls, %d passes that failed, %d backward", good, failed, backward);
    wf_tape_free(tape);
    wf_tape_free(other);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("any_calls", any_calls)

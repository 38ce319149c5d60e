/* SPDX-License-Identifier: MIT */
/* Random calls of tapes, tensors and ops with random, often wrong arguments. Every call returns a tensor, and poison comes with a message
 * on the tape. Under the sanitizers it shows that nothing outside is touched. WF_FUZZ_CALLS=N makes N calls. */
#include "any_calls_ops.h"

enum { CALLS = 7, PASSES = 10000, MARKS = 3 };

static wf_tape_mark mark[MARKS];

static bool sometimes(void *ctx)
{
    (void)ctx;
    return seldom(40);
}

/* Calls that leave the tensors as they are, and reads. */
static void other_call(void)
{
    static wf_real out[64];
    wf_tensor *x = any();
    wf_array a;
    wf_shape s;
    double value;
    wf_status status = WF_OK;
    switch (below(19)) {
    case 0:
        if (!seldom(9))
            x = wf_sum(real());
        status = wf_item(x, &value);
        break;
    case 1:
        s = wf_shape_of(x);
        status = wf_read(x, out, seldom(9) || wf_shape_count(&s) > 64 ? below(65) : wf_shape_count(&s));
        break;
    case 2:
        status = wf_view(x, &a);
        break;
    case 3: /* no gradient is no error of the tape */
        status = wf_grad(x, &a) == WF_OK ? WF_OK : wf_tape_error(tape)->code;
        break;
    case 4:
        wf_name(x, below(9) ? "a name" : NULL);
        break;
    case 5:
        ck_assert_ptr_nonnull(wf_name_of(x));
        ck_assert(wf_dim(x, any_dim()) >= 0 && wf_ndim(x) >= 0 && (int)wf_dtype_of(x) >= 0);
        break;
    case 6:
        wf_tape_first_row(tape, (uint64_t)any_size());
        break;
    case 7:
        wf_tape_check_finite(tape, below(2));
        break;
    case 8:
        mark[below(MARKS)] = wf_tape_here(below(20) ? tape : other);
        break;
    case 9:
        if (seldom(4)) {
            wf_tape_mark at = mark[below(MARKS)];
            wf_tensor *kept = below(3) ? wf_tape_rewind(tape, at, below(2) ? x : NULL) : wf_tape_compact(at, x);
            if (kept || wf_tape_error(tape)->code == WF_OK)
                for (int i = 4; i < POOL; i++) /* some of them are gone */
                    pool[i] = i == 9 && kept ? kept : make(i < 7 ? 0 : (int)below(9));
            return;
        }
        break;
    case 10:
        ck_assert(wf_tape_stats(tape).used <= wf_tape_stats(tape).reserved);
        break;
    case 11:
        wf_tape_memory(tape, seldom(50) ? SIZE_MAX >> below(20) : (size_t)below(5000));
        break;
    case 12:
        wf_tape_use(below(4) ? tape : other);
        break;
    case 13:
        wf_release(x);
        break;
    case 14:
        if (seldom(20))
            wf_tape_fail(tape, (wf_status)below(12), "line %d", 1);
        break;
    case 15:
        wf_tape_no_grad(tape, seldom(3));
        break;
    case 16: {
        wf_tensor *of[] = {x, real(), NULL, any()};
        wf_tape *its = wf_tape_of_operands((int)below(5), of);
        ck_assert(!its || its == tape || its == other);
        break;
    }
    case 17: {
        wf_tensor *of[] = {real(), real(), x}, *g[3];
        int count = seldom(50) ? (int)below(4) : 1 + (int)below(2);
        x = below(2) ? wf_sum(real()) : real();
        if (seldom(8)) {
            wf_tensor *v[] = {real(), x, any()};
            status = below(2) ? wf_hvp(x, count, of, v, g) : wf_jvp(x, count, of, v, &g[0], .create_graph = below(2));
            count = status == WF_OK ? count : 0;
            break;
        }
        status = wf_gradients(x, count, of, g, .gradient = seldom(9) ? any() : NULL, .retain = below(2), .create_graph = below(3) == 0,
                              .allow_unused = below(2));
        for (int i = 0; i < count; i++)
            add_to_pool(g[i]);
        break;
    }
    default:
        if (seldom(9))
            status = wf_backward(x = real(), .gradient = seldom(3) ? any() : NULL, .retain = below(2));
        break;
    }
    if (status != WF_OK) {
        wf_error copy = {0};
        ck_assert_int_ne(wf_tape_status(tape, &copy), WF_OK);
    }
    /* NULL and parameters stand for the tape that was used last. */
    ck_assert_msg(status == WF_OK || wf_tape_error(tape)->code != WF_OK || !x || wf_tape_of(x) != tape, "a status %d without a message",
                  (int)status);
}

/* The tape goes on after this: from its next pass. */
static void look(wf_tensor *x)
{
    static wf_real out[1 << 16];
    const wf_error *e = wf_tape_error(tape);
    ck_assert_ptr_nonnull(x);
    if (e->code != WF_OK) {
        check_message(e, "a tape");
        return;
    }
    if (wf_is_poison(x)) { /* poison of the pass before: reading it fails */
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
    wf_tensor *w = wf_parameter(root, "w", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 2});
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_set_threads(1, error));
    tape = wf_tape_new(&e);
    other = wf_tape_new(&e);
    ck_assert_msg(tape && other, "%s", e.message);
    any_rng = wf_rng_new(11, 5);
    int64_t good = 0, failed = 0, backward = 0,
            passes = getenv("WF_FUZZ_CALLS") ? atoll(getenv("WF_FUZZ_CALLS")) / 2
                     : sanitized()           ? PASSES / 5
                                             : PASSES;
    for (int64_t pass = 0; pass < passes; pass++) {
        wf_tape_reset(other, WF_TRAIN);
        of_other = wf_zeros(other, WF_SHAPE(2, 2));
        wf_tape_cancel(tape, seldom(50) ? sometimes : NULL, NULL);
        wf_tape_reset(tape, (wf_mode)(below(200) ? below(3) : below(9) - 2), .seed = (uint64_t)pass, .step = (uint64_t)below(3),
                      .first_row = (uint64_t)below(4), .exact = below(2));
        for (int i = 0; i < POOL; i++)
            if (pass == 0 || below(400)) /* otherwise one of the pass before */
                pool[i] = i < 4 ? parameter[i] : below(400) ? make(i < 7 ? 0 : i == 7 ? 1 : (int)below(60)) : (wf_tensor *)of_other;
        for (int64_t i = below(CALLS); i >= 0 && wf_tape_error(tape)->code == WF_OK; i--) {
            wf_tensor *x = any_op();
            if (x || wf_tape_error(tape)->code != WF_OK) {
                look(x ? x : wf_zeros(tape, WF_SHAPE(1)));
                add_to_pool(x);
                good++;
            }
            if (below(2))
                other_call();
        }
        failed += wf_tape_error(tape)->code != WF_OK;
        wf_tensor *loss = below(3) ? wf_sum(real()) : any();
        wf_status status = wf_backward(loss);
        ck_assert(status == WF_OK || !loss || wf_tape_of(loss) != tape || wf_tape_error(tape)->code == status);
        backward += status == WF_OK;
        if (pass % 8 == 0)
            check_right_pass(tape, w);
    }
    ck_assert_msg(good > passes / 20 && failed > passes / 200 && backward > passes / 400,
                  "%lld calls, %lld passes that failed, %lld backward", (long long)good, (long long)failed, (long long)backward);
    if (getenv("VERBOSE"))
        printf("%lld passes, %lld calls, %lld passes that failed, %lld backward\n", (long long)passes, (long long)good, (long long)failed,
               (long long)backward);
    wf_tape_free(tape);
    wf_tape_free(other);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("any_calls", any_calls)

/* SPDX-License-Identifier: MIT */
/* The functions of core with random, often wrong arguments, as far as their headers allow: shapes and arrays, maps and products,
 * conversions, memory, errors, random numbers. Each refusal has a message; nothing is written outside a result. */
#include "any.h"

#include <weft/compute.h>

enum { ELEMENTS = 2000, GUARD = 64 };

static wf_real values[ELEMENTS + GUARD];

/* Small sizes, in any number of dims; often invalid. */
static wf_shape some_shape(void)
{
    wf_shape s = {.ndim = below(30) ? (int)below(4) : any_count(8)};
    for (int d = 0; d < WF_MAX_DIMS; d++)
        s.dim[d] = below(40) ? 1 + below(5) : any_size();
    return s;
}

static bool fits(const wf_shape *s)
{
    int64_t n = wf_shape_count(s);
    return n >= 0 && n <= ELEMENTS;
}

static void shapes(void)
{
    wf_shape a = some_shape(), b = some_shape(), out;
    char text[96], tiny[8];
    ck_assert_ptr_eq(wf_shape_text(&a, text, sizeof text), text);
    ck_assert(strlen(wf_shape_text(&a, tiny, (size_t)(1 + below(7)))) < 7);
    ck_assert(wf_shape_count(&a) >= -1);
    if (wf_shape_broadcast(&a, &b, &out) && wf_shape_count(&a) > 0 && wf_shape_count(&b) > 0)
        ck_assert(out.ndim == (a.ndim > b.ndim ? a.ndim : b.ndim));
    ck_assert_int_eq(wf_shape_equal(&a, &a), a.ndim >= 0 && a.ndim <= WF_MAX_DIMS);
    ck_assert(!wf_shape_broadcast(&a, &b, &out) || (a.ndim <= WF_MAX_DIMS && b.ndim <= WF_MAX_DIMS));
}

static void arrays(void)
{
    wf_shape s = some_shape(), other = some_shape();
    wf_array a = wf_array_contiguous(values, WF_REAL, &s), view;
    if (!fits(&s))
        return;
    wf_shape same = wf_array_shape(&a);
    ck_assert(wf_array_is_contiguous(&a) && wf_shape_equal(&same, &s) && wf_array_count(&a) == wf_shape_count(&s));
    if (s.ndim > 1) { /* what the caller has to check is right */
        int d = (int)below(s.ndim);
        a = wf_array_transpose(a, d, (int)below(s.ndim));
        if (a.dim[d] > 0)
            a = wf_array_slice(a, d, below(a.dim[d]), 1);
    }
    if (wf_array_reshape(&a, &other, &view))
        ck_assert(wf_array_count(&view) == wf_array_count(&a));
}

static void twice(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++)
        y[i] = 2 * in[0][i];
}

/* Maps and products refuse what does not fit, and write nothing then. */
static void computing(int *refused)
{
    static wf_real x[ELEMENTS], y[ELEMENTS + GUARD];
    wf_shape s = some_shape(), t = below(3) ? s : some_shape(), u = some_shape();
    if (!fits(&s) || !fits(&t) || !fits(&u))
        return;
    wf_array a = wf_array_contiguous(x, seldom(30) ? WF_I32 : WF_REAL, &s), b = wf_array_contiguous(x, WF_REAL, &u),
             out = wf_array_contiguous(y, WF_REAL, &t);
    if (seldom(20))
        out.data = NULL;
    if (below(2) && a.ndim > 1)
        a = wf_array_transpose(a, 0, a.ndim - 1);
    const wf_array *in[WF_MAP_INPUTS] = {&a, &b, &a, &a};
    int64_t n = wf_array_count(&out);
    for (int i = 0; i < GUARD; i++)
        y[n + i] = 77;
    wf_error e = {0};
    wf_status status;
    if (below(2)) {
        status = wf_map(twice, NULL, below(20) ? 1 : (int)below(8) - 2, in, &out, 0.1);
    } else {
        struct wf_matmul_options o = {.scale = any_number(0), .add = below(2), .bias = seldom(3) ? x : NULL, .rows_alone = below(2)};
        if (wf_array_count(&a) > 0 && a.ndim > 1 && below(3)) { /* mostly the shapes of a product */
            u = (wf_shape){2, {a.dim[a.ndim - 1], 1 + below(4)}};
            t = wf_array_shape(&a);
            t.dim[t.ndim - 1] = u.dim[1];
            if (!fits(&t) || !fits(&u))
                return;
            b = wf_array_contiguous(x, WF_REAL, &u);
            out = wf_array_contiguous(y, WF_REAL, &t);
            n = wf_array_count(&out);
            for (int i = 0; i < GUARD; i++)
                y[n + i] = 77;
        }
        status = check_outcome(wf_array_matmul_with(&a, &b, &out, seldom(9) ? NULL : &o, &e), &e, "wf_array_matmul") ? WF_OK : e.code;
    }
    *refused += status != WF_OK;
    for (int i = 0; i < GUARD; i++)
        ck_assert(y[n + i] == 77);
}

static void conversions(void)
{
    static const char from[64 * 8];
    static char to[64 * 8 + GUARD];
    wf_dtype a = (wf_dtype)(below(9) ? below(WF_DTYPE_COUNT) : any_count(40)),
             b = (wf_dtype)(below(9) ? below(WF_DTYPE_COUNT) : any_count(40));
    ck_assert(wf_dtype_name(a) && wf_dtype_size(a) <= 8);
    memset(to, 5, sizeof to);
    int64_t n = below(65);
    if (!wf_convert(b, to, a, from, n))
        return;
    for (size_t i = (size_t)n * wf_dtype_size(b); i < sizeof to; i++)
        ck_assert_msg(to[i] == 5, "%lld elements of %s as %s: byte %zu is written", (long long)n, wf_dtype_name(a), wf_dtype_name(b), i);
}

static void memory(void)
{
    size_t bytes = below(9) ? (size_t)below(5000) : SIZE_MAX - (size_t)below(200);
    char *p = wf_alloc(bytes), *q = below(2) ? wf_realloc(p, (size_t)below(9000)) : NULL, *r;
    ck_assert(!p || (uintptr_t)p % 64 == 0);
    wf_free(q ? q : p);
    r = wf_alloc_zero(SIZE_MAX / 8, (size_t)(9 + below(1000)));
    ck_assert_ptr_null(r);
    r = wf_format("%s %d", "text", (int)below(100));
    q = wf_strdup(r);
    ck_assert_str_eq(q, r);
    wf_free(q);
    wf_free(r);
    wf_string_free(seldom(3) ? NULL : &(struct wf_string){0});
    ck_assert(wf_scratch(any_count(9), (size_t)below(5000)) == NULL || below(1) == 0);
}

static void errors_and_settings(void)
{
    wf_error e = {0};
    static char text[3000];
    memset(text, seldom(9) ? '\n' : 'a', (size_t)below(2999));
    wf_status code = (wf_status)any_count(12);
    if (code != WF_OK) {
        ck_assert_int_eq(wf_error_set(seldom(9) ? NULL : &e, code, "%s", text), code);
        wf_error_prefix(&e, "prefix %d", 3);
        wf_error_set(&e, WF_ERR_IO, "a second one");
        ck_assert(strlen(e.message) < sizeof e.message && e.code != WF_ERR_IO + 100);
    }
    wf_error_clear(&e);
    ck_assert_ptr_nonnull(wf_status_name(code));
    int threads = below(9) ? 1 + (int)below(2) : any_count(3);
    check_outcome(below(2) ? wf_set_threads(threads, &e) : wf_init(&e, .threads = threads), &e, "threads");
    ck_assert(wf_threads() >= 1 && wf_processors() >= 1 && *wf_isa() && *wf_blas() && *wf_version());
}

static void numbers(void)
{
    wf_rng rng = wf_rng_new((uint64_t)any_size(), wf_stream_of("a name"));
    uint64_t n = below(9) ? 1 + (uint64_t)below(1000) : UINT64_MAX - (uint64_t)below(3);
    ck_assert(wf_rng_below(&rng, n) < n);
    double u = wf_rng_uniform(&rng);
    ck_assert(u >= 0 && u < 1 && isfinite(wf_rng_normal(&rng)));
    int64_t count = below(ELEMENTS);
    for (int i = 0; i < GUARD; i++)
        values[count + i] = 77;
    if (below(2))
        wf_fill_uniform(values, count, any_number(0), any_number(1), 1, 2);
    else
        wf_fill_normal(values, count, any_number(0), any_number(1), 1, 2);
    for (int i = 0; i < GUARD; i++)
        ck_assert(values[count + i] == 77);
}

START_TEST(any_values)
{
    int refused = 0, calls = getenv("WF_FUZZ_CALLS") ? atoi(getenv("WF_FUZZ_CALLS")) : 20000;
    any_rng = wf_rng_new(5, 9);
    ck_ok(wf_set_threads(1, error));
    for (int i = 0; i < calls; i++)
        switch (below(8)) {
        case 0:
            shapes();
            break;
        case 1:
            arrays();
            break;
        case 2:
        case 3:
            computing(&refused);
            break;
        case 4:
            conversions();
            break;
        case 5:
            memory();
            break;
        case 6:
            if (seldom(10))
                errors_and_settings();
            break;
        default:
            if (seldom(10))
                numbers();
            break;
        }
    ck_assert_msg(refused > calls / 200 && refused < calls / 5, "%d of %d refused", refused, calls);
}
END_TEST

WF_TEST_MAIN("any_values", any_values)

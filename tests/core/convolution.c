/* SPDX-License-Identifier: MIT */
/* Convolutions and their gradients, against loops in long double; their bits; their memory. */
#include <sys/mman.h>
#include <unistd.h>

#include <weft/internal/conv.h>
#include <weft/internal/minmax.h>
#include <weft/runtime.h>

#include "products.h"

enum { X, DY, WEIGHT, BIAS_Y, BIAS_X, Y, DX, DWEIGHT, ARRAYS, RESULTS = ARRAYS - Y };
static const char *const names[ARRAYS] = {"x", "dy", "weight", "bias", "bias of the transpose", "y", "dx", "dweight"};

/* The arrays of a case: each ends where its memory ends, and the page behind it cannot be accessed. */
enum { MOST = 1 << 17 };
static struct {
    wf_real *end;
    wf_real *at;
    int64_t n;
    ld sum[MOST], size[MOST]; /* of a result: what it must be, and the sum of the magnitudes of the terms */
    int terms[MOST];
} array[ARRAYS];

static void start(void)
{
    ck_ok(wf_init(error, .threads = 1));
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (MOST * sizeof(wf_real) + page - 1) / page * page;
    for (int a = 0; a < ARRAYS; a++) {
        char *memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(memory != MAP_FAILED && mprotect(memory + bytes, page, PROT_NONE) == 0);
        array[a].end = (wf_real *)(void *)(memory + bytes);
    }
}

static void fill(int a, int64_t n)
{
    expect(n > 0 && n <= MOST, "%s has %lld elements", names[a], (long long)n);
    array[a].n = n;
    array[a].at = array[a].end - n;
    numbers(array[a].at, n, next(), -1, 1);
}

static void fill_all(const struct wf_conv *s)
{
    const int64_t weights = s->filters * (s->channels / s->groups) * s->kernel[0] * s->kernel[1],
                  x = s->batch * s->channels * s->height * s->width, y = s->batch * s->filters * s->rows * s->cols;
    const int64_t sizes[ARRAYS] = {x, y, weights, s->filters, s->channels, y, x, weights};
    for (int a = 0; a < ARRAYS; a++)
        fill(a, sizes[a]);
}

static void compute(const struct wf_conv *s, bool bias, bool add)
{
    ck_assert(wf_conv_forward(s, array[X].at, array[WEIGHT].at, bias ? array[BIAS_Y].at : NULL, array[Y].at, add));
    ck_assert(wf_conv_data(s, array[DY].at, array[WEIGHT].at, bias ? array[BIAS_X].at : NULL, array[DX].at, add));
    ck_assert(wf_conv_weight(s, array[X].at, array[DY].at, array[DWEIGHT].at, add));
}

static void term(int a, int64_t i, ld x)
{
    array[a].sum[i] += x;
    array[a].size[i] += fabsl(x);
    array[a].terms[i]++;
}

/* Sums up one output, for a channel of its group. */
static void loops_at(const struct wf_conv *s, int64_t b, int64_t f, int64_t channel, int64_t i, int64_t j)
{
    const int64_t each = s->channels / s->groups, c = f / (s->filters / s->groups) * each + channel,
                  y = ((b * s->filters + f) * s->rows + i) * s->cols + j;
    for (int64_t r = 0; r < s->kernel[0]; r++)
        for (int64_t q = 0; q < s->kernel[1]; q++) {
            const int64_t row = i * s->stride[0] - s->before[0] + r * s->dilation[0],
                          col = j * s->stride[1] - s->before[1] + q * s->dilation[1],
                          w = ((f * each + channel) * s->kernel[0] + r) * s->kernel[1] + q;
            if (row < 0 || row >= s->height || col < 0 || col >= s->width)
                continue;
            const int64_t x = ((b * s->channels + c) * s->height + row) * s->width + col;
            term(Y, y, (ld)array[X].at[x] * (ld)array[WEIGHT].at[w]);
            term(DX, x, (ld)array[DY].at[y] * (ld)array[WEIGHT].at[w]);
            term(DWEIGHT, w, (ld)array[DY].at[y] * (ld)array[X].at[x]);
        }
}

/* What the results must be. */
static void loops(const struct wf_conv *s, bool bias, bool add)
{
    for (int a = Y; a < ARRAYS; a++)
        for (int64_t i = 0; i < array[a].n; i++) {
            array[a].sum[i] = array[a].size[i] = array[a].terms[i] = 0;
            if (add)
                term(a, i, (ld)array[a].at[i]);
            if (bias && a == Y)
                term(a, i, (ld)array[BIAS_Y].at[i / (s->rows * s->cols) % s->filters]);
            if (bias && a == DX)
                term(a, i, (ld)array[BIAS_X].at[i / (s->height * s->width) % s->channels]);
        }
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t f = 0; f < s->filters; f++)
            for (int64_t c = 0; c < s->channels / s->groups; c++)
                for (int64_t i = 0; i < s->rows; i++)
                    for (int64_t j = 0; j < s->cols; j++)
                        loops_at(s, b, f, c, i, j);
}

static const char *words_of(const struct wf_conv *s)
{
    static char words[256];
    snprintf(words, sizeof words,
             "%d x %d x %d x %d, %d groups, %d filters, kernel %d x %d, stride %d %d, dilation %d %d, padding %d %d, y %d x %d",
             (int)s->batch, (int)s->channels, (int)s->height, (int)s->width, (int)s->groups, (int)s->filters, (int)s->kernel[0],
             (int)s->kernel[1], (int)s->stride[0], (int)s->stride[1], (int)s->dilation[0], (int)s->dilation[1], (int)s->before[0],
             (int)s->before[1], (int)s->rows, (int)s->cols);
    return words;
}

static void check(const struct wf_conv *s, const char *isa)
{
    const bool bias = below(2), add = below(2);
    fill_all(s);
    loops(s, bias, add);
    compute(s, bias, add);
    for (int a = Y; a < ARRAYS; a++)
        for (int64_t i = 0; i < array[a].n; i++) {
            const ld off = fabsl((ld)array[a].at[i] - array[a].sum[i]), bound = (array[a].terms[i] + 1) * (ld)EPS * array[a].size[i];
            expect(off <= bound, "%s: %s, bias %d, add %d: %s[%lld] is %.9g, not %.9Lg", isa, words_of(s), bias, add, names[a],
                   (long long)i, (double)array[a].at[i], array[a].sum[i]);
        }
}

/* Sets the outputs along one dimension, or returns false if there are none. */
static bool has_outputs(struct wf_conv *s, int dim, int64_t after)
{
    const int64_t size = dim == 0 ? s->height : s->width, reach = (s->kernel[dim] - 1) * s->dilation[dim] + 1;
    const int64_t room = size + s->before[dim] + after - reach;
    *(dim == 0 ? &s->rows : &s->cols) = room / s->stride[dim] + 1;
    return room >= 0;
}

/* Whether its arrays have enough memory, and the loops take little time. */
static bool is_small(const struct wf_conv *s)
{
    return s->batch * s->channels * s->height * s->width <= MOST && s->batch * s->filters * s->rows * s->cols <= MOST &&
           s->filters * s->channels / s->groups * s->kernel[0] * s->kernel[1] <= MOST &&
           s->batch * s->filters * s->channels / s->groups * s->rows * s->cols * s->kernel[0] * s->kernel[1] <= 1 << 20;
}

/* Filters that read any number of channels; that read one; and those of pictures with short rows and about as many channels as vectors have
 * lanes. */
enum kind { ANY, DEPTHWISE, SHORT_ROWS };

/* A random convolution, of which some have a padding wider than the picture. */
static struct wf_conv any_convolution(enum kind kind)
{
    static const int64_t lanes[] = {3, 4, 7, 8, 12, 13, 16, 29, 33};
    static const int64_t channels[] = {2, 3, 7, 8, 12, 15, 16, 17, 24, 32, 33, 48}, filters[] = {1, 2, 3, 5, 8, 14, 16, 20, 29};
    static const int64_t kernels[] = {1, 2, 3, 5, 7}, strides[] = {1, 2, 2, 3, 9};
    static const int64_t widths[] = {1, 2, 3, 5, 7, 8, 9, 14, 15, 16, 17, 28, 31, 32, 33, 35, 63, 64, 66, 67};
    for (;;) {
        struct wf_conv s = {.batch = 1 + below(3), .groups = 1 + below(3), .height = 1 + below(13), .width = widths[below(20)]};
        if (kind == SHORT_ROWS) {
            s.groups = lanes[below(9)];
            s.height = 1 + below(below(2) ? 13 : 150);
            s.width = widths[below(6)];
        }
        s.channels = s.groups * (kind == ANY ? channels[below(12)] : 1);
        s.filters = s.groups * (kind == ANY ? filters[below(9)] : kind == DEPTHWISE ? 1 + below(2) : 1);
        bool outputs = true;
        for (int d = 0; d < 2; d++) {
            s.kernel[d] = kernels[below(5)];
            s.stride[d] = kind == SHORT_ROWS && below(2) ? 1 : strides[below(5)];
            s.dilation[d] = 1 + below(4) / 3;
            const int64_t most = below(8) ? (s.kernel[d] - 1) * s.dilation[d] : 20;
            s.before[d] = below(most + 1);
            outputs = has_outputs(&s, d, below(most + 1)) && outputs;
        }
        if (outputs && is_small(&s))
            return s;
    }
}

START_TEST(are_the_loops)
{
    start();
    EACH_ISA
    for (int i = 0; i < (sanitized() ? 100 : thorough() ? 1500 : 400); i++) {
        const struct wf_conv s = any_convolution(i % 3);
        check(&s, isa);
    }
}
END_TEST

/* Pictures and sequences whose sums for the gradient of the weight have several blocks. */
START_TEST(large_ones_are_the_loops)
{
    static const struct wf_conv large[] = {
        {2, 1, 1, 1, 8209, 2, 1, 8206, {1, 4}, {1, 1}, {0, 0}, {1, 1}},
        {1, 2, 2, 120, 127, 2, 120, 127, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
        {1, 2, 2, 150, 151, 4, 75, 76, {3, 5}, {2, 2}, {1, 2}, {1, 1}},
        {3, 1, 1, 100, 101, 1, 98, 99, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    };
    start();
    EACH_ISA
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        check(&large[i], isa);
}
END_TEST

static void same_results(wf_real *const want[RESULTS], const char *isa, const struct wf_conv *s, int threads)
{
    for (int a = 0; a < RESULTS; a++)
        expect(memcmp(want[a], array[Y + a].at, (size_t)array[Y + a].n * sizeof(wf_real)) == 0, "%s: %s: other bits of %s on %d threads",
               isa, words_of(s), names[Y + a], threads);
}

/* The bits depend neither on the number of threads nor on the other pictures. */
START_TEST(the_same_bits)
{
    start();
    EACH_ISA
    for (int i = 0; i < 60; i++) {
        struct wf_conv s = any_convolution(i % 6 == 3 ? SHORT_ROWS : DEPTHWISE);
        s.batch = 16;
        s.height = WF_MIN(s.height, 13);
        s.channels = s.filters = i % 3 ? 8 : 16;
        s.groups = i % 2 ? s.channels : 1;
        s.width = WF_MIN(s.width, i % 3 ? 40 : 20);
        if (!has_outputs(&s, 0, s.before[0]) || !has_outputs(&s, 1, s.before[1]) || s.rows * s.cols > (i % 3 ? 1000 : 400))
            continue;
        wf_real *want[RESULTS];
        fill_all(&s);
        for (int threads = 1; threads <= 3; threads++) {
            ck_ok(wf_set_threads(threads, error));
            compute(&s, true, false);
            if (threads > 1)
                same_results(want, isa, &s, threads);
            for (int a = 0; a < RESULTS && threads == 1; a++)
                want[a] = copy_of(array[Y + a].at, array[Y + a].n);
        }
        s.batch = 1; /* the last picture */
        for (int a = 0; a < ARRAYS; a++)
            if (a == X || a == DY || a == Y || a == DX) {
                array[a].n /= 16;
                array[a].at = array[a].end - array[a].n;
            }
        compute(&s, true, false);
        for (int a = Y; a <= DX; a++)
            expect(memcmp(want[a - Y] + 15 * array[a].n, array[a].at, (size_t)array[a].n * sizeof(wf_real)) == 0,
                   "%s: %s: other bits of %s for a picture alone", isa, words_of(&s), names[a]);
        free_case();
    }
}
END_TEST

/* The kernels do not multiply what lies beside a row: infinity in the first column does not reach the weight of a tap that never reads it.
 */
START_TEST(infinities_stay_in_their_place)
{
    start();
    EACH_ISA
    for (int64_t width = 2; width < 70; width++)
        for (int64_t stride = 1; stride <= 3; stride++) {
            struct wf_conv s = {1, 1, 1, 3, width, 1, 3, 1, {1, 2}, {1, stride}, {0, 0}, {1, 1}};
            ck_assert(has_outputs(&s, 1, 0));
            fill_all(&s);
            for (int64_t i = 0; i < 3; i++)
                array[X].at[i * width] = INFINITY;
            compute(&s, false, false);
            expect(!isfinite(array[DWEIGHT].at[0]) && isfinite(array[DWEIGHT].at[1]), "%s: width %lld, stride %lld: %g and %g", isa,
                   (long long)width, (long long)stride, (double)array[DWEIGHT].at[0], (double)array[DWEIGHT].at[1]);
            for (int64_t i = 0; i < array[Y].n; i++)
                expect(isfinite(array[Y].at[i]) == (i % s.cols > 0), "%s: width %lld, stride %lld: y[%lld] is %g", isa, (long long)width,
                       (long long)stride, (long long)i, (double)array[Y].at[i]);
        }
}
END_TEST

/* The same where lanes are channels, whose rows lie in zeros: infinity in the padding's neighbour reaches only what reads it. */
START_TEST(infinities_in_short_rows)
{
    start();
    EACH_ISA
    for (int64_t width = 2; width <= 8; width++) {
        struct wf_conv s = {1, 16, 16, 3, width, 16, 3, 1, {1, 2}, {1, 1}, {0, 0}, {1, 1}};
        ck_assert(has_outputs(&s, 1, 0));
        fill_all(&s);
        for (int64_t i = 0; i < 3; i++)
            array[X].at[i * width] = INFINITY; /* of channel 0 */
        compute(&s, false, false);
        for (int64_t i = 0; i < array[DWEIGHT].n; i++)
            expect(isfinite(array[DWEIGHT].at[i]) == (i > 0), "%s: width %lld: dweight[%lld] is %g", isa, (long long)width, (long long)i,
                   (double)array[DWEIGHT].at[i]);
        for (int64_t i = 0; i < array[Y].n; i++)
            expect(isfinite(array[Y].at[i]) == (i % s.cols > 0 || i >= 3 * s.cols), "%s: width %lld: y[%lld] is %g", isa, (long long)width,
                   (long long)i, (double)array[Y].at[i]);
    }
}
END_TEST

/* Without filters the transpose gives its bias. */
START_TEST(no_filters)
{
    start();
    EACH_ISA
    for (int64_t stride = 1; stride <= 2; stride++) {
        const struct wf_conv s = {2, 1, 1, 3, 5, 0, 3, 5, {3, 3}, {stride, stride}, {1, 1}, {1, 1}};
        fill(DX, 30);
        const wf_real bias = 7;
        ck_assert(wf_conv_data(&s, array[DX].at, array[DX].at, &bias, array[DX].at, false));
        for (int i = 0; i < 30; i++)
            expect(array[DX].at[i] == 7, "%s: %g", isa, (double)array[DX].at[i]);
    }
}
END_TEST

WF_TEST_MAIN("convolution", are_the_loops, large_ones_are_the_loops, the_same_bits, infinities_stay_in_their_place,
             infinities_in_short_rows, no_filters)

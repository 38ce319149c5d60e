/* SPDX-License-Identifier: MIT */
/* Prints arrays as text by the rules of PyTorch's torch/_tensor_str.py: all elements have one style and one width, and of a large array
 * only the edges are shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/array.h>
#include <weft/internal/locale_c.h>
#include <weft/internal/minmax.h>
#include <weft/internal/string.h>

enum { EDGE = 3, THRESHOLD = 1000, LINE = 80, CELL = 64 };

enum style {
    WHOLE,     /* 2. */
    FIXED,     /* 2.0000 */
    SCIENTIFIC /* 2.0000e+00 */
};
struct printer {
    const wf_array *a;
    struct wf_string *out;
    bool edges; /* show only the first EDGE and the last EDGE indices of a dimension that has more than 2 EDGE */
    enum style style;
    int width;
    double least;    /* the smallest magnitude of a finite element that is not 0 */
    double greatest; /* the largest magnitude of a finite element */
    bool fractions;  /* a finite element is not whole */
};

static const char *place_of(const wf_array *a, int64_t at)
{
    return (const char *)a->data + at * (int64_t)wf_dtype_size(a->dtype);
}

static bool is_real(wf_dtype dtype)
{
    return dtype <= WF_F8_E5M2;
}

static double from_e4m3(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double value = (bits & 0x7f) == 0x7f ? NAN : exponent > 0 ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
    return bits & 0x80 ? -value : value;
}

static double real_at(const wf_array *a, int64_t at)
{
    const char *place = place_of(a, at);
    double value = NAN;
    if (a->dtype == WF_F8_E4M3)
        return from_e4m3(*(const uint8_t *)place);
    const uint16_t half = (uint16_t)(*(const uint8_t *)place << 8); /* E5M2 is the upper byte of F16 */
    const bool upper = a->dtype == WF_F8_E5M2;
    wf_convert(WF_F64, &value, upper ? WF_F16 : a->dtype, upper ? (const void *)&half : place, 1);
    return value;
}

static int whole_text(const wf_array *a, int64_t at, char text[CELL])
{
    const void *place = place_of(a, at);
    int64_t value = 0;
    if (a->dtype == WF_BOOL)
        return snprintf(text, CELL, "%s", *(const uint8_t *)place ? "true" : "false");
    if (a->dtype == WF_U64)
        return snprintf(text, CELL, "%llu", (unsigned long long)*(const uint64_t *)place);
    wf_convert(WF_I64, &value, a->dtype, place, 1);
    return snprintf(text, CELL, "%lld", (long long)value);
}

static int cell_text(const struct printer *p, int64_t at, char text[CELL])
{
    if (!is_real(p->a->dtype))
        return whole_text(p->a, at, text);
    const double value = real_at(p->a, at);
    if (isnan(value))
        return snprintf(text, CELL, "nan");
    if (isinf(value))
        return snprintf(text, CELL, value < 0 ? "-inf" : "inf");
    return p->style == SCIENTIFIC ? snprintf(text, CELL, "%.4e", value) : snprintf(text, CELL, p->style == WHOLE ? "%.0f." : "%.4f", value);
}

/* Whether "..." replaces elements at index i. If so, *i moves to the last of these elements. */
static bool left_out(const struct printer *p, int dim, int64_t *i)
{
    const int64_t n = p->a->dim[dim];
    if (!p->edges || n <= 2 * EDGE || *i != EDGE)
        return false;
    *i = n - EDGE - 1; /* the caller's loop adds 1 */
    return true;
}

/* Calls see(p, at) for each element that is shown, where `at` is its offset in elements. */
static void each(struct printer *p, int dim, int64_t at, void (*see)(struct printer *p, int64_t at))
{
    if (dim == p->a->ndim) {
        see(p, at);
        return;
    }
    for (int64_t i = 0; i < p->a->dim[dim]; i++)
        if (!left_out(p, dim, &i))
            each(p, dim + 1, at + i * p->a->stride[dim], see);
}

static void see_value(struct printer *p, int64_t at)
{
    const double value = fabs(real_at(p->a, at));
    if (!isfinite(value) || value == 0)
        return;
    p->least = fmin(p->least, value);
    p->greatest = fmax(p->greatest, value);
    p->fractions |= value != floor(value);
}

static void see_width(struct printer *p, int64_t at)
{
    char text[CELL];
    const int width = cell_text(p, at, text);
    p->width = WF_MAX(width, p->width);
}

static void add_cell(struct printer *p, int64_t at)
{
    char text[CELL];
    cell_text(p, at, text);
    wf_string_format(p->out, "%*s", p->width, text);
}

/* Appends one row of the last dimension, in lines of at most LINE bytes. */
static void add_row(struct printer *p, int dim, int64_t at)
{
    const int64_t most = (LINE - dim) / (p->width + 2);
    int64_t in_line = 0;
    for (int64_t i = 0; i < p->a->dim[dim]; i++, in_line++) {
        if (in_line > 0 && in_line >= most) {
            wf_string_format(p->out, ",\n%*s", dim + 1, "");
            in_line = 0;
        } else if (in_line > 0)
            wf_string_text(p->out, ", ");
        if (left_out(p, dim, &i))
            wf_string_text(p->out, " ...");
        else
            add_cell(p, at + i * p->a->stride[dim]);
    }
}

static void add_values(struct printer *p, int dim, int64_t at)
{
    const int last = p->a->ndim - 1;
    if (dim > last) {
        add_cell(p, at);
        return;
    }
    wf_string_char(p->out, '[');
    if (dim == last)
        add_row(p, dim, at);
    for (int64_t i = 0; dim < last && i < p->a->dim[dim]; i++) {
        for (int k = i > 0 ? dim : last; k < last; k++)
            wf_string_text(p->out, k == dim ? ",\n" : "\n");
        wf_string_format(p->out, "%*s", i > 0 ? dim + 1 : 0, "");
        if (left_out(p, dim, &i))
            wf_string_text(p->out, "...");
        else
            add_values(p, dim + 1, at + i * p->a->stride[dim]);
    }
    wf_string_char(p->out, ']');
}

wf_status wf_array_print_text(struct wf_string *text, const char *name, const wf_array *a)
{
    const wf_shape shape = a ? wf_array_shape(a) : (wf_shape){.ndim = -1};
    const int64_t count = wf_shape_count(&shape);
    char shape_text[96];
    if (!text || count < 0 || (unsigned)a->dtype >= WF_DTYPE_COUNT || (count > 0 && !a->data))
        return WF_ERR_ARGUMENT;
    struct printer p = {.a = a, .out = text, .edges = count > THRESHOLD, .least = INFINITY};
    const locale_t before = locale_c_enter();
    wf_string_format(text, "%s%s%s %s\n", name ? name : "", name ? " " : "", wf_shape_text(&shape, shape_text, sizeof shape_text),
                     wf_dtype_name(a->dtype));
    if (count > 0 && is_real(a->dtype))
        each(&p, 0, 0, see_value);
    p.style = p.greatest / p.least > 1000 || p.greatest > 1e8 || p.least < 1e-4 ? SCIENTIFIC : p.fractions ? FIXED : WHOLE;
    if (count > 0) {
        each(&p, 0, 0, see_width);
        add_values(&p, 0, 0);
    } else
        wf_string_text(text, "[]");
    wf_string_char(text, '\n');
    locale_c_leave(before);
    return text->failed ? WF_ERR_MEMORY : WF_OK;
}

wf_status wf_array_print(FILE *to, const char *name, const wf_array *a)
{
    struct wf_string text = {0};
    wf_status status = to ? wf_array_print_text(&text, name, a) : WF_ERR_ARGUMENT;
    if (status == WF_OK && fwrite(text.data, 1, (size_t)text.length, to) != (size_t)text.length)
        status = WF_ERR_IO;
    wf_string_free(&text);
    return status;
}

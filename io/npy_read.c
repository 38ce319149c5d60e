/* SPDX-License-Identifier: MIT */
/* Reads NumPy's array files without trusting them. The header is a literal of a Python dictionary. It is accepted only in the form that
 * numpy.save writes. */
#include <weft/internal/needs.h>
#include <weft/npy.h>

#include <inttypes.h>
#include <string.h>

#include <weft/internal/foreign.h>
#include <weft/internal/map.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

enum { MOST_HEADER = 1 << 20 };

struct wf_npy {
    struct wf_map map;  /* {0} for a view */
    const char *memory; /* the whole file */
    int64_t bytes;
    wf_array array;
};

static const struct {
    const char *descr; /* type and size, without the byte order */
    wf_dtype dtype;
} types[] = {{"f4", WF_F32}, {"f8", WF_F64}, {"f2", WF_F16}, {"i1", WF_I8},  {"u1", WF_U8},  {"i2", WF_I16},
             {"u2", WF_U16}, {"i4", WF_I32}, {"u4", WF_U32}, {"i8", WF_I64}, {"u8", WF_U64}, {"b1", WF_BOOL}};

/* The header while it is read. The text that is still to be read begins at `at` and ends before `end`, without a zero byte. */
struct header {
    const char *at, *end;
    /* Whether the keys 'descr', 'fortran_order' and 'shape' have been read. */
    bool descr, order, shape;
    wf_dtype dtype;
    bool fortran;
    wf_shape dims;
    wf_error *error;
};

static bool refuse(struct header *h, const char *what)
{
    if (!h->error->code)
        wf_error_set(h->error, WF_ERR_FORMAT, "the header cannot be read: %s", what);
    return false;
}

static bool take(struct header *h, char c)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t'))
        h->at++;
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static bool take_word(struct header *h, const char *word)
{
    int64_t length = (int64_t)strlen(word);
    if (h->end - h->at < length || memcmp(h->at, word, (size_t)length) != 0)
        return false;
    h->at += length;
    return true;
}

/* Takes 'text' or "text", without escapes. */
static bool take_string(struct header *h, char text[64])
{
    char quote = take(h, '\'') ? '\'' : take(h, '"') ? '"' : 0;
    const char *end = quote ? memchr(h->at, quote, (size_t)(h->end - h->at)) : NULL;
    if (!end || end - h->at > 63 || memchr(h->at, '\\', (size_t)(end - h->at)) || memchr(h->at, 0, (size_t)(end - h->at)))
        return refuse(h, "a string is expected");
    memcpy(text, h->at, (size_t)(end - h->at));
    text[end - h->at] = 0;
    h->at = end + 1;
    return true;
}

static bool take_descr(struct header *h)
{
    char descr[64], quoted[WF_QUOTE_SIZE];
    if (take(h, '['))
        wf_error_set(h->error, WF_ERR_FORMAT, "arrays of records are not read: save each field by itself");
    if (h->error->code || !take_string(h, descr))
        return false;
    if (strchr(descr, 'O'))
        wf_error_set(h->error, WF_ERR_FORMAT, "arrays of Python objects are pickles, which are not read: save numbers");
    else if (descr[0] == '>')
        wf_error_set(h->error, WF_ERR_FORMAT, "its numbers are big-endian: save array.astype(array.dtype.newbyteorder('<'))");
    for (size_t i = 0; !h->error->code && i < sizeof types / sizeof *types; i++)
        if (descr[0] && strchr("<|=", descr[0]) && strcmp(descr + 1, types[i].descr) == 0) {
            h->dtype = types[i].dtype;
            return true;
        }
    if (!h->error->code)
        wf_error_set(h->error, WF_ERR_FORMAT, "the type %s is not read, only floats of 2, 4 and 8 bytes, integers and booleans",
                     wf_text_quote(descr, quoted));
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_number(struct header *h, int64_t *out)
{
    take(h, ' ');
    if (h->at == h->end || !is_digit(*h->at))
        return refuse(h, "a size of the shape is expected");
    int64_t size = 0;
    for (; h->at < h->end && is_digit(*h->at); h->at++)
        if (__builtin_mul_overflow(size, (int64_t)10, &size) || __builtin_add_overflow(size, (int64_t)(*h->at - '0'), &size))
            return refuse(h, "a size of the shape is too large");
    *out = size;
    (void)take_word(h, "L"); /* Python 2 writes a number as 3L */
    return true;
}

static bool take_shape(struct header *h)
{
    if (!take(h, '('))
        return refuse(h, "the shape is no tuple");
    while (!take(h, ')')) {
        int64_t size = 0; /* gcc 12 with a sanitizer at -O1 does not see that take_number sets `size` */
        if (!take_number(h, &size))
            return false;
        if (h->dims.ndim == WF_MAX_DIMS) {
            wf_error_set(h->error, WF_ERR_FORMAT, "more than %d dimensions are not supported", WF_MAX_DIMS);
            return false;
        }
        h->dims.dim[h->dims.ndim++] = size;
        if (!take(h, ',')) {
            if (!take(h, ')'))
                return refuse(h, "the shape has no end");
            break;
        }
    }
    return wf_shape_count(&h->dims) >= 0 || refuse(h, "the shape has too many elements");
}

static bool take_order(struct header *h)
{
    take(h, ' ');
    h->fortran = take_word(h, "True");
    return h->fortran || take_word(h, "False") || refuse(h, "\"fortran_order\" is neither True nor False");
}

static bool take_header(struct header *h)
{
    char key[64];
    if (!take(h, '{'))
        return refuse(h, "it does not begin with {");
    while (!take(h, '}')) {
        if (!take_string(h, key))
            return false;
        bool *had = !strcmp(key, "descr")           ? &h->descr
                    : !strcmp(key, "fortran_order") ? &h->order
                    : !strcmp(key, "shape")         ? &h->shape
                                                    : NULL;
        if (!had || *had || !take(h, ':'))
            return refuse(h, "its keys are not descr, fortran_order and shape, each once");
        *had = true;
        take(h, ' ');
        if (!(had == &h->descr ? take_descr(h) : had == &h->order ? take_order(h) : take_shape(h)))
            return false;
        if (!take(h, ',')) {
            if (!take(h, '}'))
                return refuse(h, "it has no end");
            break;
        }
    }
    take(h, '\n');
    return h->at == h->end || refuse(h, "more follows the dictionary");
}

/* Returns the array as a view of `data`. In Fortran order, the first dimension is the contiguous one. */
static wf_array array_of(const char *data, const struct header *h)
{
    wf_array a = wf_array_contiguous((void *)(uintptr_t)data, h->dtype, &h->dims);
    int64_t stride = 1;
    for (int d = 0; h->fortran && d < a.ndim; d++) {
        a.stride[d] = stride;
        stride *= a.dim[d] > 0 ? a.dim[d] : 1;
    }
    return a;
}

static wf_status read_file(wf_npy *f, wf_error *error)
{
    const unsigned char *b = (const unsigned char *)f->memory;
    const char *foreign = wf_foreign(f->memory, f->bytes);
    if (f->bytes < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s", foreign ? foreign : "is not an array of NumPy (.npy)");
    if (b[6] < 1 || b[6] > 3)
        return wf_error_set(error, WF_ERR_FORMAT, "the format's version is %d.%d; 1.0, 2.0 and 3.0 are read", b[6], b[7]);
    int64_t begin = b[6] == 1 ? 10 : 12, length = b[8] | b[9] << 8;
    if (b[6] > 1 && f->bytes >= 12)
        length |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
    if (f->bytes < begin || length > MOST_HEADER || length > f->bytes - begin)
        return wf_error_set(error, WF_ERR_FORMAT, "a header of %" PRId64 " bytes in a file of %" PRId64 ": is it truncated?", length,
                            f->bytes);
    struct header h = {.at = f->memory + begin, .end = f->memory + begin + length, .error = error};
    if (take_header(&h) && !(h.descr && h.order && h.shape))
        refuse(&h, "it lacks descr, fortran_order or shape");
    if (error->code)
        return error->code;
    int64_t bytes, data = begin + length, size = (int64_t)wf_dtype_size(h.dtype);
    if (__builtin_mul_overflow(wf_shape_count(&h.dims), size, &bytes))
        return wf_error_set(error, WF_ERR_FORMAT, "the shape has too many elements");
    if (bytes != f->bytes - data)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "the array takes %" PRId64 " bytes from byte %" PRId64 " on, and the file has %" PRId64 "%s", bytes, data,
                            f->bytes - data, bytes > f->bytes - data ? ": is it truncated?" : ": does it hold several arrays?");
    if ((uintptr_t)(f->memory + data) % (uintptr_t)size != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "the data begin at byte %" PRId64 ", where numbers of %" PRId64 " bytes cannot be read",
                            data, size);
    for (int64_t i = 0; h.dtype == WF_BOOL && i < bytes; i++)
        if (b[data + i] > 1)
            return wf_error_set(error, WF_ERR_FORMAT, "element %" PRId64 " is %d, not a boolean", i, b[data + i]);
    f->array = array_of(f->memory + data, &h);
    return WF_OK;
}

static wf_npy *opened(wf_npy *f, const char *name, wf_error *error)
{
    wf_error failure = {0}; /* `error` may be NULL */
    if (read_file(f, &failure) == WF_OK)
        return f;
    wf_npy_close(f);
    wf_error_set(error, failure.code, "%s: %s", name, failure.message);
    return NULL;
}

static wf_npy *no_memory(const char *name, wf_error *error)
{
    wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to open it", name);
    return NULL;
}

wf_npy *wf_npy_load(const char *path, wf_error *error)
{
    if (wf_needs(error, "path", path))
        return NULL;
    wf_npy *f = wf_alloc_zero(1, sizeof *f);
    if (!f)
        return no_memory(path, error);
    if (wf_map_open(path, WF_MAP_SHARED, &f->map, error) != WF_OK) {
        wf_free(f);
        return NULL;
    }
    f->memory = f->map.data;
    f->bytes = f->map.bytes;
    return opened(f, path, error);
}

wf_npy *wf_npy_view(const void *data, int64_t bytes, const char *label, wf_error *error)
{
    if (wf_needs(error, "data, label", wf_some(data, bytes), label))
        return NULL;
    wf_npy *f = wf_alloc_zero(1, sizeof *f);
    if (!f)
        return no_memory(label, error);
    f->memory = data;
    f->bytes = bytes;
    return opened(f, label, error);
}

const wf_array *wf_npy_array(const wf_npy *npy)
{
    return npy ? &npy->array : NULL;
}

void wf_npy_close(wf_npy *npy)
{
    if (!npy)
        return;
    wf_map_close(&npy->map);
    wf_free(npy);
}

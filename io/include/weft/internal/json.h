/* SPDX-License-Identifier: MIT */
/* JSON files, read and written with jansson. From the first call of wf_json_init on, jansson allocates with wf_alloc and frees with
 * wf_free. wf_free can also free memory of malloc, jansson's own default. But a program that has set other functions with
 * json_set_alloc_funcs must not hold values of jansson across that call.
 *
 * The caller releases the values that these functions return (json_decref). Objects keep their keys in the order of insertion, in files
 * too. */
#ifndef WEFT_INTERNAL_JSON_H
#define WEFT_INTERNAL_JSON_H

#include <jansson.h>

#include <weft/error.h>

/* Makes jansson allocate with wf_alloc; calls after the first do nothing. The functions that read or parse JSON call this themselves. Other
 * code calls it before constructors of jansson, such as json_object(). */
void wf_json_init(void);

/* jansson does not say whether a call failed for lack of memory. Call wf_json_memory_clear before values are built. Afterwards
 * wf_json_memory_failed returns true if an allocation of jansson has failed in this thread since that call. */
void wf_json_memory_clear(void);
bool wf_json_memory_failed(void);

/* How deep arrays and objects may be nested in JSON that is read or written. */
enum { WF_JSON_MAX_DEPTH = 128 };

/* Parses a strict JSON value that is nested at most `depth` deep. A key must not occur twice in an object. Returns NULL on failure. Then
 * wf_json_memory_failed() is true if there was no memory; otherwise *failure has the reason, with line and column from 1. This is for
 * readers that report the place of an error in another way than the functions below. */
json_t *wf_json_decode(const char *text, int64_t bytes, int depth, json_error_t *failure);
/* Reads a file of at most `limit` bytes: any value in strict JSON and UTF-8. A byte order mark is skipped. A key must not occur twice in an
 * object. Returns NULL on failure. Errors in the text are WF_ERR_FORMAT, "file:line:column: ...", where lines and columns count from 1 and
 * columns are characters. */
json_t *wf_json_load(const char *path, int64_t limit, wf_error *error) WF_CHECKED;
/* The same for text in memory; `where` is the name of the file in messages. */
json_t *wf_json_parse(const char *text, int64_t bytes, const char *where, wf_error *error) WF_CHECKED;
/* The same for text that begins at line number `line` (from 1) of the file. */
json_t *wf_json_parse_line(const char *text, int64_t bytes, const char *where, int64_t line, wf_error *error) WF_CHECKED;

/* Returns a value as JSON text, which the caller frees with wf_free. If indent > 0, each level is indented by `indent` spaces, and a
 * newline ends the text. If indent = 0, the text is one line without spaces and newline. *bytes (`bytes` may be NULL) becomes its length. A
 * double is written so that reading it gives the same bits (wf_text_double). The same value gives the same bytes. Returns NULL on failure:
 * there is no memory, or the value is nested too deeply. */
char *wf_json_text(const json_t *value, int indent, int64_t *bytes, wf_error *error) WF_CHECKED;
/* Writes a value to a file as JSON text, atomically. */
wf_status wf_json_save(const char *path, const json_t *value, int indent, wf_error *error) WF_CHECKED;

/* These functions read a member of an object and check its type and range. `where` is the name of the file, or "file: section", in messages
 * such as "where: key "d_model": 0 is out of range, 1 to 65536". If an optional key is absent or null, *out stays as it was, so put the
 * default there first. WF_ERR_FORMAT: a required key is missing, or a value has another type or is out of range. */
enum wf_json_need { WF_JSON_OPTIONAL, WF_JSON_REQUIRED };
wf_status wf_json_get_int(const json_t *object, const char *where, const char *key, enum wf_json_need need, int64_t low, int64_t high,
                          int64_t *out, wf_error *error) WF_CHECKED;
/* Accepts integers too. The range includes its bounds. */
wf_status wf_json_get_double(const json_t *object, const char *where, const char *key, enum wf_json_need need, double low, double high,
                             double *out, wf_error *error) WF_CHECKED;
wf_status wf_json_get_bool(const json_t *object, const char *where, const char *key, enum wf_json_need need, bool *out,
                           wf_error *error) WF_CHECKED;
/* In the next three functions, the string, object or array *out belongs to `object`. */
wf_status wf_json_get_string(const json_t *object, const char *where, const char *key, enum wf_json_need need, const char **out,
                             wf_error *error) WF_CHECKED;
wf_status wf_json_get_object(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out,
                             wf_error *error) WF_CHECKED;
wf_status wf_json_get_array(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out,
                            wf_error *error) WF_CHECKED;
/* Reads several members of an object. After the first error the following calls do nothing, so that one check at the end is enough.
 *
 *     struct wf_json_reader r = {.object = object, .where = path, .error = error};
 *     wf_json_read_int(&r, "layers", WF_JSON_REQUIRED, 1, 1024, &c->layers);
 *     wf_json_read_double(&r, "eps", WF_JSON_OPTIONAL, 0, 1, &c->eps);
 *     return r.status; */
struct wf_json_reader {
    const json_t *object;
    const char *where;
    wf_error *error;
    wf_status status;
};
/* Records the result of a check by the caller. The first failure counts. */
static inline void wf_json_read_status(struct wf_json_reader *r, wf_status status)
{
    r->status = r->status == WF_OK ? status : r->status;
}
/* Calls get(object, where, ..., error), unless an earlier call has failed. */
#define WF_JSON_READ(r, get, ...)                                                                                                          \
    wf_json_read_status(r, (r)->status == WF_OK ? get((r)->object, (r)->where, __VA_ARGS__, (r)->error) : WF_OK)
#define wf_json_read_int(r, ...) WF_JSON_READ(r, wf_json_get_int, __VA_ARGS__)
#define wf_json_read_double(r, ...) WF_JSON_READ(r, wf_json_get_double, __VA_ARGS__)
#define wf_json_read_bool(r, ...) WF_JSON_READ(r, wf_json_get_bool, __VA_ARGS__)
#define wf_json_read_string(r, ...) WF_JSON_READ(r, wf_json_get_string, __VA_ARGS__)
#define wf_json_read_object(r, ...) WF_JSON_READ(r, wf_json_get_object, __VA_ARGS__)
#define wf_json_read_array(r, ...) WF_JSON_READ(r, wf_json_get_array, __VA_ARGS__)

/* Fails on the first key of the object that is not in the list `known`; the message names the key. The list ends with NULL. */
wf_status wf_json_only_keys(const json_t *object, const char *where, const char *const *known, wf_error *error) WF_CHECKED;

/* Set a member of an object. A new member is added at the end; an existing one keeps its place. WF_ERR_NUMERIC: the value is a NaN or
 * infinite. WF_ERR_ARGUMENT: a string is not UTF-8. */
wf_status wf_json_set_int(json_t *object, const char *key, int64_t value, wf_error *error) WF_CHECKED;
wf_status wf_json_set_double(json_t *object, const char *key, double value, wf_error *error) WF_CHECKED;
wf_status wf_json_set_bool(json_t *object, const char *key, bool value, wf_error *error) WF_CHECKED;
wf_status wf_json_set_string(json_t *object, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* Takes over the reference to `value`, also on failure. If `value` is NULL, returns WF_ERR_MEMORY. */
wf_status wf_json_set_new(json_t *object, const char *key, json_t *value, wf_error *error) WF_CHECKED;

#endif

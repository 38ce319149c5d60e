/* SPDX-License-Identifier: MIT */
/* JSON files, on jansson. jansson's memory comes from wf_alloc from the first call of this header on: a program that
 * uses jansson itself must not hold jansson values across it unless its allocator is malloc (wf_free then frees them rightly).
 *
 * A value made here is released with json_decref. Objects keep their keys in the order of insertion, in files too. */
#ifndef WEFT_INTERNAL_JSON_H
#define WEFT_INTERNAL_JSON_H

#include <jansson.h>

#include <weft/error.h>

/* Routes jansson's allocations through wf_alloc, once. Reading and parsing do it; call it before jansson's constructors (json_object()). */
void wf_json_init(void);

/* jansson does not say whether a call failed without memory. Clear before values are built, and ask afterwards whether an allocation of
 * jansson has failed in this thread since. */
void wf_json_memory_clear(void);
bool wf_json_memory_failed(void);

/* How deep arrays and objects may be nested in what is read and written. */
enum { WF_JSON_MAX_DEPTH = 128 };

/* Any strict JSON value without a key twice in an object and nested at most `depth` deep; NULL with *failure (line and column from 1), or
 * without memory, as wf_json_memory_failed() says. For readers that place their errors otherwise than the functions below. */
json_t *wf_json_decode(const char *text, int64_t bytes, int depth, json_error_t *failure);
/* Reads a file of at most `limit` bytes: any value, strict JSON in UTF-8 (a byte order mark is skipped), no key twice in an object. Errors
 * in it are WF_ERR_FORMAT, "file:line:column: ..." (both from 1, the column in characters). NULL on failure. */
json_t *wf_json_load(const char *path, int64_t limit, wf_error *error) WF_CHECKED;
/* The same for text in memory; `where` is the file's name in messages. */
json_t *wf_json_parse(const char *text, int64_t bytes, const char *where, wf_error *error) WF_CHECKED;
/* The same for text that begins at line number `line` (from 1) of the file. */
json_t *wf_json_parse_line(const char *text, int64_t bytes, const char *where, int64_t line, wf_error *error) WF_CHECKED;

/* JSON text, with a final newline when indent > 0 (spaces a level), on one line without spaces or newline when it is 0. Doubles
 * read back as the same bits (wf_text_double). The same value gives the same bytes. The caller frees it with wf_free; *bytes
 * may be NULL. NULL on failure: no memory, nested too deeply. */
char *wf_json_text(const json_t *value, int indent, int64_t *bytes, wf_error *error) WF_CHECKED;
/* Writes it to a file atomically. */
wf_status wf_json_save(const char *path, const json_t *value, int indent, wf_error *error) WF_CHECKED;

/* Typed reading of an object's members, with checks. `where` is the file's name (or "file: section") in messages, as
 * "where: key "d_model": 0 is out of range, 1 to 65536". An optional key that is absent (or null) leaves *out as it was: put the default
 * there first. WF_ERR_FORMAT for a missing required key, another type, or a value out of range. */
enum wf_json_need { WF_JSON_OPTIONAL, WF_JSON_REQUIRED };
wf_status wf_json_get_int(const json_t *object, const char *where, const char *key, enum wf_json_need need, int64_t low, int64_t high,
                          int64_t *out, wf_error *error) WF_CHECKED;
/* Takes integers too. The bounds belong to the range. */
wf_status wf_json_get_double(const json_t *object, const char *where, const char *key, enum wf_json_need need, double low, double high,
                             double *out, wf_error *error) WF_CHECKED;
wf_status wf_json_get_bool(const json_t *object, const char *where, const char *key, enum wf_json_need need, bool *out,
                           wf_error *error) WF_CHECKED;
/* The string, object or array belongs to `object`. */
wf_status wf_json_get_string(const json_t *object, const char *where, const char *key, enum wf_json_need need, const char **out,
                             wf_error *error) WF_CHECKED;
wf_status wf_json_get_object(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out,
                             wf_error *error) WF_CHECKED;
wf_status wf_json_get_array(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out,
                            wf_error *error) WF_CHECKED;
/* The same for a whole object: the first error wins, and what follows it does nothing, so that one check at the end suffices.
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
/* For a check of the caller's: keeps the first failure. */
static inline void wf_json_read_status(struct wf_json_reader *r, wf_status status)
{
    r->status = r->status == WF_OK ? status : r->status;
}
/* `get` with the arguments between its `where` and its `error`, unless something has failed. */
#define WF_JSON_READ(r, get, ...)                                                                                                          \
    wf_json_read_status(r, (r)->status == WF_OK ? get((r)->object, (r)->where, __VA_ARGS__, (r)->error) : WF_OK)
#define wf_json_read_int(r, ...) WF_JSON_READ(r, wf_json_get_int, __VA_ARGS__)
#define wf_json_read_double(r, ...) WF_JSON_READ(r, wf_json_get_double, __VA_ARGS__)
#define wf_json_read_bool(r, ...) WF_JSON_READ(r, wf_json_get_bool, __VA_ARGS__)
#define wf_json_read_string(r, ...) WF_JSON_READ(r, wf_json_get_string, __VA_ARGS__)
#define wf_json_read_object(r, ...) WF_JSON_READ(r, wf_json_get_object, __VA_ARGS__)
#define wf_json_read_array(r, ...) WF_JSON_READ(r, wf_json_get_array, __VA_ARGS__)

/* Fails, naming it, on the first key of the object that is not in the list `known`, which ends with NULL. */
wf_status wf_json_only_keys(const json_t *object, const char *where, const char *const *known, wf_error *error) WF_CHECKED;

/* Set a member, which is new or replaced in place. WF_ERR_NUMERIC for a NaN or an infinity, WF_ERR_ARGUMENT for a string that is
 * not UTF-8. */
wf_status wf_json_set_int(json_t *object, const char *key, int64_t value, wf_error *error) WF_CHECKED;
wf_status wf_json_set_double(json_t *object, const char *key, double value, wf_error *error) WF_CHECKED;
wf_status wf_json_set_bool(json_t *object, const char *key, bool value, wf_error *error) WF_CHECKED;
wf_status wf_json_set_string(json_t *object, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* Takes over the reference to `value`, also on failure; NULL counts as no memory. */
wf_status wf_json_set_new(json_t *object, const char *key, json_t *value, wf_error *error) WF_CHECKED;

#endif

/* SPDX-License-Identifier: MIT */
/* What the parts of a tokenizer share: memory that lives with it, and reading. */
#include <string.h>

#include "pattern.h"
#include "pipeline.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

/* The head of a kept block, as wide as its alignment. */
struct block {
    struct block *next;
    char pad[64 - sizeof(struct block *)];
};

void *tokenizer_keep(wf_tokenizer *t, int64_t count, int64_t size)
{
    if (count < 0 || count > (PTRDIFF_MAX - (int64_t)sizeof(struct block)) / size)
        return NULL;
    struct block *block = wf_alloc_zero(1, sizeof *block + (size_t)(count * size));
    if (!block)
        return NULL;
    block->next = t->block;
    t->block = block;
    return block + 1;
}

char *tokenizer_keep_text(wf_tokenizer *t, const char *text, int64_t length)
{
    char *copy = tokenizer_keep(t, length + 1, 1);
    if (copy)
        memcpy(copy, text, (size_t)length);
    return copy;
}

void wf_tokenizer_free(wf_tokenizer *t)
{
    if (!t)
        return;
    for (struct pattern *p = t->pattern; p; p = p->next)
        pattern_free(p);
    for (struct block *block = t->block, *next; block; block = next) {
        next = block->next;
        wf_free(block);
    }
    point_map_free(&t->model.points);
    vocab_free(&t->vocab);
    wf_free(t);
}

wf_status part_no_memory(const char *where, wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the tokenizer", where);
}

wf_status part_refuse(const char *part, const char *type, const char *where, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    return wf_error_set(error, WF_ERR_FORMAT, "%s: it asks for %s %s, which this version does not have", where, part,
                        wf_text_quote(type, quoted));
}

wf_status part_type(json_t *value, const char *part, const char *where, const char *const *names, int count, int *out, wf_error *error)
{
    const char *type;
    if (!json_is_object(value))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": an object or null is expected", where, part);
    wf_status status = wf_json_get_string(value, where, "type", WF_JSON_REQUIRED, &type, error);
    if (status != WF_OK)
        return status;
    for (*out = 0; *out < count; ++*out)
        if (strcmp(type, names[*out]) == 0)
            return WF_OK;
    return part_refuse(part, type, where, error);
}

wf_status part_text(wf_tokenizer *t, json_t *value, const char *key, const char *where, const char **out, int64_t *length, wf_error *error)
{
    const char *text = NULL;
    wf_status status = wf_json_get_string(value, where, key, WF_JSON_REQUIRED, &text, error);
    if (status != WF_OK)
        return status;
    int64_t bytes = (int64_t)strlen(text);
    *out = tokenizer_keep_text(t, text, bytes);
    if (length)
        *length = bytes;
    return *out ? WF_OK : part_no_memory(where, error);
}

wf_status part_character(wf_tokenizer *t, json_t *value, const char *key, const char *where, const char **out, int64_t *length,
                         wf_error *error)
{
    uint32_t point;
    char quoted[WF_QUOTE_SIZE];
    wf_status status = part_text(t, value, key, where, out, length, error);
    if (status != WF_OK || (*length > 0 && wf_utf8_decode(*out, *length, &point) == *length))
        return status;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": one character is expected, not %s", where, key, wf_text_quote(*out, quoted));
}

/* SPDX-License-Identifier: MIT */
/* Tokenizers whose tokens are single code points. Training collects the distinct code points of a text. Encoding looks up each character
 * without the pipeline. */
#include <string.h>

#include "build.h"
#include <weft/internal/lines.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

static wf_status see(void *ctx, const struct wf_lines *block, wf_error *error)
{
    /* In a text from memory, a byte order mark counts as a character. */
    int64_t mark = block->fd < 0 ? block->mark : 0, length = block->length + mark;
    const char *text = block->text - mark;
    uint8_t *seen = ctx;
    for (int64_t at = 0, size; at < length; at += size) {
        uint32_t point;
        uint64_t eight = 0;
        if (length - at >= 8)
            memcpy(&eight, text + at, 8);
        /* Fast path for eight bytes of ASCII without NUL: the subtraction sets the high bit of a byte that is zero. */
        if (length - at >= 8 && ((eight | (eight - 0x0101010101010101u)) & 0x8080808080808080u) == 0) {
            for (size = 0; size < 8; size++)
                seen[(uint8_t)text[at + size]] = 1;
            continue;
        }
        size = wf_utf8_decode(text + at, length - at, &point);
        if (size == 0 || point == 0)
            return wf_lines_refuse(block, at - mark, error);
        seen[point] = 1;
    }
    return WF_OK;
}

wf_status char_train(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct tokenizer_table *out,
                     wf_error *error)
{
    uint8_t *seen = wf_alloc_zero(POINT_LIMIT, 1);
    if (!seen)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to count characters");
    wf_status status = train_read(source, options, see, seen, error);
    if (status == WF_OK && options->special_count > 0)
        status = train_specials(options, out, error);
    for (uint32_t point = 0; status == WF_OK && point < POINT_LIMIT; point++) {
        char bytes[4];
        if (seen[point] && vocab_add(&out->pieces, bytes, wf_utf8_encode(point, bytes)) < 0)
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a tokenizer of characters");
    }
    wf_free(seen);
    return status;
}

wf_status char_encode(const wf_tokenizer *t, const char *text, int64_t length, struct wf_tokens *out, struct wf_encode_fault *fault)
{
    if (!tokens_reserve(out, wf_utf8_count(text, length)))
        return WF_ERR_MEMORY;
    for (int64_t at = 0; at < length;) {
        uint32_t point = 0;
        int size = wf_utf8_decode(text + at, length - at, &point);
        int32_t id = size ? point_map_find(&t->model.points, point) : -1;
        if (id < 0) {
            *fault = (struct wf_encode_fault){.kind = size ? FAULT_CHARACTER : FAULT_UTF8, .offset = at, .point = point};
            return WF_ERR_FORMAT;
        }
        out->id[out->count++] = id;
        at += size;
    }
    return WF_OK;
}

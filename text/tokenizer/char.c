/* SPDX-License-Identifier: MIT */
/* Tokenizers whose tokens are single code points: trained on the sorted distinct ones of a text, and encoded without the pipeline. */
#include <inttypes.h>
#include <string.h>

#include "build.h"
#include "pattern.h"
#include <weft/internal/json.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

wf_status char_train(const char *text, int64_t length, wf_tokenizer **out, wf_error *error)
{
    if (length < 1)
        return wf_error_set(error, WF_ERR_FORMAT, "a tokenizer needs text to be made from, and this one is empty");
    uint8_t *seen = wf_alloc_zero(POINT_LIMIT, 1);
    if (!seen)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to count characters");
    int64_t count = 0;
    for (int64_t at = 0; at < length;) {
        uint32_t point;
        int size = wf_utf8_decode(text + at, length - at, &point);
        if (size == 0 || point == 0) {
            wf_free(seen);
            return wf_error_set(error, WF_ERR_FORMAT, "the text for the tokenizer is not UTF-8 text: byte 0x%02X (offset %" PRId64 "): %s",
                                (unsigned char)text[at], at, size ? "a NUL" : wf_utf8_fault(text + at, length - at));
        }
        count += !seen[point];
        seen[point] = 1;
        at += size;
    }
    struct tokenizer_table table = {0};
    wf_status status = WF_OK;
    for (uint32_t point = 0; status == WF_OK && point < POINT_LIMIT; point++) {
        char bytes[4];
        if (seen[point] && vocab_add(&table.pieces, bytes, wf_utf8_encode(point, bytes)) < 0)
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a tokenizer of %" PRId64 " characters", count);
    }
    wf_free(seen);
    if (status != WF_OK) {
        tokenizer_table_free(&table);
        return status;
    }
    wf_json_init();
    wf_json_memory_clear();
    /* The file asks for the name of a token for unknown characters. This is none of ours, so that encoding them fails there too. */
    json_t *root = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:{s:s}, s:s, s:b}, s:{s:s}}", "version", "1.0", "model", "type", "WordLevel",
                             "unk_token", "<unk>", "pre_tokenizer", "type", "Split", "pattern", "Regex", EVERY_CHARACTER, "behavior",
                             "Isolated", "invert", 0, "decoder", "type", "Fuse");
    return build_tokenizer(root, &table, "the trained tokenizer", out, error);
}

wf_status char_encode(const wf_tokenizer *t, const char *text, int64_t length, struct wf_tokens *out, struct wf_encode_fault *fault)
{
    int64_t characters = 0;
    for (int64_t i = 0; i < length; i++)
        characters += (text[i] & 0xC0) != 0x80;
    if (!tokens_reserve(out, characters))
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

/* SPDX-License-Identifier: MIT */
/* Tokenizers whose tokens are single code points: trained on the sorted distinct ones of a text, and encoded without the pipeline. */
#include <inttypes.h>
#include <string.h>

#include "pipeline.h"
#include <weft/internal/utf8.h>
#include <weft/memory.h>

wf_status char_tokenizer(const uint32_t *points, int64_t count, wf_tokenizer **out, wf_error *error)
{
    wf_tokenizer *t = wf_alloc_zero(1, sizeof *t);
    int64_t bytes = 0;
    char text[4];
    for (int64_t i = 0; i < count; i++)
        bytes += wf_utf8_encode(points[i], text);
    if (t && vocab_reserve(&t->vocab, count, bytes)) {
        for (int64_t i = 0; i < count; i++)
            vocab_add(&t->vocab, text, wf_utf8_encode(points[i], text));
        t->model_size = count;
        /* The file asks for the name of a token for unknown characters. This is none of ours, so that encoding them fails there too. */
        t->model.unknown = "<unk>";
        t->pre_tokenizer = pre_tokenizer_of_characters(t);
        t->decoder = decoder_of_characters(t);
        if (t->pre_tokenizer && t->decoder && model_index(t, "", NULL) == WF_OK) {
            *out = t;
            return WF_OK;
        }
    }
    wf_tokenizer_free(t);
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for a tokenizer of %" PRId64 " characters", count);
}

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
    uint32_t *points = wf_alloc((size_t)count * sizeof *points);
    if (!points) {
        wf_free(seen);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a tokenizer of %" PRId64 " characters", count);
    }
    for (uint32_t point = 0, n = 0; point < POINT_LIMIT; point++)
        if (seen[point])
            points[n++] = point;
    wf_status status = char_tokenizer(points, count, out, error);
    wf_free(points);
    wf_free(seen);
    return status;
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

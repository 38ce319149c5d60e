/* SPDX-License-Identifier: MIT */
/* Lists of pieces, and running a step of a decoder. A step makes new pieces from those that have arrived, and holds back what a later piece
 * may still change. So the text does not depend on how many pieces arrive at a time. */
#include <string.h>

#include "decoder.h"
#include <weft/internal/grow.h>
#include <weft/internal/utf8.h>

bool pieces_begin(struct pieces *pieces)
{
    if (!wf_grow(&pieces->end, &pieces->capacity, pieces->count + 1, sizeof *pieces->end))
        return false;
    pieces->end[pieces->count++] = pieces->bytes.length;
    return true;
}

bool pieces_add(struct pieces *pieces, const char *bytes, int64_t length)
{
    pieces->over = pieces->over || length > pieces->most - pieces->total;
    if (pieces->over || !wf_string_add(&pieces->bytes, bytes, length))
        return false;
    pieces->total += length;
    pieces->end[pieces->count - 1] = pieces->bytes.length;
    return true;
}

void pieces_drop(struct pieces *pieces, int64_t count, int64_t partial)
{
    int64_t from = (count > 0 ? pieces->end[count - 1] : 0) + partial;
    if (from > 0)
        memmove(pieces->bytes.data, pieces->bytes.data + from, (size_t)(pieces->bytes.length - from + 1));
    pieces->bytes.length -= from;
    pieces->count -= count;
    for (int64_t i = 0; i < pieces->count; i++)
        pieces->end[i] = pieces->end[i + count] - from;
}

bool pieces_continue(struct pieces *pieces, bool open)
{
    if (!pieces->open && !pieces_begin(pieces))
        return false;
    pieces->open = open;
    return true;
}

bool pieces_new(struct pieces *pieces, const char *bytes, int64_t length)
{
    return pieces_begin(pieces) && pieces_add(pieces, bytes, length);
}

const char *pieces_get(const struct pieces *pieces, int64_t i, int64_t *length)
{
    int64_t begin = i > 0 ? pieces->end[i - 1] : 0;
    *length = pieces->end[i] - begin;
    return pieces->bytes.data + begin;
}

bool pieces_add_replaced(struct pieces *out, const char *data, int64_t length, const struct text *from, const char *to)
{
    int64_t to_length = (int64_t)strlen(to);
    for (int size; from->length == 0 && length > 0; data += size, length -= size) {
        wf_utf8_at(data, 0, &size);
        if (!pieces_add(out, to, to_length) || !pieces_add(out, data, size))
            return false;
    }
    if (from->length == 0)
        return pieces_add(out, to, to_length);
    for (const char *found; (found = memmem(data, (size_t)length, from->data, (size_t)from->length));) {
        if (!pieces_add(out, data, found - data) || !pieces_add(out, to, to_length))
            return false;
        length -= found - data + from->length;
        data = found + from->length;
    }
    return pieces_add(out, data, length);
}

wf_status stage_run(struct stage *s, struct pieces *out, bool last)
{
    s->ready = s->in.count - s->in.open;
    s->partial = 0;
    s->last = last;
    const struct part_type *type = s->part->type;
    wf_status status = type->decode ? type->decode(s, out) : WF_OK;
    for (int64_t i = 0; !type->decode && status == WF_OK && i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        status = type->piece(s, i, text, length, out);
    }
    pieces_drop(&s->in, s->ready, s->partial);
    s->done += s->ready;
    return status;
}

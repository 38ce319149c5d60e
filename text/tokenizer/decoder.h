/* SPDX-License-Identifier: MIT */
/* The text that decoders work on, in pieces. */
#ifndef WEFT_TEXT_TOKENIZER_DECODER_H
#define WEFT_TEXT_TOKENIZER_DECODER_H

#include "internal.h"
#include "scratch.h"

#define REPLACEMENT "\uFFFD" /* for bytes that are not text */

/* Pieces of text: piece i is bytes[end[i-1] .. end[i]-1]. */
struct pieces {
    struct wf_string bytes;
    int64_t *end, count, capacity;
    bool open;           /* the last one is not whole yet */
    int64_t total, most; /* bytes so far, and at most: a file can ask for replacements of replacements */
    bool over;           /* that was not enough */
};
bool pieces_begin(struct pieces *pieces);                                  /* a new, empty piece; false without memory */
bool pieces_add(struct pieces *pieces, const char *bytes, int64_t length); /* to the last one */
bool pieces_new(struct pieces *pieces, const char *bytes, int64_t length); /* begins one with that in it */
/* The piece that a step is still writing, or a new one. */
bool pieces_continue(struct pieces *pieces, bool open);
/* Adds data with each `from` as `to`; an empty `from` is around every character. */
bool pieces_add_replaced(struct pieces *pieces, const char *data, int64_t length, const struct text *from, const char *to);
const char *pieces_get(const struct pieces *pieces, int64_t i, int64_t *length);
/* Removes `count` pieces from the front, and `partial` bytes of the next. */
void pieces_drop(struct pieces *pieces, int64_t count, int64_t partial);

/* A step at work. An open piece consists of whole characters at any time. */
struct stage {
    const struct part *part; /* no Sequence */
    struct scratch *scratch;
    struct pieces in;       /* what waits; `ready` of them are whole, and all are if `last`: nothing follows */
    int64_t ready, partial; /* the step lowers `ready` to those that it took, and sets the bytes of an open one that it took */
    bool last;
    int64_t done;           /* pieces before those */
    struct wf_string bytes; /* ByteLevel, ByteFallback: not text yet */
    int64_t stripped;       /* Strip: from the present piece's beginning */
};
/* Takes what can be taken of s->in and appends what it becomes. WF_ERR_MEMORY; WF_ERR_FORMAT when a pattern gave up. */
wf_status stage_run(struct stage *s, struct pieces *out, bool last);

#endif

/* SPDX-License-Identifier: MIT */
/* Inside the room: a step from pieces to text. decoder_json.c reads and writes it, decoder.c runs it. */
#ifndef WEFT_DATA_TOKENIZER_DECODER_H
#define WEFT_DATA_TOKENIZER_DECODER_H

#include "pattern.h"
#include "pipeline.h"

struct decoder {
    enum decoder_type {
        DECODE_METASPACE,
        DECODE_BYTE_LEVEL,
        DECODE_BYTE_FALLBACK,
        DECODE_FUSE,
        DECODE_REPLACE,
        DECODE_STRIP,
        DECODE_WORDPIECE,
        DECODE_BPE,
        DECODE_SEQUENCE
    } type;
    const char *text; /* Metaspace: the mark; Replace, Strip: content; WordPiece: the prefix; BPE: the suffix */
    int64_t text_length;
    enum prepend prepend;                           /* Metaspace */
    bool split;                                     /* Metaspace, kept for writing */
    bool add_prefix_space, trim_offsets, use_regex; /* ByteLevel, kept for writing */
    bool cleanup;                                   /* WordPiece */
    int64_t start, stop;                            /* Strip */
    struct pattern *pattern;                        /* Replace */
    struct decoder **step;                          /* Sequence */
    int64_t steps;
};

/* Pieces of text: piece i is bytes[end[i-1] .. end[i]-1]. */
struct pieces {
    struct wf_string bytes;
    int64_t *end, count, capacity;
    bool open;           /* the last one is not whole yet */
    int64_t total, most; /* bytes so far, and at most: a file can ask for replacements of replacements */
};
bool pieces_begin(struct pieces *pieces);                                  /* a new, empty piece; false without memory */
bool pieces_add(struct pieces *pieces, const char *bytes, int64_t length); /* to the last one */
const char *pieces_get(const struct pieces *pieces, int64_t i, int64_t *length);
/* Removes `count` pieces from the front, and `partial` bytes of the next. */
void pieces_drop(struct pieces *pieces, int64_t count, int64_t partial);

/* A step at work. An open piece consists of whole characters at any time. */
struct stage {
    const struct decoder *decoder; /* no Sequence */
    struct pieces in;              /* what waits; `ready` of them are whole, and all are if `last`: nothing follows */
    int64_t ready, partial;        /* the step lowers `ready` to those that it took, and sets the bytes of an open one that it took */
    bool last;
    int64_t done;           /* pieces before those */
    struct wf_string bytes; /* ByteLevel, ByteFallback: not text yet */
    int64_t stripped;       /* Strip: from the present piece's beginning */
};
/* Takes what can be taken of s->in and appends what it becomes. WF_ERR_MEMORY; WF_ERR_FORMAT when a pattern gave up. */
wf_status stage_run(struct stage *s, struct scratch *scratch, struct pieces *out, bool last);

#endif

/* SPDX-License-Identifier: MIT */
/* The text that decoders work on, as a list of pieces. */
#ifndef WEFT_TEXT_TOKENIZER_DECODER_H
#define WEFT_TEXT_TOKENIZER_DECODER_H

#include "internal.h"
#include "scratch.h"

#define REPLACEMENT "\uFFFD" /* U+FFFD, for bytes that are not valid UTF-8 */

/* A list of pieces of text. Piece i is bytes[end[i-1] .. end[i]-1]. */
struct pieces {
    struct wf_string bytes;
    int64_t *end; /* [count] */
    int64_t count;
    int64_t capacity;
    bool open;     /* the last piece is not complete yet */
    int64_t total; /* bytes added so far */
    int64_t most;  /* maximum of `total`; without it, a malicious file could make the text grow with every step */
    bool over;     /* `total` would have exceeded `most` */
};
bool pieces_begin(struct pieces *pieces);                                  /* adds an empty piece; false if there is no memory */
bool pieces_add(struct pieces *pieces, const char *bytes, int64_t length); /* appends bytes to the last piece */
bool pieces_new(struct pieces *pieces, const char *bytes, int64_t length); /* adds a piece with these bytes */
/* To be called before pieces_add if a piece may arrive in parts: adds an empty piece, unless the last piece is open and will be continued.
 * `open`: whether the last piece is open afterwards. */
bool pieces_continue(struct pieces *pieces, bool open);
/* Appends data to the last piece, with each occurrence of `from` replaced by `to`. An empty `from` matches before and after each
 * character. */
bool pieces_add_replaced(struct pieces *pieces, const char *data, int64_t length, const struct text *from, const char *to);
const char *pieces_get(const struct pieces *pieces, int64_t i, int64_t *length);
/* Removes the first `count` pieces, and the first `partial` bytes of the next one. */
void pieces_drop(struct pieces *pieces, int64_t count, int64_t partial);

/* A step of a decoder while it runs. An open piece always ends after a whole character. */
struct stage {
    const struct part *part; /* any decoder but a Sequence */
    struct scratch *scratch;
    struct pieces in; /* pieces that wait for this step */
    /* The number of pieces that this run takes from the start of `in`. stage_run sets it to the number of complete pieces, and after the
     * step removes this number of pieces. BPEDecoder lowers it if the last piece has to wait for the next run. */
    int64_t ready;
    int64_t partial;        /* bytes that the step took of the open piece, which follows the complete ones; stage_run removes them too */
    bool last;              /* no further piece follows the pieces in `in` */
    int64_t done;           /* number of pieces that earlier runs took */
    struct wf_string bytes; /* ByteLevel and ByteFallback: bytes that do not make complete characters yet */
    int64_t stripped;       /* Strip: how often its content was removed from the start of the current piece; its `start` once other text has
                               followed */
};
/* Runs a step: takes pieces from s->in and appends the pieces that they become. WF_ERR_MEMORY; WF_ERR_FORMAT if matching a pattern took too
 * long. */
wf_status stage_run(struct stage *s, struct pieces *out, bool last);

#endif

/* SPDX-License-Identifier: MIT */
/* Working memory of encoding: the text in the pipeline, its words, and memory for the parts. Only one thread at a time may use a
 * scratch. */
#ifndef WEFT_TEXT_TOKENIZER_SCRATCH_H
#define WEFT_TEXT_TOKENIZER_SCRATCH_H

#include <weft/tokenizer.h>

/* A range of the text, as some step of the pipeline has left it. Byte i comes from offset origin[i] of the caller's text. If origin is
 * NULL, the offset is base + i, which is exact only if no step has rewritten the text. */
struct view {
    const char *data;
    int64_t length;
    const int64_t *origin;
    int64_t base;
};
static inline int64_t view_origin(const struct view *view, int64_t at)
{
    return view->origin ? view->origin[at] : view->base + at;
}

/* Text that a step writes. */
struct flow {
    char *data;
    int64_t length, capacity;
    int64_t *origin; /* [length]: see struct view; NULL unless `tracked` */
    int64_t origin_capacity;
    bool tracked;
    int64_t most;                 /* maximum length in bytes; without it, a malicious file could make the text grow with every step */
    bool over;                    /* the text would have exceeded `most` */
    bool (*cancelled)(void *ctx); /* the caller's function, or NULL */
    void *ctx;
    int64_t asked; /* length at the last call of `cancelled` */
    bool stopped;  /* `cancelled` returned true; all functions that append then fail */
};
/* bytes of work between two calls of `cancelled` */
enum { ASK_BYTES = 1 << 20 };
/* Calls the flow's function `cancelled`. False if the caller wants to stop. */
bool flow_go_on(struct flow *flow);
/* A file may make a text at most FLOW_GROWTH times as long, and 64 KiB more. Real growth is less: the longest decomposition makes 33
 * bytes of a character of three, and Metaspace makes three bytes of a space. */
enum { FLOW_GROWTH = 32 };
int64_t flow_most(int64_t length);
bool flow_reserve(struct flow *flow, int64_t more);
/* Appends bytes that all come from offset `origin`. This function and the next two return false if there is no memory, if the text would
 * exceed `most`, or if the caller wants to stop. */
bool flow_put(struct flow *flow, const char *bytes, int64_t length, int64_t origin);
bool flow_put_point(struct flow *flow, uint32_t point, int64_t origin);
/* Appends `length` bytes of `from`, from offset `at` on, with their origins. */
bool flow_copy(struct flow *flow, const struct view *from, int64_t at, int64_t length);
struct view flow_view(const struct flow *flow);

struct span {
    int64_t begin, end;
};
struct spans {
    struct span *span;
    int64_t count, capacity;
};
bool spans_add(struct spans *spans, int64_t begin, int64_t end);

/* The words into which a text is divided so far, as ranges of the text. */
struct words {
    struct view text;
    struct spans spans;
};

/* Tables that bpe_merge.c makes of a model's merges, for words that are merged in windows. */
struct reach {
    const struct model *model; /* the model of these merges; NULL: not filled yet */
    int32_t *first;            /* [size + 1]: index into `rank`, by piece */
    int32_t *rank;             /* [merges]: the merges with the left piece `id` are rank[first[id] .. first[id + 1] - 1], ascending */
    int32_t *end;              /* [merges]: a limit for the levels at which each merge can happen (bpe_merge.c explains levels) */
    int64_t first_room, rank_room, end_room;
};

struct scratch {
    struct flow flow[4]; /* two flows for each use, which alternate */
    bool odd[2];         /* which of the two flows is written next, for each use */
    struct words words;
    struct spans spare;   /* memory for the next list of words */
    struct spans matches; /* matches of the pattern searched last */
    uint32_t *point;      /* characters of a range, for the normal forms */
    int64_t points_room;
    struct symbol *symbol; /* BPE: pieces of a word */
    uint64_t *heap;        /* BPE: heap of neighbouring pieces that can be merged */
    int64_t symbols_room, heap_room;
    int32_t *first; /* BPE: the pieces of a window before it was merged */
    int64_t first_room;
    struct reach reach;
    struct wf_string piece;       /* a piece with its prefix or suffix */
    void *match_data;             /* pcre2_match_data */
    void *match_context;          /* pcre2_match_context */
    int64_t fault;                /* offset at which matching a pattern took too long; see pattern_find and struct part_type */
    bool (*cancelled)(void *ctx); /* the caller's function, or NULL */
    void *ctx;
};
/* Calls the caller's function. True if the caller wants to stop. */
static inline bool scratch_cancelled(const struct scratch *s)
{
    return s->cancelled && s->cancelled(s->ctx);
}
/* scratch_cancelled for a loop over bytes: calls the function only if `at` is at least ASK_BYTES after *asked, the position of the last
 * call. */
static inline bool scratch_cancelled_at(const struct scratch *s, int64_t at, int64_t *asked)
{
    if (at - *asked < ASK_BYTES)
        return false;
    *asked = at;
    return scratch_cancelled(s);
}
/* Prepares the scratch for a text of `length` bytes. `tracked`: record the origin of each byte. */
void scratch_start(struct scratch *s, int64_t length, bool tracked);
/* Whether an append failed because the caller wanted to stop, and not for lack of memory. */
bool scratch_stopped(const struct scratch *s);
void scratch_free(struct scratch *s);

/* Returns an empty flow for the next version of the text. The flow returned before for the same use keeps its text. */
enum flow_use { FLOW_NORMALIZED, FLOW_PRE };
struct flow *scratch_flow(struct scratch *s, enum flow_use use);
/* Whether an append failed because the text had grown to its maximum, and not for lack of memory. */
bool scratch_over(const struct scratch *s);

#endif

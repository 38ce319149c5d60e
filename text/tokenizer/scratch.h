/* SPDX-License-Identifier: MIT */
/* Working memory of encoding: the text in the pipeline, its words, and memory for the parts. For one thread at a time. */
#ifndef WEFT_TEXT_TOKENIZER_SCRATCH_H
#define WEFT_TEXT_TOKENIZER_SCRATCH_H

#include <weft/tokenizer.h>

/* A stretch of text at some stage. Byte i came from offset origin[i] of the caller's text, or from base + i where origin is NULL (exact as
 * long as nothing was rewritten, or when the scratch tracks). */
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

/* Rewritten text in the making. */
struct flow {
    char *data;
    int64_t length, capacity;
    int64_t *origin; /* NULL unless it tracks */
    int64_t origin_capacity;
    bool tracked;
    int64_t most;                 /* bytes: a file can ask for replacements of replacements */
    bool over;                    /* that was not enough */
    bool (*cancelled)(void *ctx); /* the caller's, or NULL */
    void *ctx;
    int64_t asked; /* the length at which it was called */
    bool stopped;  /* it wants to stop: what puts then fails */
};
/* Bytes of work after which the caller is asked whether to go on. */
enum { ASK_BYTES = 1 << 20 };
/* False where the caller wants to stop. */
bool flow_go_on(struct flow *flow);
/* The longest text that a file may make of one of `length` bytes. The longest decomposition of a character makes eleven bytes of one,
 * Metaspace three. */
enum { FLOW_GROWTH = 32 };
int64_t flow_most(int64_t length);
bool flow_reserve(struct flow *flow, int64_t more);
/* Bytes that came from one place. False without memory, here and below. */
bool flow_put(struct flow *flow, const char *bytes, int64_t length, int64_t origin);
bool flow_put_point(struct flow *flow, uint32_t point, int64_t origin);
/* A stretch as it is. */
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

/* The words of a text so far: spans of it. */
struct words {
    struct view text;
    struct spans spans;
};

/* The tokens that may follow a piece (bpe_merge.c). */
struct reach {
    const struct model *model; /* whose merges these are; NULL: none yet */
    int32_t *first;            /* [size + 1] */
    int32_t *rank;             /* [merges]: those of piece `id` on the left are rank[first[id] .. first[id + 1] - 1] */
    int32_t *end;              /* [merges]: the highest level at which the merge can happen */
    int64_t first_room, rank_room, end_room;
};

struct scratch {
    struct flow flow[4]; /* two for each use */
    bool odd[2];         /* which of the two is written next */
    struct words words;
    struct spans spare;   /* what the next list of words is written to */
    struct spans matches; /* of a pattern */
    uint32_t *point;      /* for the normal forms: characters of a stretch */
    int64_t points_room;
    struct symbol *symbol; /* for BPE: pieces of a word, and pairs of them in a heap */
    uint64_t *heap;
    int64_t symbols_room, heap_room;
    int32_t *first; /* the pieces of a window before it was merged */
    int64_t first_room;
    struct reach reach;
    struct wf_string piece;           /* for pieces with a prefix or suffix */
    void *match_data, *match_context; /* PCRE2's */
    int64_t fault;                    /* where in the present text a pattern gave up */
    bool (*cancelled)(void *ctx);     /* the caller's, or NULL */
    void *ctx;
};
/* Whether the caller wants to stop. */
static inline bool scratch_cancelled(const struct scratch *s)
{
    return s->cancelled && s->cancelled(s->ctx);
}
/* The same in a loop over bytes: asks where *asked lies far behind. */
static inline bool scratch_cancelled_at(const struct scratch *s, int64_t at, int64_t *asked)
{
    if (at - *asked < ASK_BYTES)
        return false;
    *asked = at;
    return scratch_cancelled(s);
}
/* Before a text of `length` bytes. */
void scratch_start(struct scratch *s, int64_t length, bool tracked);
/* Whether memory was missing only because the caller wanted to stop. */
bool scratch_stopped(const struct scratch *s);
void scratch_free(struct scratch *s);

/* An empty flow to write the next stage of normalising or of splitting into; the last one of this use stays as it is. */
enum flow_use { FLOW_NORMALIZED, FLOW_PRE };
struct flow *scratch_flow(struct scratch *s, enum flow_use use);
/* Whether memory was missing because a text may not grow further. */
bool scratch_over(const struct scratch *s);

#endif

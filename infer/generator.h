/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the generator share: generator.c (rows), generator_step.c (passes), choose.c (the next token of a text),
 * draft.c (speculative decoding). */
#ifndef WEFT_INFER_GENERATOR_H
#define WEFT_INFER_GENERATOR_H

#include <weft/generator.h>

/* A text in row i of the cache. Of its ids the model sees the window from `first` on, at most a context. A row that is free keeps its ids
 * as long as its cache has them. */
struct text {
    bool active;
    struct wf_generate_options options;
    int32_t *ids; /* [count]: the prompt, then the new ids */
    int64_t count, capacity;
    int64_t prompt;        /* number of ids of the prompt */
    int64_t first;         /* index of the first id of the window */
    int64_t cached;        /* number of ids of the window that are in the cache: the first `cached` ones */
    int64_t number;        /* number of the text in the order of wf_generator_add */
    struct stream *stream; /* makes text of the ids; it is freed by its own callback when the text is done. NULL: none */
};

/* A model with its cache. */
struct side {
    struct wf_next model;
    struct wf_cache *cache; /* NULL: without a cache, or not made yet */
    struct wf_cache view;   /* of the rows of a pass */
};

struct wf_generator {
    struct side main, draft; /* draft.model.next is NULL if there is no draft */
    wf_tape *tape;
    wf_tape_mark mark;
    struct text *text; /* [rows], by row of the cache */
    int32_t *from;     /* [rows], scratch memory of arrange() */
    int32_t *last;     /* [rows]: ids of a pass */
    int32_t *order;    /* [vocab_size], scratch memory of wf_sample and wf_penalize */
    wf_real *logits;   /* [vocab_size]: logits with penalties */
    int64_t rows, chunk, added, active;
    int64_t most_guesses;
    int64_t guess;        /* number of guesses in the next pass */
    int64_t draft_cached; /* number of ids of the window that are in the draft's cache */
    bool no_cache;
    bool stepping; /* a step runs, which calls callbacks */
    struct wf_generator_counts counts;
    wf_error error;
};

/* --- generate_text.c --- */
struct stream;
void stream_free(struct stream *s);

/* --- generator.c --- */
/* wf_generator_add for a text with a stream, which is the `ctx` of the options. */
wf_status generator_add(wf_generator *g, const int32_t *prompt, int64_t length, const struct wf_generate_options *options,
                        struct stream *stream, wf_error *error) WF_CHECKED;
/* The number of ids of a prompt's window that row `row` has in its cache. At least the last id is computed, for its logits. */
int64_t generator_known(const wf_generator *g, int64_t row, const int32_t *prompt, int64_t length, int64_t first);
/* States that the cache, and the draft's, hold only the first `cached` ids of a row's window. */
void generator_truncate(wf_generator *g, int64_t row, int64_t cached);

/* Sets *g to the generator of the options, which must have no text that is not done, or to a new one; NULL after an error. */
wf_status generator_alone(const struct wf_next *model, wf_tape *tape, const struct wf_generate_options *options, wf_generator **g,
                          wf_error *error) WF_CHECKED;
/* Runs g, to which a text was added with this status, until the text is done, and frees it if it is not that of the options. Returns the
 * first error. */
wf_status generator_finish(wf_generator *g, const struct wf_generate_options *options, wf_status status, wf_error *error) WF_CHECKED;

/* --- generator_step.c --- */
/* Runs a model on ids [rows,T], which continue the rows that side->view shows; `cache` is that view, or NULL for whole windows. `all` asks
 * for the logits of each id, [rows*T,V] then, otherwise [rows,V]. The logits are valid until the tape is rewound. */
wf_status generator_pass(wf_generator *g, struct side *side, struct wf_cache *cache, const int32_t *ids, int64_t rows, int64_t T, bool all,
                         wf_array *logits, wf_error *error) WF_CHECKED;

/* --- choose.c --- */
/* The number of ids that can be chosen: those below it. */
int64_t generator_types(const wf_generator *g, const struct wf_generate_options *o);
/* Chooses the next id of a text from logits [vocab_size]. */
wf_status choose(wf_generator *g, const struct text *t, const wf_real *logits, int32_t *id, wf_error *error) WF_CHECKED;
/* Gives a chosen id to the caller of the text: its score, the token, the end. `logits` are those that the id was chosen from. If the text
 * is not done, the id is appended; false means that it is done, or that there was an error. */
bool accept(wf_generator *g, struct text *t, const wf_real *logits, int32_t id, wf_error *error);
/* Ends a text. */
void finish(wf_generator *g, struct text *t, enum wf_generate_end end);
bool is_end(const struct wf_generate_options *o, int32_t id);

/* --- draft.c --- */
/* Generates the next tokens of the text in row 0, of which all ids but the last are in the cache. */
wf_status speculate(wf_generator *g, wf_error *error) WF_CHECKED;

#endif

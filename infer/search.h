/* SPDX-License-Identifier: MIT */
/* Shared by the files of beam search. */
#ifndef WEFT_MODELS_SEARCH_H
#define WEFT_MODELS_SEARCH_H

#include <weft/internal/arena.h>
#include <weft/translate.h>

/* --- topk.c -------------------------------------------------------------------------------------------------------- */
struct candidate {
    double total; /* log-probability of the whole hypothesis */
    int32_t id;
};
/* The `most` likeliest continuations of each row of logits [rows, types], candidates [rows, most], the best first; of equal ones the
 * smaller id first. total[r] is the log-probability of what row r holds so far. Returns the first row whose logits give no
 * probabilities (a NaN, an infinity, nothing finite), or -1. most <= types. */
int64_t top_continuations(const wf_real *logits, int64_t rows, int64_t types, const double *total, int64_t most, struct candidate *out);

/* --- generate.c ---------------------------------------------------------------------------------------------------- */
wf_status check_prompt(const struct wf_next *model, const int32_t *prompt, int64_t length, int64_t max_tokens, wf_error *error) WF_CHECKED;
/* Takes the logits that `from` (the .next of struct wf_next, or a model) returned for ids: *out views them, row-major [rows,types], until
 * the tape is rewound. They must be on `tape` and of this shape, and each row of the cache (NULL: no check) must now hold `held` ids. */
wf_status take_logits(const char *from, const wf_tape *tape, wf_tensor *logits, int64_t rows, int64_t types, const struct wf_cache *cache,
                      int64_t held, wf_array *out, wf_error *error) WF_CHECKED;

/* --- beam.c -------------------------------------------------------------------------------------------------------- */
/* A token of a hypothesis and where the one before it stands in the sentence's trellis, -1 before the first. */
struct node {
    int32_t before, id;
};
struct ending {
    double score, log_probability;
    int32_t node, length; /* the last node before EOS; tokens that the score counts, with EOS where there is one */
    bool finished;
};
struct sentence {
    int64_t place;         /* in the caller's order */
    const int32_t *ids;    /* of the source */
    int32_t length, limit; /* ids of the source; the most tokens of a hypothesis */
    int32_t rows;          /* live hypotheses; 0: done */
    int32_t used;          /* nodes */
    int64_t ended, kept;   /* hypotheses that have ended, and the best of them in ending */
    struct node *node;     /* [limit * beam] */
    struct ending *ending; /* [beam], best first */
};

/* Everything that batches of sentences need, made once for all of them. */
struct search {
    const wf_model *model;      /* translates sentences; or: */
    const struct wf_next *next; /* continues one prompt, a batch of one sentence */
    const int32_t *prompt;
    int64_t prompt_length;
    wf_tape *tape;
    int64_t beam, n_best, batch, types;
    int64_t picks, most;               /* continuations that a step looks at: of a sentence, and of a row */
    int64_t layers, source_ids, limit; /* source_ids: of a batch; limit: the greatest of all sentences */
    double length_penalty;
    int32_t bos, eos;
    bool (*cancelled)(void *ctx);
    void *ctx;

    struct wf_cache cache;
    struct sentence *sentence; /* the caller's, of the batch */
    wf_arena *arena;           /* of all that follows */
    bool failed;               /* to get memory of it */
    wf_tensor **kv;            /* [layers] */
    struct node *nodes;
    struct ending *endings;
    int32_t *source, *source_offsets, *row_offsets;
    /* live rows, and what they become: [batch * beam] each */
    int32_t *id, *node, *from, *next_id, *next_node;
    double *total, *next_total;
    struct candidate *candidate; /* [batch * beam, most] */
    int32_t *head;               /* [beam] */
};
/* The sizes and options stand in *s. Free it with search_free, after a failure too. */
wf_status search_make(struct search *s, wf_error *error) WF_CHECKED;
void search_free(struct search *s);
/* Finds the translations of s->sentence[0 .. count-1], whose place, ids, length and limit are set. */
wf_status search_batch(struct search *s, int64_t count, wf_error *error) WF_CHECKED;

#endif

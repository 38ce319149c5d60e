/* SPDX-License-Identifier: MIT */
/* Declarations that the files of generation, beam search and translation share. */
#ifndef WEFT_MODELS_SEARCH_H
#define WEFT_MODELS_SEARCH_H

#include <weft/internal/arena.h>
#include <weft/translate.h>

/* --- topk.c -------------------------------------------------------------------------------------------------------- */
/* A continuation of a hypothesis by one token. */
struct candidate {
    double total; /* log-probability of the hypothesis with this token */
    int32_t id;
};
/* Finds the `most` likeliest continuations of each row of logits [rows,types] -> out [rows,most], in descending order; equal ones in
 * ascending order of their ids. total[r] is the log-probability of the hypothesis in row r. most <= types. Returns -1, or the first row
 * whose logits give no probabilities because they contain NaN or infinity or are all -infinity. */
int64_t top_continuations(const wf_real *logits, int64_t rows, int64_t types, const double *total, int64_t most, struct candidate *out);

/* --- generate.c ---------------------------------------------------------------------------------------------------- */
/* Checks the fields of `model`. */
wf_status check_model(const struct wf_next *model, wf_error *error) WF_CHECKED;
/* Checks that a prompt can be continued: the fields of `model`, the prompt's length and ids, and max_tokens. */
wf_status check_prompt(const struct wf_next *model, const int32_t *prompt, int64_t length, int64_t max_tokens, wf_error *error) WF_CHECKED;
/* Checks the logits that a model returned, and makes *out a row-major view of them [rows,types], valid until the tape is rewound. They must
 * be on `tape` and have this shape. `from` names the model, or the function of struct wf_next, in messages. */
wf_status take_logits(const char *from, const wf_tape *tape, wf_tensor *logits, int64_t rows, int64_t types, wf_array *out,
                      wf_error *error) WF_CHECKED;
/* Checks that row `row` of the cache now holds `held` ids. */
wf_status check_advanced(const char *from, const struct wf_cache *cache, int64_t row, int64_t held, wf_error *error) WF_CHECKED;

/* --- beam.c -------------------------------------------------------------------------------------------------------- */
/* A token of a hypothesis. The hypotheses of a sentence form a tree, because several of them may continue the same shorter one. */
struct node {
    int32_t before; /* index of the node with the preceding token; -1: this is the first token */
    int32_t id;
};
/* A hypothesis that has ended. */
struct ending {
    double score, log_probability;
    int32_t node;   /* node of the last token before EOS */
    int32_t length; /* number of tokens, EOS included if the hypothesis is finished */
    bool finished;  /* ended with EOS; false: reached the maximum length */
};
/* A sentence that is being translated. */
struct sentence {
    int64_t place;         /* index in the caller's order */
    const int32_t *ids;    /* ids of the source */
    int32_t length;        /* number of ids of the source */
    int32_t limit;         /* maximum length of a hypothesis */
    int32_t rows;          /* number of active hypotheses; 0: the search for this sentence has ended */
    int32_t used;          /* number of nodes in use */
    int64_t ended;         /* number of hypotheses that have reached EOS */
    int64_t kept;          /* number of hypotheses in `ending` */
    struct node *node;     /* [limit * beam]: tokens of all hypotheses */
    struct ending *ending; /* [beam]: the best hypotheses that have ended, best first */
};

/* The options and the memory of a search. They are made once and used for all batches. Either `model` or `next` is set. */
struct search {
    const wf_model *model;      /* translates sentences */
    const struct wf_next *next; /* continues one prompt, as a batch of one sentence */
    const int32_t *prompt;
    int64_t prompt_length;
    wf_tape *tape;
    int64_t beam;       /* beam width */
    int64_t n_best;     /* number of hypotheses to return */
    int64_t batch;      /* maximum number of sentences in a batch */
    int64_t types;      /* vocabulary size of the logits */
    int64_t picks;      /* number of continuations that a step considers for each sentence */
    int64_t most;       /* number of continuations that a step considers for each row */
    int64_t layers;     /* number of layers of the decoder */
    int64_t source_ids; /* maximum number of source ids in a batch */
    int64_t limit;      /* greatest `limit` of all sentences */
    double length_penalty;
    int32_t bos, eos;
    bool (*cancelled)(void *ctx);
    void *ctx;

    struct wf_cache cache;
    struct sentence *sentence; /* the sentences of the present batch; the caller owns them */
    wf_arena *arena;           /* holds all arrays below */
    bool failed;               /* the arena had no memory for an array */
    wf_tensor **kv;            /* [layers]: keys and values of the decoder's cross-attention */
    struct node *nodes;        /* [batch * beam * limit]: the nodes of all sentences */
    struct ending *endings;    /* [batch * beam]: the endings of all sentences */
    int32_t *source;           /* ids of all sources, packed */
    int32_t *source_offsets;   /* [batch + 1]: index in `source` where each source begins */
    int32_t *row_offsets;      /* [batch + 1]: index of the first row of each sentence */
    /* Each active hypothesis is a row; there are at most batch * beam rows. A step reads `id`, `node` and `total`, and writes `next_id`,
     * `next_node` and `next_total`; then it swaps each next_ array with the array that it read. */
    int32_t *id;                 /* last token of each row */
    int32_t *node;               /* node of each row's last token */
    int32_t *from;               /* after a step, for each new row: the old row that the new row continues */
    int32_t *next_id;            /* last token of each row after the step */
    int32_t *next_node;          /* node of each row's last token after the step */
    double *total;               /* log-probability of each row */
    double *next_total;          /* log-probability of each row after the step */
    struct candidate *candidate; /* [batch * beam, most]: the best continuations of each row */
    int32_t *head;               /* [beam]: for each row of a sentence the index of its next candidate */
};
/* Allocates the memory of a search whose sizes and options are set in *s. Free it with search_free, also after a failure. */
wf_status search_make(struct search *s, wf_error *error) WF_CHECKED;
void search_free(struct search *s);
/* Searches the translations of s->sentence[0 .. count-1]. Their place, ids, length and limit must be set; their endings are the result. */
wf_status search_batch(struct search *s, int64_t count, wf_error *error) WF_CHECKED;

#endif

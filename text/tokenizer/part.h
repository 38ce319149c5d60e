/* SPDX-License-Identifier: MIT */
/* The parts of a tokenizer. A part belongs to one of five stages: normalizer, pre-tokenizer, model, post-processor, decoder. It has a
 * descriptor, `const struct part_type` in its file, and a row in parts.def. The descriptor has the part's stage, its name and keys in
 * tokenizer.json, and its functions. keys.c reads, writes and hashes the values of the keys of all parts. */
#ifndef WEFT_TEXT_TOKENIZER_PART_H
#define WEFT_TEXT_TOKENIZER_PART_H

#include <jansson.h>
#include <stddef.h>

#include <weft/internal/encode.h>

struct encoding;
struct scratch;
struct view;
struct pieces;
struct stage;
struct flow;
struct splitter;
typedef bool put_point(struct flow *out, uint32_t point, int64_t origin);

enum part_stage { PART_NORMALIZER, PART_PRE_TOKENIZER, PART_MODEL, PART_POST_PROCESSOR, PART_DECODER, PART_STAGES };

/* The first member of the struct of every part. */
struct part {
    const struct part_type *type;
};

/* The state of reading a file. Only the first error is kept. After an error, functions may read on but need not. */
struct reader {
    wf_tokenizer *t;
    const char *where;             /* name of the file, for messages */
    wf_error *error;               /* never NULL */
    struct tokenizer_table *table; /* if not NULL, vocabulary and merges come from a trainer's table instead of the file */
    int64_t parts[PART_STAGES];    /* number of parts read so far, by stage */
};
static inline bool reader_failed(const struct reader *r)
{
    return r->error->code != WF_OK;
}
void reader_refuse(struct reader *r, const char *format, ...) WF_PRINTF(2, 3); /* sets WF_ERR_FORMAT: "x.json: ..." */
void reader_no_memory(struct reader *r);
/* Allocates zeroed memory that lives as long as the tokenizer. NULL if there is no memory, which is then the reader's error. */
void *reader_keep(struct reader *r, int64_t count, int64_t size);
/* A member that the object must have. NULL if it is missing or has another type, which is then the reader's error. */
json_t *reader_array(struct reader *r, const json_t *object, const char *name);
json_t *reader_object(struct reader *r, const json_t *object, const char *name);

/* --- keys ---------------------------------------------------------------------------------------------------------- */

struct key {
    const char *name;
    const struct key_kind *kind;
    size_t at;                /* offset of the value in the part's struct */
    bool optional;            /* the key may be absent or null; its value is then `otherwise` */
    int64_t otherwise;        /* default for value_bool, value_count (-1: null) and value_name (-1: none) */
    bool old;                 /* a key of older files, which is read but neither written nor hashed */
    int64_t most;             /* maximum for value_count (0: INT64_MAX); for the steps of a Sequence, their stage */
    const char *const *names; /* choices for value_name; the last is followed by NULL */
};
/* A list of keys, in the order of the file. */
#define KEYS(...) ((const struct key[]){__VA_ARGS__, {.name = NULL}})

/* How a kind of value is read, written and hashed: by keys.c if `plain` names a kind, or by the functions here for KIND_OWN. */
struct key_kind {
    enum { KIND_OWN, KIND_ANY, KIND_BOOL, KIND_CHOICE, KIND_COUNT, KIND_ID, KIND_NAME, KIND_TEXT, KIND_CHARACTER } plain;
    void (*read)(struct reader *r, const struct key *key, json_t *object, void *field);
    json_t *(*write)(const void *field); /* returns NULL if there is no memory; without this function null is written */
    uint64_t (*hash)(const void *field, uint64_t hash);
};
/* A string that lives as long as the tokenizer. */
struct text {
    const char *data; /* a NUL follows */
    int64_t length;
};
extern const struct key_kind value_any;       /* a known key without effect */
extern const struct key_kind value_bool;      /* bool */
extern const struct key_kind value_choice;    /* int32_t: 0 for false, 1 for true, -1 for null */
extern const struct key_kind value_count;     /* int64_t: 0 .. most; -1 for null */
extern const struct key_kind value_id;        /* int32_t: an id, from 0 */
extern const struct key_kind value_name;      /* int32_t: index into `names` */
extern const struct key_kind value_text;      /* struct text: any string; data is NULL for null */
extern const struct key_kind value_character; /* struct text: exactly one character, as in the package `tokenizers` */
extern const struct key_kind value_pattern;   /* const struct pattern *: a string or a regular expression */

/* Copies a JSON string to *out. Any other value is an error, whose message calls the value `what`. */
void text_read(struct reader *r, const json_t *value, const char *what, struct text *out);
json_t *text_write(const struct text *text);
uint64_t text_hash(const struct text *text, uint64_t hash);
uint64_t number_hash(int64_t number, uint64_t hash);

/* keys_read reads the members of a JSON object into the struct `out`. keys_write writes the members from the struct `from`, and keys_hash
 * hashes that struct. With `typed` the object may also have the member "type". */
void keys_read(struct reader *r, const struct key *keys, bool typed, json_t *object, void *out);
void keys_write(const struct key *keys, const void *from, json_t *object);
uint64_t keys_hash(const struct key *keys, const void *from, uint64_t hash);

/* --- parts --------------------------------------------------------------------------------------------------------- */

struct part_type {
    const char *name;
    enum part_stage stage;
    size_t size; /* size of the part's struct; 0: the struct is only a struct part */
    const struct key *keys;
    /* Called after the keys are read, for checks and derived values. May be NULL. */
    void (*ready)(struct reader *r, void *part);
    /* The function that runs a part. normalize(), split() and decode() return WF_ERR_MEMORY if there is no memory or an append
     * fails (see flow_put), and WF_ERR_FORMAT if matching a pattern takes too long. After WF_ERR_FORMAT s->fault says where: after
     * normalize() it is an offset in the caller's text, after split() one in s->words.text. */
    union {
        /* Normalizer: replaces *text. The new text may lie in the scratch, where it is valid until the next run. */
        wf_status (*normalize)(const void *part, struct scratch *s, struct view *text);
        /* Pre-tokenizer: splits s->words further. If NULL, cut() is called for each word. Either may also return WF_ERR_CANCELLED. */
        wf_status (*split)(const void *part, struct scratch *s);
        /* Model: appends the ids of a word. After WF_ERR_FORMAT *e->fault is set, with an offset from the word's first byte. */
        wf_status (*word)(const struct encoding *e, const char *word, int64_t length);
        /* Post-processor: puts special ids around out->id[begin ..]. NULL: adds none. False if there is no memory. */
        bool (*finish)(const void *part, struct wf_tokens *out, int64_t begin);
        /* Decoder: takes pieces from s->in and appends the pieces that they become. It may leave pieces that a later piece can change. */
        wf_status (*decode)(struct stage *s, struct pieces *out);
    };
    union {
        /* Normalizer without normalize(): appends the text that one character becomes. */
        put_point *put;
        /* Pre-tokenizer: divides the word s->words.text.data[begin .. end-1], by calls of split_match. */
        wf_status (*cut)(const void *part, struct scratch *s, struct splitter *splitter, int64_t begin, int64_t end);
        /* Decoder without decode(): appends the piece that piece i becomes. Piece i is complete. Setting s->ready = i leaves it for the
         * next run. */
        wf_status (*piece)(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out);
    };
    /* Post-processor: says how much the part lengthens a text. The caller sets *times and *added so that the earlier parts make
     * *times * n + *added ids of the n ids of a text; grows() changes both numbers so that they include this part. */
    void (*grows)(const void *part, int64_t *times, int64_t *added);
};
#define PART(name) extern const struct part_type name;
#include "parts.def"
#undef PART

/* Reads the part in `value`, which lives as long as the tokenizer. Returns NULL without an error if `value` is NULL or
 * JSON's null. An unknown part is an error that names it. */
const struct part *part_read(struct reader *r, enum part_stage stage, json_t *value);
/* The type that the object names, or the type `otherwise` if the object names none. NULL on an error. */
const struct part_type *part_type_of(struct reader *r, enum part_stage stage, json_t *value, const char *otherwise);
json_t *part_write(const struct part *part);
uint64_t part_hash(const struct part *part, uint64_t hash);
/* Whether the part, or a part of its Sequence, has this type. */
bool part_has(const struct part *part, const struct part_type *type);
/* The next four functions call the function of the part's type, if there is one. For a Sequence they call that of each step. part may be
 * NULL. */
wf_status part_normalize(const struct part *part, struct scratch *s, struct view *text);
wf_status part_split(const struct part *part, struct scratch *s);
bool part_finish(const struct part *part, struct wf_tokens *out, int64_t begin);
void part_grows(const struct part *part, int64_t *times, int64_t *added);

/* The steps of a "Sequence", which every stage has. */
struct steps {
    const struct part **step;
    int64_t count;
};
struct sequence {
    struct part part;
    struct steps steps;
};
const struct steps *part_steps(const struct part *part); /* the steps of a Sequence; no steps for any other part and for NULL */

#endif

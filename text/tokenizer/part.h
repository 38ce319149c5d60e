/* SPDX-License-Identifier: MIT */
/* The parts of a tokenizer. A part is a descriptor, `const struct part_type` in its file, and a row in parts.def: its stage, its name and
 * keys in tokenizer.json, and what it does. The values of the keys are read, written and hashed here, once for all parts. */
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

/* The first member of each part's struct. */
struct part {
    const struct part_type *type;
};

/* A file in the reading. The first error wins: what comes after it may read on, but need not. */
struct reader {
    wf_tokenizer *t;
    const char *where;             /* the file, for messages */
    wf_error *error;               /* not NULL */
    struct tokenizer_table *table; /* not NULL: the vocabulary and merges come from training, not from the file */
    int64_t parts[PART_STAGES];
};
static inline bool reader_failed(const struct reader *r)
{
    return r->error->code != WF_OK;
}
void reader_refuse(struct reader *r, const char *format, ...) WF_PRINTF(2, 3); /* WF_ERR_FORMAT: "x.json: ..." */
void reader_no_memory(struct reader *r);
/* Zeroed memory that lives as long as the tokenizer; NULL without memory, which is then the reader's error. */
void *reader_keep(struct reader *r, int64_t count, int64_t size);
/* Required members; NULL where that is an error. */
json_t *reader_array(struct reader *r, const json_t *object, const char *name);
json_t *reader_object(struct reader *r, const json_t *object, const char *name);

/* --- keys ---------------------------------------------------------------------------------------------------------- */

struct key {
    const char *name;
    const struct key_kind *kind;
    size_t at;                /* where the value lies in the part's struct */
    bool optional;            /* may be absent or null, and means `otherwise` */
    int64_t otherwise;        /* of value_bool, value_count (-1: null), value_name (-1: none) */
    bool old;                 /* of older files: read, but neither written nor hashed */
    int64_t most;             /* of value_count; 0: INT64_MAX */
    const char *const *names; /* of value_name, then NULL */
};
/* Keys in the order of the file. */
#define KEYS(...) ((const struct key[]){__VA_ARGS__, {.name = NULL}})

/* A plain kind, or one with its functions. */
struct key_kind {
    enum { KIND_OWN, KIND_ANY, KIND_BOOL, KIND_CHOICE, KIND_COUNT, KIND_ID, KIND_NAME, KIND_TEXT, KIND_CHARACTER } plain;
    void (*read)(struct reader *r, const struct key *key, json_t *object, void *field);
    json_t *(*write)(const void *field); /* the result is NULL without memory; no function: null */
    uint64_t (*hash)(const void *field, uint64_t hash);
};
struct text { /* kept with the tokenizer, a NUL follows */
    const char *data;
    int64_t length;
};
extern const struct key_kind value_any;       /* known, without effect */
extern const struct key_kind value_bool;      /* bool */
extern const struct key_kind value_choice;    /* int32_t: 0, 1; -1 for null */
extern const struct key_kind value_count;     /* int64_t, 0 .. most; -1 for null */
extern const struct key_kind value_id;        /* int32_t, from 0 on */
extern const struct key_kind value_name;      /* int32_t: the place in `names` */
extern const struct key_kind value_text;      /* struct text; data NULL for null */
extern const struct key_kind value_character; /* struct text: exactly one character, as the package has it */
extern const struct key_kind value_pattern;   /* const struct pattern * */

/* A string is kept as *out; what is no string is refused as `what`. */
void text_read(struct reader *r, const json_t *value, const char *what, struct text *out);
json_t *text_write(const struct text *text);
uint64_t text_hash(const struct text *text, uint64_t hash);
uint64_t number_hash(int64_t number, uint64_t hash);

/* The members of an object into, from and as a hash of the struct at `out`. An object may have "type" besides when `typed`. */
void keys_read(struct reader *r, const struct key *keys, bool typed, json_t *object, void *out);
void keys_write(const struct key *keys, const void *from, json_t *object);
uint64_t keys_hash(const struct key *keys, const void *from, uint64_t hash);

/* --- parts --------------------------------------------------------------------------------------------------------- */

struct part_type {
    const char *name;
    enum part_stage stage;
    size_t size; /* of its struct, which begins with struct part; 0: that is all */
    const struct key *keys;
    /* After the keys were read: what they cannot say. May be NULL. */
    void (*ready)(struct reader *r, void *part);
    /* A part that runs returns WF_ERR_MEMORY, or WF_ERR_FORMAT if a pattern gave up (scratch.fault says where). */
    union {
        /* Replaces *text, which may then lie in the scratch until the next run. */
        wf_status (*normalize)(const void *part, struct scratch *s, struct view *text);
        /* Splits s->words further; NULL: by cut(). Also WF_ERR_CANCELLED. */
        wf_status (*split)(const void *part, struct scratch *s);
        /* Appends the ids of a word. WF_ERR_FORMAT: *e->fault is set, its offset counted from the word's first byte. */
        wf_status (*word)(const struct encoding *e, const char *word, int64_t length);
        /* Puts specials around out->id[begin ..]; NULL leaves them alone. False without memory. */
        bool (*finish)(const void *part, struct wf_tokens *out, int64_t begin);
        /* Takes what can be taken of s->in and appends what it becomes. */
        wf_status (*decode)(struct stage *s, struct pieces *out);
    };
    union {
        /* Of normalizers without normalize(): puts what becomes of one character. */
        put_point *put;
        /* Of pre-tokenizers: puts the stretches of the word s->words.text.data[begin .. end-1]. */
        wf_status (*cut)(const void *part, struct scratch *s, struct splitter *splitter, int64_t begin, int64_t end);
        /* Of decoders without decode(): appends what becomes of piece i, which is whole; s->ready = i leaves it for the next time. */
        wf_status (*piece)(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out);
    };
    /* Of post-processors: n ids become times * n + added; updates both for this part. */
    void (*grows)(const void *part, int64_t *times, int64_t *added);
};
#define PART(name) extern const struct part_type name;
#include "parts.def"
#undef PART

/* The part in `value` (NULL or null: none), kept. Unknown parts are refused by name. */
const struct part *part_read(struct reader *r, enum part_stage stage, json_t *value);
/* The type that an object names, or `otherwise`, when it names none; NULL: an error. */
const struct part_type *part_type_of(struct reader *r, enum part_stage stage, json_t *value, const char *otherwise);
json_t *part_write(const struct part *part);
uint64_t part_hash(const struct part *part, uint64_t hash);
/* Whether it is of this type, or a step of it is. */
bool part_has(const struct part *part, const struct part_type *type);
/* These call the function of the part's type, if it has one. part may be NULL. */
wf_status part_normalize(const struct part *part, struct scratch *s, struct view *text);
wf_status part_split(const struct part *part, struct scratch *s);
bool part_finish(const struct part *part, struct wf_tokens *out, int64_t begin);
void part_grows(const struct part *part, int64_t *times, int64_t *added);

/* Parts one after the other: "Sequence" of every stage. */
struct steps {
    const struct part **step;
    int64_t count;
};
struct sequence {
    struct part part;
    struct steps steps;
};
const struct steps *part_steps(const struct part *part); /* none of another part, or of NULL */

#endif

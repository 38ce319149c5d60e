/* SPDX-License-Identifier: MIT */
/* Small trainings of the zoo: a language model, an encoder on masked tokens, and a translation model, each with texts of its own. */
#ifndef TESTS_TRAIN_ZOO_H
#define TESTS_TRAIN_ZOO_H

#include "train_test.h"

static inline unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static inline void write_lines(const char *name, int count)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = 0; i < count; i++)
        fprintf(f, "line %d of the text, %s again\n", i * 37 % 101, i % 3 ? "over" : "and once");
    fclose(f);
}

enum { KINDS = 12, RUN = 30, LINES = 150 };

/* Lines of two words that take turns, each line with words of its own: "a7 b7 a7 b7 ...". A word says what its neighbours are, and
 * nothing but a neighbour says which of the two a masked one was. */
static inline void write_turns(const char *name, unsigned seed)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = 0; i < LINES; i++) {
        const unsigned random = next_random(&seed);
        for (unsigned k = 0, kind = i < KINDS ? (unsigned)i : random % KINDS; k < RUN + kind % 2; k++)
            fprintf(f, "%c%u ", "ab"[k % 2], kind);
        fputc('\n', f);
    }
    fclose(f);
}

/* `count` lines of one to seven numbers in words; the target says them in the other order. */
static inline void write_pairs(const char *source, const char *target, int count, unsigned seed)
{
    static const char *const en[] = {"one", "two", "three", "four", "five", "six"};
    static const char *const de[] = {"eins", "zwei", "drei", "vier", "fünf", "sechs"};
    FILE *s = fopen(in_folder(source), "w"), *t = fopen(in_folder(target), "w");
    for (int i = 0; i < count; i++) {
        int words[7], n = 1 + (int)((seed + (unsigned)i * 7) % 7);
        for (int k = 0; k < n; k++) {
            const int random = (int)next_random(&seed);
            words[k] = i < 6 ? (i + k) % 6 : random % 6; /* the first lines hold every word */
        }
        for (int k = 0; k < n; k++) {
            fprintf(s, "%s%s", k ? " " : "", en[words[k]]);
            fprintf(t, "%s%s", k ? " " : "", de[words[n - 1 - k]]);
        }
        fputc('\n', s);
        fputc('\n', t);
    }
    fclose(s);
    fclose(t);
}

/* A list of paths, which lives until the eighth after it. */
static inline const char *const *files_of(const char *first, const char *second)
{
    static const char *path[8][2];
    static int next;
    const char **files = path[next++ % 8];
    files[0] = lasting(first);
    files[1] = second ? lasting(second) : NULL;
    return files;
}

static inline void train_on(struct wf_train_options *o, const char *first, const char *second)
{
    o->train = files_of(first, second);
    o->train_files = second ? 2 : 1;
}

static inline void validate_on(struct wf_train_options *o, const char *first, const char *second)
{
    o->valid = files_of(first, second);
    o->valid_files = second ? 2 : 1;
}

static inline struct wf_train_options preset_options(const char *preset, const char *out, struct seen *seen, const char *settings)
{
    struct wf_train_options o = {
        .out = lasting(out), .seed = 5, .event = seen ? see : NULL, .ctx = seen, .cancelled = seen ? cancel : NULL};
    ck_ok(wf_config_preset(&o.config, preset, error));
    set_keys(&o.config, settings);
    return o;
}

/* Two layers with dropout, on characters; 40 updates. */
static inline struct wf_train_options language(const char *out, struct seen *seen)
{
    struct wf_train_options o = preset_options("nanogpt-char-small", out, seen,
                                               "layers=2 d_model=32 heads=4 d_ff=64 context=16 batch=6 dropout=0.1 warmup=5 "
                                               "valid_every=10 save_every=7 keep=2 steps=40");
    if (!exists("text"))
        write_lines("text", 120);
    train_on(&o, "text", NULL);
    return o;
}

/* Two layers, on lines of write_turns; 25 updates. */
static inline struct wf_train_options masked(const char *out, struct seen *seen)
{
    struct wf_train_options o = preset_options("encoder-attention", out, seen,
                                               "layers=2 d_model=32 heads=4 d_ff=64 context=16 batch=6 vocab_size=0 schedule=constant "
                                               "warmup=0 clip=0 valid_every=10 save_every=7 keep=2 steps=25");
    if (!exists("turns"))
        write_turns("turns", 1);
    train_on(&o, "turns", NULL);
    return o;
}

/* A layer on each side with dropout everywhere; 40 updates, about 11 batches an epoch. */
static inline struct wf_train_options translation(const char *out, struct seen *seen)
{
    struct wf_train_options o = preset_options("seq2seq-tiny", out, seen,
                                               "encoder_layers=1 decoder_layers=1 d_model=16 d_ff=32 heads=2 max_length=24 positions=32 "
                                               "batch_tokens=120 batch_window=32 lr=0.01 label_smoothing=0.1 valid_every=10 save_every=7 "
                                               "keep=2 clip=1 steps=40");
    if (!exists("train.en")) {
        write_pairs("train.en", "train.de", 100, 1);
        write_pairs("valid.en", "valid.de", 20, 77);
    }
    train_on(&o, "train.en", "train.de");
    validate_on(&o, "valid.en", "valid.de");
    return o;
}

#endif

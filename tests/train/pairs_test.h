/* SPDX-License-Identifier: MIT */
/* What tests of training on pairs share: a small parallel text, a small model. */
#ifndef TESTS_TRAIN_PAIRS_TEST_H
#define TESTS_TRAIN_PAIRS_TEST_H

#include "train_test.h"

/* `count` lines of one to seven numbers in words; the target says them in the other order. */
static inline void write_pairs(const char *source, const char *target, int count, unsigned seed)
{
    static const char *const en[] = {"one", "two", "three", "four", "five", "six"};
    static const char *const de[] = {"eins", "zwei", "drei", "vier", "fünf", "sechs"};
    FILE *s = fopen(in_folder(source), "w"), *t = fopen(in_folder(target), "w");
    for (int i = 0; i < count; i++) {
        int words[7], n = 1 + (int)((seed + (unsigned)i * 7) % 7);
        for (int k = 0; k < n; k++) {
            seed = seed * 1664525u + 1013904223u;
            words[k] = i < 6 ? (i + k) % 6 : (int)(seed >> 16) % 6; /* the first lines hold every word */
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

static inline void begin(void)
{
    make_folder();
    write_pairs("train.en", "train.de", 100, 1);
    write_pairs("valid.en", "valid.de", 20, 77);
}

/* A model of two layers with dropout everywhere; 40 steps, about 11 batches an epoch. */
static inline struct wf_train_options small(const char *out, struct seen *seen)
{
    static const char *train[2], *valid[2];
    train[0] = in_folder("train.en");
    train[1] = in_folder("train.de");
    valid[0] = in_folder("valid.en");
    valid[1] = in_folder("valid.de");
    static char kept[4][192];
    for (int i = 0; i < 2; i++) {
        strcpy(kept[i], train[i]);
        strcpy(kept[2 + i], valid[i]);
        train[i] = kept[i];
        valid[i] = kept[2 + i];
    }
    struct wf_train_options o = {.out = out,
                                 .train = train,
                                 .train_files = 2,
                                 .valid = valid,
                                 .valid_files = 2,
                                 .seed = 5,
                                 .event = see,
                                 .ctx = seen,
                                 .cancelled = cancel};
    ck_ok(wf_config_preset(&o.config, "seq2seq-tiny", error));
    const char *set[][2] = {
        {"encoder_layers", "1"},    {"decoder_layers", "1"}, {"d_model", "16"},       {"d_ff", "32"},         {"heads", "2"},
        {"max_length", "24"},       {"positions", "32"},     {"batch_tokens", "120"}, {"batch_window", "32"}, {"lr", "0.01"},
        {"label_smoothing", "0.1"}, {"valid_every", "10"},   {"save_every", "7"},     {"keep", "2"},          {"clip", "1"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        ck_ok(wf_config_set(&o.config, set[i][0], set[i][1], error));
    o.config.training.steps = 40;
    return o;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The folder tests/golden/bert, which make_bert.py wrote: for tests of rooms from models on. */
#ifndef TESTS_GOLDEN_BERT_H
#define TESTS_GOLDEN_BERT_H

#include <weft/file.h>
#include <weft/memory.h>
#include <weft/models.h>

#include "../config_test.h"
#include "golden.h"

enum { BERT_D = 12, BERT_LAYERS = 2, BERT_HEADS = 3, BERT_SENTENCES = 7, BERT_TYPES = 42 };

/* The path of a file in the folder; static. */
static inline const char *bert_path(const char *name)
{
    static char path[4][4096];
    static int next;
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/tests/golden/bert/%s", root ? root : ".", name);
    return out;
}

static inline wf_safetensors *bert_open(const char *name)
{
    wf_error error = {0};
    wf_safetensors *file = wf_safetensors_open(bert_path(name), &error);
    ck_assert_msg(file != NULL, "%s", error.message);
    return file;
}

static inline struct wf_config bert_config(void)
{
    struct wf_config c;
    ck_ok(wf_config_load(&c, bert_path("config.json"), error));
    return c;
}

static inline wf_model *bert_model(const struct wf_config *c)
{
    wf_error problem = {0};
    wf_model *m = wf_model_new(c, &problem);
    ck_assert_msg(m != NULL, "%s", problem.message);
    wf_safetensors *file = bert_open("model.safetensors");
    ck_ok(wf_model_load(m, file, error));
    wf_safetensors_close(file);
    return m;
}

/* Ids or lengths of outputs.safetensors, freed with free; *count may be NULL. */
static inline int32_t *bert_ids(const wf_safetensors *file, const char *key, int64_t *count)
{
    const struct wf_safetensors_entry *e = wf_safetensors_find(file, key);
    ck_assert_msg(e != NULL, "%s", key);
    int32_t *out = malloc((size_t)e->count * sizeof *out);
    ck_ok(wf_safetensors_read(file, key, WF_I32, out, e->count, error));
    if (count)
        *count = e->count;
    return out;
}

/* The lines of sentences.txt as arrays; the text is freed with wf_free. */
static inline char *bert_sentences(const char *line[BERT_SENTENCES], int64_t length[BERT_SENTENCES])
{
    wf_error error = {0};
    int64_t bytes, at = 0;
    char *text = wf_file_load(bert_path("sentences.txt"), 1 << 20, &bytes, &error);
    ck_assert_msg(text != NULL, "%s", error.message);
    for (int i = 0; i < BERT_SENTENCES; i++) {
        line[i] = text + at;
        length[i] = strchr(text + at, '\n') - line[i];
        at += length[i] + 1;
    }
    ck_assert_int_eq(at, bytes);
    return text;
}

#endif

/* SPDX-License-Identifier: MIT */
/* BERT against PyTorch in float64 (tests/golden/make_bert.py); and files of weights with other names. */
#include <weft/encoder.h>

#include "../data/data_test.h"
#include "../golden/bert.h"
#include "models_test.h"

enum { B = 3, T = 9 };

/* Sets rows past their length to 0, as in the file: they are undefined. */
static void clear_padding(double *x, const int32_t *lengths, int64_t width)
{
    for (int b = 0; b < B; b++)
        for (int64_t i = lengths[b] * width; i < T * width; i++)
            x[b * T * width + i] = 0;
}

static void ck_near(const wf_safetensors *file, const char *key, double *have, int64_t count)
{
    double *want = golden_read(file, key, count), norm = golden_norm(want, NULL, count), off = golden_norm(have, want, count);
    ck_assert_msg(norm > 1 && off <= golden_tolerance() * norm, "%s: differs by %g of %g", key, off, norm);
    free(want);
}

START_TEST(vectors_and_weights_are_those_of_pytorch)
{
    static const struct {
        const char *key;
        enum wf_activation activation;
    } acts[] = {{"hidden.gelu", WF_GELU}, {"hidden.gelu_new", WF_GELU_TANH}, {"hidden.relu", WF_RELU}, {"hidden.silu", WF_SILU}};
    wf_safetensors *out = bert_open("outputs.safetensors");
    int32_t *ids = bert_ids(out, "ids", NULL), *segments = bert_ids(out, "segments", NULL), *lengths = bert_ids(out, "lengths", NULL);
    wf_tape *tape = new_tape();
    for (int i = 0; i < 4; i++) {
        struct wf_config c = bert_config();
        wf_tensor *weights[BERT_LAYERS];
        wf_array a;
        set_key(&c, "activation", acts[i].activation);
        wf_model *m = bert_model(&c);
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *x =
            wf_encoder_forward(m, wf_ids(tape, ids, B, T), .lengths = lengths, .segments = segments, .weights = i == 0 ? weights : NULL);
        a = view_of(x);
        double *have = golden_elements(&a);
        clear_padding(have, lengths, BERT_D);
        ck_near(out, acts[i].key, have, B * T * BERT_D);
        free(have);
        for (int l = 0; i == 0 && l < BERT_LAYERS; l++) {
            char key[32];
            snprintf(key, sizeof key, "weights.%d", l);
            a = view_of(weights[l]);
            have = golden_elements(&a); /* [B,H,T,T] */
            for (int b = 0; b < B; b++)
                for (int h = 0; h < BERT_HEADS; h++)
                    for (int q = 0; q < T; q++)
                        for (int k = 0; k < T; k++) {
                            double *w = have + ((b * BERT_HEADS + h) * T + q) * T + k;
                            ck_assert(k < lengths[b] || *w == 0); /* exactly */
                            *w = q < lengths[b] ? *w : 0;
                        }
            ck_near(out, key, have, B * BERT_HEADS * T * T);
            free(have);
        }
        wf_model_free(m);
    }
    free(ids);
    free(segments);
    free(lengths);
    wf_tape_free(tape);
    wf_safetensors_close(out);
}
END_TEST

START_TEST(packed_rows_have_the_bits_of_rows)
{
    wf_safetensors *out = bert_open("outputs.safetensors");
    int32_t *ids = bert_ids(out, "ids", NULL), *segments = bert_ids(out, "segments", NULL), *lengths = bert_ids(out, "lengths", NULL);
    int32_t packed[B * T], kinds[B * T], offsets[B + 1] = {0};
    wf_real rows[B * T * BERT_D], ends[B * T * BERT_D];
    struct wf_config c = bert_config();
    wf_model *m = bert_model(&c);
    wf_tape *tape = new_tape();
    for (int b = 0; b < B; b++) {
        memcpy(packed + offsets[b], ids + b * T, (size_t)lengths[b] * sizeof *ids);
        memcpy(kinds + offsets[b], segments + b * T, (size_t)lengths[b] * sizeof *ids);
        offsets[b + 1] = offsets[b] + lengths[b];
    }
    for (int given = 1; given >= 0; given--) { /* given segments, and all 0 */
        wf_tape_reset(tape, WF_INFER);
        read_values(wf_encoder_forward(m, wf_ids(tape, ids, B, T), .lengths = lengths, .segments = given ? segments : NULL), rows,
                    B * T * BERT_D);
        read_values(
            wf_encoder_forward(m, wf_ids_of(tape, packed, WF_SHAPE(offsets[B])), .packed = {offsets, B}, .segments = given ? kinds : NULL),
            ends, offsets[B] * BERT_D);
        for (int b = 0; b < B; b++)
            ck_assert_int_eq(memcmp(ends + offsets[b] * BERT_D, rows + b * T * BERT_D, (size_t)lengths[b] * BERT_D * sizeof *rows), 0);
    }
    /* Segments of zeros, given or left out. */
    int32_t zeros[B * T] = {0};
    read_values(wf_encoder_forward(m, wf_ids(tape, ids, B, T), .lengths = lengths, .segments = zeros), ends, B * T * BERT_D);
    for (int b = 0; b < B; b++)
        ck_assert_int_eq(memcmp(ends + b * T * BERT_D, rows + b * T * BERT_D, (size_t)lengths[b] * BERT_D * sizeof *rows), 0);
    wf_tape_free(tape);
    wf_model_free(m);
    free(ids);
    free(segments);
    free(lengths);
    wf_safetensors_close(out);
}
END_TEST

/* --- files of weights ---------------------------------------------------------------------------------------------- */

static const char *weights_path(void)
{
    return test_file("weights.safetensors", NULL, 0);
}

/* Differences between a copy and the golden weights. */
struct change {
    const char *prefix;   /* before every name */
    bool old_norms;       /* gamma and beta */
    const char *without;  /* a tensor that is left out */
    const char *extra[3]; /* tensors of [2] that are added */
    const char *reshaped; /* one that is [its elements] */
};

static void renamed(const char *name, const struct change *c, char *out, size_t size)
{
    const char *dot = strrchr(name, '.');
    bool norm = strstr(name, "LayerNorm.") != NULL;
    if (c->old_norms && norm)
        snprintf(out, size, "%s%.*s.%s", c->prefix ? c->prefix : "", (int)(dot - name), name,
                 strcmp(dot, ".weight") == 0 ? "gamma" : "beta");
    else
        snprintf(out, size, "%s%s", c->prefix ? c->prefix : "", name);
}

static void write_weights(const struct change *c)
{
    wf_safetensors *file = bert_open("model.safetensors");
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    float *data[64], two[2] = {1, 2};
    int64_t count = wf_safetensors_count(file);
    ck_assert_int_le(count, 64);
    for (int64_t i = 0; i < count; i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        char name[256];
        data[i] = malloc((size_t)e->bytes);
        ck_ok(wf_safetensors_read(file, e->name, WF_F32, data[i], e->count, error));
        if (c->without && strcmp(c->without, e->name) == 0)
            continue;
        renamed(e->name, c, name, sizeof name);
        wf_array a =
            wf_array_contiguous(data[i], WF_F32, c->reshaped && strcmp(c->reshaped, e->name) == 0 ? WF_SHAPE(e->count) : &e->shape);
        wf_safetensors_put(w, name, &a);
    }
    for (int i = 0; i < 3 && c->extra[i]; i++) {
        wf_array a = wf_array_contiguous(two, WF_F32, WF_SHAPE(2));
        wf_safetensors_put(w, c->extra[i], &a);
    }
    ck_ok(wf_safetensors_commit(w, weights_path(), error));
    for (int64_t i = 0; i < count; i++)
        free(data[i]);
    wf_safetensors_close(file);
}

static wf_safetensors *open_file(const char *path)
{
    wf_error error = {0};
    wf_safetensors *file = wf_safetensors_open(path, &error);
    ck_assert_msg(file != NULL, "%s", error.message);
    return file;
}

static wf_status load(wf_model *m, wf_error *error)
{
    wf_safetensors *file = open_file(weights_path());
    wf_status status = wf_model_load(m, file, error);
    wf_safetensors_close(file);
    return status;
}

static void ck_same_values(const wf_model *a, const wf_model *b)
{
    const wf_registry *r = wf_model_registry(a), *s = wf_model_registry(b);
    ck_assert_int_eq(memcmp(wf_registry_values(r), wf_registry_values(s), (size_t)wf_registry_slab(r) * sizeof(wf_real)), 0);
}

START_TEST(weights_of_any_age_and_with_any_head)
{
    static const struct change good[] = {
        {0},
        {.prefix = "bert."},
        {.old_norms = true},
        {.prefix = "bert.", .old_norms = true, .extra = {"cls.predictions.bias", "classifier.weight", "bert.pooler.x"}},
        {.extra = {"cls.seq_relationship.weight", "embeddings.position_ids", "pooler.y"}},
        {.without = "pooler.dense.weight"},
    };
    struct wf_config c = bert_config();
    wf_model *first = bert_model(&c);
    for (int i = 0; i < (int)(sizeof good / sizeof *good); i++) {
        wf_model *m = bare_model(&c);
        write_weights(&good[i]);
        ck_ok(load(m, error));
        ck_same_values(m, first);
        wf_model_free(m);
    }
    wf_model_free(first);
}
END_TEST

START_TEST(wrong_weights_are_named)
{
    static const struct {
        struct change change;
        const char *message;
    } bad[] = {
        {{.without = "encoder.layer.1.attention.self.key.weight"}, "1 missing: encoder.layer.1.attention.self.key.weight"},
        {{.without = "embeddings.LayerNorm.bias"}, "1 missing: embeddings.LayerNorm.bias"},
        {{.prefix = "bert.", .without = "embeddings.token_type_embeddings.weight"},
         "1 missing: bert.embeddings.token_type_embeddings.weight"},
        {{.extra = {"encoder.layer.2.output.dense.bias", "decoder.x"}}, "2 unexpected: encoder.layer.2.output.dense.bias, decoder.x"},
        {{.extra = {"embeddings.LayerNorm.gamma"}}, "1 unexpected: embeddings.LayerNorm.gamma"},
        {{.reshaped = "encoder.layer.0.attention.self.value.weight"},
         "1 with another shape: encoder.layer.0.attention.self.value.weight [144] instead of [12,12]"},
        {{.reshaped = "embeddings.word_embeddings.weight"}, "embeddings.word_embeddings.weight [504] instead of [42,12]"},
        {{.prefix = "roberta."}, "missing: embeddings.word_embeddings.weight"},
    };
    struct wf_config c = bert_config();
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        wf_model *m = bare_model(&c);
        write_weights(&bad[i].change);
        ck_fails(load(m, error), WF_ERR_FORMAT, bad[i].message);
        ck_assert_ptr_null(wf_registry_values(wf_model_registry(m))); /* nothing was allocated for it */
        wf_model_free(m);
    }
}
END_TEST

/* It has no output layer and no cache; functions that need them say so. */
START_TEST(missing_parts_are_named)
{
    struct wf_config c = bert_config();
    wf_model *m = bert_model(&c);
    wf_tape *tape = new_tape();
    int32_t ids[30] = {2, 5, 3}, segments[] = {0, 2, 0};
    ck_assert_ptr_null(wf_registry_grads(wf_model_registry(m))); /* reading makes no room for gradients */
    poisoned(tape, wf_encoder_logits(m, wf_ids(tape, ids, 1, 3)), WF_ERR_STATE, "bert has no output layer");
    poisoned(tape, wf_encoder_forward(m, wf_ids(tape, ids, 1, 3), .segments = segments), WF_ERR_ARGUMENT, "segment 2");
    poisoned(tape, wf_encoder_forward(m, wf_ids(tape, ids, 1, 25)), WF_ERR_SHAPE, "the context is 24");
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* --- the output layer ---------------------------------------------------------------------------------------------- */

/* BertForMaskedLM's file with other names for some tensors; `more`: another tensor, with the values of `of`. */
struct head_change {
    const char *from, *to, *more, *of;
};

static void write_head(const struct head_change *c)
{
    wf_safetensors *file = open_file(bert_path("../bert_train/model.safetensors"));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    static float data[64][8192];
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        const char *place = c->from ? strstr(e->name, c->from) : NULL;
        char name[256];
        ck_assert(e->count <= 8192 && i < 64);
        ck_ok(wf_safetensors_read(file, e->name, WF_F32, data[i], e->count, error));
        wf_array a = wf_array_contiguous(data[i], WF_F32, &e->shape);
        snprintf(name, sizeof name, "%.*s%s%s", place ? (int)(place - e->name) : 255, e->name, place ? c->to : "",
                 place ? place + strlen(c->from) : "");
        if (!place || c->to)
            wf_safetensors_put(w, name, &a);
        if (c->more && strcmp(e->name, c->of) == 0)
            wf_safetensors_put(w, c->more, &a);
    }
    ck_ok(wf_safetensors_commit(w, weights_path(), error));
    wf_safetensors_close(file);
}

static struct wf_config masked_config(void)
{
    struct wf_config c;
    ck_ok(wf_config_load(&c, bert_path("../bert_train/config.json"), error));
    set_keys(&c, "masked_head=true");
    return c;
}

/* All names in files, tensors that are there twice, and other heads; an output layer that is not tied. */
START_TEST(the_head_of_any_age)
{
    static const struct head_change changes[] = {
        {0},
        {.from = "LayerNorm.weight", .to = "LayerNorm.gamma"},
        {.from = "LayerNorm.bias", .to = "LayerNorm.beta"},
        {.from = "cls.predictions.bias", .to = "cls.predictions.decoder.bias"},
        {.more = "cls.predictions.decoder.bias", .of = "cls.predictions.bias"},
        {.more = "cls.predictions.decoder.weight", .of = "bert.embeddings.word_embeddings.weight"},
        {.more = "cls.seq_relationship.weight", .of = "cls.predictions.bias"},
        {.from = "bert.", .to = ""},
    };
    const struct wf_config c = masked_config();
    wf_model *first = bare_model(&c);
    for (int i = 0; i < (int)(sizeof changes / sizeof *changes); i++) {
        wf_model *m = i ? bare_model(&c) : first;
        write_head(&changes[i]);
        ck_ok(load(m, error));
        ck_same_values(m, first);
        if (i)
            wf_model_free(m);
    }
    struct wf_config apart = c;
    set_keys(&apart, "tied=false");
    wf_model *m = bare_model(&apart);
    write_head(&changes[0]);
    ck_fails(load(m, error), WF_ERR_FORMAT, "1 missing: cls.predictions.decoder.weight");
    write_head(&changes[5]);
    ck_ok(load(m, error));
    const wf_array *own = value_of(m, "head.weight"), *embed = value_of(m, "embed.weight");
    ck_assert_int_eq(memcmp(own->data, embed->data, (size_t)wf_array_count(own) * sizeof(wf_real)), 0);
    wf_model_free(m);
    wf_model_free(first);
}
END_TEST

static void count_name(void *ctx, const char *name)
{
    ck_assert_msg(strncmp(name, "transform.", 10) == 0 || strcmp(name, "head.bias") == 0, "%s", name);
    ++*(int *)ctx;
}

/* A file without the head: an error, unless missing tensors are allowed. The callback gets the family's names. */
START_TEST(a_file_without_the_head)
{
    static const struct head_change none = {.from = "cls."};
    const struct wf_config c = masked_config();
    int named = 0;
    wf_model *m = bare_model(&c);
    write_head(&none);
    ck_fails(load(m, error), WF_ERR_FORMAT, "5 missing: cls.predictions.transform.dense.weight");
    ck_ok(wf_registry_build(wf_model_registry(m), 1, error));
    wf_safetensors *file = open_file(weights_path());
    const struct wf_load_options missing = {.allow_missing = true, .missing = count_name, .missing_ctx = &named}, prefix = {.prefix = "x."};
    ck_ok(wf_model_load_with(m, file, &missing, error));
    ck_assert_int_eq(named, 5);
    ck_fails(wf_model_load_with(m, file, &prefix, error), WF_ERR_ARGUMENT, "names in files are mapped by the family");
    wf_safetensors_close(file);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("models/bert", vectors_and_weights_are_those_of_pytorch, packed_rows_have_the_bits_of_rows,
             weights_of_any_age_and_with_any_head, wrong_weights_are_named, missing_parts_are_named, the_head_of_any_age,
             a_file_without_the_head)

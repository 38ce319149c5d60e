/* SPDX-License-Identifier: MIT */
/* Attention maps are the model's own weights, and their tokens those that the model sees; what is refused. */
#include <math.h>

#include <weft/encoder.h>
#include <weft/internal/minmax.h>
#include <weft/seq2seq.h>

#include "page_test.h" /* before check_weft.h: it says what is done after each test */

#include "config_test.h"

static const char english[] = "a man in a hat reads a book .\ntwo dogs run on the grass , quickly\nthe woman sings\n";
static const char german[] = "ein Mann mit Hut liest ein Buch .\nzwei Hunde laufen im Gras , schnell\ndie Frau singt\n";

static wf_tokenizer *tokenizer_of(const char *text, wf_tokenizer_kind kind, int64_t types)
{
    wf_tokenizer *t = NULL;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &t, error, .kind = kind, .vocab_size = types));
    return t;
}

/* A model as initialisation makes it, with the tokenizers of `text` and, of pairs, `target`. */
static struct wf_run run_of(const char *preset, wf_tokenizer_kind kind, const char *text, const char *target)
{
    struct wf_run run = {0};
    struct wf_config *c = &run.config;
    ck_ok(wf_init(error, .threads = 1));
    ck_ok(wf_config_preset(c, preset, error));
    int64_t types = kind == WF_TOKENIZER_BPE ? 60 : kind == WF_TOKENIZER_BYTE_BPE ? 280 : 0;
    run.tokenizer = tokenizer_of(target ? target : text, kind, types);
    if (target)
        run.source_tokenizer = tokenizer_of(text, kind, types);
    set_key(c, "d_model", 24);
    set_key(c, "d_ff", 40);
    set_key(c, "heads", 3);
    set_key(c, "vocab_size", wf_tokenizer_vocab_size(run.tokenizer));
    if (target) {
        set_key(c, "shared", false);
        set_key(c, "source_vocab_size", wf_tokenizer_vocab_size(run.source_tokenizer));
        set_key(c, "encoder_layers", 3);
        set_key(c, "decoder_layers", 2);
        set_key(c, "max_length", 40);
    } else {
        set_key(c, "layers", 2);
        set_key(c, "context", 32);
    }
    run.model = ck_makes(wf_model_new(c, error));
    ck_ok(wf_registry_build(wf_model_registry(run.model), 5, error));
    return run;
}

static wf_tape *new_tape(void)
{
    wf_tape *tape = ck_makes(wf_tape_new(error));
    wf_tape_reset(tape, WF_INFER);
    return tape;
}

/* The map holds exactly these tensors, [1,H,Q,K] a layer; rows sum to 1. */
static void holds(const struct wf_attention_map *m, wf_tensor *const *weights)
{
    const float *w = m->weights;
    int64_t each = m->heads * m->queries * m->keys;
    wf_real *layer = wf_alloc((size_t)each * sizeof *layer);
    for (int64_t l = 0; l < m->layers; l++) {
        ck_assert_int_eq(wf_dim(weights[l], 1), m->heads);
        ck_assert_int_eq(wf_dim(weights[l], 2), m->queries);
        ck_assert_int_eq(wf_dim(weights[l], 3), m->keys);
        ck_assert_int_eq(wf_read(weights[l], layer, each), WF_OK);
        for (int64_t i = 0; i < each; i++)
            ck_assert_msg(w[l * each + i] == (float)layer[i], "layer %lld, weight %lld", (long long)l, (long long)i);
    }
    for (int64_t row = 0; row < m->layers * m->heads * m->queries; row++) {
        double sum = 0;
        for (int64_t k = 0; k < m->keys; k++)
            sum += (double)w[row * m->keys + k];
        ck_assert_msg(fabs(sum - 1) < 1e-5, "row %lld sums to %.9g", (long long)row, sum);
    }
    wf_free(layer);
}

static void is_causal(const struct wf_attention_map *m)
{
    for (int64_t row = 0; row < m->layers * m->heads * m->queries; row++)
        for (int64_t k = row % m->queries + 1; k < m->keys; k++)
            ck_assert(m->weights[row * m->keys + k] == 0);
}

static void same_tokens(char *const *tokens, int64_t count, const wf_tokenizer *tokenizer, const int32_t *ids, int64_t wanted)
{
    ck_assert_int_eq(count, wanted);
    for (int64_t i = 0; i < count; i++)
        ck_assert_str_eq(tokens[i], wf_tokenizer_token(tokenizer, ids[i], NULL));
}

/* Of self-attention: queries and keys. */
static void same_tokens_twice(const struct wf_attention_map *m, const wf_tokenizer *tokenizer, const int32_t *ids, int64_t wanted)
{
    same_tokens(m->query, m->queries, tokenizer, ids, wanted);
    same_tokens(m->key, m->keys, tokenizer, ids, wanted);
}

static void ids_of(const wf_tokenizer *tokenizer, char *const *tokens, int64_t count, int32_t *ids)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = wf_tokenizer_id(tokenizer, tokens[i], (int64_t)strlen(tokens[i]));
}

START_TEST(of_a_language_model)
{
    static const char *const presets[] = {"nanogpt-char-small", "char-rms"};
    for (int i = 0; i < 2; i++) {
        struct wf_run run = run_of(presets[i], WF_TOKENIZER_CHAR, english, NULL);
        struct wf_attention_maps maps;
        const char *text = "a man in the grass\nreads";
        ck_ok(wf_attention_of(&run, &(struct wf_attention_request){.text = text}, &maps, error));
        ck_assert_int_eq(maps.count, 1);
        ck_assert_str_eq(maps.model, presets[i]);
        const struct wf_attention_map *m = wf_attention_find(&maps, WF_MAP_DECODER);
        ck_assert_ptr_eq(m, &maps.map[0]);
        ck_assert_ptr_null(wf_attention_find(&maps, WF_MAP_CROSS));
        struct wf_tokens ids = {0};
        wf_tensor *weights[2];
        wf_tape *tape = new_tape();
        ck_ok(wf_tokenizer_encode(run.tokenizer, text, (int64_t)strlen(text), &ids, error));
        wf_model_attention(run.model, wf_ids(tape, ids.id, 1, ids.count), weights);
        same_tokens_twice(m, run.tokenizer, ids.id, ids.count);
        ck_assert_str_eq(m->query_label[1], "▁");
        ck_assert_str_eq(m->key_label[18], "⏎");
        ck_assert_int_eq(m->layers, 2);
        holds(m, weights);
        is_causal(m);
        wf_tokens_free(&ids);
        wf_tape_free(tape);
        wf_attention_free(&maps);
        ck_assert_int_eq(maps.count, 0);
        wf_run_close(&run);
    }
}
END_TEST

/* The marks of the tokenizer's template are tokens like others; a masked word may be asked for. */
START_TEST(of_an_encoder)
{
    struct wf_run run = run_of("encoder-attention", WF_TOKENIZER_WORD, english, NULL);
    struct wf_attention_maps maps;
    int32_t ids[32];
    wf_tensor *weights[2];
    wf_tape *tape = new_tape();
    ck_ok(wf_attention_of(&run, &(struct wf_attention_request){.text = "the man sings , the dogs run"}, &maps, error));
    ck_assert_int_eq(maps.count, 1);
    const struct wf_attention_map *m = wf_attention_find(&maps, WF_MAP_ENCODER);
    ck_assert_ptr_nonnull(m);
    ids_of(run.tokenizer, m->query, m->queries, ids);
    ck_assert_int_eq(m->queries, 9);
    ck_assert_str_eq(m->query[0], "<bos>");
    ck_assert_str_eq(m->query[7], "run");
    ck_assert_str_eq(m->key[8], "<eos>");
    wf_encoder_forward(run.model, wf_ids(tape, ids, 1, m->queries), .weights = weights);
    holds(m, weights);
    wf_tape_free(tape);
    wf_attention_free(&maps);

    wf_tokenizer_free(run.tokenizer); /* one without marks, as training makes for encoders */
    ck_ok(wf_tokenizer_train(english, (int64_t)strlen(english), &run.tokenizer, error, .kind = WF_TOKENIZER_WORD,
                             .specials = (const char *const[]){"<pad>", "<unk>", "<mask>"}, .special_count = 3));
    ck_ok(wf_attention_of(&run, &(struct wf_attention_request){.text = "the <mask> sings nonsense"}, &maps, error));
    ck_assert_int_eq(maps.map[0].keys, 4);
    ck_assert_str_eq(maps.map[0].key[1], "<mask>");
    ck_assert_str_eq(maps.map[0].key[3], "<unk>");
    wf_attention_free(&maps);
    wf_run_close(&run);
}
END_TEST

/* The weights of a pair through wf_pairs_logits, from the maps' own tokens. */
static void holds_pair(const struct wf_run *run, const struct wf_attention_maps *maps)
{
    const struct wf_attention_map *cross = wf_attention_find(maps, WF_MAP_CROSS);
    int32_t source[64], input[64], source_offsets[2] = {0, (int32_t)cross->keys}, target_offsets[2] = {0, (int32_t)cross->queries};
    wf_tensor *encoder[3], *decoder[2], *crossing[2];
    ids_of(run->source_tokenizer, cross->key, cross->keys, source);
    ids_of(run->tokenizer, cross->query, cross->queries, input);
    struct wf_pairs pair = {1, source, source_offsets, input, input, target_offsets, 0, 0};
    wf_tape *tape = new_tape();
    wf_pairs_logits(run->model, tape, &pair, &(struct wf_seq2seq_weights){encoder, decoder, crossing});
    holds(cross, crossing);
    const struct wf_attention_map *from = wf_attention_find(maps, WF_MAP_ENCODER), *to = wf_attention_find(maps, WF_MAP_DECODER);
    same_tokens_twice(from, run->source_tokenizer, source, cross->keys);
    same_tokens_twice(to, run->tokenizer, input, cross->queries);
    ck_assert_int_eq(from->layers, 3);
    ck_assert_int_eq(to->layers, 2);
    holds(from, encoder);
    holds(to, decoder);
    is_causal(to);
    wf_tape_free(tape);
}

START_TEST(of_a_translation_model)
{
    struct wf_run run = run_of("multi30k", WF_TOKENIZER_BPE, english, german);
    struct wf_attention_maps maps;
    const char *source = "\n \ta man reads .\r\n";
    ck_ok(wf_attention_of(&run, &(struct wf_attention_request){.source = source, .target = "ein Mann singt\n"}, &maps, error));
    ck_assert_int_eq(maps.count, 3);
    const struct wf_attention_map *cross = wf_attention_find(&maps, WF_MAP_CROSS);
    ck_assert_str_eq(cross->query[0], "<s>");
    ck_assert_str_ne(cross->query[cross->queries - 1], "</s>");
    ck_assert_str_eq(cross->key[cross->keys - 1], "</s>"); /* source_eos of this preset, and no source_bos */
    ck_assert_str_ne(cross->key[0], "<s>");
    holds_pair(&run, &maps);
    wf_attention_free(&maps);

    /* its own translation, which is that of wf_translate */
    ck_ok(wf_attention_of(&run, &(struct wf_attention_request){.source = source}, &maps, error));
    holds_pair(&run, &maps);
    cross = wf_attention_find(&maps, WF_MAP_CROSS);
    int32_t ids[64], offsets[2] = {0, (int32_t)cross->keys};
    ids_of(run.source_tokenizer, cross->key, cross->keys, ids);
    struct wf_translations t;
    wf_tape *tape = new_tape();
    ck_ok(wf_translate(run.model, tape, ids, offsets, 1, wf_tokenizer_special(run.tokenizer, WF_SPECIAL_BOS),
                       wf_tokenizer_special(run.tokenizer, WF_SPECIAL_EOS), &t, error));
    same_tokens(cross->query + 1, cross->queries - 1, run.tokenizer, t.hypothesis[0].ids,
                WF_MIN(t.hypothesis[0].length, key_of(&run.config, "max_length") - 1));
    wf_translations_free(&t);
    wf_tape_free(tape);
    wf_attention_free(&maps);

    set_key(&run.config, "source_bos", true); /* a model that wants both marks */
    ck_ok(wf_attention_of(&run, &(struct wf_attention_request){.source = source, .target = "ein"}, &maps, error));
    cross = wf_attention_find(&maps, WF_MAP_CROSS);
    ck_assert_str_eq(cross->key[0], "<s>");
    ck_assert_str_eq(cross->key[cross->keys - 1], "</s>");
    holds_pair(&run, &maps);
    wf_attention_free(&maps);
    wf_run_close(&run);
}
END_TEST

#define refused(run, code, first, second, ...) refuses(run, &(struct wf_attention_request){__VA_ARGS__}, code, first, second)
static void refuses(const struct wf_run *run, const struct wf_attention_request *request, wf_status code, const char *first,
                    const char *second)
{
    struct wf_attention_maps maps;
    wf_error problem = {0};
    ck_assert_int_eq(wf_attention_of(run, request, &maps, &problem), code);
    ck_assert_int_eq(maps.count, 0);
    assert_message(&problem, code, first);
    ck_says(problem.message, second);
}

START_TEST(what_can_not_be)
{
    const char *long_text = "a man in a hat reads a book . two dogs run on the grass";
    struct wf_run run = run_of("nanogpt-char-small", WF_TOKENIZER_CHAR, english, NULL);
    refused(&run, WF_ERR_ARGUMENT, "language model", "--text");
    refused(&run, WF_ERR_ARGUMENT, "no --source", "--text", .source = "a");
    refused(&run, WF_ERR_ARGUMENT, "no --target", "--text", .text = "a", .target = "a");
    refused(&run, WF_ERR_ARGUMENT, "text", "empty", .text = "");
    refused(&run, WF_ERR_ARGUMENT, "has 55 tokens", "maximum of 32", .text = long_text);
    refused(&run, WF_ERR_FORMAT, "the text", "U+00FC", .text = "ümlaut");
    refused(&run, WF_ERR_FORMAT, "the text", "UTF-8", .text = "a\xff");
    wf_registry *registry = wf_model_registry(run.model);
    for (int64_t i = 0; i < wf_registry_slab(registry); i++)
        wf_registry_values(registry)[i] = NAN;
    refused(&run, WF_ERR_NUMERIC, "layer 1", "not finite", .text = "a man");
    wf_run_close(&run);
    run = run_of("encoder-attention", WF_TOKENIZER_WORD, english, NULL);
    refused(&run, WF_ERR_ARGUMENT, "encoder", "--text", .source = "a");
    refused(&run, WF_ERR_ARGUMENT, "text", "empty", .text = "");
    refused(&run, WF_ERR_ARGUMENT, "text", "empty", .text = " \n ");
    wf_run_close(&run);
    run = run_of("multi30k", WF_TOKENIZER_BPE, english, german);
    refused(&run, WF_ERR_ARGUMENT, "translation model", "--source");
    refused(&run, WF_ERR_ARGUMENT, "--source", "--text", .text = "a");
    refused(&run, WF_ERR_ARGUMENT, "source", "empty", .source = "");
    refused(&run, WF_ERR_ARGUMENT, "source", "empty", .source = " \n\t");
    refused(&run, WF_ERR_ARGUMENT, "target", "empty", .source = "a man", .target = "");
    refused(&run, WF_ERR_ARGUMENT, "source", "several lines", .source = "a man\nreads");
    refused(&run, WF_ERR_ARGUMENT, "the source has", "maximum of 40",
            .source = "zwei quirky jazz vixens quickly jump over fences zzzzzzzzzz");
    refused(&run, WF_ERR_ARGUMENT, "the target has", "maximum of 40", .source = "a",
            .target = "quer xyzzy jjjjjjjj qqqqqqqqqqqqqqqqqqqqqqqqqqq");
    refused(&run, WF_ERR_FORMAT, "the source", "UTF-8", .source = "a\xff");
    wf_run_close(&run);
}
END_TEST

/* Tokenizers without the marks that the model needs. */
START_TEST(without_marks)
{
    static const char *const no_end[] = {"<s>", "<unk>"}, *const none[] = {"<unk>"};
    struct wf_run run = run_of("multi30k", WF_TOKENIZER_BPE, english, german);
    const struct wf_attention_request alone = {.source = "a man"}, pair = {.source = "a man", .target = "ein"};
    wf_tokenizer *target = run.tokenizer, *source = run.source_tokenizer;
    for (int i = 0; i < 3; i++) {
        wf_tokenizer *t = NULL;
        ck_ok(wf_tokenizer_train(english, (int64_t)strlen(english), &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 50,
                                 .specials = i == 2 ? none : no_end, .special_count = i == 2 ? 1 : 2));
        *(i == 0 ? &run.source_tokenizer : &run.tokenizer) = t;
        if (i == 0)
            refuses(&run, &pair, WF_ERR_ARGUMENT, "the source tokenizer", "the end of a sentence");
        if (i == 1)
            refuses(&run, &alone, WF_ERR_ARGUMENT, "the target tokenizer", "give a target");
        if (i == 2)
            refuses(&run, &pair, WF_ERR_ARGUMENT, "the target tokenizer", "the beginning of a sentence");
        wf_tokenizer_free(t);
        run.tokenizer = target;
        run.source_tokenizer = source;
    }
    wf_run_close(&run);
}
END_TEST

START_TEST(names_of_kinds)
{
    static const char *const names[] = {"encoder", "decoder", "cross", "?"};
    for (int i = WF_MAP_ENCODER; i <= WF_MAP_CROSS + 1; i++)
        ck_assert_str_eq(wf_map_kind_name((enum wf_map_kind)i), names[i]);
}
END_TEST

static struct wf_run swept;
static wf_status map_swept(wf_error *error)
{
    struct wf_attention_maps maps;
    wf_status status = wf_attention_of(&swept, &(struct wf_attention_request){.source = "a man", .target = "ein"}, &maps, error);
    ck_assert_int_eq(maps.count, status == WF_OK ? 3 : 0);
    wf_attention_free(&maps);
    return status;
}

START_TEST(without_memory)
{
    swept = run_of("multi30k", WF_TOKENIZER_BPE, english, german);
    ck_ok(map_swept(error)); /* makes what is made once */
    ck_assert_int_gt(sweep_allocations(map_swept), 20);
    wf_run_close(&swept);
}
END_TEST

WF_TEST_MAIN("attention_map", of_a_language_model, of_an_encoder, of_a_translation_model, what_can_not_be, without_marks, names_of_kinds,
             without_memory)

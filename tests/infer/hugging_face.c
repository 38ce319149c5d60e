/* SPDX-License-Identifier: MIT */
/* Folders of Hugging Face opened as runs: the golden one, with each of its files changed or missing; and the real all-MiniLM-L6-v2 if
 * WEFT_MINILM names its folder. */
#include <weft/embed.h>
#include <weft/file.h>
#include <weft/random.h>
#include <weft/run.h>

#include "../data/data_test.h"
#include "../golden/bert.h"

enum { S = BERT_SENTENCES, D = BERT_D };

static const char *at(const char *name)
{
    static char path[4][256];
    static int next;
    return strcpy(path[next++ % 4], test_file(name, NULL, 0));
}

static char *content(const char *path, int64_t *bytes)
{
    wf_error error = {0};
    char *text = wf_file_load(path, 1 << 20, bytes, &error);
    ck_assert_msg(text != NULL, "%s", error.message);
    return text;
}

/* Without the syncing of wf_file_save: there are thousands of them. */
static void put(const char *name, const char *text, int64_t bytes)
{
    test_file(name, text, (size_t)bytes);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, (int64_t)strlen(text));
}

static const char *const files[] = {
    "config.json",           "model.safetensors",        "vocab.txt", "tokenizer_config.json", "modules.json",
    "1_Pooling/config.json", "sentence_bert_config.json"};
enum { FILES = sizeof files / sizeof *files };

/* A copy of the golden folder. */
static void copy_folder(void)
{
    ck_ok(wf_folder_make(at("1_Pooling"), error));
    for (int i = 0; i < FILES; i++) {
        int64_t bytes;
        char *text = content(bert_path(files[i]), &bytes);
        put(files[i], text, bytes);
        wf_free(text);
    }
}

/* Replaces `from` by `to` in a file of the copy. */
static void replace(const char *name, const char *from, const char *to)
{
    int64_t bytes;
    char *text = content(at(name), &bytes), changed[4096];
    char *place = strstr(text, from);
    ck_assert_msg(place != NULL && bytes + (int64_t)strlen(to) < 4096, "%s has no %s", name, from);
    int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, to, place + strlen(from));
    put(name, changed, n);
    wf_free(text);
}

static void ck_refused_folder(wf_status code, const char *message)
{
    struct wf_run run;
    ck_fails(wf_run_open(&run, test_folder, NULL, error), code, message);
    ck_assert(!run.model && !run.tokenizer);
}

static void embed(const struct wf_run *run, wf_real out[S * D])
{
    const char *line[S];
    int64_t length[S];
    wf_error problem = {0};
    char *text = bert_sentences(line, length);
    struct wf_embedder_options o = run->embed;
    o.truncate = true;
    wf_embedder *e = wf_embedder_new(run->model, run->tokenizer, &o, &problem);
    ck_assert_msg(e != NULL, "%s", problem.message);
    ck_ok(wf_embed(e, line, length, S, 1, out, NULL, error));
    wf_embedder_free(e);
    wf_free(text);
}

START_TEST(a_folder_is_a_run)
{
    struct wf_run run;
    wf_real out[S * D], again[S * D];
    char key[64];
    copy_folder();
    ck_ok(wf_run_open(&run, test_folder, NULL, error));
    ck_assert(run.embed.pooling == WF_POOL_MEAN && run.embed.normalize && run.embed.max_length == 20 && !run.embed.truncate);
    ck_assert_ptr_null(run.source_tokenizer);
    embed(&run, out);
    wf_safetensors *golden = bert_open("outputs.safetensors");
    for (int i = 0; i < S; i++) {
        wf_array a = wf_array_contiguous(out + i * D, WF_REAL, WF_SHAPE(D));
        snprintf(key, sizeof key, "sentence.%d.mean", i);
        golden_near(golden, key, &a, golden_tolerance());
    }
    wf_safetensors_close(golden);
    /* With a tokenizer.json, vocab.txt and tokenizer_config.json are not read. */
    ck_ok(wf_tokenizer_save(run.tokenizer, at("tokenizer.json"), error));
    wf_run_close(&run);
    put_text("vocab.txt", "nonsense");
    put_text("tokenizer_config.json", "nonsense");
    ck_ok(wf_run_open(&run, test_folder, NULL, error));
    embed(&run, again);
    ck_assert_int_eq(memcmp(out, again, sizeof out), 0);
    wf_run_close(&run);
    /* Weights by name, as of any run. */
    ck_ok(wf_run_open(&run, test_folder, at("model.safetensors"), error));
    wf_run_close(&run);
}
END_TEST

/* model.safetensors with each tensor rounded to bf16. */
static void round_weights(void)
{
    wf_safetensors *file = wf_safetensors_open(at("model.safetensors"), NULL);
    ck_assert_ptr_nonnull(file);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    const int64_t count = wf_safetensors_count(file);
    uint16_t **data = wf_alloc_zero((size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        const int64_t n = wf_shape_count(&e->shape);
        data[i] = wf_alloc((size_t)n * sizeof **data);
        ck_ok(wf_safetensors_read(file, e->name, WF_BF16, data[i], n, error));
        const wf_array a = wf_array_contiguous(data[i], WF_BF16, &e->shape);
        wf_safetensors_put(w, e->name, &a);
    }
    wf_safetensors_close(file);
    ck_ok(wf_safetensors_commit(w, at("model.safetensors"), error));
    for (int64_t i = 0; i < count; i++)
        wf_free(data[i]);
    wf_free(data);
}

/* Weights that the file has as BF16 can stay so in memory, and give the same bits. */
START_TEST(weights_in_bf16)
{
    struct wf_run run;
    wf_real out[S * D], again[S * D];
    copy_folder();
    round_weights();
    ck_ok(wf_run_open(&run, test_folder, NULL, error));
    ck_assert_int_eq(wf_dtype_of(wf_registry_at(wf_model_registry(run.model), 0)), WF_REAL);
    embed(&run, out);
    wf_run_close(&run);
    ck_ok(wf_run_open_with(&run, test_folder, &(struct wf_run_options){.stored = WF_STORED_AS_FILE}, error));
    int stored = 0;
    for (int i = 0; i < wf_registry_count(wf_model_registry(run.model)); i++)
        stored += wf_dtype_of(wf_registry_at(wf_model_registry(run.model), i)) == WF_BF16;
    ck_assert(WF_REAL == WF_F32 ? stored > 4 : stored == 0);
    embed(&run, again);
    ck_assert_int_eq(memcmp(out, again, sizeof out), 0);
    wf_run_close(&run);
    ck_ok(wf_run_open_with(&run, test_folder, NULL, error));
    wf_run_close(&run);
}
END_TEST

/* Weights that stay in the file give the same bits. A small file is read unless it is asked for. */
START_TEST(mapped_weights)
{
    struct wf_run run;
    wf_real out[S * D], again[S * D];
    copy_folder();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        if (bf16)
            round_weights();
        for (int map = WF_RUN_READ; map <= WF_RUN_MAP; map++) {
            const struct wf_run_options o = {.stored = WF_STORED_AS_FILE, .map = (enum wf_run_map)map};
            ck_ok(wf_run_open_with(&run, test_folder, &o, error));
            const struct wf_model_bytes bytes = wf_model_bytes(run.model);
            const bool is_float = WF_REAL == WF_F32;
            ck_assert_msg(map == WF_RUN_MAP && is_float ? bytes.mapped > bytes.weights / 4 && bytes.mapped < bytes.weights
                                                        : bytes.mapped == 0,
                          "%d, %d: %lld of %lld", bf16, map, (long long)bytes.mapped, (long long)bytes.weights);
            embed(&run, map == 0 ? out : again);
            ck_assert(map == 0 || memcmp(out, again, sizeof out) == 0);
            wf_run_close(&run);
        }
    }
    ck_fails(wf_run_open_with(&run, test_folder, &(struct wf_run_options){.map = (enum wf_run_map)3}, error), WF_ERR_ARGUMENT,
             ".map is unknown");
}
END_TEST

static struct wf_embedder_options options_of_folder(void)
{
    struct wf_run run;
    ck_ok(wf_run_open(&run, test_folder, NULL, error));
    const struct wf_embedder_options o = run.embed;
    wf_run_close(&run);
    return o;
}

/* The effects of the optional files. */
START_TEST(how_vectors_are_made)
{
    copy_folder();
    replace("1_Pooling/config.json", "\"pooling_mode_cls_token\": false", "\"pooling_mode_cls_token\": true");
    replace("1_Pooling/config.json", "\"pooling_mode_mean_tokens\": true", "\"pooling_mode_mean_tokens\": false");
    replace("sentence_bert_config.json", "20", "400"); /* more than the model has */
    struct wf_embedder_options o = options_of_folder();
    ck_assert(o.pooling == WF_POOL_CLS && o.normalize && o.max_length == 24);
    /* The format of today; and without normalisation. */
    put_text("1_Pooling/config.json", "{\"embedding_dimension\": 12, \"pooling_mode\": \"cls\", \"include_prompt\": true}");
    put_text("modules.json", "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.base.modules.transformer.Transformer\"}, "
                             "{\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"a.b.Pooling\"}]");
    put_text("config_sentence_transformers.json", "{\"prompts\": {}, \"default_prompt_name\": null}");
    unlink(at("sentence_bert_config.json"));
    o = options_of_folder();
    ck_assert(o.pooling == WF_POOL_CLS && !o.normalize && o.max_length == 24);
    put_text("1_Pooling/config.json", "{\"pooling_mode\": [\"mean\"]}");
    o = options_of_folder();
    ck_assert(o.pooling == WF_POOL_MEAN);
    unlink(at("modules.json")); /* a plain BERT */
    put_text("1_Pooling/config.json", "nonsense");
    unlink(at("tokenizer_config.json"));
    o = options_of_folder();
    ck_assert(o.pooling == WF_POOL_MEAN && !o.normalize && o.max_length == 0);
}
END_TEST

/* The settings of tokenizer_config.json reach the tokenizer. */
START_TEST(settings_of_the_tokenizer)
{
    static const struct {
        const char *from, *to, *text;
        int32_t id;
    } settings[] = {{"", "", "Dog", 6},
                    {"\"do_lower_case\": true", "\"do_lower_case\": false", "Dog", 14},
                    {"\"strip_accents\": null", "\"strip_accents\": true",
                     "\xc3\xbc"
                     "ber",
                     13},
                    {"\"strip_accents\": null", "\"strip_accents\": false",
                     "\xc3\xbc"
                     "ber",
                     12},
                    {"\"tokenize_chinese_chars\": true", "\"tokenize_chinese_chars\": false", "\xe4\xb8\xad\xe5\x9b\xbd", 1}};
    for (int i = 0; i < 5; i++) {
        struct wf_run run;
        struct wf_tokens ids = {0};
        copy_folder();
        replace("tokenizer_config.json", settings[i].from, settings[i].to);
        ck_ok(wf_run_open(&run, test_folder, NULL, error));
        ck_ok(wf_tokenizer_encode(run.tokenizer, settings[i].text, (int64_t)strlen(settings[i].text), &ids, error));
        ck_assert_int_ge(ids.count, 1);
        ck_assert_msg(ids.id[0] == settings[i].id, "%d: %d", i, ids.id[0]);
        wf_tokens_free(&ids);
        wf_run_close(&run);
        remove_test_files();
    }
}
END_TEST

START_TEST(unsupported_settings_are_refused)
{
    static const struct {
        const char *file, *from, *to, *message;
    } bad[] = {
        {"1_Pooling/config.json", "max_tokens\": false", "max_tokens\": true", "several kinds of pooling at once"},
        {"1_Pooling/config.json", "mean_tokens\": true", "lasttoken\": true", "pooling by \"lasttoken\" is not supported"},
        {"1_Pooling/config.json", "\"pooling_mode_cls_token\": false", "\"pooling_mode\": \"max\"", "pooling by \"max\""},
        {"1_Pooling/config.json", "\"pooling_mode_cls_token\": false", "\"pooling_mode\": [\"mean\", \"cls\"]",
         "several kinds of pooling at once"},
        {"1_Pooling/config.json", "12", "384", "vectors of 384 numbers, the model's have 12"},
        {"1_Pooling/config.json", "{", "", "1_Pooling/config.json:2:"},
        {"modules.json", "models.Normalize", "models.Dense", "the module \"sentence_transformers.models.Dense\" is not supported"},
        {"modules.json", "models.Transformer", "models.CLIPModel", "the module \"sentence_transformers.models.CLIPModel\""},
        {"modules.json", "\"path\": \"\"", "\"path\": \"0_Transformer\"", "the model is that in \"0_Transformer\""},
        {"modules.json", "\"path\": \"1_Pooling\"", "\"path\": \"../1_Pooling\"", "leads out of the folder"},
        {"modules.json", "\"path\": \"1_Pooling\"", "\"path\": \"2_Pooling\"", "2_Pooling/config.json is missing"},
        {"modules.json", "\"type\": \"sentence_transformers.models.Pooling\"", "\"type\": 1", "key \"type\""},
        {"sentence_bert_config.json", "\"do_lower_case\": false", "\"do_lower_case\": true", "key \"do_lower_case\""},
        {"sentence_bert_config.json", "20", "0", "key \"max_seq_length\": 0 is out of range"},
        {"tokenizer_config.json", "\"tokenizer_class\"", "\"do_basic_tokenize\": false, \"x\"", "key \"do_basic_tokenize\""},
        {"tokenizer_config.json", "\"tokenizer_class\"", "\"never_split\": [\"a\"], \"x\"", "key \"never_split\""},
        {"tokenizer_config.json", "\"do_lower_case\": true", "\"do_lower_case\": 1", "key \"do_lower_case\""},
        {"tokenizer_config.json", "\"[UNK]\"", "\"<unk>\"", "has no \"<unk>\", the unknown token"},
        {"config.json", "absolute", "relative_key", "key \"position_embedding_type\": \"relative_key\""},
        {"config.json", "\"vocab_size\": 42", "\"vocab_size\": 41", "vocab.txt has 42 tokens, the model in"},
        {"config.json", "\"vocab_size\": 42", "\"vocab_size\": 43", "vocab.txt has 42 tokens, the model in"},
        {"config.json", "\"hidden_size\": 12", "\"hidden_size\": 24", "it pools vectors of 12 numbers, the model's have 24"},
        {"config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "16 missing: encoder.layer.2.attention.self.query.weight"},
        {"config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "16 unexpected: encoder.layer.1."},
        {"config.json", "\"intermediate_size\": 20", "\"intermediate_size\": 21",
         "encoder.layer.0.intermediate.dense.weight [20,12] instead"},
    };
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        copy_folder();
        replace(bad[i].file, bad[i].from, bad[i].to);
        ck_refused_folder(strstr(bad[i].message, "is missing") ? WF_ERR_IO : WF_ERR_FORMAT, bad[i].message);
        remove_test_files();
    }
    copy_folder();
    put_text("modules.json", "{}");
    ck_refused_folder(WF_ERR_FORMAT, "not a list of modules");
    put_text("modules.json", "[{\"type\": \"Transformer\"}]");
    ck_refused_folder(WF_ERR_FORMAT, "not a list of modules");
    put_text("modules.json", "[1, 2]");
    ck_refused_folder(WF_ERR_FORMAT, "an object is expected, not");
    unlink(at("modules.json"));
    put_text("tokenizer_config.json", "[]");
    ck_refused_folder(WF_ERR_FORMAT, "an object is expected, not");
    remove_test_files();
    copy_folder();
    put_text("config_sentence_transformers.json", "{\"prompts\": {\"query\": \"q: \"}, \"default_prompt_name\": \"query\"}");
    ck_refused_folder(WF_ERR_FORMAT, "key \"default_prompt_name\"");
}
END_TEST

START_TEST(files_that_are_missing)
{
    copy_folder();
    unlink(at("model.safetensors"));
    ck_refused_folder(WF_ERR_IO, "model.safetensors is missing");
    put_text("pytorch_model.bin", "x");
    ck_refused_folder(WF_ERR_IO, "pytorch_model.bin is not supported: save the model as safetensors");
    put_text("model.safetensors.index.json", "{}");
    ck_refused_folder(WF_ERR_FORMAT, "model.safetensors.index.json: it has no \"weight_map\"");
    unlink(at("vocab.txt"));
    ck_refused_folder(WF_ERR_IO, "has no tokenizer: tokenizer.json and vocab.txt are both missing");
    unlink(at("config.json"));
    ck_refused_folder(WF_ERR_IO, "config.json");
}
END_TEST

/* An embedding padded to a multiple of 8: the tokenizer has a few types less. */
START_TEST(a_padded_vocabulary)
{
    struct wf_run run;
    copy_folder();
    wf_error problem = {0};
    wf_safetensors *file = wf_safetensors_open(at("model.safetensors"), &problem);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    float *data[64];
    int64_t count = wf_safetensors_count(file);
    for (int64_t i = 0; i < count; i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        bool words = strcmp(e->name, "embeddings.word_embeddings.weight") == 0;
        data[i] = calloc((size_t)e->count + 6 * D, sizeof(float));
        ck_ok(wf_safetensors_read(file, e->name, WF_F32, data[i], e->count, error));
        wf_array a = wf_array_contiguous(data[i], WF_F32, words ? WF_SHAPE(48, D) : &e->shape);
        wf_safetensors_put(w, e->name, &a);
    }
    wf_safetensors_close(file);
    ck_ok(wf_safetensors_commit(w, at("model.safetensors"), error));
    for (int64_t i = 0; i < count; i++)
        free(data[i]);
    replace("config.json", "\"vocab_size\": 42", "\"vocab_size\": 48");
    ck_ok(wf_run_open(&run, test_folder, NULL, error));
    ck_assert_int_eq(wf_tokenizer_vocab_size(run.tokenizer), 42);
    wf_run_close(&run);
}
END_TEST

/* Small files with changed bytes, or cut off: a run, or an error of one line; no memory is lost. */
START_TEST(damage)
{
    int64_t live = wf_alloc_live();
    int good = 0, refused = 0;
    wf_rng rng = wf_rng_new(11, 1);
    copy_folder();
    for (int i = 0; i < 250; i++) {
        const char *name = files[wf_rng_below(&rng, FILES)];
        struct wf_run run;
        wf_error e = {0};
        int64_t bytes;
        char *text = content(at(name), &bytes);
        char *copy = malloc((size_t)bytes);
        memcpy(copy, text, (size_t)bytes);
        int64_t length = wf_rng_below(&rng, 4) ? bytes : (int64_t)wf_rng_below(&rng, (uint64_t)bytes);
        for (uint64_t n = wf_rng_below(&rng, 3); length > 0 && n > 0; n--)
            copy[wf_rng_below(&rng, (uint64_t)(length < 2000 ? length : 2000))] = (char)wf_rng_below(&rng, 256);
        put(name, copy, length);
        if (wf_run_open(&run, test_folder, NULL, &e) == WF_OK) {
            wf_run_close(&run);
            good++;
        } else {
            ck_assert_msg(e.message[0] && !strchr(e.message, '\n'), "%s", e.message);
            refused++;
        }
        put(name, text, bytes);
        free(copy);
        wf_free(text);
    }
    ck_assert_msg(good > 20 && refused > 60, "%d good, %d refused", good, refused);
    ck_assert_int_eq(wf_alloc_live(), live);
}
END_TEST

/* Known values of a real model: the first numbers of three sentences' vectors, by transformers 5.23.0 in float64. */
START_TEST(minilm)
{
    static const struct {
        const char *text;
        double value[4];
    } known[] = {
        {"The old dog sleeps under the table while it rains outside.", {0.018585697, 0.005029515, 0.042891650, 0.090726178}},
        {"Wie viele Flaschen Wasser brauchen wir für die Wanderung?", {-0.007477555, 0.055386950, -0.036181648, 0.067575438}},
        {"一个穿红色外套的孩子在海滩上追风筝。", {0.019886504, 0.070140372, 0.054189692, -0.014764551}},
    };
    const char *name = getenv("WEFT_MINILM"), *line[3];
    int64_t length[3];
    struct wf_run run;
    wf_error problem = {0};
    static wf_real out[3 * 384];
    if (!name) {
        fprintf(stderr, "skipped: WEFT_MINILM names no folder of all-MiniLM-L6-v2\n");
        return;
    }
    ck_ok(wf_run_open(&run, name, NULL, error));
    ck_assert(run.embed.pooling == WF_POOL_MEAN && run.embed.normalize && run.embed.max_length == 256);
    ck_assert_int_eq(wf_registry_parameters(wf_model_registry(run.model)), 22565376);
    wf_embedder *e = wf_embedder_new(run.model, run.tokenizer, &run.embed, &problem);
    ck_assert_msg(e != NULL, "%s", problem.message);
    for (int i = 0; i < 3; i++)
        length[i] = (int64_t)strlen(line[i] = known[i].text);
    ck_ok(wf_embed(e, line, length, 3, 1, out, NULL, error));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            ck_assert_msg(fabs((double)out[i * 384 + j] - known[i].value[j]) < 1e-6, "%d, %d: %g", i, j, (double)out[i * 384 + j]);
    wf_embedder_free(e);
    wf_run_close(&run);
}
END_TEST

WF_TEST_MAIN("train/hugging_face", a_folder_is_a_run, weights_in_bf16, mapped_weights, how_vectors_are_made, settings_of_the_tokenizer,
             unsupported_settings_are_refused, files_that_are_missing, a_padded_vocabulary, damage, minilm)

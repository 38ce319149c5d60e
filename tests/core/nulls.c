/* SPDX-License-Identifier: MIT */
/* Public functions given NULL where a pointer is needed. Each row is a prototype: a string is an argument that may not be NULL, by its
 * name. The function is called once for each string of its row, with NULL for this argument, and GIVEN, at which it does not look, for the
 * others. */
#include <math.h>

#include <weft/weft.h>

#include "check_weft.h"

static _Alignas(64) char given[1 << 16];
#define GIVEN ((void *)given)

/* The row in work: the names that were NULL in its calls, the last in this call, and whether a name is left for another call. */
static struct row {
    int calls;
    bool more;
    const char *null[9];
} row;

static bool next_call(void)
{
    bool more = row.more;
    row.more = false;
    row.calls++;
    return more;
}

/* In any order of a call's arguments. */
static bool is_null(const char *name)
{
    for (int i = 0; i < row.calls; i++)
        if (row.null[i] == name)
            return false;
    if (row.null[row.calls])
        row.more = true;
    else
        row.null[row.calls] = name;
    return row.null[row.calls] == name;
}

static void *pointer(const char *name)
{
    return is_null(name) ? NULL : given;
}

static void says(const char *function, bool refused, const wf_error *error)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %s is NULL", function, row.null[row.calls]);
    ck_assert_msg(refused, "not refused: %s", text);
    ck_assert_msg(error->code == WF_ERR_ARGUMENT && strcmp(error->message, text) == 0, "not '%s', but '%s'", text, error->message);
}

/* clang-format off */
#define ARGUMENT(a) _Generic((a), char *: pointer(_Generic((a), char *: (a), default: NULL)), default: (a))
#define A1(a) ARGUMENT(a)
#define A2(a, ...) ARGUMENT(a), A1(__VA_ARGS__)
#define A3(a, ...) ARGUMENT(a), A2(__VA_ARGS__)
#define A4(a, ...) ARGUMENT(a), A3(__VA_ARGS__)
#define A5(a, ...) ARGUMENT(a), A4(__VA_ARGS__)
#define A6(a, ...) ARGUMENT(a), A5(__VA_ARGS__)
#define A7(a, ...) ARGUMENT(a), A6(__VA_ARGS__)
#define A8(a, ...) ARGUMENT(a), A7(__VA_ARGS__)
#define A9(a, ...) ARGUMENT(a), A8(__VA_ARGS__)
#define PICK(a, b, c, d, e, f, g, h, i, pick, ...) pick
#define ARGUMENTS(...) PICK(__VA_ARGS__, A9, A8, A7, A6, A5, A4, A3, A2, A1, )(__VA_ARGS__)
#undef _mark_point /* a crash is reported with the line of its row */
#define EACH_CALL for (row = (struct row){-1, true}; mark_point(), next_call();)

/* Functions with an error, which return a status or NULL. */
#define REFUSES(function, ...) \
    EACH_CALL { \
        wf_error error = {0}; \
        __auto_type result = function(ARGUMENTS(__VA_ARGS__), &error); \
        says(#function, (uintptr_t)result == _Generic(result, wf_status: WF_ERR_ARGUMENT, default: 0), &error); \
    }
/* Functions without an error do nothing, and return this. */
#define GIVES(result, function, ...) \
    EACH_CALL ck_assert_msg(function(ARGUMENTS(__VA_ARGS__)) == result, "%s without %s", #function, row.null[row.calls])
#define NONE(...) GIVES(0, __VA_ARGS__)
#define SILENT(function, ...) EACH_CALL function(ARGUMENTS(__VA_ARGS__))
/* Functions whose error is the tape's. */
#define ON_TAPE(done, function, ...) \
    EACH_CALL { \
        begin(); \
        bool refused = done(function(ARGUMENTS(__VA_ARGS__))); \
        says(#function, refused, wf_tape_error(tape)); \
    }
#define POISON(...) ON_TAPE(wf_is_poison, __VA_ARGS__)
#define DONE(call) ((call), true)
/* clang-format on */

START_TEST(io)
{
    REFUSES(wf_events_open, "folder", 1);
    REFUSES(wf_events_scalar, "events", "tag", 1, 1, 1);
    REFUSES(wf_events_text, "events", "tag", 1, 1, "text");
    REFUSES(wf_file_load, "path", 1, GIVEN);
    REFUSES(wf_file_save, "path", "data", 1);
    REFUSES(wf_folder_make, "path");
    REFUSES(wf_npy_save, "path", "array");
    REFUSES(wf_npy_load, "path");
    REFUSES(wf_npy_view, "data", 1, "label");
    REFUSES(wf_safetensors_open_with, "path", GIVEN);
    REFUSES(wf_safetensors_view, "data", 1, "label");
    REFUSES(wf_safetensors_read, "file", "name", 0, "dst", 1);
    REFUSES(wf_safetensors_read_range, "file", "name", 0, 0, "dst", 1);
    REFUSES(wf_safetensors_commit, GIVEN, "path");
    SILENT(wf_events_close, "events");
    NONE(wf_file_exists, "path");
    NONE(wf_folder_exists, "path");
    SILENT(wf_safetensors_close, "file");
    NONE(wf_safetensors_count, "file");
    NONE(wf_safetensors_at, "file", 1);
    NONE(wf_safetensors_find, "file", "name");
    NONE(wf_safetensors_data, "file", "entry");
    NONE(wf_safetensors_metadata, "file", "key");
    NONE(wf_safetensors_metadata_at, "file", 1, GIVEN, GIVEN);
    SILENT(wf_safetensors_discard, "writer");
}
END_TEST

START_TEST(text)
{
    REFUSES(wf_detokenize, "text", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_train_with, "text", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_train_files_with, "paths", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_load, "path", "out");
    REFUSES(wf_tokenizer_extend, "tokenizer", "tokens", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_parse, "json", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_load_vocab_with, "path", GIVEN, "out");
    REFUSES(wf_tokenizer_save, "tokenizer", "path");
    REFUSES(wf_tokenizer_json, "tokenizer", "out");
    REFUSES(wf_token_cache_new, "tokenizer", 1);
    REFUSES(wf_tokenizer_encode_with, "tokenizer", "text", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_encode, "tokenizer", "text", 1, "out");
    REFUSES(wf_tokenizer_decode_with, "tokenizer", "ids", 1, GIVEN, "out");
    REFUSES(wf_tokenizer_decode, "tokenizer", "ids", 1, "out");
    REFUSES(wf_decoder_new, "tokenizer", GIVEN);
    REFUSES(wf_decoder_push, "decoder", 1, "text", "length");
    REFUSES(wf_decoder_finish, "decoder", "text", "length");
    SILENT(wf_tokens_free, "tokens");
    SILENT(wf_tokenizer_free, "tokenizer");
    GIVES(WF_TOKENIZER_CHAR, wf_tokenizer_kind_of, "tokenizer");
    NONE(wf_tokenizer_kind_parse, "name", "out");
    NONE(wf_tokenizer_hash, "tokenizer");
    GIVES(-1, wf_tokenizer_special, "tokenizer", 0);
    NONE(wf_tokenizer_vocab_size, "tokenizer");
    NONE(wf_tokenizer_token, "tokenizer", 1, GIVEN);
    GIVES(-1, wf_tokenizer_id, "tokenizer", "piece", 1);
    SILENT(wf_token_cache_free, "cache");
    SILENT(wf_decoder_free, "decoder");
    NONE(wf_tokenizer_gives_text, "tokenizer");
}
END_TEST

START_TEST(data)
{
    REFUSES(wf_crops_init, "crops", (struct wf_id_view){0}, 1, 1);
    REFUSES(wf_epochs_init_with, "epochs", 1, 1, 1, NULL);
    REFUSES(wf_rows_copy, "array", "rows", 1, WF_REAL, "out");
    REFUSES(wf_text_lines_open_with, "lines", "path", NULL);
    REFUSES(wf_windows_init, "windows", (struct wf_id_view){0}, 1, 1);
    REFUSES(wf_bitext_open, "source", "target", "options", "out");
    REFUSES(wf_bitext_text, "bitext", 1, 1, "out");
    REFUSES(wf_pair_batches_new, "bitext", GIVEN, "out");
    REFUSES(wf_pair_batches_seek, "batches", 1, 1);
    REFUSES(wf_pair_batches_next, "batches", "pairs");
    REFUSES(wf_text_ids_open, "paths", 1, "options", "out");
    REFUSES(wf_corpus_open, "train", 1, GIVEN, 1, 1, "options", "out");
    REFUSES(wf_tokenizer_train_cached, "paths", 1, GIVEN, GIVEN, GIVEN, "out");
    REFUSES(wf_cache_folder, "folder");
    REFUSES(wf_masking_init, "masking", "tokenizer", 1, 1);
    REFUSES(wf_masking_frame, "masking", 1, 1, "ids");
    SILENT(wf_crops_fill, "crops", 1, 1, 1, "x", GIVEN);
    NONE(wf_crops_start, "crops", 1, 1);
    NONE(wf_epochs_batch, "epochs", 1, "rows");
    NONE(wf_epochs_steps, "epochs");
    NONE(wf_epochs_epoch, "epochs", 1);
    GIVES(-1, wf_epochs_item, "epochs", 1, 1);
    SILENT(wf_text_lines_close, "lines");
    NONE(wf_text_lines_at, "lines", 0, NULL);
    SILENT(wf_windows_limit, "windows", 1);
    NONE(wf_windows_next, "windows", "batch");
    SILENT(wf_windows_free, "windows");
    SILENT(wf_bitext_close, "bitext");
    NONE(wf_bitext_survey, "bitext");
    SILENT(wf_bitext_lengths, "bitext", 1, "source", "target");
    GIVES(GIVEN, wf_bitext_describe, "survey", GIVEN, 1);
    SILENT(wf_bitext_describe, GIVEN, "text", 1);
    SILENT(wf_pair_batches_free, "batches");
    SILENT(wf_pair_batches_place, "batches", "epoch", "index");
    NONE(wf_pair_batches_count, "batches");
    NONE(wf_pair_batches_index, "batches");
    SILENT(wf_pair_batches_part, "batches", 1, 1, "pairs");
    SILENT(wf_text_ids_close, "ids");
    SILENT(wf_corpus_close, "corpus");
    SILENT(wf_masking_free, "masking");
    NONE(wf_masking_hide, "masking", 1, 1, 1, 1, "ids", "places", "targets");
    NONE(wf_masking_ordinary, "masking", (struct wf_id_view){0});
    SILENT(wf_scans_free, "scans");
}
END_TEST

START_TEST(score)
{
    REFUSES(wf_bleu_new, GIVEN, "out");
    REFUSES(wf_bleu_add, "bleu", (struct wf_segment){0}, "references", 1);
    REFUSES(wf_bleu_result, "bleu", "out");
    REFUSES(wf_bleu_corpus, (struct wf_segments){0}, "references", 1, GIVEN, "out");
    REFUSES(wf_chrf_new, GIVEN, "out");
    REFUSES(wf_chrf_add, "chrf", (struct wf_segment){0}, "references", 1);
    REFUSES(wf_chrf_result, "chrf", "out");
    REFUSES(wf_chrf_corpus, (struct wf_segments){0}, "references", 1, GIVEN, "out");
    REFUSES(wf_score_files, GIVEN, "references", 1, GIVEN, GIVEN);
    NONE(wf_bleu_tokenizer_parse, "name", "out");
    NONE(wf_bleu_smooth_parse, "name", "out");
    SILENT(wf_bleu_free, "bleu");
    SILENT(wf_bleu_reset, "bleu");
    GIVES(GIVEN, wf_bleu_line, "score", false, 1, GIVEN, 1);
    SILENT(wf_bleu_line, GIVEN, false, 1, "text", 1);
    SILENT(wf_chrf_free, "chrf");
    SILENT(wf_chrf_reset, "chrf");
    GIVES(GIVEN, wf_chrf_line, "score", false, 1, GIVEN, 1);
    SILENT(wf_chrf_line, GIVEN, false, 1, "text", 1);
}
END_TEST

START_TEST(autograd)
{
    REFUSES(wf_check_function, "fn", GIVEN, 1, "shapes", GIVEN, GIVEN);
    REFUSES(wf_check_op, "op", GIVEN);
    REFUSES(wf_check_case, "op", "c", GIVEN);
}
END_TEST

START_TEST(optim)
{
    REFUSES(wf_clip_norm_of, "grads", 1, 1, GIVEN);
    REFUSES(wf_adam_init_with, "opt", "registry", "options");
    REFUSES(wf_sgd_init_with, "opt", "registry", "options");
    REFUSES(wf_lion_init_with, "opt", "registry", "options");
    REFUSES(wf_adafactor_init_with, "opt", "registry", "options");
    REFUSES(wf_muon_init_with, "opt", "registry", "options");
    REFUSES(wf_optimizer_group_where, "opt", "match", GIVEN, "options");
    REFUSES(wf_optimizer_add, "opt", "registry", GIVEN);
    REFUSES(wf_optimizer_group_with, "opt", "pattern", GIVEN);
    REFUSES(wf_optimizer_only, "opt", "match", GIVEN);
    REFUSES(wf_optimizer_init_with, "opt", "registry", "rule", GIVEN, "options");
    REFUSES(wf_optimizer_rule_check, "rule");
    REFUSES(wf_optimizer_step, "opt");
    REFUSES(wf_optimizer_load, "opt", "file", GIVEN);
    ck_assert(isnan(wf_grad_norm_of(NULL, 1)));
    ck_assert(isnan(wf_schedule_lr(NULL, 1)));
    SILENT(wf_optimizer_free, "opt");
    SILENT(wf_optimizer_decay_matrices_only, "opt");
    SILENT(wf_optimizer_save, "opt", "writer", GIVEN);
}
END_TEST

/* --- models -------------------------------------------------------------------------------------------------------- */

static wf_tape *tape;
static wf_tensor *operand;

static void begin(void)
{
    wf_tape_reset(tape, WF_INFER);
    operand = wf_ids(tape, (int32_t[]){0}, 1, 1);
}

static wf_tensor *tensor(const char *name)
{
    return is_null(name) ? NULL : operand;
}

#define PACKED(name) ((struct wf_packed){pointer(name), 1})

START_TEST(models)
{
    tape = wf_tape_new(NULL);
    begin();
    REFUSES(wf_config_preset, "config", "name");
    REFUSES(wf_config_defaults, "config", "family");
    REFUSES(wf_config_set, "config", "key", "value");
    REFUSES(wf_config_set_all, "config", "settings");
    REFUSES(wf_config_check, "config");
    REFUSES(wf_config_save, "config", "path");
    REFUSES(wf_config_load, "config", "path");
    REFUSES(wf_config_load_over, "config", "path");
    POISON(wf_encoder_forward_with, "model", tensor("ids"), GIVEN);
    POISON(wf_encoder_logits_with, "model", tensor("ids"), GIVEN);
    POISON(wf_encoder_loss_with, "model", tensor("ids"), GIVEN, "places", "targets", 1, GIVEN);
    REFUSES(wf_family_register, "family");
    REFUSES(wf_family_find, "name");
    REFUSES(wf_family_check, "family");
    REFUSES(wf_key_conflict, "key", 1, "rule", "other", 1);
    REFUSES(wf_optimizer_register, "kind");
    REFUSES(wf_model_new, "config");
    REFUSES(wf_model_new_with, "config", GIVEN);
    REFUSES(wf_model_load, "model", "file");
    REFUSES(wf_model_load_with, "model", "file", GIVEN);
    POISON(wf_model_logits, "model", tensor("ids"), GIVEN);
    POISON(wf_model_attention, "model", tensor("ids"), "weights");
    POISON(wf_model_next, "model", tensor("ids"), GIVEN);
    POISON(wf_model_loss_with, "model", tensor("ids"), tensor("targets"), GIVEN);
    REFUSES(wf_model_cache, "model", "cache", 1);
    REFUSES(wf_cache_view, "view", "cache", 0, 1);
    REFUSES(wf_cache_copy, "to", "from");
    REFUSES(wf_cache_copy_row, "cache", 0, 0, 0);
    REFUSES(wf_model_cache_with, "model", "cache", 1, GIVEN);
    POISON(wf_pairs_logits, "model", tape, "pairs", GIVEN);
    POISON(wf_pairs_loss_with, "model", tape, "pairs", GIVEN);
    POISON(wf_model_encode, "model", tape, "ids", PACKED("source.offsets"));
    ON_TAPE(DONE, wf_model_memory, "model", tensor("memory"), "kv");
    POISON(wf_model_decode, "model", tensor("ids"), "cache", "kv", PACKED("translations.offsets"), PACKED("source.offsets"));
    ck_assert_str_eq(wf_config_family(NULL), "");
    SILENT(wf_config_set_vocab, "config", 1, 1);
    NONE(wf_config_get, "config", "key", "text", 1);
    GIVES(WF_MODEL_LANGUAGE, wf_config_kind, "config");
    NONE(wf_config_read_only, "config");
    SILENT(wf_config_shape, "config");
    NONE(wf_config_key_at, "config", 1, "out");
    NONE(wf_config_section_key, "section", 1, "out");
    SILENT(wf_model_free, "model");
    NONE(wf_model_registry, "model");
    NONE(wf_model_config, "model");
    GIVES(WF_MODEL_LANGUAGE, wf_model_kind_of, "model");
    NONE(wf_model_shape_of, "model");
    wf_tape_free(tape);
}
END_TEST

START_TEST(infer)
{
    REFUSES(wf_average, "folder", 1, "out", GIVEN);
    REFUSES(wf_run_convert, "from", "to", GIVEN, GIVEN);
    REFUSES(wf_embedder_new, "model", "tokenizer", GIVEN);
    REFUSES(wf_embed, "embedder", "lines", "lengths", 1, 1, "out", GIVEN);
    REFUSES(wf_cosines, "x", 1, 1, 1, 1, "out");
    REFUSES(wf_sample, "sampler", "logits", 1, 1, "order", "id");
    REFUSES(wf_penalize, "sampler", "logits", 1, "ids", 1, 1, "times");
    REFUSES(wf_generator_new, "model", "tape", GIVEN);
    REFUSES(wf_generator_add, "generator", "prompt", 1, "options");
    REFUSES(wf_generator_add_text, "generator", "tokenizer", "prompt", 1, "options", "text", GIVEN);
    REFUSES(wf_generator_step, "generator");
    REFUSES(wf_generate_with, "model", "tape", "prompt", 1, "options", GIVEN, "count");
    REFUSES(wf_generate_text, "model", "tokenizer", "tape", GIVEN, 1, "options", "text", GIVEN);
    REFUSES(wf_chat_template_named, "name", GIVEN, GIVEN);
    REFUSES(wf_chat_template_parse, "jinja", 1, GIVEN, GIVEN, "where");
    REFUSES(wf_chat_template_load, "folder", GIVEN);
    REFUSES(wf_chat_render, "form", "messages", 1, "out");
    REFUSES(wf_chat_encode, "form", "tokenizer", "messages", 1, "out");
    REFUSES(wf_chat_new, "run", "form", GIVEN);
    REFUSES(wf_chat_answer, "chat", "text", 1, NULL, NULL, NULL);
    REFUSES(wf_chat_set_system, "chat", GIVEN);
    REFUSES(wf_run_open, "run", "folder", GIVEN);
    REFUSES(wf_run_open_with, "run", "folder", NULL);
    REFUSES(wf_run_bitext, "run", "source", "target", GIVEN, "out");
    REFUSES(wf_model_evaluate, "model", "tape", (struct wf_id_view){0}, 1, "out");
    REFUSES(wf_evaluate_windows, "model", "tape", (struct wf_id_view){0}, GIVEN, "out");
    REFUSES(wf_evaluate_pairs, "model", "tape", "bitext", 1, 1, "out");
    REFUSES(wf_evaluate_masked, "model", "tokenizer", "tape", (struct wf_id_view){0}, 1, "out");
    REFUSES(wf_evaluate_choices, "model", "tokenizer", "tape", "questions", 1, GIVEN, "out");
    REFUSES(wf_questions_load, "path", "out");
    SILENT(wf_questions_free, "questions");
    NONE(wf_choice_best, "question", "log_likelihood", 1);
    REFUSES(wf_evaluate_translation, "run", "source", "target", GIVEN, GIVEN, GIVEN, "out");
    REFUSES(wf_generate_next, "model", "tape", "prompt", 1, "options", GIVEN, "count");
    REFUSES(wf_beam_search_with, "model", "tape", "prompt", 1, GIVEN, "out");
    REFUSES(wf_translate_with, "model", "tape", "ids", "offsets", 1, 1, 1, GIVEN, "out");
    REFUSES(wf_translator_new, "model", GIVEN, GIVEN, GIVEN);
    REFUSES(wf_translator_lines, "translator", "text", 1, "out");
    SILENT(wf_embedder_free, "embedder");
    NONE(wf_embedder_width, "embedder");
    SILENT(wf_run_close, "run");
    SILENT(wf_hypotheses_free, "hypotheses");
    SILENT(wf_translations_free, "translations");
    SILENT(wf_translator_free, "translator");
    SILENT(wf_translator_counts, "translator");
}
END_TEST

START_TEST(train)
{
    REFUSES(wf_fit_get_int, "state", "name", "value");
    REFUSES(wf_fit_get_array, "state", "name", 0, "out", 1);
    REFUSES(wf_train, "options", GIVEN);
    REFUSES(wf_train_from, "from", "config");
    REFUSES(wf_train_config, "folder", "config", GIVEN);
    SILENT(wf_fit_put_int, "state", "name", 1);
    SILENT(wf_fit_put_array, "state", "name", "array");
}
END_TEST

START_TEST(report)
{
    REFUSES(wf_attention_of, "run", "request", "maps");
    REFUSES(wf_attention_check_head, "maps", "map", (struct wf_head){0});
    REFUSES(wf_attention_draw, "maps", "map", GIVEN, 1, "path");
    REFUSES(wf_attention_save_json, "maps", "map", GIVEN, "path");
    REFUSES(wf_attention_save_html, "maps", GIVEN, "path");
    REFUSES(wf_plot_save, "runs", 1, GIVEN, "path");
    REFUSES(wf_plot_text, "runs", 1, GIVEN, "out");
    SILENT(wf_attention_free, "maps");
    NONE(wf_attention_find, "maps", 0);
}
END_TEST

WF_TEST_MAIN("nulls", io, text, data, score, autograd, optim, models, infer, train, report)

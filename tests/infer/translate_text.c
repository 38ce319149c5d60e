/* SPDX-License-Identifier: MIT */
/* Lines of text through a translator: the same result as with ids by hand, for any division into calls; valid and invalid lines. */
#include "../models/memory_test.h"
#include "translate_test.h"
#include <weft/detokenize.h>

static const char words[] = "red green blue one two three four five six seven eight nine ten house , . !";

static wf_tokenizer *word_tokenizer(const char *const *specials, int64_t count)
{
    wf_tokenizer *t = NULL;
    ck_ok(wf_tokenizer_train(words, (int64_t)strlen(words), &t, error, .kind = WF_TOKENIZER_WORD, .specials = specials,
                             .special_count = count));
    return t;
}

struct setting {
    wf_tokenizer *source, *target;
    struct wf_config config;
    wf_model *model;
    wf_tape *tape;
};

static void setting_make(struct setting *s, bool marks, bool unknown)
{
    static const char *const specials[] = {"<bos>", "<pad>", "<eos>", "<unk>"};
    s->source = word_tokenizer(specials, unknown ? 4 : 3);
    s->target = word_tokenizer(specials, 3); /* BOS and EOS of translate_test.h */
    s->config = pairs_config("seq2seq-tiny", wf_tokenizer_vocab_size(s->target));
    set_key(&s->config, "source_vocab_size", wf_tokenizer_vocab_size(s->source));
    set_key(&s->config, "source_bos", set_key(&s->config, "source_eos", marks));
    s->config.generation.beam = 3;
    s->model = decided_model(&s->config, 3, 2);
    s->tape = new_tape();
}

static void setting_free(struct setting *s)
{
    wf_tokenizer_free(s->source);
    wf_tokenizer_free(s->target);
    wf_model_free(s->model);
    wf_tape_free(s->tape);
}

static wf_translator *translator_of(const struct setting *s, struct wf_translator_options o)
{
    return new_translator(s->model, s->source, s->target, o);
}

static void lines_of(wf_translator *t, const char *text, struct wf_line_translations *out)
{
    ck_ok(wf_translator_lines(t, text, (int64_t)strlen(text), out, error));
}

/* The expected translation of a line: its ids with special tokens through wf_translate, decoded. */
static void by_hand(const struct setting *s, const char *line, bool keep_tokens, int most, struct wf_string *text, double *score)
{
    struct wf_tokens ids = {0}, all = {0};
    struct wf_string tokens = {0};
    struct wf_translations t;
    int32_t packed[100], n = 0, offsets[2] = {0};
    ck_ok(wf_tokenizer_encode(s->source, line, (int64_t)strlen(line), &ids, error));
    int32_t marks = 2 * key_of(&s->config, "source_bos");
    if (key_of(&s->config, "source_bos"))
        packed[n++] = BOS;
    for (int i = 0; i < ids.count && i < most - marks; i++)
        packed[n++] = ids.id[i];
    if (key_of(&s->config, "source_eos"))
        packed[n++] = EOS;
    offsets[1] = n;
    ck_ok(wf_translate(s->model, s->tape, packed, offsets, 1, BOS, EOS, &t, error));
    text->length = 0;
    ck_ok(wf_tokenizer_decode(s->target, t.hypothesis->ids, t.hypothesis->length, &tokens, error));
    if (tokens.length == 0)
        ;
    else if (keep_tokens)
        ck_ok(wf_tokenizer_decode(s->target, t.hypothesis->ids, t.hypothesis->length, text, error));
    else
        ck_ok(wf_detokenize(tokens.data, tokens.length, NULL, text, error));
    *score = t.hypothesis->score;
    wf_translations_free(&t);
    wf_tokens_free(&ids);
    wf_tokens_free(&all);
    wf_string_free(&tokens);
}

static void ck_line(const struct wf_line_translation *l, const struct wf_string *text, double score)
{
    ck_assert_ptr_nonnull(l->text);
    ck_assert_int_eq((int64_t)strlen(l->text), l->length);
    ck_assert_int_eq(l->length, text->length);
    ck_assert_str_eq(l->text, text->length ? text->data : "");
    ck_assert(l->score == score);
}

static const char *const lines[] = {
    "red house .", "one two three , four !", "ten ten ten", "six", "blue green red , nine eight seven .", "five house five house",
    "!",           "two , two , two"};
enum { LINES = sizeof lines / sizeof *lines };

START_TEST(equals_ids_by_hand)
{
    int different = 0;
    for (int round = 0; round < 4; round++) {
        struct setting s;
        setting_make(&s, round % 2, false);
        struct wf_string text = {0};
        struct wf_line_translations out;
        char all[1000] = "", crlf[1000] = "\xEF\xBB\xBF";
        for (int i = 0; i < LINES; i++) {
            strcat(strcat(all, lines[i]), "\n");
            strcat(strcat(strcat(crlf, i % 2 ? "\xC2\xA0 " : "\t"), lines[i]), i == LINES - 1 ? "\xE3\x80\x80" : " \r\n");
        }
        for (int form = 0; form < 3; form++) { /* all at once, with other white space, and line by line */
            wf_translator *t = translator_of(&s, (struct wf_translator_options){.keep_tokens = round / 2, .search.batch = form});
            if (form < 2)
                lines_of(t, form ? crlf : all, &out);
            for (int i = 0; i < LINES; i++) {
                double score;
                by_hand(&s, lines[i], round / 2, 20, &text, &score);
                if (form == 2)
                    lines_of(t, lines[i], &out);
                ck_assert_int_eq(out.count, form < 2 ? LINES : 1);
                ck_assert_int_eq(out.n_best, 1);
                ck_line(&out.translation[form < 2 ? i : 0], &text, score);
                different += text.length > 0 && strcmp(text.data, lines[i]) != 0;
            }
            struct wf_translator_counts c = wf_translator_counts(t);
            ck_assert_int_eq(c.lines, LINES);
            ck_assert_int_eq(c.tokens, 3 + 6 + 3 + 1 + 8 + 4 + 1 + 5);
            ck_assert_int_eq(c.empty + c.unknown + c.truncated, 0);
            wf_translator_free(t);
        }
        wf_string_free(&text);
        setting_free(&s);
    }
    ck_assert_int_gt(different, 20);
}
END_TEST

START_TEST(empty_lines_stay_empty)
{
    struct setting s;
    setting_make(&s, true, false);
    wf_translator *t = translator_of(&s, (struct wf_translator_options){.search.n_best = 2});
    struct wf_line_translations out;
    lines_of(t, "\nred\n \t\r\n\xC2\xA0\xE2\x80\x83\nblue\n\r\n", &out);
    ck_assert_int_eq(out.count, 6);
    ck_assert_int_eq(out.n_best, 2);
    for (int i = 0; i < 6; i++) {
        const struct wf_line_translation *l = &out.translation[2 * i];
        bool empty = i != 1 && i != 4;
        ck_assert_ptr_nonnull(l[0].text);
        ck_assert((l[0].length == 0 && l[0].score == 0 && !l[1].text) == empty);
        ck_assert(empty || (l[1].text && l[0].score >= l[1].score));
    }
    ck_assert_int_eq(wf_translator_counts(t).empty, 4);
    ck_assert_int_eq(wf_translator_counts(t).lines, 6);
    ck_ok(wf_translator_lines(t, "", 0, &out, error));
    ck_assert_int_eq(out.count, 0);
    lines_of(t, "\n", &out); /* nothing to translate at all */
    ck_assert_int_eq(out.count, 1);
    ck_assert_str_eq(out.translation[0].text, "");
    wf_translator_free(t);
    setting_free(&s);
}
END_TEST

START_TEST(long_lines)
{
    struct setting s;
    struct wf_string text = {0};
    struct wf_line_translations out;
    double score;
    char longest[500] = "", longer[500] = "", all[1200];
    for (int i = 0; i < 18; i++) /* with the marks, 20 */
        strcat(strcat(longest, i ? " " : ""), i % 3 ? "one" : "two");
    strcat(strcat(longer, longest), " red blue");
    setting_make(&s, true, false);
    snprintf(all, sizeof all, "%s\nred\n%s\nblue\n", longest, longer);
    wf_translator *t = translator_of(&s, (struct wf_translator_options){.name = "a.txt"});
    lines_of(t, longest, &out);
    ck_fails(wf_translator_lines(t, all, (int64_t)strlen(all), &out, error), WF_ERR_FORMAT,
             "a.txt:4: the line has 22 ids, more than the maximum of 20");
    ck_assert_int_eq(out.count, 2); /* the lines before it */
    ck_assert_int_eq(wf_translator_counts(t).lines, 3);
    ck_assert_int_eq(wf_translator_counts(t).tokens, 18 + 18 + 1);
    ck_assert_int_eq(wf_translator_counts(t).truncated, 0);
    wf_translator_free(t);
    t = translator_of(&s, (struct wf_translator_options){.truncate = true});
    lines_of(t, all, &out);
    ck_assert_int_eq(out.count, 4);
    by_hand(&s, longer, false, 20, &text, &score);
    ck_line(&out.translation[2], &text, score);
    ck_line(&out.translation[0], &text, score); /* its rest is the same line */
    ck_assert_int_eq(wf_translator_counts(t).truncated, 1);
    ck_assert_int_eq(wf_translator_counts(t).tokens, 18 + 1 + 18 + 1);
    wf_translator_free(t);
    wf_string_free(&text);
    setting_free(&s);
}
END_TEST

START_TEST(invalid_text)
{
    static const struct {
        const char *bytes;
        int64_t length;
        const char *place;
    } cases[] = {
        {"red\nblue\xFF\n", 10, "in:2:5: not UTF-8: byte 0xFF"}, {"red\n\n \xC3(", 8, "in:3:2: not UTF-8: byte 0xC3"},
        {"one\ntwo\0three\n", 14, "in:2:4: a NUL byte"},         {"\xEF\xBB\xBFred \xED\xA0\x80\n", 11, "in:1:8: not UTF-8: byte 0xED"},
        {"red\nyellow house\n", 17, "in:2:1: the word"},         {"red\nyellow house\n", 17, "yellow"},
    };
    struct setting s;
    setting_make(&s, false, false);
    for (int i = 0; i < 6; i++) {
        wf_translator *t = translator_of(&s, (struct wf_translator_options){.name = "in"});
        struct wf_line_translations out;
        ck_fails(wf_translator_lines(t, cases[i].bytes, cases[i].length, &out, error), WF_ERR_FORMAT, cases[i].place);
        ck_assert_int_eq(out.count, i == 1 ? 2 : i != 3);
        ck_assert_int_eq(wf_translator_counts(t).lines, out.count);
        lines_of(t, "red", &out); /* it goes on */
        ck_assert_int_eq(out.count, 1);
        wf_translator_free(t);
    }
    setting_free(&s);
}
END_TEST

START_TEST(unknown_words_are_counted)
{
    struct setting s;
    struct wf_line_translations out;
    setting_make(&s, true, true);
    wf_translator *t = translator_of(&s, (struct wf_translator_options){0});
    lines_of(t, "yellow house , yellow\nred\nviolet", &out);
    ck_assert_int_eq(wf_translator_counts(t).unknown, 3);
    ck_assert_int_eq(wf_translator_counts(t).tokens, 6);
    wf_translator_free(t);
    /* the unknown words among the remaining tokens of a long line */
    t = translator_of(&s, (struct wf_translator_options){.truncate = true});
    char longest[300] = "yellow";
    for (int i = 0; i < 30; i++)
        strcat(longest, i < 5 ? " red" : " violet");
    lines_of(t, longest, &out);
    ck_assert_int_eq(wf_translator_counts(t).truncated, 1);
    ck_assert_int_eq(wf_translator_counts(t).tokens, 18);
    ck_assert_int_eq(wf_translator_counts(t).unknown, 1 + 12);
    wf_translator_free(t);
    setting_free(&s);
}
END_TEST

/* A token may hold a line's end; its translation stays one line. */
START_TEST(a_translation_is_one_line)
{
    static const char json[] =
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,"
        "\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"post_processor\":null,\"decoder\":null,\"model\":{"
        "\"type\":\"WordLevel\",\"vocab\":{\"<bos>\":0,\"<pad>\":1,\"<eos>\":2,\"a\\nb\\r\":3},\"unk_token\":\"<pad>\"}}";
    struct setting s;
    struct wf_line_translations out;
    setting_make(&s, true, false);
    wf_tokenizer *target;
    ck_ok(wf_tokenizer_parse(json, (int64_t)strlen(json), "target", &target, error));
    set_key(&s.config, "vocab_size", 4);
    wf_model *m = model_of(&s.config, 1);
    wf_array view;
    view = view_of(wf_registry_find(wf_model_registry(m), "head.bias"));
    ((wf_real *)view.data)[3] = 1000;
    wf_translator *t =
        new_translator(m, s.source, target, (struct wf_translator_options){.keep_tokens = true, .search = {.beam = 1, .max_tokens = 2}});
    lines_of(t, "red\nblue\n", &out);
    ck_assert_int_eq(out.count, 2);
    ck_assert_str_eq(out.translation[0].text, "a b  a b ");
    ck_assert(!out.translation[1].finished);
    ck_assert_int_eq(wf_translator_counts(t).unfinished, 2);
    wf_translator_free(t);
    wf_model_free(m);
    wf_tokenizer_free(target);
    setting_free(&s);
}
END_TEST

START_TEST(mismatched_parts)
{
    struct setting s;
    setting_make(&s, true, true);
    const struct wf_translator_options o = {0}, wide = {.search.n_best = 4};
    ck_fails_null(wf_translator_new(s.model, s.target, s.target, &o, error), WF_ERR_ARGUMENT,
                  "vocabulary size mismatch: source tokenizer 20, model 21");
    ck_fails_null(wf_translator_new(s.model, s.source, s.source, &o, error), WF_ERR_ARGUMENT,
                  "vocabulary size mismatch: target tokenizer 21, model 20");
    ck_fails_null(wf_translator_new(s.model, s.source, s.target, &wide, error), WF_ERR_ARGUMENT, "at most the beam, which is 3");
    wf_tokenizer *chars;
    ck_ok(wf_tokenizer_train("abcdefghijklmnopqrst", 20, &chars, error, .kind = WF_TOKENIZER_CHAR));
    ck_fails_null(wf_translator_new(s.model, s.source, chars, &o, error), WF_ERR_ARGUMENT,
                  "the target tokenizer has no token for the beginning");
    struct wf_config c = small_config("nanogpt-char-small", 16, 20);
    wf_model *m = model_of(&c, 1);
    ck_fails_null(wf_translator_new(m, NULL, chars, &o, error), WF_ERR_ARGUMENT, "does not translate");
    ck_fails_null(wf_translator_new(s.model, NULL, s.target, &o, error), WF_ERR_ARGUMENT, "wf_translator_new: source is NULL");
    ck_fails_null(wf_translator_new(s.model, s.source, NULL, &o, error), WF_ERR_ARGUMENT, "wf_translator_new: target is NULL");
    wf_model_free(m);
    wf_tokenizer_free(chars);
    setting_free(&s);
}
END_TEST

static const char text[] = "red house .\n\none two three , four !\nten ten ten\nsix\n";

static wf_status translate_text(void *ctx, wf_error *error)
{
    const struct setting *s = ctx;
    struct wf_line_translations out;
    wf_translator *t = wf_translator_new(s->model, s->source, s->target, &(struct wf_translator_options){.language = "de"}, error);
    if (!t)
        return error->code;
    wf_status status = wf_translator_lines(t, text, (int64_t)strlen(text), &out, error);
    ck_assert(status == WF_OK || out.count == 0);
    wf_translator_free(t);
    return status;
}

START_TEST(memory)
{
    struct setting s;
    struct wf_line_translations out;
    setting_make(&s, true, false);
    wf_translator *t = translator_of(&s, (struct wf_translator_options){.search.n_best = 2});
    int64_t calls[4];
    for (int i = 0; i < 4; i++) {
        int64_t before = wf_alloc_count();
        lines_of(t, text, &out);
        calls[i] = wf_alloc_count() - before;
    }
    ck_assert_int_eq(calls[2], calls[3]);
    wf_translator_free(t);
    ck_assert_int_gt(sweep_memory(translate_text, &s), 4);
    setting_free(&s);
}
END_TEST

WF_TEST_MAIN("models/translate_text", equals_ids_by_hand, empty_lines_stay_empty, long_lines, invalid_text, unknown_words_are_counted,
             a_translation_is_one_line, mismatched_parts, memory)

/* SPDX-License-Identifier: MIT */
/* Ids that come one by one give the text that all of them give at once. */
#include <dirent.h>
#include <jansson.h>

#include "../data/data_test.h"
#include <weft/internal/string.h>

enum { MOST_TOKENIZERS = 100 };
static struct {
    char *name;
    wf_tokenizer *tokenizer;
} all[MOST_TOKENIZERS];
static int all_count;

static void add(char *name, wf_tokenizer *t)
{
    ck_assert_int_lt(all_count, MOST_TOKENIZERS);
    all[all_count].name = name;
    all[all_count++].tokenizer = t;
}

static const char story[] =
    "The sea was calm.\nA gull cried: \"Land!\" \xE2\x80\x94 and na\xC3\xAFve sailors didn't believe it. \xF0\x9F\x90\x8B\n"
    "They rowed on, and on; the land was there, \xE6\xB5\xB7\xE3\x81\xAE\xE5\x90\x91\xE3\x81\x93\xE3\x81\x86.\n";

/* Decoders that files have, and some that they hardly have, put into a tokenizer with all tokens that they look at. */
static const char *const decoders[] = {
    "null",
    "{\"type\": \"ByteFallback\"}",
    "{\"type\": \"Sequence\", \"decoders\": []}",
    "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}",
    "{\"type\": \"WordPiece\", \"prefix\": \"\", \"cleanup\": false}",
    "{\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}",
    "{\"type\": \"BPEDecoder\", \"suffix\": \"\"}",
    "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 2}",
    "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" +$\"}, \"content\": \"<end>\"}",
    /* Llama's */
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"\xE2\x96\x81\"}, \"content\": \" \"}, "
    "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}",
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Fuse\"}, "
    "{\"type\": \"Strip\", \"content\": \"a\", \"start\": 3, \"stop\": 3}, {\"type\": \"Strip\", \"content\": \"\xE2\x96\x81\", \"start\": "
    "1, "
    "\"stop\": 1}]}",
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a.|\xE2\x96\x81$\"}, "
    "\"content\": \"[\xC3\xA9]\"}, {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}]}",
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
    "\"trim_offsets\": true, \"use_regex\": true}]}, {\"type\": \"Strip\", \"content\": \"a\", \"start\": 2, \"stop\": 2}, "
    "{\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\", \"prepend_scheme\": \"always\", \"split\": true}]}",
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"BPEDecoder\", \"suffix\": \"a\"}, {\"type\": \"Fuse\"}, "
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}, "
    "{\"type\": \"BPEDecoder\", \"suffix\": \"b\"}]}",
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\", \"prepend_scheme\": \"always\", "
    "\"split\": true}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 1}, {\"type\": \"BPEDecoder\", \"suffix\": \" "
    "\"}]}",
};
enum { DECODERS = sizeof decoders / sizeof *decoders };

/* Bytes of both spellings, halves of characters, marks, affixes, a special and an ordinary added token, the empty piece's neighbours. */
static wf_tokenizer *with_decoder(const char *decoder)
{
    static const char *const pieces[] = {"a",
                                         "aa",
                                         "b",
                                         " ",
                                         "  ",
                                         "\xE2\x96\x81",
                                         "\xE2\x96\x81"
                                         "a",
                                         "##a",
                                         "##",
                                         "</w>",
                                         "a</w>",
                                         "b</w>a",
                                         "<0xC3>",
                                         "<0xA9>",
                                         "<0xE6>",
                                         "<0xB5>",
                                         "<0xB7>",
                                         "<0x41>",
                                         "<0x41",
                                         "\xC3\x83",
                                         "\xC2\xA9",
                                         "\xC3\xA9",
                                         "\xC3\xA6",
                                         "\xC2\xB5",
                                         "\xC2\xB7",
                                         "\xC4\xA0",
                                         ".",
                                         "?",
                                         "n't",
                                         "'s",
                                         "\xE6\xB5\xB7",
                                         "do",
                                         "not",
                                         " do not"};
    json_t *root = json_pack("{s:s, s:n, s:n, s:n, s:n, s:n}", "version", "1.0", "truncation", "padding", "normalizer", "pre_tokenizer",
                             "post_processor");
    json_t *vocab = json_object(), *added = json_array();
    int n = sizeof pieces / sizeof *pieces;
    for (int i = 0; i < n; i++)
        json_object_set_new(vocab, pieces[i], json_integer(i));
    static const char *const names[] = {"<s>", "<plain>"};
    for (int i = 0; i < 2; i++)
        json_array_append_new(added, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", n + i, "content", names[i], "single_word", 0,
                                               "lstrip", 0, "rstrip", 0, "normalized", 0, "special", i == 0));
    json_object_set_new(root, "added_tokens", added);
    json_object_set_new(root, "decoder", json_loads(decoder, JSON_DECODE_ANY, NULL));
    json_object_set_new(root, "model", json_pack("{s:s, s:o, s:s}", "type", "WordLevel", "vocab", vocab, "unk_token", "a"));
    char *text = json_dumps(root, 0);
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_parse(text, (int64_t)strlen(text), decoder, &t, error));
    free(text);
    json_decref(root);
    return t;
}

static void load_all(void)
{
    wf_tokenizer *t;
    char *folder = golden_path("../tokenizers"), *path;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        if (!strstr(d->d_name, ".json") || !strcmp(d->d_name, "texts.json"))
            continue;
        path = wf_format("%s/%s", folder, d->d_name);
        ck_ok(wf_tokenizer_load(path, &t, error));
        add(path, t);
    }
    closedir(dir);
    wf_free(folder);
    ck_assert_int_ge(all_count, 21);
    path = golden_path("../bert/vocab.txt");
    ck_ok(wf_tokenizer_load_vocab(path, &t, error));
    add(path, t);
    for (int kind = WF_TOKENIZER_CHAR; kind <= WF_TOKENIZER_BYTE_BPE; kind++) {
        ck_ok(wf_tokenizer_train(story, sizeof story - 1, &t, error, .kind = (wf_tokenizer_kind)kind,
                                 .vocab_size = kind == WF_TOKENIZER_CHAR ? 0 : 400));
        add(wf_format("trained %s", wf_tokenizer_kind_name((wf_tokenizer_kind)kind)), t);
    }
    ck_ok(wf_tokenizer_train(story, sizeof story - 1, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 200, .other_pre_tokenizer = true,
                             .pre_tokenizer = WF_WHITESPACE));
    add(wf_format("trained bpe, whitespace"), t);
    for (int i = 0; i < DECODERS; i++)
        add(wf_format("%s", decoders[i]), with_decoder(decoders[i]));
}

static void free_all(void)
{
    for (int i = 0; i < all_count; i++) {
        wf_free(all[i].name);
        wf_tokenizer_free(all[i].tokenizer);
    }
    all_count = 0;
}

static uint64_t state;
static int64_t below(int64_t n) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int64_t)((state * 2685821657736338717u >> 33) % (uint64_t)n);
}

static void append(struct wf_string *out, const char *text, int64_t length)
{
    ck_assert_int_eq(text[length], 0);
    ck_assert(wf_string_add(out, text, length));
}

static void check(const char *name, const wf_tokenizer *t, wf_decoder *d, const int32_t *ids, int64_t count, bool specials)
{
    struct wf_string whole = {0}, parts = {0};
    const char *text;
    int64_t length;
    ck_ok(wf_tokenizer_decode_with(t, ids, count, &(struct wf_decode_options){.specials = specials}, &whole, error));
    for (int64_t i = 0; i < count; i++) {
        ck_ok(wf_decoder_push(d, ids[i], &text, &length, error));
        append(&parts, text, length);
        ck_assert_msg(parts.length <= whole.length && !memcmp(parts.data, whole.data, (size_t)parts.length),
                      "%s: after id %d of %d \"%s\" is no beginning of \"%s\"", name, (int)i, (int)count, parts.data, whole.data);
    }
    ck_ok(wf_decoder_finish(d, &text, &length, error));
    append(&parts, text, length);
    ck_assert_msg(has_bytes(&parts, whole.data, whole.length), "%s: \"%s\" instead of \"%s\"", name, parts.data, whole.data);
    wf_string_free(&whole);
    wf_string_free(&parts);
}

START_TEST(pushes_give_what_all_at_once_give)
{
    enum { MOST = 40, TRIALS = 150 };
    load_all();
    state = 88172645463325252u;
    for (int k = 0; k < all_count; k++) {
        wf_tokenizer *t = all[k].tokenizer;
        for (int specials = 0; specials < 2; specials++) {
            wf_decoder *d = wf_decoder_new(t, &(struct wf_decode_options){.specials = specials}, NULL);
            ck_assert_ptr_nonnull(d);
            for (int trial = 0; trial < TRIALS; trial++) {
                int32_t ids[MOST];
                int64_t count = below(MOST + 1), vocab = wf_tokenizer_vocab_size(t), few = trial % 2 ? vocab : 1 + below(12),
                        first = below(vocab);
                for (int64_t i = 0; i < count; i++) /* of all tokens, or of some neighbours: bytes of a character */
                    ids[i] = (int32_t)((first + below(few)) % vocab);
                check(all[k].name, t, d, ids, count, specials);
            }
            wf_decoder_free(d);
        }
    }
    free_all();
}
END_TEST

/* More ids than are decoded at once. */
START_TEST(long_texts)
{
    enum { COUNT = 10000 };
    int32_t *ids = wf_alloc(COUNT * sizeof *ids);
    state = 7;
    for (int i = 0; i < DECODERS; i++) {
        wf_tokenizer *t = with_decoder(decoders[i]);
        struct wf_string whole = {0};
        wf_decoder *d = wf_decoder_new(t, NULL, NULL);
        const char *text;
        int64_t length, given = 0;
        for (int64_t k = 0; k < COUNT; k++)
            ids[k] = (int32_t)below(wf_tokenizer_vocab_size(t));
        ck_ok(wf_tokenizer_decode(t, ids, COUNT, &whole, error));
        for (int64_t k = 0; k <= COUNT; k++) {
            if (k < COUNT)
                ck_ok(wf_decoder_push(d, ids[k], &text, &length, error));
            else
                ck_ok(wf_decoder_finish(d, &text, &length, error));
            ck_assert(given + length <= whole.length && !memcmp(whole.data + given, text, (size_t)length));
            given += length;
        }
        ck_assert_int_eq(given, whole.length);
        wf_decoder_free(d);
        wf_string_free(&whole);
        wf_tokenizer_free(t);
    }
    wf_free(ids);
}
END_TEST

/* The text that each of these pieces brings. */
static void ck_pushed(wf_decoder *d, const wf_tokenizer *t, const char *const *pieces, const char *const *expected, int count)
{
    const char *text;
    int64_t length;
    for (int i = 0; i < count; i++) {
        ck_ok(wf_decoder_push(d, wf_tokenizer_id(t, pieces[i], (int64_t)strlen(pieces[i])), &text, &length, error));
        ck_assert_str_eq(text, expected[i]);
    }
}

/* Only text that a later id may change is held back. */
START_TEST(only_open_text_is_held_back)
{
    wf_tokenizer *t;
    const char *text;
    int64_t length;
    ck_ok(wf_tokenizer_train(story, sizeof story - 1, &t, error, .kind = WF_TOKENIZER_BYTE_BPE, .vocab_size = 259));
    wf_decoder *d = wf_decoder_new(t, NULL, NULL);
    static const char *const bytes[] = {"a", "\xC3\xA6", "\xC2\xB5", "\xC2\xB7", "b", "\xC3\xA6", "b"}; /* E6 B5 B7: one character */
    static const char *const expected[] = {"a",
                                           "",
                                           "",
                                           "\xE6\xB5\xB7",
                                           "b",
                                           "",
                                           "\xEF\xBF\xBD"
                                           "b"};
    ck_pushed(d, t, bytes, expected, 7);
    ck_pushed(d, t, &bytes[1], &expected[1], 1);
    ck_fails(wf_decoder_push(d, -1, &text, &length, error), WF_ERR_ARGUMENT, "outside the vocabulary");
    ck_fails(wf_decoder_push(d, 1000, &text, &length, error), WF_ERR_ARGUMENT, "outside the vocabulary");
    ck_ok(wf_decoder_finish(d, &text, &length, error));
    ck_assert_str_eq(text, "\xEF\xBF\xBD");
    ck_pushed(d, t, &bytes[4], &expected[4], 1);
    wf_decoder_free(d);
    wf_tokenizer_free(t);

    /* words, marked by a space before them */
    ck_ok(wf_tokenizer_train(story, sizeof story - 1, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 200));
    d = wf_decoder_new(t, NULL, NULL);
#define AND                                                                                                                                \
    "\xE2\x96\x81"                                                                                                                         \
    "and"
    ck_pushed(d, t, (const char *const[]){AND, AND, AND}, (const char *const[]){"and", " and", " and"}, 3);
    wf_decoder_free(d);
    wf_tokenizer_free(t);

    /* a word that ends with a mark gets its space with the next */
    t = with_decoder("{\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}");
    d = wf_decoder_new(t, NULL, NULL);
    static const char *const words[] = {"b", "a</w>", "b"}, *const spaced[] = {"b", "", "a b"};
    ck_pushed(d, t, words, spaced, 3);
    wf_decoder_free(d);
    wf_tokenizer_free(t);
}
END_TEST

static wf_status make_and_push(void *ctx, wf_error *error)
{
    wf_decoder *d = wf_decoder_new(ctx, NULL, error);
    wf_status status = d ? WF_OK : error->code;
    const char *text;
    int64_t length;
    for (int32_t i = 0; status == WF_OK && i < 30; i++)
        status = wf_decoder_push(d, i, &text, &length, error);
    if (status == WF_OK)
        status = wf_decoder_finish(d, &text, &length, error);
    wf_decoder_free(d);
    return status;
}

START_TEST(no_memory)
{
    wf_tokenizer *t = with_decoder(decoders[9]);
    ck_assert_int_ge(sweep_memory(make_and_push, t), 10);
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("decoder", pushes_give_what_all_at_once_give, long_texts, only_open_text_is_held_back, no_memory)

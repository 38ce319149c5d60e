/* SPDX-License-Identifier: MIT */
/* Tokens added to tokenizers of each kind: old ids stay, new ones follow, texts are encoded with them and decoded again. */
#include <string.h>

#include <weft/tokenizer.h>

#include "../data/data_test.h"

static const char text[] = "the cat sat on the mat. the dog sat on the cat.";

static wf_tokenizer *trained(struct wf_tokenizer_options o)
{
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_train_with(text, (int64_t)strlen(text), &o, &t, error));
    return t;
}

static struct wf_tokens ids_of(const wf_tokenizer *t, const char *of)
{
    struct wf_tokens ids = {0};
    ck_ok(wf_tokenizer_encode(t, of, (int64_t)strlen(of), &ids, error));
    return ids;
}

static void extends(struct wf_tokenizer_options o, const char *const *token, const bool *expected, int64_t count, const char *sentence)
{
    wf_tokenizer *t = trained(o), *larger;
    const int64_t size = wf_tokenizer_vocab_size(t);
    int64_t next = size;
    bool added[8];
    ck_ok(wf_tokenizer_extend(t, token, count, added, &larger, error));
    ck_assert_int_eq(wf_tokenizer_kind_of(t), wf_tokenizer_kind_of(larger));
    for (int32_t id = 0; id < size; id++)
        ck_assert_str_eq(wf_tokenizer_token(t, id, NULL), wf_tokenizer_token(larger, id, NULL));
    for (int64_t i = 0; i < count; i++) {
        ck_assert_msg(added[i] == expected[i], "%s", token[i]);
        if (!added[i])
            continue;
        ck_assert_str_eq(wf_tokenizer_token(larger, (int32_t)next, NULL), token[i]);
        struct wf_tokens ids = ids_of(larger, token[i]);
        ck_assert_msg(ids.count == 1 && ids.id[0] == next, "%s", token[i]);
        wf_tokens_free(&ids);
        next++;
    }
    ck_assert_int_eq(wf_tokenizer_vocab_size(larger), next);
    struct wf_tokens old = ids_of(t, text), now = ids_of(larger, text);
    ck_assert(old.count == now.count && memcmp(old.id, now.id, (size_t)old.count * sizeof *old.id) == 0);
    wf_tokens_free(&old);
    wf_tokens_free(&now);
    now = ids_of(larger, sentence);
    struct wf_string decoded = {0};
    ck_ok(wf_tokenizer_decode(larger, now.id, now.count, &decoded, error));
    ck_assert_str_eq(decoded.data, sentence);
    wf_string_free(&decoded);
    wf_tokens_free(&now);
    ck_ok(wf_tokenizer_save(larger, test_file("t.json", NULL, 0), error)); /* and the file gives the same tokenizer */
    wf_tokenizer *again;
    ck_ok(wf_tokenizer_load(test_file("t.json", NULL, 0), &again, error));
    ck_assert(wf_tokenizer_hash(again) == wf_tokenizer_hash(larger) && wf_tokenizer_hash(t) != wf_tokenizer_hash(larger));
    wf_tokenizer_free(again);
    wf_tokenizer_free(larger);
    wf_tokenizer_free(t);
}

#define LIST(...)                                                                                                                          \
    (const char *const[])                                                                                                                  \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }
#define ADDED(...)                                                                                                                         \
    (const bool[])                                                                                                                         \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

START_TEST(kinds)
{
    extends((struct wf_tokenizer_options){.kind = WF_TOKENIZER_CHAR}, LIST("x", "a", "\xc3\xa9", "x", "z"), ADDED(1, 0, 1, 0, 1), 5,
            "xat the z\xc3\xa9");
    extends((struct wf_tokenizer_options){.kind = WF_TOKENIZER_CHAR}, LIST("x", "pig", "y"), ADDED(1, 1, 1), 3, "the xpigy");
    extends((struct wf_tokenizer_options){.kind = WF_TOKENIZER_CHAR, .specials = LIST("<unk>"), .special_count = 1}, LIST("x", "y"),
            ADDED(1, 1), 2, "xy");
    /* a byte is spelled as the third one */
    extends((struct wf_tokenizer_options){.kind = WF_TOKENIZER_BYTE_BPE, .vocab_size = 300}, LIST("<|user|>", "the", "\xc3\xa9", "cat"),
            ADDED(1, 0, 0, 0), 4, "the <|user|>cat \xc3\xa9");
    extends(
        (struct wf_tokenizer_options){
            .kind = WF_TOKENIZER_BPE, .vocab_size = 60, .other_pre_tokenizer = true, .pre_tokenizer = WF_RUNNING_TEXT},
        LIST("<|user|>"), ADDED(1), 1, "the<|user|>");
}
END_TEST

/* A second time, after tokens that are not in the vocabulary of the model. */
START_TEST(twice)
{
    wf_tokenizer *t = trained((struct wf_tokenizer_options){0}), *second, *third;
    const int64_t size = wf_tokenizer_vocab_size(t);
    ck_ok(wf_tokenizer_extend(t, LIST("xyz"), 1, NULL, &second, error));
    ck_ok(wf_tokenizer_extend(second, LIST("q", "xyz", "qq"), 3, NULL, &third, error));
    ck_assert_int_eq(wf_tokenizer_vocab_size(third), size + 3);
    struct wf_tokens ids = ids_of(third, "qxyzaqq");
    ck_assert_int_eq(ids.count, 4);
    ck_assert(ids.id[0] == size + 1 && ids.id[1] == size && ids.id[3] == size + 2);
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
    ck_ok(wf_tokenizer_extend(second, NULL, 0, NULL, &t, error));
    ck_assert(wf_tokenizer_hash(t) == wf_tokenizer_hash(second));
    wf_tokenizer_free(t);
    wf_tokenizer_free(second);
    wf_tokenizer_free(third);
}
END_TEST

START_TEST(errors)
{
    wf_tokenizer *t = trained((struct wf_tokenizer_options){0}), *larger;
    ck_fails(wf_tokenizer_extend(t, LIST("x", ""), 2, NULL, &larger, error), WF_ERR_ARGUMENT, "empty");
    ck_assert_ptr_null(larger);
    ck_fails(wf_tokenizer_extend(t, LIST("\xff"), 1, NULL, &larger, error), WF_ERR_ARGUMENT, "not UTF-8");
    wf_tokenizer_free(t);
}
END_TEST

static wf_status extended(void *tokenizer, wf_error *error)
{
    wf_tokenizer *larger;
    wf_status status = wf_tokenizer_extend(tokenizer, LIST("x", "yy"), 2, NULL, &larger, error);
    wf_tokenizer_free(larger);
    return status;
}

START_TEST(out_of_memory)
{
    wf_tokenizer *t = trained((struct wf_tokenizer_options){0});
    ck_assert_int_gt(sweep_memory(extended, t), 4);
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("text/extend", kinds, twice, errors, out_of_memory)

/* SPDX-License-Identifier: MIT */
#include <weft/batches.h>
#include <weft/masking.h>
#include <weft/random.h>

#include <math.h>

#include "data_test.h"

enum { COLS = 50, ROWS = 400, N = COLS * ROWS, WORDS = 40, FIRST = 3, TYPES = WORDS + FIRST };

static wf_tokenizer *words_tokenizer(const char *const *specials, int64_t count)
{
    char text[WORDS * 8] = "";
    for (int i = 0; i < WORDS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "w%d ", i);
    wf_tokenizer *tokenizer;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &tokenizer, error, .kind = WF_TOKENIZER_WORD, .specials = specials,
                             .special_count = count));
    return tokenizer;
}

static struct wf_masking masking(double rate, uint64_t seed)
{
    wf_tokenizer *tokenizer = words_tokenizer((const char *const[]){"<pad>", "<unk>", "<mask>"}, FIRST);
    struct wf_masking m;
    ck_ok(wf_masking_init(&m, tokenizer, rate, seed, error));
    ck_assert_int_eq(m.vocab_size, TYPES);
    wf_tokenizer_free(tokenizer);
    return m;
}

/* Every seventh token is unknown, every eleventh padding. */
static void fill(int32_t *ids)
{
    for (int i = 0; i < N; i++)
        ids[i] = i % 7 == 0 ? 1 : i % 11 == 0 ? 0 : FIRST + (i * 29 + i / 64) % WORDS;
}

/* A share of n drawings lies within five deviations of what it must be. */
static void share(const char *what, int64_t k, int64_t n, double p)
{
    double far = fabs((double)k - (double)n * p) / sqrt((double)n * p * (1 - p));
    ck_assert_msg(far < 5, "%s: %lld of %lld, wanted %g of them", what, (long long)k, (long long)n, p);
}

START_TEST(shares_are_those_of_the_paper)
{
    static int32_t was[N], ids[N], places[N], targets[N], drawn[TYPES];
    struct wf_masking m = masking(0.15, 3);
    int64_t ordinary = 0, chosen = 0, masked = 0, other = 0, stayed = 0;
    for (int64_t step = 0; step < 20; step++) {
        fill(was);
        fill(ids);
        ordinary += wf_masking_ordinary(&m, wf_id_view_of(ids, N));
        int64_t count = wf_masking_hide(&m, step, 0, ROWS, COLS, ids, places, targets);
        for (int64_t i = 0, at = 0; i < N; i++) {
            if (at == count || places[at] != i) {
                ck_assert_int_eq(ids[i], was[i]);
                continue;
            }
            ck_assert_int_ge(was[i], FIRST);
            ck_assert_int_eq(targets[at++], was[i]);
            ck_assert(ids[i] == 2 || (ids[i] >= FIRST && ids[i] < TYPES));
            masked += ids[i] == 2;
            other += ids[i] != 2 && ids[i] != was[i];
            stayed += ids[i] == was[i];
            drawn[ids[i]] += ids[i] != 2 && ids[i] != was[i];
            ck_assert(i < N - 1 || at == count);
        }
        chosen += count;
    }
    share("chosen", chosen, ordinary, 0.15);
    share("masked", masked, chosen, 0.8);
    share("another one", other, chosen, 0.1 * (WORDS - 1) / WORDS);
    share("as it was", stayed, chosen, 0.1 + 0.1 / WORDS);
    for (int id = FIRST; id < TYPES; id++)
        share("each word", drawn[id], other, 1.0 / WORDS);
    wf_masking_free(&m);
}
END_TEST

/* As the rows of crops: whole, in parts in any order, and after a resume. */
START_TEST(rows_do_not_depend_on_how_they_are_taken)
{
    static int32_t ids[N], places[N], targets[N], ids2[N], places2[N], targets2[N];
    struct wf_masking m = masking(0.3, 42), again = masking(0.3, 42);
    static const int64_t parts[] = {1, 16, 100, 200};
    fill(ids);
    int64_t count = wf_masking_hide(&m, 9, 5, ROWS, COLS, ids, places, targets);
    ck_assert_int_gt(count, 0);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        fill(ids2);
        int64_t end = count;
        for (int64_t r = ROWS - parts[k]; r >= 0; r -= parts[k]) {
            int64_t n = wf_masking_hide(&again, 9, 5 + r, parts[k], COLS, ids2 + r * COLS, places2, targets2);
            end -= n;
            ck_assert_int_ge(end, 0);
            for (int64_t i = 0; i < n; i++) {
                ck_assert_int_eq(places2[i] + r * COLS, places[end + i]);
                ck_assert_int_eq(targets2[i], targets[end + i]);
            }
        }
        ck_assert_int_eq(end, 0);
        ck_assert_mem_eq(ids, ids2, sizeof ids);
    }
    wf_masking_free(&m);
    wf_masking_free(&again);
}
END_TEST

static int64_t same(const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    int64_t both = 0;
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        both += a[i] == b[j];
        int32_t x = a[i], y = b[j];
        i += x <= y;
        j += y <= x;
    }
    return both;
}

/* Two choices are independent when seed, step or row differ, though one of them may be large. */
START_TEST(choices_differ)
{
    static const struct {
        uint64_t seed;
        int64_t step, row;
    } one[] = {{1, 0, 0},          {2, 0, 0},    {1ull << 32, 0, 0}, {1, 1, 0},       {1, 2, 0},
               {1, 0x7FFFFFFF, 0}, {1, 0, ROWS}, {1, 1, ROWS},       {1, 0, 1 << 30}, {0, 0, 0}};
    enum { MANY = sizeof one / sizeof *one };
    static int32_t ids[N], places[MANY][N], targets[N];
    int64_t count[MANY];
    for (int i = 0; i < MANY; i++) {
        struct wf_masking m = masking(0.15, one[i].seed);
        for (int k = 0; k < N; k++)
            ids[k] = FIRST + k % WORDS;
        count[i] = wf_masking_hide(&m, one[i].step, one[i].row, ROWS, COLS, ids, places[i], targets);
        share("chosen", count[i], N, 0.15);
        for (int j = 0; j < i; j++)
            share("chosen twice", same(places[i], count[i], places[j], count[j]), N, 0.15 * 0.15);
        wf_masking_free(&m);
    }
}
END_TEST

/* The numbers are these for good: a change breaks resuming. */
START_TEST(numbers_are_fixed)
{
    struct wf_masking m = masking(0.15, (7ull << 32) + 5);
    uint32_t key[4], word[4];
    wf_philox((const uint32_t[4]){0x6B73616D, 0, 0, 0}, (const uint32_t[2]){5, 7}, key);
    int32_t ids[64], places[64], targets[64];
    for (int i = 0; i < 64; i++)
        ids[i] = FIRST + i % WORDS;
    int64_t count = wf_masking_hide(&m, 12, 34, 1, 64, ids, places, targets), at = 0;
    ck_assert_int_gt(count, 2);
    for (uint32_t i = 0; i < 64; i++) {
        wf_philox((const uint32_t[4]){12, 0, 34, i}, key, word);
        if (word[0] / 4294967296.0 >= 0.15)
            continue;
        ck_assert_int_lt(at, count);
        ck_assert_int_eq(places[at], (int)i);
        at++;
        double u = word[1] / 4294967296.0, v = (word[3] + word[2] / 4294967296.0) / 4294967296.0;
        ck_assert_int_eq(ids[i], u < 0.8 ? 2 : u < 0.9 ? FIRST + (int)(v * WORDS) : FIRST + (int)i % WORDS);
    }
    ck_assert_int_eq(at, count);
    wf_masking_free(&m);
}
END_TEST

/* Nothing to choose from is no error. */
START_TEST(special_tokens_alone)
{
    struct wf_masking m = masking(0.99, 1);
    int32_t ids[] = {0, 1, 2, 1, 0, 2}, places[6], targets[6];
    ck_assert_int_eq(wf_masking_hide(&m, 0, 0, 2, 3, ids, places, targets), 0);
    ck_assert_int_eq(wf_masking_ordinary(&m, wf_id_view_of(ids, 6)), 0);
    static const int32_t were[] = {0, 1, 2, 1, 0, 2};
    ck_assert_mem_eq(ids, were, sizeof ids);
    wf_masking_free(&m);
}
END_TEST

/* BERT's names, marks that a file does not call special, and special tokens with other names. */
START_TEST(special_tokens_of_other_tokenizers)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":6,\"content\":\"<odd>\",\"single_word\":false,"
        "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true},{\"id\":7,\"content\":\"plain\",\"single_word\":false,"
        "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}],\"normalizer\":null,\"pre_tokenizer\":{\"type\":"
        "\"Whitespace\"},\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"[CLS]\":0,\"[SEP]\":1,"
        "\"[PAD]\":2,\"huh\":3,\"[MASK]\":4,\"word\":5},\"unk_token\":\"huh\"}}";
    wf_tokenizer *tokenizer;
    struct wf_masking m;
    ck_ok(wf_tokenizer_parse(file, sizeof file - 1, "file", &tokenizer, error));
    ck_ok(wf_masking_init(&m, tokenizer, 0.15, 1, error));
    ck_assert_int_eq(m.mask, 4);
    ck_assert_int_eq(m.ordinary_count, 2);
    ck_assert(m.ordinary[0] == 5 && m.ordinary[1] == 7);
    wf_masking_free(&m);
    wf_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(refused)
{
    wf_tokenizer *none = words_tokenizer((const char *const[]){"<pad>", "<unk>"}, 2);
    wf_tokenizer *fine = words_tokenizer((const char *const[]){"<mask>"}, 1);
    struct wf_masking m;
    ck_fails(wf_masking_init(&m, none, 0.15, 1, error), WF_ERR_FORMAT, "<mask> or [MASK]");
    ck_assert(!m.special && !m.ordinary);
    ck_fails(wf_masking_init(&m, fine, 0, 1, error), WF_ERR_ARGUMENT, "above 0");
    ck_fails(wf_masking_init(&m, fine, 1, 1, error), WF_ERR_ARGUMENT, "below 1");
    ck_fails(wf_masking_init(&m, fine, NAN, 1, error), WF_ERR_ARGUMENT, "above 0");
    static const char file[] = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,"
                               "\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"WordLevel\","
                               "\"vocab\":{\"<pad>\":0,\"<mask>\":1},\"unk_token\":\"<unk>\"}}";
    wf_tokenizer *marks;
    ck_ok(wf_tokenizer_parse(file, sizeof file - 1, "file", &marks, error));
    ck_fails(wf_masking_init(&m, marks, 0.15, 1, error), WF_ERR_FORMAT, "only special tokens");
    ck_assert(!m.special && !m.ordinary);
    wf_tokenizer_free(marks);
    wf_tokenizer_free(none);
    wf_tokenizer_free(fine);
}
END_TEST

static wf_status init_and_free(void *tokenizer, wf_error *error)
{
    struct wf_masking m;
    wf_status status = wf_masking_init(&m, tokenizer, 0.15, 1, error);
    wf_masking_free(&m);
    return status;
}

START_TEST(memory_may_be_short)
{
    wf_tokenizer *tokenizer = words_tokenizer((const char *const[]){"<mask>"}, 1);
    ck_assert_int_eq(sweep_memory(init_and_free, tokenizer), 2);
    wf_tokenizer_free(tokenizer);
}
END_TEST

/* Start and end tokens around rows, in place; none of them is ever hidden. */
START_TEST(rows_are_framed)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,"
        "\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":"
        "\"WordLevel\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"[MASK]\":3,\"a\":4,\"b\":5},\"unk_token\":\"[UNK]\"}}";
    wf_tokenizer *t = NULL;
    struct wf_masking m;
    int32_t ids[15] = {4, 5, 4, 5, 5, 4, 4, 4, 5}, places[15], targets[15];
    static const int32_t framed[15] = {1, 4, 5, 4, 2, 1, 5, 5, 4, 2, 1, 4, 4, 5, 2};
    ck_ok(wf_tokenizer_parse(file, (int64_t)strlen(file), "file", &t, error));
    ck_ok(wf_masking_init(&m, t, 0.999, 1, error));
    ck_assert(m.begin == 1 && m.end == 2 && m.mask == 3);
    ck_ok(wf_masking_frame(&m, 3, 3, ids, error));
    ck_assert_mem_eq(ids, framed, sizeof ids);
    int64_t count = wf_masking_hide(&m, 0, 0, 3, 5, ids, places, targets);
    ck_assert_int_ge(count, 8);
    for (int64_t i = 0; i < count; i++)
        ck_assert(places[i] % 5 != 0 && places[i] % 5 != 4 && targets[i] == framed[places[i]]);
    for (int i = 0; i < 15; i += 5)
        ck_assert(ids[i] == 1 && ids[i + 4] == 2);
    ck_ok(wf_masking_frame(&m, 0, 3, ids, error)); /* no rows, and rows of nothing */
    ck_ok(wf_masking_frame(&m, 0, 3, NULL, error));
    ck_ok(wf_masking_frame(&m, 1, 0, ids + 5, error));
    ck_assert(ids[0] == 1 && ids[5] == 1 && ids[6] == 2);
    /* A refused call changes nothing. */
    int32_t was[15];
    memcpy(was, ids, sizeof was);
    ck_fails(wf_masking_frame(&m, -1, 3, ids, error), WF_ERR_ARGUMENT, "wf_masking_frame: -1 rows of 3 ids");
    ck_fails(wf_masking_frame(&m, 1, -1, ids, error), WF_ERR_ARGUMENT, "wf_masking_frame: 1 rows of -1 ids");
    m.end = -1;
    ck_fails(wf_masking_frame(&m, 1, 3, ids, error), WF_ERR_ARGUMENT, "the tokenizer has no end token ([SEP] or </s>)");
    m.begin = -1;
    ck_fails(wf_masking_frame(&m, 1, 3, ids, error), WF_ERR_ARGUMENT, "the tokenizer has no start token ([CLS] or <s>)");
    ck_assert_mem_eq(ids, was, sizeof was);
    wf_masking_free(&m);
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("masking", shares_are_those_of_the_paper, rows_do_not_depend_on_how_they_are_taken, choices_differ, numbers_are_fixed,
             special_tokens_alone, special_tokens_of_other_tokenizers, refused, memory_may_be_short, rows_are_framed)

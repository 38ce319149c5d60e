/* SPDX-License-Identifier: MIT */
/* Pairs that are left out by the ratio of their lengths, or as repeats of others. */
#include "bitext_test.h"
#include <math.h>
#include <weft/internal/string.h>

static void ck_source(const wf_bitext *b, int64_t pair, const char *expected)
{
    struct wf_string text = {0};
    ck_ok(wf_bitext_text(b, pair, 0, &text, error));
    ck_assert_msg(has_bytes(&text, expected, (int64_t)strlen(expected)), "pair %d: \"%.*s\"", (int)pair, (int)text.length, text.data);
    wf_string_free(&text);
}

/* Special tokens do not count; a ratio of just max_ratio is kept; either side may be the longer one; other reasons come first. */
START_TEST(ratio_of_lengths)
{
    wf_tokenizer *t = words(false);
    struct wf_bitext_options options = {.source = t, .target = t, .source_bos = true, .source_eos = true, .max_length = 9, .max_ratio = 2};
    wf_bitext *b;
    ck_ok(open_texts(TEXTS("w1 w2\n"                   /* 2 : 1 */
                           "w1 w2 w3\n"                /* 3 : 1 */
                           "w3\n"                      /* 1 : 2 */
                           "w4\n"                      /* 1 : 3 */
                           "w5 w6 w7 w8 w9\n"          /* 5 : 2 */
                           "w6 w7 w8 w9\n"             /* 4 : 2 */
                           "\n"                        /* empty */
                           "w1 w2 w3 w4 w5 w6 w7 w8\n" /* 10 with its marks : 1 */
                           "w7\n",
                           "w1\nw1\nw1 w2\nw1 w2 w3\nw1 w2\nw1 w2\nw1 w2 w3\nw1\nw1\n"),
                     &options, &b, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(b);
    ck_assert(s->lines == 9 && s->used == 4 && s->over_ratio == 3 && s->empty_source == 1 && s->long_source == 1 && s->duplicates == 0);
    ck_assert(s->max_ratio == 2 && s->source_tokens == 4 + 3 + 6 + 3 && s->target_tokens == 2 + 3 + 3 + 2);
    ck_source(b, 1, "w3");
    ck_source(b, 2, "w6 w7 w8 w9");
    char text[500];
    ck_assert_str_eq(wf_bitext_describe(s, text, sizeof text),
                     "4 pairs, 16 + 10 tokens; 5 skipped: 1 empty source, 1 source longer than 9, 3 with a length ratio above 2");
    wf_bitext_close(b);
    options.max_ratio = 1.5;
    ck_ok(open_texts(TEXTS("w1 w2 w3\nw1 w2\nw1 w2 w3 w4\n", "w1 w2\nw1\nw1 w2 w3 w4\n"), &options, &b, error));
    ck_assert_str_eq(wf_bitext_describe(wf_bitext_survey(b), text, sizeof text),
                     "2 pairs, 11 + 8 tokens; 1 skipped: 1 with a length ratio above 1.5");
    wf_bitext_close(b);
    options.max_ratio = 1;
    ck_ok(open_texts(TEXTS("w1 w2 w3\nw1 w2\n", "w1 w2\nw1 w2\n"), &options, &b, error));
    ck_assert(wf_bitext_survey(b)->used == 1 && wf_bitext_survey(b)->over_ratio == 1);
    wf_bitext_close(b);
    ck_fails(open_texts(TEXTS("w1 w2 w3\nw1 w2\n", "w1 w2\nw1\n"), &options, &b, error), WF_ERR_FORMAT,
             "no pair of lines can be used: 0 pairs; 2 skipped: 2 with a length ratio above 1");
    for (int i = 0; i < 3; i++) {
        options.max_ratio = (const double[]){0.99, -1, NAN}[i];
        ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &options, &b, error), WF_ERR_ARGUMENT, "at least 1, or 0 for no limit");
    }
    wf_tokenizer_free(t);
}
END_TEST

/* The first of equal pairs stays. A pair is both sentences, without the white space around them; one that shares a side with another, or
 * has the same words on other sides, is none of them. */
START_TEST(repeats_of_a_pair)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t, .deduplicate = true};
    wf_bitext *b;
    ck_ok(open_texts(TEXTS("w1 w2\n"
                           "w3\n"
                           "w1 w2\n"              /* another target */
                           "  w1 w2 \xC2\xA0\r\n" /* the first again */
                           "w1\n"                 /* cut elsewhere */
                           "w4\n"
                           "w3\n" /* the second again */
                           "\n"   /* empty pairs are empty, not repeated */
                           "\n"
                           "w1  w2\n" /* the same ids, other bytes */
                           "yak\n"    /* unknown: the same ids, other bytes */
                           "ox\n"
                           "w3", /* once more */
                           "w3\nw3 w4\nw4\nw3\nw2 w3\nw1 w2\n\tw3 w4\n\n\nw3\nw1\nw1\nw3 w4"),
                     &options, &b, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(b);
    ck_assert(s->lines == 13 && s->empty_both == 2 && s->duplicates == 3 && s->used == 8 && s->over_ratio == 0);
    ck_source(b, 1, "w3");
    ck_source(b, 2, "w1 w2");
    ck_source(b, 3, "w1");
    ck_source(b, 5, "w1  w2");
    ck_source(b, 7, "ox");
    char text[500];
    ck_assert_str_eq(wf_bitext_describe(s, text, sizeof text),
                     "8 pairs, 11 + 19 tokens (2 + 0 unknown); 5 skipped: 2 empty on both sides, 3 duplicates");
    wf_bitext_close(b);
    ck_ok(open_texts(TEXTS("w1\nw1\n", "w1\nw1\n"), &options, &b, error));
    ck_assert_str_eq(wf_bitext_describe(wf_bitext_survey(b), text, sizeof text), "1 pair, 1 + 2 tokens; 1 skipped: 1 duplicate");
    wf_bitext_close(b);
    wf_tokenizer_free(t);
}
END_TEST

/* Against all pairs compared with each other; on any threads, from the cache too. */
START_TEST(many_repeats_on_any_threads)
{
    enum { LINES = 40000, SENTENCES = 40 };
    wf_tokenizer *t = words(false);
    wf_rng rng = wf_rng_new(5, 5);
    struct wf_string text[2] = {{0}, {0}};
    bool seen[SENTENCES][SENTENCES] = {{false}};
    int64_t *expected = malloc(LINES * sizeof *expected), used = 0, at = 0, over = 0;
    for (int i = 0; i < LINES; i++) {
        int one[2] = {(int)wf_rng_below(&rng, SENTENCES),
                      i < LINES / 2 ? (int)wf_rng_below(&rng, SENTENCES / 2) : (int)wf_rng_below(&rng, SENTENCES)};
        int count[2];
        int64_t from = at;
        for (int k = 0; k < 2; k++) {
            count[k] = 1 + one[k] % 7 * 2;
            for (int j = 0; j < count[k]; j++)
                wf_string_format(&text[k], "%sw%d", j ? " " : "", (one[k] + j) % 60);
            wf_string_format(&text[k], "\n");
        }
        at = text[0].length;
        if (count[0] > 3 * count[1] || count[1] > 3 * count[0]) {
            over++;
        } else if (!seen[one[0]][one[1]]) {
            seen[one[0]][one[1]] = true;
            expected[used++] = from;
        }
    }
    char *folder = test_file("cache", NULL, 0);
    for (int run = 0; run < 4; run++) {
        const struct wf_bitext_options options = {
            .source = t, .target = t, .source_eos = true, .max_ratio = 3, .deduplicate = true, .cache = run < 2 ? NULL : folder};
        wf_bitext *b;
        ck_ok(wf_set_threads(1 + run, error));
        ck_ok(open_texts(text[0].data, text[0].length, text[1].data, text[1].length, &options, &b, error));
        const struct wf_bitext_survey *s = wf_bitext_survey(b);
        ck_assert(s->used == used && s->over_ratio == over && s->duplicates == LINES - used - over && s->cached == (run == 3));
        ck_assert(used > 500 && over > 1000 && s->duplicates > 10000);
        for (int64_t i = 0; i < used; i++) {
            struct wf_string got = {0};
            ck_ok(wf_bitext_text(b, i, 0, &got, error));
            ck_assert(memcmp(got.data, text[0].data + expected[i], (size_t)got.length) == 0 &&
                      text[0].data[expected[i] + got.length] == '\n');
            wf_string_free(&got);
        }
        wf_bitext_close(b);
    }
    free(expected);
    wf_string_free(&text[0]);
    wf_string_free(&text[1]);
    wf_tokenizer_free(t);
}
END_TEST

/* A survey in the cache is that of its filters. */
START_TEST(caches_of_each_filter)
{
    wf_tokenizer *t = words(false);
    char *folder = test_file("cache", NULL, 0);
    static const struct {
        double ratio;
        bool deduplicate;
        int used;
    } filter[] = {{0, false, 5}, {2, false, 4}, {4, false, 5}, {0, true, 4}, {2, true, 3}};
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof filter / sizeof *filter; i++) {
            const struct wf_bitext_options options = {
                .source = t, .target = t, .cache = folder, .max_ratio = filter[i].ratio, .deduplicate = filter[i].deduplicate};
            wf_bitext *b;
            ck_ok(open_texts(TEXTS("w1\nw2\nw1\nw3 w4 w5\nw6\n", "w1\nw2\nw1\nw3\nw6\n"), &options, &b, error));
            ck_assert_msg(wf_bitext_survey(b)->cached == again && wf_bitext_survey(b)->used == filter[i].used, "%d, %d", again, (int)i);
            wf_bitext_close(b);
        }
    wf_tokenizer_free(t);
}
END_TEST

/* Batches of pairs whose survey has become the cache's, which may be deleted meanwhile. */
START_TEST(a_cache_that_is_deleted_in_use)
{
    wf_tokenizer *t = words(false);
    char *folder = test_file("cache", NULL, 0), command[700];
    for (int cached = 0; cached < 2; cached++) {
        const struct wf_bitext_options options = {.source = t, .target = t, .cache = folder, .deduplicate = true};
        wf_bitext *b;
        wf_pair_batches *batches;
        struct wf_pairs pairs;
        for (int k = 0; k <= cached; k++) {
            ck_ok(open_texts(TEXTS("w1\nw2\nw1\n", "w1\nw2\nw1\n"), &options, &b, error));
            ck_assert(wf_bitext_survey(b)->cached == (k == 1));
            if (k < cached)
                wf_bitext_close(b);
        }
        snprintf(command, sizeof command, "rm -r '%s'", folder);
        ck_assert_int_eq(system(command), 0);
        ck_ok(wf_pair_batches_new(b, &(struct wf_pair_batches_options){.in_order = true}, &batches, error));
        ck_ok(wf_pair_batches_next(batches, &pairs, error));
        ck_assert(pairs.count == 2 && pairs.source[1] == wf_tokenizer_id(t, "w2", 2));
        wf_pair_batches_free(batches);
        wf_bitext_close(b);
    }
    wf_tokenizer_free(t);
}
END_TEST

struct stopping {
    int64_t calls, stop;
};

static bool stop_at(void *ctx, int64_t done, int64_t total)
{
    struct stopping *s = ctx;
    (void)done, (void)total;
    return ++s->calls != s->stop;
}

/* Also while pairs are compared, after the last line was encoded. */
START_TEST(can_be_stopped)
{
    wf_tokenizer *t = words(false);
    struct stopping all[2] = {{0}, {0}};
    char *source, *target;
    make_corpus(140000, 1, 1, &source, &target);
    for (int deduplicate = 0; deduplicate < 2; deduplicate++) {
        struct wf_bitext_options options = {
            .source = t, .target = t, .progress = stop_at, .ctx = &all[deduplicate], .deduplicate = deduplicate};
        wf_bitext *b;
        ck_ok(wf_bitext_open(source, target, &options, &b, error));
        ck_assert_int_eq(wf_bitext_survey(b)->used, deduplicate ? 3600 : 140000); /* 60 x 60 pairs of words */
        wf_bitext_close(b);
        int64_t live = wf_alloc_live();
        struct stopping last = {.stop = all[deduplicate].calls};
        options.ctx = &last;
        ck_fails(wf_bitext_open(source, target, &options, &b, error), WF_ERR_CANCELLED, "cancelled");
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(no_memory)
{
    struct corpus c;
    open_corpus(&c, 200, 2);
    c.options.max_ratio = 2;
    c.options.deduplicate = true;
    ck_assert_int_gt(sweep_memory(reopened, &c), 12);
    close_corpus(&c);
}
END_TEST

WF_TEST_MAIN("bitext_filters", ratio_of_lengths, repeats_of_a_pair, many_repeats_on_any_threads, caches_of_each_filter,
             a_cache_that_is_deleted_in_use, can_be_stopped, no_memory)

/* SPDX-License-Identifier: MIT */
#include "bitext_test.h"

static wf_status open_texts(const char *source, int64_t source_bytes, const char *target, int64_t target_bytes,
                            const struct wf_bitext_options *options, wf_bitext **out, wf_error *error)
{
    char *a = keep_file("a.en", source, source_bytes), *b = keep_file("b.de", target, target_bytes);
    wf_status status = wf_bitext_open(a, b, options, out, error);
    wf_free(a);
    wf_free(b);
    ck_assert((status == WF_OK) == (*out != NULL));
    return status;
}

#define TEXTS(source, target) source, (int64_t)sizeof(source) - 1, target, (int64_t)sizeof(target) - 1

static void ck_text(const wf_bitext *b, int64_t pair, int side, const char *expected)
{
    int64_t length;
    const char *text = wf_bitext_text(b, pair, side, &length);
    ck_assert_msg(length == (int64_t)strlen(expected) && !memcmp(text, expected, (size_t)length), "pair %d, side %d: \"%.*s\"", (int)pair,
                  side, (int)length, text);
}

/* Only "\n" ends a line; white space at the edges goes, inside it stays; no last line end is needed; a mark in front goes. */
START_TEST(lines_are_aligned)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    /* U+2028, U+2029, U+0085, form feed, vertical tab, FS, a lone CR, NBSP and a tab inside; NBSP, U+3000, U+2003 at edges. */
    ck_ok(open_texts(TEXTS("\xEF\xBB\xBFw0\xE2\x80\xA8w1\xE2\x80\xA9w2\r\n"
                           "\xC2\xA0 w1\xC2\x85w2 \xE3\x80\x80\t\r\n"
                           "w2\x0C\x0Bw3\x1Cw4\rw5\n"
                           "\xE2\x80\x83w3\xC2\xA0w4\tw5  w6\xC2\xA0\n"
                           "w9",
                           "w1\nw2\r\r\n\r\n"
                           "\xEF\xBB\xBFw3\n"
                           "w4\n"),
                     &options, &b, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(b);
    ck_assert_int_eq(s->lines, 5);
    ck_assert_int_eq(s->used, 4);
    ck_assert_int_eq(s->empty_target, 1);
    ck_text(b, 0, 0, "w0\xE2\x80\xA8w1\xE2\x80\xA9w2");
    ck_text(b, 0, 1, "w1");
    ck_text(b, 1, 0, "w1\xC2\x85w2");
    ck_text(b, 1, 1, "w2");
    ck_text(b, 2, 0, "w3\xC2\xA0w4\tw5  w6");
    ck_text(b, 2, 1, "\xEF\xBB\xBFw3"); /* further on, a mark is a character */
    ck_text(b, 3, 0, "w9");
    ck_text(b, 3, 1, "w4");
    wf_bitext_close(b);
    wf_bitext_close(NULL);
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

/* Each line counts once, by its reason; what the used pairs hold, by hand. */
START_TEST(counts_by_reason)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t, .source_bos = true, .source_eos = true, .max_length = 5};
    wf_bitext *b;
    ck_ok(open_texts(TEXTS("w1 w2 w3\n"
                           "\n"
                           "w1\n"
                           " \xC2\xA0 \n"
                           "w1 w2 w3 w4\n" /* 4 and two marks */
                           "w1 zz\n"
                           "w1 w2 w3 w4 w5 w6 w7\n"
                           "\n"
                           "w1 zz zz zz zz\n",
                           "w1 w2 w3 w4\n" /* 4 and one mark */
                           "w1\n"
                           "\t\r\n"
                           "\n"
                           "w1\n"
                           "w1 w2 w3 w4 w5\n"
                           "w1 w2 w3 w4 w5 w6\n"
                           "w1 w2 w3 w4 w5 w6 w7 w8\n"
                           "w1\n"),
                     &options, &b, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(b);
    ck_assert_int_eq(s->lines, 9);
    ck_assert_int_eq(s->used, 1);
    ck_assert_int_eq(s->empty_source, 2);
    ck_assert_int_eq(s->empty_target, 1);
    ck_assert_int_eq(s->empty_both, 1);
    ck_assert_int_eq(s->long_source, 2);
    ck_assert_int_eq(s->long_target, 1);
    ck_assert_int_eq(s->long_both, 1);
    ck_assert_int_eq(s->source_tokens, 5);
    ck_assert_int_eq(s->target_tokens, 5);
    ck_assert_int_eq(s->source_unknown, 0);
    ck_assert_int_eq(s->longest_source, 9);
    ck_assert_int_eq(s->longest_target, 9);
    ck_assert_int_eq(s->max_length, 5);
    ck_assert(!s->cached);
    int64_t source, target;
    wf_bitext_lengths(b, 0, &source, &target);
    ck_assert(source == 5 && target == 5);
    char text[400];
    ck_assert_str_eq(wf_bitext_describe(s, text, sizeof text),
                     "1 pair, 5 + 5 tokens; 8 left out: 2 empty source, 1 empty target, 1 empty on both sides, 2 source longer than 5, "
                     "1 target longer than 5, 1 both longer than 5");
    char cut[12];
    ck_assert_str_eq(wf_bitext_describe(s, cut, sizeof cut), "1 pair, 5 +");
    wf_bitext_close(b);

    const struct wf_bitext_options bare = {.source = t, .target = t};
    ck_ok(open_texts(TEXTS("w1 zz\nzz\n", "w1\nzz zz w3\n"), &bare, &b, error));
    s = wf_bitext_survey(b);
    ck_assert(s->used == 2 && s->source_tokens == 3 && s->target_tokens == 6 && s->source_unknown == 2 && s->target_unknown == 2);
    ck_assert_str_eq(wf_bitext_describe(s, text, sizeof text), "2 pairs, 3 + 6 tokens (2 + 2 unknown)");
    wf_bitext_close(b);

    ck_fails(open_texts(TEXTS("\nw1 w2 w3 w4 w5 w6\n", "w1\nw1\n"), &options, &b, error), WF_ERR_FORMAT,
             "b.de: no pair of lines can be used: 0 pairs; 2 left out: 1 empty source, 1 source longer than 5");
    const struct wf_bitext_survey large = {.lines = 29012,
                                           .used = 29000,
                                           .source_tokens = 1234567,
                                           .target_tokens = 999,
                                           .empty_source = 3,
                                           .long_source = 9,
                                           .max_length = 512};
    ck_assert_str_eq(wf_bitext_describe(&large, text, sizeof text),
                     "29,000 pairs, 1,234,567 + 999 tokens; 12 left out: 3 empty source, 9 source longer than 512");
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

START_TEST(files_that_do_not_pair_up)
{
    wf_tokenizer *t = words(false);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    ck_fails(open_texts(TEXTS("w1\nw2\nw3", "w1\nw2\n"), &options, &b, error), WF_ERR_FORMAT, "a.en has 3 lines and ");
    ck_fails(open_texts(TEXTS("w1\nw2\nw3", "w1\nw2\n"), &options, &b, error), WF_ERR_FORMAT, "b.de has 2; ");
    ck_fails(open_texts(TEXTS("w1\n", "w1\n\n"), &options, &b, error), WF_ERR_FORMAT, "has 1 lines");
    ck_ok(open_texts(TEXTS("w1\nw2", "w1\nw2\n"), &options, &b, error));
    wf_bitext_close(b);
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

START_TEST(bytes_that_are_no_text)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    ck_fails(open_texts(TEXTS("w1\nw2 \xFF w3\nw\xC0\n", "\xFF\n2\n3\n"), &options, &b, error), WF_ERR_FORMAT,
             "a.en:2:4: not UTF-8: byte 0xFF (offset 6)");
    ck_fails(open_texts(TEXTS("w1\nw2\n", "w1\nw2 \xE2\x82\n"), &options, &b, error), WF_ERR_FORMAT,
             "b.de:2:4: not UTF-8: byte 0xE2 (offset 6): a sequence cut short");
    ck_fails(open_texts(TEXTS("w1\nw2\n", "w1\nw2 \xE2\x82"), &options, &b, error), WF_ERR_FORMAT, "b.de:2:4: not UTF-8: byte 0xE2");
    ck_fails(open_texts(TEXTS("\xEF\xBB\xBF\xED\xA0\x80\n", "w1\n"), &options, &b, error), WF_ERR_FORMAT,
             "a.en:1:4: not UTF-8: byte 0xED (offset 3): a surrogate");
    ck_fails(open_texts(TEXTS(" \xA0\n", "w1\n"), &options, &b, error), WF_ERR_FORMAT, "a.en:1:2: not UTF-8: byte 0xA0");
    ck_fails(open_texts(TEXTS("w1\nw2 w\0\n", "w1\nw2\n"), &options, &b, error), WF_ERR_FORMAT, "a.en:2:5: a NUL byte (offset 7)");
    ck_fails(open_texts(TEXTS("\xFF\xFEw\0\n", "w1\n"), &options, &b, error), WF_ERR_FORMAT, "this is UTF-16");
    ck_fails(open_texts(TEXTS("", "w1\n"), &options, &b, error), WF_ERR_FORMAT, "a.en: the file is empty");
    ck_fails(open_texts(TEXTS("w1\n", "\xEF\xBB\xBF"), &options, &b, error), WF_ERR_FORMAT, "b.de: the file is empty");
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

START_TEST(files_that_are_no_files)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    char *good = keep_file("good", "w1\n", 3), *pipe = keep_file("pipe", NULL, 0);
    char command[300];
    snprintf(command, sizeof command, "mkfifo '%s'", pipe);
    ck_assert_int_eq(system(command), 0);
    ck_fails(wf_bitext_open(good, "/no/such/file", &options, &b, error), WF_ERR_IO, "/no/such/file: cannot be opened: No such file");
    ck_fails(wf_bitext_open("/tmp", good, &options, &b, error), WF_ERR_IO, "/tmp: is a folder");
    ck_fails(wf_bitext_open(pipe, good, &options, &b, error), WF_ERR_IO, "pipe: is a device or a pipe");
    ck_fails(wf_bitext_open(good, "/dev/null", &options, &b, error), WF_ERR_IO, "/dev/null: is a device or a pipe");
    ck_assert_ptr_null(b);
    ck_ok(wf_bitext_open(good, good, &options, &b, error)); /* one file on both sides is fine */
    wf_bitext_close(b);
    struct wf_bitext_options negative = options;
    negative.max_length = -1;
    ck_fails(wf_bitext_open(good, good, &negative, &b, error), WF_ERR_ARGUMENT, "-1 tokens");
    wf_free(good);
    wf_free(pipe);
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

START_TEST(marks_that_a_tokenizer_lacks)
{
    wf_tokenizer *t = words(false), *bare;
    wf_bitext *b;
    ck_ok(wf_tokenizer_train("w 0123456789", 12, &bare, error)); /* char: has none */
    const struct wf_bitext_options target = {.source = t, .target = bare}, source = {.source = bare, .target = t},
                                   eos = {.source = bare, .target = t, .source_eos = true},
                                   bos = {.source = bare, .target = t, .source_bos = true};
    ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &target, &b, error), WF_ERR_ARGUMENT, "b.de: its tokenizer has no token for the start");
    ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &eos, &b, error), WF_ERR_ARGUMENT, "a.en: its tokenizer has no token for the end");
    ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &bos, &b, error), WF_ERR_ARGUMENT, "a.en: its tokenizer has no token for the start");
    ck_ok(open_texts(TEXTS("w1 w2\n", "w1\n"), &source, &b, error));
    ck_assert_int_eq(wf_bitext_survey(b)->source_tokens, 5);
    wf_bitext_close(b);
    wf_tokenizer_free(bare);
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

START_TEST(words_that_the_vocabulary_lacks)
{
    wf_tokenizer *t = words(false);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    ck_fails(open_texts(TEXTS("w1\nw2\n w3 zebra\nzzz\n", "w1\nw2\nw3\nw4\n"), &options, &b, error), WF_ERR_FORMAT, "a.en:3:5: ");
    ck_fails(open_texts(TEXTS("w1\nw2\n w3 zebra\nzzz\n", "w1\nw2\nw3\nw4\n"), &options, &b, error), WF_ERR_FORMAT, "zebra");
    ck_fails(open_texts(TEXTS("w1\nw2\n", "w1\nw2 w3 yak\n"), &options, &b, error), WF_ERR_FORMAT, "b.de:2:7: ");
    ck_fails(open_texts(TEXTS("\xEF\xBB\xBFw1 q\n", "w1\n"), &options, &b, error), WF_ERR_FORMAT, "a.en:1:7: ");
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

/* Some pieces of the survey long, with a line longer than a piece, a fault far inside: whatever the threads. */
START_TEST(many_lines_on_any_threads)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t, .source_eos = true};
    enum { LINES = 150000, LONG = 70000 };
    wf_rng rng = wf_rng_new(3, 3);
    char *text[2] = {malloc(6000000), malloc(6000000)};
    int64_t *begin[2] = {malloc((LINES + 1) * 8), malloc((LINES + 1) * 8)}, bytes[2] = {0, 0};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < LINES; i++) {
            int count = i == LONG ? 100000 : (int)wf_rng_below(&rng, 8);
            begin[side][i] = bytes[side];
            for (int k = 0; k < count; k++)
                bytes[side] += sprintf(text[side] + bytes[side], "%sw%d", k ? " " : "", (int)wf_rng_below(&rng, 90)); /* a third unknown */
            text[side][bytes[side]++] = '\n';
        }
    struct wf_bitext_survey first = {0};
    for (int threads = 1; threads <= 4; threads *= 2) {
        wf_bitext *b;
        ck_ok(wf_set_threads(threads, error));
        ck_ok(open_texts(text[0], bytes[0], text[1], bytes[1], &options, &b, error));
        const struct wf_bitext_survey *s = wf_bitext_survey(b);
        if (threads == 1)
            first = *s;
        ck_assert_int_eq(memcmp(&first, s, offsetof(struct wf_bitext_survey, cached)), 0);
        ck_assert(s->lines == LINES && s->longest_source == 100001 && s->source_unknown > 100000);
        int64_t pair = 0, ids[2] = {0, 0};
        for (int i = 0; i < LINES; i++) {
            int64_t end[2], length;
            for (int side = 0; side < 2; side++)
                end[side] = (i + 1 < LINES ? begin[side][i + 1] : bytes[side]) - 1;
            if (end[0] == begin[0][i] || end[1] == begin[1][i])
                continue;
            for (int side = 0; side < 2; side++) {
                const char *got = wf_bitext_text(b, pair, side, &length);
                if (length != end[side] - begin[side][i] || memcmp(got, text[side] + begin[side][i], (size_t)length))
                    ck_abort_msg("line %d, side %d: \"%.*s\"", i, side, (int)length, got);
            }
            int64_t a, z;
            wf_bitext_lengths(b, pair++, &a, &z);
            ids[0] += a;
            ids[1] += z;
        }
        ck_assert(pair == s->used && ids[0] == s->source_tokens && ids[1] == s->target_tokens);
        wf_bitext_close(b);
        /* Of several faults in different pieces the first is told. */
        char place[60], kept[4];
        for (int i = 0; i < 4; i++) {
            char *at = text[0] + begin[0][LONG + 1 + 20000 * i];
            kept[i] = *at;
            *at = '\xFF';
        }
        snprintf(place, sizeof place, "a.en:%d:1: not UTF-8", LONG + 2);
        ck_fails(open_texts(text[0], bytes[0], text[1], bytes[1], &options, &b, error), WF_ERR_FORMAT, place);
        for (int i = 0; i < 4; i++)
            text[0][begin[0][LONG + 1 + 20000 * i]] = kept[i];
    }
    for (int side = 0; side < 2; side++) {
        free(text[side]);
        free(begin[side]);
    }
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

/* A line that ends, or begins, with the last byte of a piece of 2^18. */
START_TEST(lines_at_the_edges_of_pieces)
{
    enum { MOST = 600000 };
    wf_tokenizer *t = words(false);
    const struct wf_bitext_options options = {.source = t, .target = t};
    char *text = malloc(MOST);
    for (int shift = 0; shift < 5; shift++) {
        wf_bitext *b;
        int64_t bytes = 0, lines = 1;
        for (int i = 0; i < 4 + shift; i++)
            text[bytes++] = i < 2 ? "w1"[i] : ' ';
        for (text[bytes++] = '\n'; bytes + 4 < MOST; lines++)
            bytes += sprintf(text + bytes, "w%d\n", 10 + (int)(lines % 50));
        ck_ok(open_texts(text, bytes, text, bytes, &options, &b, error));
        ck_assert_int_eq(wf_bitext_survey(b)->used, lines);
        for (int64_t i = 1; i < lines; i++) {
            int64_t length;
            const char *word = wf_bitext_text(b, i, 1, &length);
            ck_assert(length == 3 && word[1] == '1' + (char)(i % 50 / 10) && word[2] == '0' + (char)(i % 10));
        }
        wf_bitext_close(b);
    }
    free(text);
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

struct progress {
    int64_t calls, last, total, stop;
};

static bool note(void *ctx, int64_t done, int64_t total)
{
    struct progress *p = ctx;
    ck_assert(done >= p->last && done <= total);
    p->last = done;
    p->total = total;
    return ++p->calls != p->stop;
}

START_TEST(tells_how_far_it_is_and_stops)
{
    struct progress all = {0};
    wf_tokenizer *t = words(false);
    char *source, *target;
    make_corpus(60000, 12, 1, &source, &target);
    struct wf_bitext_options options = {.source = t, .target = t, .progress = note, .ctx = &all};
    wf_bitext *b;
    ck_ok(wf_set_threads(1, error));
    int64_t live = wf_alloc_live();
    ck_ok(wf_bitext_open(source, target, &options, &b, error));
    wf_bitext_close(b);
    ck_assert(all.calls > 4 && all.last == all.total && all.total > 2000000);
    for (int64_t stop = 1; stop <= all.calls; stop++) {
        struct progress p = {.stop = stop};
        options.ctx = &p;
        ck_fails(wf_bitext_open(source, target, &options, &b, error), WF_ERR_CANCELLED, "cancelled");
        ck_assert_int_eq(p.calls, stop);
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    wf_free(source);
    wf_free(target);
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

static void overwrite(const char *path, const char *mode, const char *data, size_t bytes)
{
    FILE *f = fopen(path, mode);
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

/* A file that is touched, or replaced beside it, goes on; one that is written to is noticed before its pages are read. */
START_TEST(files_that_change_in_use)
{
    wf_tokenizer *t = words(false);
    for (int how = 0; how < 5; how++) {
        char *source = keep_file("a", "w1 w2\nw3\n", 9), *target = keep_file("b", "w4\nw5\n", 6), *other = wf_format("%s.new", target);
        const struct wf_bitext_options options = {.source = t, .target = t};
        wf_bitext *b;
        wf_pair_batches *batches;
        struct wf_pairs pairs;
        ck_ok(wf_bitext_open(source, target, &options, &b, error));
        ck_ok(wf_pair_batches_new(b, &(struct wf_pair_batches_options){.in_order = true}, &batches, error));
        ck_ok(wf_pair_batches_next(batches, &pairs, error));
        usleep(20000); /* clocks of file systems are coarse */
        if (how == 0)
            overwrite(target, "r+", "w4\nw5\n", 6);
        if (how == 1)
            overwrite(target, "r+", "w4\nw6\n", 6);
        if (how == 2)
            overwrite(target, "w", "w4\n", 3);
        if (how == 3)
            overwrite(target, "a", "w7\n", 3);
        if (how == 4) {
            overwrite(other, "w", "zz", 2);
            ck_assert_int_eq(rename(other, target), 0);
        }
        for (int again = 0; again < 2; again++)
            if (how == 0 || how == 4) {
                ck_ok(wf_pair_batches_next(batches, &pairs, error));
                ck_assert(pairs.count == 2 && pairs.target[0] == wf_tokenizer_id(t, "w5", 2));
            } else {
                ck_fails(wf_pair_batches_next(batches, &pairs, error), WF_ERR_FORMAT, "b: the file was changed while it was in use");
                ck_assert_int_eq(pairs.count, 0);
            }
        wf_pair_batches_free(batches);
        wf_bitext_close(b);
        wf_free(source);
        wf_free(target);
        wf_free(other);
    }
    wf_tokenizer_free(t);
    remove_test_files();
}
END_TEST

static wf_status open_once(void *ctx, wf_error *error)
{
    struct corpus *c = ctx;
    wf_bitext *b;
    struct wf_bitext_options options = {.source = c->tokenizer, .target = c->tokenizer};
    wf_status status = wf_bitext_open(c->source, c->target, &options, &b, error);
    ck_assert((status == WF_OK) == (b != NULL));
    wf_bitext_close(b);
    return status;
}

START_TEST(no_memory)
{
    struct corpus c;
    open_corpus(&c, 50, 5);
    ck_assert_int_gt(sweep_memory(open_once, &c), 8);
    close_corpus(&c);
}
END_TEST

WF_TEST_MAIN("bitext", lines_are_aligned, counts_by_reason, files_that_do_not_pair_up, bytes_that_are_no_text, files_that_are_no_files,
             marks_that_a_tokenizer_lacks, words_that_the_vocabulary_lacks, many_lines_on_any_threads, lines_at_the_edges_of_pieces,
             tells_how_far_it_is_and_stops, files_that_change_in_use, no_memory)

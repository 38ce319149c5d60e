/* SPDX-License-Identifier: MIT */
/* The survey of files that are larger than its pieces, on any threads; its progress; files that change; no memory. */
#include "bitext_test.h"
#include <weft/internal/string.h>

/* Texts of several pieces of the survey, with a line longer than a piece and a fault far inside, on any number of threads. */
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
    struct wf_string got = {0};
    for (int threads = 1; threads <= 4; threads *= 2) {
        wf_bitext *b;
        ck_ok(wf_set_threads(threads, error));
        ck_ok(open_texts(text[0], bytes[0], text[1], bytes[1], &options, &b, error));
        const struct wf_bitext_survey *s = wf_bitext_survey(b);
        if (threads == 1)
            first = *s;
        ck_assert_mem_eq(&first, s, offsetof(struct wf_bitext_survey, cached));
        ck_assert(s->lines == LINES && s->longest_source == 100001 && s->source_unknown > 100000);
        int64_t pair = 0, ids[2] = {0, 0};
        for (int i = 0; i < LINES; i++) {
            int64_t end[2];
            for (int side = 0; side < 2; side++)
                end[side] = (i + 1 < LINES ? begin[side][i + 1] : bytes[side]) - 1;
            if (end[0] == begin[0][i] || end[1] == begin[1][i])
                continue;
            for (int side = 0; side < 2; side++) {
                ck_ok(wf_bitext_text(b, pair, side, &got, error));
                if (got.length != end[side] - begin[side][i] || memcmp(got.data, text[side] + begin[side][i], (size_t)got.length))
                    ck_abort_msg("line %d, side %d: \"%.*s\"", i, side, (int)got.length, got.data);
            }
            int64_t a, z;
            wf_bitext_lengths(b, pair++, &a, &z);
            ids[0] += a;
            ids[1] += z;
        }
        ck_assert(pair == s->used && ids[0] == s->source_tokens && ids[1] == s->target_tokens);
        wf_bitext_close(b);
        /* Of several faults in different pieces the first is reported. */
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
    wf_string_free(&got);
    for (int side = 0; side < 2; side++) {
        free(text[side]);
        free(begin[side]);
    }
    wf_tokenizer_free(t);
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
            struct wf_string word = {0};
            ck_ok(wf_bitext_text(b, i, 1, &word, error));
            ck_assert(word.length == 3 && word.data[1] == '1' + (char)(i % 50 / 10) && word.data[2] == '0' + (char)(i % 10));
            wf_string_free(&word);
        }
        wf_bitext_close(b);
    }
    free(text);
    wf_tokenizer_free(t);
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

START_TEST(reports_progress_and_stops)
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
    wf_tokenizer_free(t);
}
END_TEST

/* A file that is touched, or replaced beside it, goes on; one that is written to is noticed before its pages are read. */
START_TEST(files_that_change_in_use)
{
    static const char *const modes[] = {"r+", "r+", "w", "a", "w"}, *const texts[] = {"w4\nw5\n", "w4\nw6\n", "w4\n", "w7\n", "zz"};
    wf_tokenizer *t = words(false);
    for (int how = 0; how < 5; how++) {
        char *source = text_file("a", "w1 w2\nw3\n"), *target = text_file("b", "w4\nw5\n"), *other = test_file("b.new", NULL, 0);
        const struct wf_bitext_options options = {.source = t, .target = t};
        wf_bitext *b;
        wf_pair_batches *batches;
        struct wf_pairs pairs;
        ck_ok(wf_bitext_open(source, target, &options, &b, error));
        ck_ok(wf_pair_batches_new(b, &(struct wf_pair_batches_options){.in_order = true}, &batches, error));
        ck_ok(wf_pair_batches_next(batches, &pairs, error));
        usleep(20000); /* clocks of file systems are coarse */
        FILE *f = fopen(how == 4 ? other : target, modes[how]);
        ck_assert(f && fputs(texts[how], f) >= 0 && fclose(f) == 0);
        if (how == 4)
            ck_assert_int_eq(rename(other, target), 0);
        for (int again = 0; again < 2; again++)
            if (how == 0 || how == 4) {
                ck_ok(wf_pair_batches_next(batches, &pairs, error));
                ck_assert(pairs.count == 2 && pairs.target[0] == wf_tokenizer_id(t, "w5", 2));
            } else {
                ck_fails(wf_pair_batches_next(batches, &pairs, error), WF_ERR_FORMAT, "b: the file was modified while it was in use");
                ck_assert_int_eq(pairs.count, 0);
            }
        wf_pair_batches_free(batches);
        wf_bitext_close(b);
    }
    wf_tokenizer_free(t);
}
END_TEST

/* A text in three pieces: the last has one line, and the other two are read at once by one thread. */
enum { TWO_PIECES = 1 << 19, LAST = 6 };

static bool prepend_a_line(void *ctx, int64_t done, int64_t total)
{
    if (done == total - LAST) {
        FILE *f = fopen(ctx, "r+");
        ck_assert(f && fseek(f, TWO_PIECES, SEEK_SET) == 0 && fwrite("\nw1 w2", 1, LAST, f) == LAST && fclose(f) == 0);
    }
    return true;
}

/* A last line that was added after the lines were counted, in a file of the same size: there is no memory for it, which a sanitizer would
 * notice. */
START_TEST(a_line_more_than_was_counted)
{
    wf_tokenizer *t = words(false);
    struct wf_string text = {0};
    int threads = wf_threads();
    while (text.length < TWO_PIECES)
        wf_string_text(&text, "w1 w1 w1 w1 w12\n");
    wf_string_text(&text, "w1 w2\n");
    char *source = text_file("a", text.data), *target = text_file("b", text.data);
    const struct wf_bitext_options options = {.source = t, .target = t, .progress = prepend_a_line, .ctx = target};
    wf_bitext *b;
    usleep(20000); /* clocks of file systems are coarse */
    ck_ok(wf_set_threads(1, error));
    ck_fails(wf_bitext_open(source, target, &options, &b, error), WF_ERR_FORMAT, "b: the file was modified while it was in use");
    ck_ok(wf_set_threads(threads, error));
    wf_string_free(&text);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(no_memory)
{
    struct corpus c;
    open_corpus(&c, 50, 5);
    ck_assert_int_gt(sweep_memory(reopened, &c), 8);
    close_corpus(&c);
}
END_TEST

WF_TEST_MAIN("bitext_survey", many_lines_on_any_threads, lines_at_the_edges_of_pieces, reports_progress_and_stops, files_that_change_in_use,
             a_line_more_than_was_counted, no_memory)

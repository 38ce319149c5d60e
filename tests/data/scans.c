/* SPDX-License-Identifier: MIT */
/* Walks over texts, handed on: one serves all calls, nothing else changes, and a file that has changed is walked over again. */
#include <fcntl.h>
#include <sys/stat.h>

#include "data_test.h"

static const char english[] = "one fish two fish\nred fish blue fish\n", german[] = "ein fisch zwei fische\nrot und blau\n";

/* Before anything is encoded only walks ask. */
static bool count_walks(void *ctx, int64_t done, int64_t total)
{
    *(int *)ctx += done == 0 && total > 0;
    return true;
}

static bool count_readings(void *ctx, const struct wf_tokenizer_progress *p)
{
    *(int *)ctx += strcmp(p->phase, "reading") == 0;
    return true;
}

static wf_tokenizer *trained(const char *path, wf_scans *scans, int *walks)
{
    wf_tokenizer *t;
    const struct wf_tokenizer_options o = {.kind = WF_TOKENIZER_BPE,
                                           .vocab_size = 60,
                                           .specials = (const char *const[]){"<pad>", "<bos>", "<eos>", "<unk>"},
                                           .special_count = 4,
                                           .progress = count_readings,
                                           .ctx = walks};
    ck_ok(wf_tokenizer_train_cached(&path, 1, &o, test_cache, scans, &t, error));
    return t;
}

static struct wf_text_ids opened(const char *path, const wf_tokenizer *t, wf_scans *scans, int *walks)
{
    struct wf_text_ids ids;
    const struct wf_corpus_options o = {.tokenizer = t, .cache = test_cache, .progress = count_walks, .ctx = walks, .scans = scans};
    ck_ok(wf_text_ids_open(&path, 1, &o, &ids, error));
    return ids;
}

static struct wf_bitext_survey surveyed(const char *source, const char *target, const wf_tokenizer *t, wf_scans *scans, int *walks)
{
    wf_bitext *b;
    const struct wf_bitext_options o = {
        .source = t, .target = t, .cache = test_cache, .progress = count_walks, .ctx = walks, .scans = scans};
    ck_ok(wf_bitext_open(source, target, &o, &b, error));
    struct wf_bitext_survey s = *wf_bitext_survey(b);
    wf_bitext_close(b);
    return s;
}

/* Without scans each call walks; with them the first does. Both find what the other has cached: the keys are the same. */
START_TEST(one_walk_for_all)
{
    begin_cache();
    char *a = text_file("a", english), *b = text_file("b", german);
    int64_t files = 0;
    for (int with = 0; with < 2; with++) {
        wf_scans *scans = with ? wf_scans_new() : NULL;
        ck_assert(!with || scans);
        int walks = 0;
        wf_tokenizer_free(trained(a, scans, &walks)); /* it is in the cache from here on, and only the walk reads */
        walks = 0;
        wf_tokenizer *t = trained(a, scans, &walks);
        ck_assert_int_eq(walks, with ? 0 : 1);
        struct wf_text_ids first = opened(a, t, scans, &walks), again = opened(a, t, scans, &walks);
        ck_assert_int_eq(walks, with ? 0 : 3);
        ck_assert(first.cached == with && again.cached && first.hash == again.hash);
        ck_assert_int_eq(again.characters, sizeof english - 1);
        wf_text_ids_close(&first);
        wf_text_ids_close(&again);
        walks = 0;
        struct wf_bitext_survey s = surveyed(a, b, t, scans, &walks);
        ck_assert_int_eq(walks, with ? 1 : 2);
        ck_assert(s.cached == with && s.lines == 2 && s.used == 2);
        wf_tokenizer_free(t);
        wf_scans_free(scans);
        ck_assert_int_eq(cached_files("", NULL), with ? files : 3); /* a tokenizer, ids, a survey */
        files = cached_files("", NULL);
    }
}
END_TEST

/* The same name and size, but other bytes: written in place, or another file in its place, as old as the first. */
START_TEST(changed_files)
{
    begin_cache();
    char text[] = "one fish two fish\nred fish blue fish\n";
    char *a = text_file("a", text);
    int walks = 0;
    wf_tokenizer *t = trained(a, NULL, &walks);
    wf_scans *scans = wf_scans_new();
    struct wf_text_ids before = opened(a, t, scans, &walks);
    for (int way = 0; way < 2; way++) {
        struct stat old;
        ck_assert_int_eq(stat(a, &old), 0);
        text[way] = 'e';
        usleep(20000); /* the clock of a file system is no finer */
        char *other = text_file(way ? "other" : "a", text);
        ck_assert_int_eq(utimensat(AT_FDCWD, other, (struct timespec[]){old.st_atim, old.st_mtim}, 0), 0);
        if (way)
            ck_assert_int_eq(rename(other, a), 0);
        walks = 0;
        struct wf_text_ids ids = opened(a, t, scans, &walks), want = opened(a, t, NULL, &walks);
        ck_assert_int_eq(walks, 2);
        ck_assert(ids.hash == want.hash && ids.hash != before.hash && want.cached);
        wf_text_ids_close(&before);
        wf_text_ids_close(&want);
        before = ids;
    }
    wf_text_ids_close(&before);
    wf_scans_free(scans);
    wf_tokenizer_free(t);
}
END_TEST

/* A pipe is another text each time. */
START_TEST(pipes)
{
    begin_cache();
    char *a = text_file("a", english);
    int walks = 0;
    wf_tokenizer *t = trained(a, NULL, &walks);
    wf_scans *scans = wf_scans_new();
    for (int i = 0; i < 2; i++) {
        static const char *const texts[] = {"one\n", "two two\n"};
        int ends[2];
        char path[32];
        ck_assert_int_eq(pipe(ends), 0);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        ck_assert_int_eq(write(ends[1], texts[i], strlen(texts[i])), (int)strlen(texts[i]));
        close(ends[1]);
        struct wf_text_ids ids = opened(path, t, scans, &walks);
        ck_assert_int_eq(ids.characters, strlen(texts[i]));
        wf_text_ids_close(&ids);
        close(ends[0]);
    }
    wf_scans_free(scans);
    wf_tokenizer_free(t);
}
END_TEST

/* Opened texts outlive the scans. */
START_TEST(opened_texts_outlive_scans)
{
    begin_cache();
    char *a = text_file("a", english);
    int walks = 0;
    wf_scans *scans = wf_scans_new();
    wf_tokenizer *t = trained(a, scans, &walks);
    struct wf_text_ids ids = opened(a, t, scans, &walks);
    const struct wf_bitext_options o = {.source = t, .target = t, .scans = scans};
    wf_bitext *b;
    ck_ok(wf_bitext_open(a, a, &o, &b, error));
    wf_scans_free(scans);
    wf_scans_free(NULL);
    struct wf_string line = {0};
    ck_ok(wf_bitext_text(b, 1, 0, &line, error));
    ck_assert(has_bytes(&line, "red fish blue fish", 18));
    ck_assert_int_eq(ids.characters, sizeof english - 1);
    wf_string_free(&line);
    wf_bitext_close(b);
    wf_text_ids_close(&ids);
    wf_tokenizer_free(t);
}
END_TEST

struct short_of_memory {
    const char *path;
    const wf_tokenizer *tokenizer;
};

static wf_status open_all(void *ctx, wf_error *error)
{
    const struct short_of_memory *c = ctx;
    struct wf_text_ids ids;
    wf_bitext *b;
    wf_scans *scans = wf_scans_new();
    if (!scans)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for scans");
    wf_status status = wf_text_ids_open(&c->path, 1, &(struct wf_corpus_options){.tokenizer = c->tokenizer, .scans = scans}, &ids, error);
    wf_text_ids_close(&ids);
    if (status == WF_OK &&
        (status = wf_bitext_open(c->path, c->path,
                                 &(struct wf_bitext_options){.source = c->tokenizer, .target = c->tokenizer, .scans = scans}, &b, error)) ==
            WF_OK)
        wf_bitext_close(b);
    wf_scans_free(scans);
    return status;
}

START_TEST(no_memory)
{
    begin_cache();
    struct short_of_memory c = {.path = text_file("a", english)};
    int walks = 0;
    wf_tokenizer *t = trained(c.path, NULL, &walks);
    c.tokenizer = t;
    ck_assert_int_gt(sweep_memory(open_all, &c), 10);
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("scans", one_walk_for_all, changed_files, pipes, opened_texts_outlive_scans, no_memory)

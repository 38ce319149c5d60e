/* SPDX-License-Identifier: MIT */
#include <dirent.h>

#include "bitext_test.h"

static char *cache_folder(void)
{
    return test_file("cache/deep", NULL, 0);
}

/* The one survey in the folder, or NULL; valid until the next call. */
static const char *survey_file(const char *folder, int *count)
{
    static char path[600];
    DIR *dir = opendir(folder);
    *count = 0;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            ++*count;
        }
    if (dir)
        closedir(dir);
    return *count ? path : NULL;
}

static void ck_same(const wf_bitext *a, const wf_bitext *b)
{
    const struct wf_bitext_survey *x = wf_bitext_survey(a), *y = wf_bitext_survey(b);
    ck_assert_mem_eq(x, y, offsetof(struct wf_bitext_survey, cached));
    for (int64_t i = 0; i < x->used; i++) {
        int64_t l[4];
        wf_bitext_lengths(a, i, l, l + 1);
        wf_bitext_lengths(b, i, l + 2, l + 3);
        ck_assert(l[0] == l[2] && l[1] == l[3]);
        for (int side = 0; side < 2; side++) {
            struct wf_string p = {0}, q = {0};
            ck_ok(wf_bitext_text(a, i, side, &p, error));
            ck_ok(wf_bitext_text(b, i, side, &q, error));
            ck_assert(has_bytes(&p, q.data, q.length));
            wf_string_free(&p);
            wf_string_free(&q);
        }
    }
    wf_pair_batches *batches; /* can be encoded: the room for it came with the survey */
    struct wf_pairs pairs;
    ck_ok(wf_pair_batches_new((wf_bitext *)b, &(struct wf_pair_batches_options){0}, &batches, error));
    ck_ok(wf_pair_batches_next(batches, &pairs, error));
    ck_assert_int_eq(pairs.count, x->used);
    wf_pair_batches_free(batches);
}

/* Opens, and says whether the survey came from the cache; the result must be that of the corpus. */
static bool opened_from_cache(const struct corpus *c, const struct wf_bitext_options *options)
{
    wf_bitext *b;
    ck_ok(wf_bitext_open(c->source, c->target, options, &b, error));
    ck_same(c->bitext, b);
    bool cached = wf_bitext_survey(b)->cached;
    wf_bitext_close(b);
    return cached;
}

START_TEST(found_again_by_content)
{
    struct corpus c;
    open_corpus(&c, 300, 9);
    char *folder = cache_folder(), *renamed = test_file("renamed", NULL, 0);
    struct wf_bitext_options options = c.options;
    options.cache = folder;
    int count;
    ck_assert(!opened_from_cache(&c, &options));
    ck_assert(opened_from_cache(&c, &options));
    survey_file(folder, &count);
    ck_assert_int_eq(count, 1);
    /* Another name, the same bytes; a tokenizer that is equal but another object. */
    ck_assert_int_eq(rename(c.source, renamed), 0);
    c.source = renamed;
    wf_tokenizer *equal = words(false);
    options.source = equal;
    ck_assert(opened_from_cache(&c, &options));
    wf_tokenizer_free(equal);
    close_corpus(&c);
}
END_TEST

START_TEST(not_found_for_anything_else)
{
    struct corpus c;
    open_corpus(&c, 300, 9);
    char *folder = cache_folder();
    struct wf_bitext_options base = c.options;
    base.cache = folder;
    wf_tokenizer *other = words(true);
    ck_assert(!opened_from_cache(&c, &base));
    for (int what = 0; what < 7; what++) {
        struct wf_bitext_options options = base;
        if (what == 0)
            options.source = other;
        if (what == 1)
            options.target = other;
        if (what == 2)
            options.source_eos = false;
        if (what == 3)
            options.source_bos = true;
        if (what == 4)
            options.max_length = 7;
        if (what == 5) { /* one byte of the text; the same size */
            FILE *f = fopen(c.target, "r+");
            int first = (fgetc(f), fgetc(f));
            ck_assert_int_eq(fseek(f, 1, SEEK_SET), 0);
            ck_assert_int_ne(fputc(first == '3' ? '2' : '3', f), EOF);
            fclose(f);
        }
        if (what == 6) { /* the sides changed */
            char *t = c.source;
            c.source = c.target;
            c.target = t;
        }
        for (int again = 0; again < 2; again++) {
            wf_bitext *b;
            ck_ok(wf_bitext_open(c.source, c.target, &options, &b, error));
            ck_assert_msg(wf_bitext_survey(b)->cached == again, "%d, %d", what, again);
            ck_assert(what == 4 ? wf_bitext_survey(b)->used < 300 : wf_bitext_survey(b)->used == 300);
            wf_bitext_close(b);
        }
    }
    wf_tokenizer_free(other);
    close_corpus(&c);
}
END_TEST

static void damaged(const struct corpus *c, const struct wf_bitext_options *options, const char *path, const char *good, int64_t bytes,
                    int64_t size)
{
    wf_error problem = {0};
    FILE *f = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(good, 1, (size_t)size, f), (size_t)size);
    fclose(f);
    ck_assert_msg(!opened_from_cache(c, options), "%d of %d bytes", (int)size, (int)bytes);
    char *mended = wf_file_load(path, bytes, NULL, &problem);
    ck_assert_msg(mended != NULL, "%s", problem.message);
    wf_free(mended);
}

/* A changed byte, a file that is cut or longer: the survey is made and written again. */
START_TEST(damage_is_noticed)
{
    struct corpus c;
    open_corpus(&c, 3, 5);
    char *folder = cache_folder();
    struct wf_bitext_options options = c.options;
    options.cache = folder;
    int count;
    ck_assert(!opened_from_cache(&c, &options));
    const char *path = survey_file(folder, &count);
    int64_t bytes;
    wf_error problem = {0};
    char *data = wf_file_load(path, 1 << 20, &bytes, &problem);
    ck_assert(bytes > 3 * 24);
    for (int64_t i = 0; i < bytes; i += i < bytes - 80 ? 3 : 1) {
        data[i] ^= (char)(1 + i % 255);
        damaged(&c, &options, path, data, bytes, bytes);
        data[i] ^= (char)(1 + i % 255);
    }
    for (int64_t size = 0; size < bytes; size += size < bytes - 34 ? 31 : 1)
        damaged(&c, &options, path, data, bytes, size);
    damaged(&c, &options, path, data, bytes, bytes + 1); /* the zero behind it */
    ck_assert(opened_from_cache(&c, &options));
    wf_free(data);
    close_corpus(&c);
}
END_TEST

/* A folder that cannot be created or written, or another file in the survey's place: the survey is made without the cache. */
START_TEST(folders_that_cannot_be_used)
{
    struct corpus c;
    open_corpus(&c, 40, 5);
    char *folder = cache_folder(), *below = test_file("corpus.source/below/a/file", NULL, 0);
    struct wf_bitext_options options = c.options;
    options.cache = below;
    for (int again = 0; again < 2; again++)
        ck_assert(!opened_from_cache(&c, &options));
    options.cache = "/proc/no/such";
    ck_assert(!opened_from_cache(&c, &options));
    options.cache = folder;
    ck_assert(!opened_from_cache(&c, &options));
    int count;
    const char *path = survey_file(folder, &count);
    ck_assert_int_eq(remove(path), 0);
    char *inside = wf_format("%s/folder", path);
    ck_ok(wf_folder_make(inside, error));
    for (int again = 0; again < 2; again++)
        ck_assert(!opened_from_cache(&c, &options));
    survey_file(folder, &count);
    ck_assert_int_eq(count, 1); /* and nothing is left beside it */
    wf_free(inside);
    close_corpus(&c);
}
END_TEST

struct attempt {
    struct corpus corpus;
    bool fresh;
};

static wf_status open_cached(void *ctx, wf_error *error)
{
    struct attempt *a = ctx;
    int count;
    const char *path = survey_file(a->corpus.options.cache, &count);
    if (path && a->fresh)
        remove(path);
    wf_bitext *b;
    wf_status status = wf_bitext_open(a->corpus.source, a->corpus.target, &a->corpus.options, &b, error);
    if (status == WF_OK)
        ck_assert(wf_bitext_survey(b)->cached != a->fresh);
    wf_bitext_close(b);
    return status;
}

START_TEST(no_memory)
{
    struct attempt a = {.fresh = true};
    open_corpus(&a.corpus, 50, 5);
    a.corpus.options.cache = cache_folder();
    ck_assert_int_gt(sweep_memory(open_cached, &a), 10);
    a.fresh = false;
    ck_assert_int_gt(sweep_memory(open_cached, &a), 5);
    close_corpus(&a.corpus);
}
END_TEST

WF_TEST_MAIN("bitext_cache", found_again_by_content, not_found_for_anything_else, damage_is_noticed, folders_that_cannot_be_used, no_memory)

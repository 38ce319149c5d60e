/* SPDX-License-Identifier: MIT */
/* Trained tokenizers in the cache: found again for the same texts and options, trained again where anything differs or is damaged. */
#include <sys/stat.h>

#include "data_test.h"

static const char text[] = "One fish, two fish,\nred fish, blue fish.\nBlack fish, blue fish, old fish, new fish.\n";

static bool merged;
static bool see(void *ctx, const struct wf_tokenizer_progress *p)
{
    merged |= strcmp(p->phase, "merging") == 0;
    return !ctx || --*(int *)ctx > 0;
}

static struct wf_tokenizer_options options(wf_tokenizer_kind kind)
{
    return (struct wf_tokenizer_options){.kind = kind, .vocab_size = kind == WF_TOKENIZER_CHAR ? 0 : 300, .progress = see};
}

/* The JSON of the tokenizer; *again: it was trained, not found in the cache. */
static char *trained(const char *const *paths, int64_t count, const struct wf_tokenizer_options *o, bool *again)
{
    wf_tokenizer *t;
    struct wf_string json = {0};
    merged = false;
    ck_ok(wf_tokenizer_train_cached(paths, count, o, test_cache, NULL, &t, error));
    *again = merged;
    ck_ok(wf_tokenizer_json(t, &json, error));
    ck_assert_int_eq(wf_tokenizer_kind_of(t), o->kind);
    wf_tokenizer_free(t);
    return json.data;
}

START_TEST(found_again)
{
    static const wf_tokenizer_kind kinds[] = {WF_TOKENIZER_BPE, WF_TOKENIZER_BYTE_BPE, WF_TOKENIZER_WORD};
    begin_cache();
    for (int k = 0; k < 3; k++) {
        struct wf_tokenizer_options o = options(kinds[k]);
        const char *path = text_file("one", text), *copy = text_file("two", text);
        bool again;
        wf_tokenizer *plain;
        struct wf_string want = {0};
        ck_ok(wf_tokenizer_train_files_with(&path, 1, &o, &plain, error));
        ck_ok(wf_tokenizer_json(plain, &want, error));
        for (int round = 0; round < 3; round++) { /* the third by the content, under another name */
            char *got = trained(round == 2 ? &copy : &path, 1, &o, &again);
            ck_assert_str_eq(got, want.data);
            ck_assert(again == (round == 0 && kinds[k] != WF_TOKENIZER_WORD));
            wf_free(got);
            ck_assert_int_eq(cached_files("tokenizer-", NULL), k + 1);
        }
        wf_string_free(&want);
        wf_tokenizer_free(plain);
    }
}
END_TEST

START_TEST(other_texts_and_options)
{
    static const char *const specials[] = {"<a>", "<b>"}, *const others[] = {"<a>", "<c>"};
    begin_cache();
    char *path = text_file("one", text), *less = test_file("two", text, sizeof text - 2);
    struct wf_tokenizer_options o[8];
    for (int i = 0; i < 8; i++)
        o[i] = options(i == 1 ? WF_TOKENIZER_BYTE_BPE : WF_TOKENIZER_BPE);
    o[2].vocab_size = 60;
    o[3].min_frequency = 2;
    o[4].specials = specials, o[4].special_count = 2;
    o[5].specials = others, o[5].special_count = 2;
    o[6].other_pre_tokenizer = true, o[6].pre_tokenizer = WF_WHITESPACE;
    o[7].other_pre_tokenizer = true, o[7].pre_tokenizer = WF_RUNNING_TEXT;
    const char *texts[][2] = {{path, NULL}, {less, NULL}, {path, less}, {less, path}};
    bool again;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 11; i++) {
            const char *const *paths = texts[i < 8 ? 0 : i - 7];
            wf_free(trained(paths, paths[1] ? 2 : 1, &o[i < 8 ? i : 0], &again));
            ck_assert_msg(again == (round == 0), "case %d", i);
        }
        ck_assert_int_eq(cached_files("tokenizer-", NULL), 11);
    }
}
END_TEST

START_TEST(damaged_files)
{
    begin_cache();
    const char *path = text_file("one", text);
    struct wf_tokenizer_options o = options(WF_TOKENIZER_BPE);
    bool again;
    char *want = trained(&path, 1, &o, &again), *cached;
    ck_assert_int_eq(cached_files("tokenizer-", &cached), 1);
    int64_t bytes;
    char *data = wf_file_load(cached, 1 << 20, &bytes, NULL);
    ck_assert(data && bytes > 500);
    for (int64_t at = -2; at < bytes; at += at < 40 ? 1 : bytes / 20) {
        char *bad = wf_alloc((size_t)bytes);
        memcpy(bad, data, (size_t)bytes);
        if (at >= 0)
            bad[at] ^= 4;
        ck_ok(wf_file_save(cached, bad, at == -2 ? 0 : at == -1 ? bytes - 1 : bytes, error));
        char *got = trained(&path, 1, &o, &again);
        ck_assert_msg(again, "byte %lld", (long long)at);
        ck_assert_str_eq(got, want);
        wf_free(got);
        wf_free(bad);
        wf_free(trained(&path, 1, &o, &again));
        ck_assert(!again); /* it was written anew */
    }
    wf_free(data);
    wf_free(cached);
    wf_free(want);
}
END_TEST

START_TEST(without_a_folder_and_with_faults)
{
    begin_cache();
    struct wf_tokenizer_options o = options(WF_TOKENIZER_BPE);
    wf_tokenizer *t;
    bool again;
    char *path = text_file("one", text), *bad = text_file("bad", "one\ntwo \xFF three\n");
    const char *missing = "/nowhere/text", *one = path, *two[] = {path, bad};
    char *kept = test_cache, *below_a_file = test_file("one/cache", NULL, 0), *unusable[] = {NULL, below_a_file};
    for (int i = 0; i < 2; i++) {
        test_cache = unusable[i];
        wf_free(trained(&one, 1, &o, &again));
        ck_assert(again);
    }
    test_cache = kept;
    ck_fails(wf_tokenizer_train_cached(two, 2, &o, test_cache, NULL, &t, error), WF_ERR_FORMAT, "bad:2:5: not UTF-8: byte 0xFF");
    ck_assert_ptr_null(t);
    ck_fails(wf_tokenizer_train_cached(&missing, 1, &o, test_cache, NULL, &t, error), WF_ERR_IO, "/nowhere/text: cannot be opened");
    ck_fails(wf_tokenizer_train_cached(&one, 0, &o, test_cache, NULL, &t, error), WF_ERR_ARGUMENT, "no text file");
    int left = 1;
    o.ctx = &left;
    ck_fails(wf_tokenizer_train_cached(&one, 1, &o, test_cache, NULL, &t, error), WF_ERR_CANCELLED, "");
    ck_assert(!wf_folder_exists(test_cache) || cached_files("tokenizer-", NULL) == 0);
}
END_TEST

/* Without memory for the cached tokenizer it is trained again, or the call fails; nothing is lost either way. */
START_TEST(no_memory)
{
    begin_cache();
    const char *path = text_file("one", text);
    struct wf_tokenizer_options o = options(WF_TOKENIZER_BPE);
    bool again;
    wf_tokenizer *t;
    char *want = trained(&path, 1, &o, &again);
    int64_t before = wf_alloc_count(), refused = 0;
    wf_free(trained(&path, 1, &o, &again));
    int64_t most = wf_alloc_count() - before;
    ck_assert(!again && most > 10);
    for (int64_t n = 0; n < most; n++) {
        int64_t live = wf_alloc_live();
        wf_error problem = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_tokenizer_train_cached(&path, 1, &o, test_cache, NULL, &t, &problem);
        wf_alloc_fail_after(-1);
        ck_assert_msg(status == (t ? WF_OK : WF_ERR_MEMORY), "allocation %lld: %s", (long long)n, problem.message);
        if (t) {
            struct wf_string json = {0};
            ck_ok(wf_tokenizer_json(t, &json, error));
            ck_assert_str_eq(json.data, want);
            wf_string_free(&json);
        }
        refused += !t;
        wf_tokenizer_free(t);
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    ck_assert_int_gt(refused, 3);
    wf_free(want);
}
END_TEST

/* A pipe, folder or link in place of a cached file is replaced; no call waits for it. */
START_TEST(no_regular_file)
{
    begin_cache();
    mode_t mask = umask(022);
    struct wf_tokenizer_options o = options(WF_TOKENIZER_BPE);
    struct stat info;
    char *entry;
    const char *path = text_file("one", text);
    bool again;
    wf_free(trained(&path, 1, &o, &again));
    umask(mask);
    ck_assert_int_eq(stat(test_cache, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    ck_assert_int_eq(cached_files("tokenizer-", &entry), 1);
    for (int kind = 0; kind < 3; kind++) {
        ck_assert_int_eq(unlink(entry), 0);
        ck_assert_int_eq(kind == 0 ? mkfifo(entry, 0600) : kind == 1 ? mkdir(entry, 0700) : symlink(test_folder, entry), 0);
        for (int k = 0; k < 2; k++) {
            wf_free(trained(&path, 1, &o, &again));
            ck_assert_msg(again == (k == 0), "kind %d, time %d", kind, k);
        }
        ck_assert(lstat(entry, &info) == 0 && S_ISREG(info.st_mode));
    }
    wf_free(entry);
}
END_TEST

WF_TEST_MAIN("tokenizer_cache", no_regular_file, found_again, other_texts_and_options, damaged_files, without_a_folder_and_with_faults,
             no_memory)

/* SPDX-License-Identifier: MIT */
/* Shared by the tests of data and text: golden files, temporary files, and the sweep that fails each allocation in turn. */
#ifndef TESTS_DATA_TEST_H
#define TESTS_DATA_TEST_H

#include <unistd.h>

#define WF_TEST_TEARDOWN remove_test_files
static inline void remove_test_files(void);

#include "check_weft.h"
#include <weft/data.h>
#include <weft/internal/files.h>

static inline char *golden_path(const char *name)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    return wf_format("%s/tests/golden/data/%s", root ? root : ".", name);
}

static inline char *golden(const char *name, int64_t *bytes)
{
    wf_error problem = {0};
    char *path = golden_path(name), *data = wf_file_load(path, 1 << 24, bytes, &problem);
    ck_assert_msg(data != NULL, "%s", problem.message);
    wf_free(path);
    return data;
}

/* The tokenizers that tests/golden/make_tokenizers.py made. */
__attribute__((unused)) static const char *const golden_tokenizers[] = {
    "bpe_metaspace",  "bpe_whitespace",  "bpe_fallback", "bpe_suffix",       "bpe_prefix", "byte_gpt2", "byte_roberta", "byte_gpt4",
    "wordpiece",      "wordpiece_cased", "word",         "word_delimiter",   "added",      "first",     "never",        "split_removed",
    "split_isolated", "split_previous",  "split_next",   "split_contiguous", "limited",
};
enum { GOLDEN_TOKENIZERS = sizeof golden_tokenizers / sizeof *golden_tokenizers };

static inline wf_tokenizer *golden_tokenizer(const char *name)
{
    char *file = wf_format("../tokenizers/%s.json", name), *path = golden_path(file);
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_load(path, &t, error));
    wf_free(path);
    wf_free(file);
    return t;
}

static inline bool has_bytes(const struct wf_string *s, const char *data, int64_t bytes)
{
    return s->length == bytes && (bytes == 0 || memcmp(s->data, data, (size_t)bytes) == 0);
}

static char test_folder[64];

/* A file in a temporary folder, which is removed after the test. The name stays valid during the next 63 calls. */
static inline char *test_file(const char *name, const char *data, size_t bytes)
{
    static char names[64][256];
    static int next;
    char *path = names[next++ % 64];
    if (!test_folder[0]) {
        strcpy(test_folder, "/tmp/weft-data-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(test_folder));
    }
    snprintf(path, sizeof names[0], "%s/%s", test_folder, name);
    if (data) {
        FILE *f = fopen(path, "wb");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
        fclose(f);
    }
    return path;
}

static inline char *text_file(const char *name, const char *text)
{
    return test_file(name, text, strlen(text));
}

static inline void remove_test_files(void)
{
    char command[100];
    if (!test_folder[0])
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
    ck_assert_int_eq(system(command), 0);
    test_folder[0] = 0; /* without forks the next test needs a new one */
}

static char *test_cache; /* a folder for a cache in that of the test */

static inline void begin_cache(void)
{
    test_cache = test_file("cache", NULL, 0);
    unsetenv("WEFT_CACHE_LIMIT");
}

/* The number of files in the cache whose names begin so. *path (or NULL) becomes the first of them, to be freed with wf_free. */
static inline int64_t cached_files(const char *prefix, char **path)
{
    struct wf_names names;
    ck_ok(wf_folder_list(test_cache, prefix, &names, error));
    const int64_t count = names.count;
    if (path)
        *path = wf_format("%s/%s", test_cache, names.name[0]);
    wf_names_free(&names);
    return count;
}

/* The tokenizer with `text` in its file instead of "NAME": null. */
static inline wf_tokenizer *tokenizer_with(const wf_tokenizer *t, const char *name, const char *text)
{
    struct wf_string json = {0};
    wf_tokenizer *out;
    char find[40];
    ck_ok(wf_tokenizer_json(t, &json, error));
    int length = snprintf(find, sizeof find, "\"%s\": null", name);
    char *at = strstr(json.data, find);
    ck_assert_ptr_nonnull(at);
    char *all = wf_format("%.*s\"%s\": %s%s", (int)(at - json.data), json.data, name, text, at + length);
    ck_ok(wf_tokenizer_parse(all, (int64_t)strlen(all), "edited", &out, error));
    wf_free(all);
    wf_string_free(&json);
    return out;
}

/* Runs body(ctx, error) with the first, second, third, ... allocation failing until it succeeds. Each failure must be
 * WF_ERR_MEMORY with a message and leave nothing allocated. Returns the number of failures. */
static inline int sweep_memory(wf_status (*body)(void *ctx, wf_error *error), void *ctx)
{
    wf_error warm = {0};
    ck_assert_msg(body(ctx, &warm) == WF_OK, "%s", warm.message); /* what is allocated once stays */
    for (int n = 0;; n++) {
        wf_error problem = {0};
        int64_t live = wf_alloc_live();
        wf_alloc_fail_after(n);
        wf_status status = body(ctx, &problem);
        wf_alloc_fail_after(-1);
        ck_assert_int_eq(wf_alloc_live(), live);
        if (status == WF_OK)
            return n;
        ck_assert_msg(status == WF_ERR_MEMORY, "allocation %d: %s: %s", n, wf_status_name(status), problem.message);
        ck_assert_int_eq(problem.code, WF_ERR_MEMORY);
        ck_assert(problem.message[0] && !strchr(problem.message, '\n'));
    }
}

#endif

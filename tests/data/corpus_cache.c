/* SPDX-License-Identifier: MIT */
/* Ids in the cache: found again, replaced where they are damaged, dropped oldest first, and done without. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "data_test.h"
#include <weft/internal/hash.h>
#include <weft/runtime.h>

static char *text_of(const char *name, char letter, int64_t bytes)
{
    char *text = wf_alloc((size_t)bytes);
    for (int64_t i = 0; i < bytes; i++)
        text[i] = i % 50 == 49 ? '\n' : i % 7 ? letter : 'b';
    char *path = test_file(name, text, (size_t)bytes);
    wf_free(text);
    return path;
}

static wf_tokenizer *characters(void)
{
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_train("abc\n", 4, &t, error));
    return t;
}

static struct wf_text_ids opened(const char *path, const wf_tokenizer *t)
{
    struct wf_text_ids ids;
    const struct wf_corpus_options o = {.tokenizer = t, .cache = test_cache};
    ck_ok(wf_text_ids_open(&path, 1, &o, &ids, error));
    return ids;
}

/* Opens and closes it; whether its ids came from the cache. */
static bool was_cached(const char *path, const wf_tokenizer *t)
{
    struct wf_text_ids ids = opened(path, t);
    const bool cached = ids.cached;
    wf_text_ids_close(&ids);
    return cached;
}

START_TEST(found_again)
{
    begin_cache();
    wf_tokenizer *t = characters(), *other;
    ck_ok(wf_tokenizer_train("abcd\n", 5, &other, error));
    char *a = text_of("a", 'a', 500000), *moved = text_of("moved", 'a', 500000), *c = text_of("c", 'c', 500000);
    struct wf_text_ids first = opened(a, t), again = opened(a, t), same = opened(moved, t), another = opened(c, t),
                       third = opened(a, other);
    ck_assert(!first.cached && again.cached && same.cached && !another.cached && !third.cached);
    ck_assert(first.hash == again.hash && first.hash != another.hash && first.ids.narrow);
    ck_assert(again.characters == 500000 && again.ids.count == 500000);
    ck_assert_mem_eq(first.ids.data, again.ids.data, 1000000);
    struct wf_text_ids *all[] = {&first, &again, &same, &another, &third};
    for (int i = 0; i < 5; i++)
        wf_text_ids_close(all[i]);
    ck_assert_int_eq(cached_files("ids-", NULL), 3);
    wf_tokenizer_free(t);
    wf_tokenizer_free(other);
}
END_TEST

/* Encodes the text and returns the path of the only cache file, to be freed. */
static char *cached(const char *text, const wf_tokenizer *t)
{
    char *path;
    was_cached(text, t);
    ck_assert_int_eq(cached_files("ids-", &path), 1);
    return path;
}

/* A changed byte or a file that is cut: the ids are made and written again. */
START_TEST(damaged_files_are_ignored)
{
    begin_cache();
    wf_tokenizer *t = characters();
    char *a = text_of("a", 'a', 3001);
    char *path = cached(a, t);
    int64_t bytes;
    wf_error problem = {0};
    char *good = wf_file_load(path, 1 << 20, &bytes, &problem);
    ck_assert_ptr_nonnull(good);
    for (int64_t at = 0; at < bytes; at += at < bytes - 311 ? 211 : 1) {
        if (at >= 6002 && at < 6008) /* the padding is not checked */
            continue;
        char kept = good[at];
        good[at] ^= 4;
        ck_ok(wf_file_save(path, good, bytes, error));
        good[at] = kept;
        ck_assert_msg(!was_cached(a, t), "byte %d", (int)at);
    }
    for (int64_t length = 0; length < bytes; length += 1 + length / 3) {
        ck_ok(wf_file_save(path, good, length, error));
        struct wf_text_ids ids = opened(a, t);
        ck_assert(!ids.cached && ids.ids.count == 3001);
        wf_text_ids_close(&ids);
    }
    ck_assert(was_cached(a, t));
    wf_free(good);
    wf_free(path);
    wf_tokenizer_free(t);
}
END_TEST

/* An id that the vocabulary lacks, in a file whose hashes are right: it would be read beyond the end of an embedding. */
START_TEST(ids_beyond_the_vocabulary_are_ignored)
{
    begin_cache();
    wf_tokenizer *t = characters();
    char *a = text_of("a", 'a', 3001);
    char *path = cached(a, t);
    int64_t bytes;
    for (int beyond = 0; beyond < 2; beyond++) {
        char *data = wf_file_load(path, 1 << 20, &bytes, NULL);
        ck_assert_ptr_nonnull(data);
        uint16_t id = (uint16_t)(wf_tokenizer_vocab_size(t) - !beyond);
        memcpy(data + 1000, &id, sizeof id);
        /* The foot: magic, key, hash, check, count, width, characters, unknown, own. */
        uint64_t *foot = (uint64_t *)(data + bytes) - 9, chunk = wf_hash(data, 6002, 0);
        foot[3] = wf_hash(&chunk, sizeof chunk, 0);
        foot[8] = wf_hash(foot, 64, 0);
        ck_ok(wf_file_save(path, data, bytes, error));
        wf_free(data);
        ck_assert_int_eq(was_cached(a, t), !beyond);
    }
    wf_free(path);
    wf_tokenizer_free(t);
}
END_TEST

/* The files that have not been used for the longest time make room for a new one; files in use stay. */
START_TEST(the_oldest_go)
{
    begin_cache();
    setenv("WEFT_CACHE_LIMIT", "500K", 1); /* a text of 100,000 characters takes 200 KB */
    wf_tokenizer *t = characters();
    char *path[5];
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        path[i] = text_of(name, 'a', 100000 + i);
    }
    for (int i = 0; i < 2; i++) {
        was_cached(path[i], t);
        usleep(20000);
    }
    ck_assert(was_cached(path[0], t)); /* used again: 1 is the oldest now */
    usleep(20000);
    was_cached(path[2], t);
    ck_assert_int_eq(cached_files("ids-", NULL), 2);
    struct wf_text_ids ids = opened(path[0], t);
    ck_assert(ids.cached);
    struct wf_text_ids more[3]; /* 0 is in use, and more than the limit allows with these */
    for (int i = 0; i < 3; i++)
        more[i] = opened(path[2 + i], t);
    ck_assert(more[0].cached && !more[1].cached && !more[2].cached);
    ck_assert_int_eq(cached_files("ids-", NULL), 4);
    wf_text_ids_close(&ids);
    for (int i = 0; i < 3; i++)
        wf_text_ids_close(&more[i]);
    ck_assert(!was_cached(path[1], t));
    ck_assert_int_le(cached_files("ids-", NULL), 2);
    wf_tokenizer_free(t);
}
END_TEST

/* If the cache cannot be written, or the disk is full (here a limit of the size of files), the ids are kept in memory. */
START_TEST(without_a_writable_cache)
{
    begin_cache();
    wf_tokenizer *t = characters();
    char *a = text_of("a", 'a', 2000000);
    char *kept = test_cache;
    test_cache = "/proc/no/such";
    for (int i = 0; i < 2; i++) {
        struct wf_text_ids ids = opened(a, t);
        ck_assert(!ids.cached && ids.ids.count == 2000000);
        wf_text_ids_close(&ids);
    }
    test_cache = kept;
    struct rlimit before, few = {1000000, 1000000};
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    few.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &few), 0);
    struct wf_text_ids ids = opened(a, t); /* 4 MB do not fit */
    ck_assert(!ids.cached && ids.ids.count == 2000000);
    wf_text_ids_close(&ids);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(cached_files("", NULL), 0);
    setenv("WEFT_CACHE_LIMIT", "0", 1);
    char *name;
    ck_ok(wf_cache_folder(&name, error));
    ck_assert_ptr_null(name);
    static const char *const invalid[] = {"foo", "-1", "2g", "2GB", "G", "1.5G", "9999999T", "99999999999999999999"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        setenv("WEFT_CACHE_LIMIT", invalid[i], 1);
        ck_fails(wf_cache_folder(&name, error), WF_ERR_ARGUMENT, "WEFT_CACHE_LIMIT");
        ck_assert_ptr_null(name);
    }
    unsetenv("WEFT_CACHE_LIMIT");
    setenv("XDG_CACHE_HOME", "/x/y", 1);
    ck_ok(wf_cache_folder(&name, error));
    ck_assert_str_eq(name, "/x/y/weft");
    wf_free(name);
    setenv("XDG_CACHE_HOME", "relative", 1);
    unsetenv("HOME");
    ck_ok(wf_cache_folder(&name, error));
    ck_assert_ptr_null(name);
    wf_tokenizer_free(t);
}
END_TEST

/* Several processes at once, with one text that all of them want. */
START_TEST(several_processes)
{
    begin_cache();
    wf_tokenizer *t = characters();
    char *a = text_of("a", 'a', 700000);
    pid_t child[4];
    ck_ok(wf_set_threads(1, error)); /* no region before a fork */
    for (int i = 0; i < 4; i++)
        if ((child[i] = fork()) == 0) {
            bool fine = true;
            for (int k = 0; k < 10; k++) {
                struct wf_text_ids ids;
                const struct wf_corpus_options o = {.tokenizer = t, .cache = test_cache};
                fine = fine && wf_text_ids_open((const char *[]){a}, 1, &o, &ids, NULL) == WF_OK && ids.ids.count == 700000;
                wf_text_ids_close(&ids);
            }
            _exit(fine ? 0 : 1);
        }
    for (int i = 0; i < 4; i++) {
        int status;
        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ck_assert_int_eq(cached_files("ids-", NULL), 1);
    wf_tokenizer_free(t);
}
END_TEST

/* Blocks go to the file as they are done, and the file is mapped, not read: while a text is encoded and after it. */
START_TEST(memory_does_not_grow_with_the_text)
{
    enum { BYTES = 64 << 20 };
    if (sanitized()) /* they need memory themselves */
        return;
    begin_cache();
    wf_tokenizer *t = characters();
    ck_ok(wf_set_threads(2, error));
    FILE *f = fopen(test_file("large", "", 0), "wb");
    char line[1024];
    for (int i = 0; i < 1024; i++)
        line[i] = i % 50 == 49 ? '\n' : 'a';
    for (int64_t i = 0; f && i < BYTES / 1024; i++)
        fwrite(line, 1, sizeof line, f);
    ck_assert(f && fclose(f) == 0);
    struct rusage before, after;
    for (int round = 0; round < 2; round++) {
        getrusage(RUSAGE_SELF, &before);
        struct wf_text_ids ids = opened(test_file("large", NULL, 0), t);
        getrusage(RUSAGE_SELF, &after);
        ck_assert(ids.cached == (round == 1) && ids.ids.count == BYTES);
        wf_text_ids_close(&ids);
        ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, BYTES / 1024 / 4); /* KiB */
    }
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("corpus_cache", found_again, damaged_files_are_ignored, ids_beyond_the_vocabulary_are_ignored, the_oldest_go,
             without_a_writable_cache, several_processes, memory_does_not_grow_with_the_text)

/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "data_test.h"
#include <weft/runtime.h>

static struct wf_corpus_options options_of(const wf_tokenizer *t)
{
    return (struct wf_corpus_options){.tokenizer = t};
}

static wf_tokenizer *trained(const char *text)
{
    wf_tokenizer *tokenizer;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &tokenizer, error));
    return tokenizer;
}

static void ck_ids(struct wf_id_view ids, const int32_t *expected, int64_t count)
{
    int32_t *got = wf_alloc((size_t)(ids.count + 1) * sizeof *got);
    wf_id_view_copy(ids, 0, ids.count, got);
    ck_assert_int_eq(ids.count, count);
    for (int64_t i = 0; i < count; i++)
        if (got[i] != expected[i])
            ck_abort_msg("id %d is %d, not %d", (int)i, (int)got[i], (int)expected[i]);
    wf_free(got);
}

/* For every length: the parts are floor(0.9 n) and the rest, and together they are the text. Characters of 1 to 4 bytes. */
START_TEST(holds_out_the_last_tenth)
{
    static const char *const characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (int n = 2; n < 120; n++) {
        char data[1000] = "";
        for (int i = 0; i < n; i++)
            strcat(data, characters[(i * i + i / 3) % 4]);
        const char *path = text_file("text", data);
        wf_tokenizer *t = trained(data);
        struct wf_tokens all = {0};
        struct wf_corpus corpus;
        struct wf_corpus_options o = options_of(t);
        int64_t kept = n * 9 / 10;
        ck_assert_int_eq(kept, (int64_t)(0.9 * n));
        ck_ok(wf_tokenizer_encode(t, data, (int64_t)strlen(data), &all, error));
        ck_assert_int_eq(all.count, n);
        wf_error problem = {0};
        wf_status status = wf_corpus_open(&path, 1, NULL, 0, 1, &o, &corpus, &problem);
        if (kept < 2 || n - kept < 2) {
            ck_assert_int_eq(status, WF_ERR_ARGUMENT);
            ck_assert_ptr_null(corpus.train.ids.data);
        } else {
            ck_assert_int_eq(status, WF_OK);
            ck_assert_int_eq(corpus.train.characters, kept);
            ck_assert_int_eq(corpus.valid.characters, n - kept);
            ck_ids(corpus.train.ids, all.id, kept);
            ck_ids(corpus.valid.ids, all.id + kept, n - kept);
        }
        wf_corpus_close(&corpus);
        wf_tokens_free(&all);
        wf_tokenizer_free(t);
    }
}
END_TEST

START_TEST(takes_a_validation_text)
{
    const char *train = text_file("train.txt", "abcabcabc\n"), *valid = text_file("valid.txt", "\xEF\xBB\xBF"
                                                                                               "cab\nb");
    wf_tokenizer *t = trained("abc\n");
    struct wf_corpus corpus;
    struct wf_corpus_options o = options_of(t);
    ck_ok(wf_corpus_open(&train, 1, &valid, 1, 4, &o, &corpus, error));
    ck_ids(corpus.train.ids, (const int32_t[]){1, 2, 3, 1, 2, 3, 1, 2, 3, 0}, 10);
    ck_ids(corpus.valid.ids, (const int32_t[]){3, 1, 2, 0, 2}, 5);
    ck_assert_int_eq(corpus.train.characters, 10);
    ck_assert_int_eq(corpus.valid.characters, 5);
    wf_corpus_close(&corpus);
    wf_corpus_close(&corpus);
    wf_tokenizer_free(t);
}
END_TEST

/* Between two files there is the end-of-text token. The last tenth of all files is held out. */
START_TEST(files_are_documents)
{
    const char *specials[] = {"<unk>", "</s>"};
    const char *a = text_file("a", "one two three"), *b = text_file("b", "two"), *c = text_file("c", "three one\n");
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_train("one two three", 13, &t, error, .kind = WF_TOKENIZER_WORD, .specials = specials, .special_count = 2));
    int32_t one = wf_tokenizer_id(t, "one", 3), two = wf_tokenizer_id(t, "two", 3), three = wf_tokenizer_id(t, "three", 5);
    struct wf_corpus_options o = options_of(t);
    struct wf_text_ids ids;
    ck_ok(wf_text_ids_open((const char *[]){a, b, c}, 3, &o, &ids, error));
    ck_ids(ids.ids, (const int32_t[]){one, two, three, 1, two, 1, three, one}, 8);
    ck_assert_int_eq(ids.characters, 26);
    ck_assert_int_eq(ids.unknown, 0);
    wf_text_ids_close(&ids);
    struct wf_corpus corpus; /* 26 characters: 23 are kept, 3 of the last file are held out */
    ck_fails(wf_corpus_open((const char *[]){a, b, c}, 3, NULL, 0, 1, &o, &corpus, error), WF_ERR_ARGUMENT,
             "the validation part has 1 token, and");
    ck_ok(wf_corpus_open((const char *[]){a, b, c}, 3, (const char *[]){c, b}, 2, 1, &o, &corpus, error));
    ck_ids(corpus.valid.ids, (const int32_t[]){three, one, 1, two}, 4);
    wf_corpus_close(&corpus);
    wf_tokenizer_free(t);
    t = trained("one two three\n"); /* characters have no such token */
    o.tokenizer = t;
    ck_ok(wf_text_ids_open((const char *[]){a, b}, 2, &o, &ids, error));
    ck_assert_int_eq(ids.ids.count, 16);
    wf_text_ids_close(&ids);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(counts_unknown_tokens)
{
    const char *specials[] = {"<unk>"};
    const char *a = text_file("a", "one two other one two new");
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_train("one two", 7, &t, error, .kind = WF_TOKENIZER_WORD, .specials = specials, .special_count = 1));
    struct wf_corpus_options o = options_of(t);
    struct wf_text_ids ids;
    ck_ok(wf_text_ids_open(&a, 1, &o, &ids, error));
    ck_assert_int_eq(ids.unknown, 2);
    wf_text_ids_close(&ids);
    wf_tokenizer_free(t);
}
END_TEST

/* A named pipe, whose writer may be done before it is read. */
START_TEST(named_pipes)
{
    const char *path = text_file("pipe", "");
    wf_tokenizer *t = trained("abc");
    struct wf_corpus_options o = options_of(t);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    for (int i = 0; i < 50; i++) {
        pid_t writer = fork();
        if (writer == 0) {
            int fd = open(path, O_WRONLY);
            _exit(write(fd, "abcab", 5) != 5);
        }
        struct wf_text_ids ids;
        int status;
        ck_ok(wf_text_ids_open(&path, 1, &o, &ids, error));
        ck_assert_int_eq(ids.ids.count, 5);
        wf_text_ids_close(&ids);
        ck_assert(waitpid(writer, &status, 0) == writer && status == 0);
    }
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(too_short_texts)
{
    const char *train = text_file("train.txt", "abcabcabcabcabcabcab"), *valid = text_file("valid.txt", "abcab");
    wf_tokenizer *t = trained("abc");
    struct wf_corpus corpus;
    struct wf_corpus_options o = options_of(t);
    ck_fails(wf_corpus_open(&train, 1, NULL, 0, 18, &o, &corpus, error), WF_ERR_ARGUMENT,
             "the training part has 18 tokens, and a context of 18 needs at least 19");
    ck_fails(wf_corpus_open(&train, 1, NULL, 0, 2, &o, &corpus, error), WF_ERR_ARGUMENT,
             "the validation part has 2 tokens, and a context of 2 needs at least 3; use a longer text or a smaller context, or give a");
    ck_ok(wf_corpus_open(&train, 1, NULL, 0, 1, &o, &corpus, error));
    wf_corpus_close(&corpus);
    ck_fails(wf_corpus_open(&train, 1, &valid, 1, 5, &o, &corpus, error), WF_ERR_ARGUMENT, "the validation part has 5 tokens");
    ck_ok(wf_corpus_open(&train, 1, &valid, 1, 4, &o, &corpus, error));
    wf_corpus_close(&corpus);
    ck_fails(wf_corpus_open(&train, 1, &valid, 1, 20, &o, &corpus, error), WF_ERR_ARGUMENT, "the training part has 20 tokens");
    ck_fails(wf_corpus_open(&train, 1, &valid, 1, 0, &o, &corpus, error), WF_ERR_ARGUMENT, "context of 0");
    ck_fails(wf_corpus_open(NULL, 0, &valid, 1, 2, &o, &corpus, error), WF_ERR_ARGUMENT, "no text file given");
    wf_tokenizer_free(t);
}
END_TEST

/* A fault is reported with its place in the file; of several the first in the text, on any number of threads. */
START_TEST(faults_are_placed)
{
    wf_tokenizer *t = trained("abc\n ");
    struct wf_text_ids ids;
    struct wf_corpus_options o = options_of(t);
    static const struct {
        const char *text;
        size_t bytes;
        const char *message;
    } cases[] = {
        {"abc\nab\xC3\xA9q", 9, "bad:2:3: the character U+00E9"},
        {"\xEF\xBB\xBF"
         "abq\n",
         7, "bad:1:6: the character U+0071 'q'"},
        {"abc\n\xFF", 5, "bad:2:1: not UTF-8: byte 0xFF"},
        {"abc\nab\0", 7, "bad:2:3: a NUL byte"},
        {"\xFF\xFE"
         "a\0b\0",
         6, "bad:1:1: this is UTF-16"},
        {"", 0, "bad: the file is empty"},
        {"\xEF\xBB\xBF", 3, "bad: the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *bad = test_file("bad", cases[i].text, cases[i].bytes), *good = text_file("good", "abc");
        ck_fails(wf_text_ids_open((const char *[]){good, bad}, 2, &o, &ids, error), WF_ERR_FORMAT, cases[i].message);
        ck_assert_ptr_null(ids.ids.data);
    }
    enum { LINES = 300000 }; /* 1.2 MB: blocks on all threads */
    char *text = wf_alloc(4 * LINES + 1);
    for (int i = 0; i < LINES; i++)
        memcpy(text + 4 * i, "abc\n", 4);
    text[4 * 299000 + 1] = 'y';
    text[4 * 123456 + 2] = 'x';
    const char *bad = test_file("bad", text, 4 * LINES);
    for (int threads = 1; threads < 5; threads++) {
        ck_ok(wf_set_threads(threads, error));
        ck_fails(wf_text_ids_open(&bad, 1, &o, &ids, error), WF_ERR_FORMAT, "bad:123457:3: the character U+0078 'x'");
    }
    ck_fails(wf_text_ids_open((const char *[]){"/no/such/file"}, 1, &o, &ids, error), WF_ERR_IO, "/no/such/file: cannot be opened");
    ck_fails(wf_text_ids_open((const char *[]){"/tmp"}, 1, &o, &ids, error), WF_ERR_IO, "/tmp: is a folder");
    wf_free(text);
    wf_tokenizer_free(t);
}
END_TEST

/* The numbers that the peers' scripts give for tinyshakespeare. */
START_TEST(tinyshakespeare)
{
    if (!shared_folder())
        return;
    const char *full = wf_format("%s/data/tinyshakespeare/input.txt", shared_folder());
    wf_tokenizer *t;
    struct wf_corpus corpus;
    ck_ok(wf_tokenizer_train_files(&full, 1, &t, error));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 65);
    struct wf_corpus_options o = options_of(t);
    ck_ok(wf_corpus_open(&full, 1, NULL, 0, 256, &o, &corpus, error));
    ck_assert_int_eq(corpus.train.ids.count, 1003854);
    ck_assert_int_eq(corpus.valid.ids.count, 111540);
    wf_corpus_close(&corpus);
    wf_tokenizer_free(t);
    wf_free((char *)full);
}
END_TEST

struct sweep {
    const char *path;
    const wf_tokenizer *tokenizer;
};

static wf_status open_one(void *ctx, wf_error *error)
{
    const struct sweep *s = ctx;
    struct wf_corpus corpus;
    struct wf_corpus_options o = options_of(s->tokenizer);
    wf_status status = wf_corpus_open(&s->path, 1, NULL, 0, 2, &o, &corpus, error);
    wf_corpus_close(&corpus);
    return status;
}

START_TEST(memory)
{
    const char *path = text_file("text", "thirty characters of some text");
    for (int kind = 0; kind < 2; kind++) {
        wf_tokenizer *t;
        ck_ok(wf_tokenizer_train("thirty characters of some text", 30, &t, error, .kind = kind ? WF_TOKENIZER_BYTE_BPE : WF_TOKENIZER_CHAR,
                                 .vocab_size = kind ? 264 : 0));
        ck_assert_int_gt(sweep_memory(open_one, &(struct sweep){path, t}), 5);
        wf_tokenizer_free(t);
    }
}
END_TEST

static bool count_calls(void *ctx, int64_t done, int64_t total)
{
    int *calls = ctx;
    ck_assert(done >= 0 && done <= total);
    return --*calls >= 0;
}

struct shortening {
    const char *path;
    int calls;
};

static bool shorten(void *ctx, int64_t done, int64_t total)
{
    struct shortening *s = ctx;
    (void)done, (void)total;
    ck_assert(s->calls-- != 0 || truncate(s->path, 1000) == 0);
    return true;
}

/* A text that is cut short at any time while it is read is an error, not a signal. */
START_TEST(a_text_that_is_cut_short)
{
    enum { LENGTH = 3000000 };
    char *text = wf_alloc(LENGTH);
    memset(text, 'a', LENGTH);
    wf_tokenizer *t = trained("a");
    ck_ok(wf_set_threads(1, error));
    for (int calls = 0; calls < 6; calls++) {
        const char *path = test_file("text", text, LENGTH);
        struct shortening s = {path, calls};
        struct wf_text_ids ids;
        struct wf_corpus_options o = {.tokenizer = t, .progress = shorten, .ctx = &s};
        if (calls == 5) { /* the second call was the last before encoding ended */
            ck_assert_int_eq(truncate(path, 2000), 0);
            ck_ok(wf_text_ids_open(&path, 1, &o, &ids, error));
            ck_assert_int_eq(ids.ids.count, 2000);
        } else {
            ck_fails(wf_text_ids_open(&path, 1, &o, &ids, error), WF_ERR_FORMAT, "the file was modified while it was in use");
        }
        wf_text_ids_close(&ids);
    }
    wf_free(text);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(can_be_cancelled)
{
    const char *path = text_file("text", "thirty characters of some text");
    wf_tokenizer *t = trained("thirty characters of some text");
    for (int calls = 0;; calls++) {
        int left = calls;
        struct wf_text_ids ids;
        struct wf_corpus_options o = {.tokenizer = t, .progress = count_calls, .ctx = &left};
        wf_error problem = {0};
        wf_status status = wf_text_ids_open(&path, 1, &o, &ids, &problem);
        wf_text_ids_close(&ids);
        if (status == WF_OK) {
            ck_assert_int_ge(calls, 2);
            break;
        }
        ck_assert_int_eq(status, WF_ERR_CANCELLED);
    }
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("corpus", holds_out_the_last_tenth, takes_a_validation_text, files_are_documents, counts_unknown_tokens, named_pipes,
             too_short_texts, faults_are_placed, tinyshakespeare, memory, a_text_that_is_cut_short, can_be_cancelled)

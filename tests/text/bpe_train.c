/* SPDX-License-Identifier: MIT */
/* Training of byte-pair encodings against the package `tokenizers`, and its errors. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "train_test.h"

START_TEST(the_same_as_tokenizers)
{
    static const char *const names[] = {
        "metaspace",   "punctuation",  "mixed-punctuation", "whitespace",       "bytes",      "frequency", "all", "ties",
        "no-specials", "odd-specials", "mixed-metaspace",   "mixed-whitespace", "mixed-bytes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        case_check(names[i]);
}
END_TEST

static uint64_t fnv(const char *data, int64_t length)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (int64_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)data[i]) * 0x100000001B3u;
    return h;
}

START_TEST(the_same_on_multi30k)
{
    const char *shared = shared_folder();
    if (!shared)
        return;
    ck_ok(wf_init(error));
    int64_t bytes;
    char *rows = golden("../tokenizer_train/multi30k.hash", &bytes);
    char *path[2] = {wf_format("%s/data/multi30k/train.en", shared), wf_format("%s/data/multi30k/train.de", shared)};
    int count = 0;
    for (char *row = rows; *row; row = strchr(row, '\n') + 1, count++) {
        char kind[32], split[32];
        int64_t types, merges, got_merges;
        unsigned long hash;
        struct wf_tokenizer_options o = {.vocab_size = 10000};
        wf_tokenizer *t;
        ck_assert_int_eq(sscanf(row, "%31s %31s %ld %ld %lx", kind, split, &types, &merges, &hash), 5);
        ck_assert(wf_tokenizer_kind_parse(kind, &o.kind));
        o.other_pre_tokenizer = o.kind == WF_TOKENIZER_BPE && strcmp(split, "punctuation") != 0;
        o.pre_tokenizer = strcmp(split, "whitespace") == 0 ? WF_WHITESPACE : WF_METASPACE_ALONE;
        ck_ok(wf_tokenizer_train_files_with((const char *const *)path, 2, &o, &t, error));
        struct wf_string got = listing(t, &got_merges);
        ck_assert_int_eq(wf_tokenizer_vocab_size(t), types);
        ck_assert_int_eq(got_merges, merges);
        ck_assert_msg(fnv(got.data, got.length) == hash, "%s %s: other types or merges than tokenizers'", kind, split);
        wf_string_free(&got);
        wf_tokenizer_free(t);
    }
    ck_assert_int_eq(count, 4);
    wf_free(path[0]);
    wf_free(path[1]);
    wf_free(rows);
}
END_TEST

START_TEST(the_same_on_any_number_of_threads)
{
    struct wf_string text = made_up(30000), first = {0};
    for (int threads = 1; threads <= 7; threads = threads < 3 ? threads + 1 : threads + 4) {
        wf_tokenizer *t;
        ck_ok(wf_init(error, .threads = threads > 4 * wf_processors() ? 4 * wf_processors() : threads));
        ck_ok(wf_tokenizer_train(text.data, text.length, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 800));
        struct wf_string json = {0};
        ck_ok(wf_tokenizer_json(t, &json, error));
        if (first.data)
            ck_assert(has_bytes(&json, first.data, first.length));
        else
            first = json;
        if (json.data != first.data)
            wf_string_free(&json);
        wf_tokenizer_free(t);
    }
    wf_string_free(&first);
    wf_string_free(&text);
}
END_TEST

/* Line ends of any kind belong to no word, also if a file ends without one. */
START_TEST(line_ends)
{
    static const char *const texts[] = {"ab ab\ncd\nab", "ab ab\r\ncd\r\nab\r\n",
                                        ("\xEF\xBB\xBF"
                                         "ab ab\n\n\n\ncd\nab\n")};
    struct wf_string first = {0};
    for (int i = 0; i < 4; i++) {
        wf_tokenizer *t;
        const struct wf_tokenizer_options o = {.kind = WF_TOKENIZER_BPE, .vocab_size = 100};
        if (i < 3) {
            const char *path = text_file("text.txt", texts[i]);
            ck_ok(wf_tokenizer_train_files_with(&path, 1, &o, &t, error));
        } else {
            const char *const both[] = {text_file("a.txt", "ab ab\n"), text_file("b.txt", "cd\nab")};
            ck_ok(wf_tokenizer_train_files_with(both, 2, &o, &t, error));
        }
        struct wf_string got = listing(t, NULL);
        if (!first.data)
            first = got;
        ck_assert_str_eq(got.data, first.data);
        if (got.data != first.data)
            wf_string_free(&got);
        wf_tokenizer_free(t);
    }
    ck_assert_ptr_null(strchr(first.data, '\r'));
    wf_string_free(&first);
}
END_TEST

/* Pieces of words that no decoder joins are not text. */
START_TEST(gives_text)
{
    static const struct {
        struct wf_tokenizer_options o;
        bool text;
    } cases[] = {
        {{.kind = WF_TOKENIZER_CHAR}, true},
        {{.kind = WF_TOKENIZER_WORD}, true},
        {{.kind = WF_TOKENIZER_BPE, .vocab_size = 20}, true},
        {{.kind = WF_TOKENIZER_BYTE_BPE, .vocab_size = 260}, true},
        {{.kind = WF_TOKENIZER_BPE, .vocab_size = 20, .other_pre_tokenizer = true, .pre_tokenizer = WF_WHITESPACE}, false},
        {{.kind = WF_TOKENIZER_BPE, .vocab_size = 20, .other_pre_tokenizer = true, .pre_tokenizer = WF_METASPACE_ALONE}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_tokenizer *t;
        ck_ok(wf_tokenizer_train_with("abc abd", 7, &cases[i].o, &t, error));
        ck_assert_msg(wf_tokenizer_gives_text(t) == cases[i].text, "case %zu", i);
        wf_tokenizer_free(t);
    }
}
END_TEST

/* Any number of line ends, blank lines and spaces comes back, as a language model needs it. */
START_TEST(running_text_comes_back)
{
    static const char text[] = "One, two.\n\n  Three  four:\n\tfive \n\"One\"\r\n \xC3\xA9t\xC3\xA9\nthree four\n",
                      other[] = "\n\n two four\n  \n .eno\n";
    static const wf_tokenizer_kind kinds[] = {WF_TOKENIZER_BPE, WF_TOKENIZER_BYTE_BPE, WF_TOKENIZER_WORD};
    for (int k = 0; k < 3; k++)
        for (int from_file = 0; from_file < 2; from_file++) {
            wf_tokenizer *t;
            struct wf_tokenizer_options o = {.kind = kinds[k], .vocab_size = kinds[k] == WF_TOKENIZER_WORD ? 0 : 300};
            o.other_pre_tokenizer = kinds[k] != WF_TOKENIZER_BYTE_BPE;
            o.pre_tokenizer = WF_RUNNING_TEXT;
            if (from_file)
                ck_ok(wf_tokenizer_train_files_with((const char *[]){text_file("running", text)}, 1, &o, &t, error));
            else
                ck_ok(wf_tokenizer_train_with(text, sizeof text - 1, &o, &t, error));
            struct wf_string json = {0};
            wf_tokenizer *read;
            ck_ok(wf_tokenizer_json(t, &json, error));
            ck_ok(wf_tokenizer_parse(json.data, json.length, "file", &read, error));
            for (int i = 0; i < 2; i++) {
                const char *given = i && kinds[k] != WF_TOKENIZER_WORD ? other : text;
                int64_t unknown = 0;
                struct wf_tokens ids = {0};
                struct wf_string back = {0};
                ck_ok(wf_tokenizer_encode_with(i ? read : t, given, (int64_t)strlen(given),
                                               &(struct wf_encode_options){.unknown = &unknown}, &ids, error));
                ck_ok(wf_tokenizer_decode(i ? read : t, ids.id, ids.count, &back, error));
                ck_assert_str_eq(back.data, given);
                ck_assert_int_eq(unknown, 0);
                wf_tokens_free(&ids);
                wf_string_free(&back);
            }
            ck_assert_int_ge(kinds[k] == WF_TOKENIZER_BYTE_BPE ? 0 : wf_tokenizer_id(t, "\n", 1), 0);
            wf_string_free(&json);
            wf_tokenizer_free(read);
            wf_tokenizer_free(t);
        }
}
END_TEST

START_TEST(a_vocabulary_too_small)
{
    wf_tokenizer *t;
    ck_fails(wf_tokenizer_train("abc abc", 7, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 7), WF_ERR_ARGUMENT,
             "4 special tokens and 4 characters need at least 8");
    ck_assert_ptr_null(t);
    ck_fails(wf_tokenizer_train("abc abc", 7, &t, error, .kind = WF_TOKENIZER_BYTE_BPE, .vocab_size = 258), WF_ERR_ARGUMENT,
             "3 special tokens and 256 bytes need at least 259");
    ck_ok(wf_tokenizer_train("abc abc", 7, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 8));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 8);
    wf_tokenizer_free(t);
    /* and one that the text cannot fill */
    ck_ok(wf_tokenizer_train("abc abc", 7, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 1000));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 11);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(invalid_options)
{
    wf_tokenizer *t;
    static const char *const twice[] = {"<s>", "x", "<s>"}, *const empty[] = {"<s>", ""}, *const bad[] = {"\xFF"};
#define REFUSED(words, ...) ck_fails(wf_tokenizer_train("ab", 2, &t, error, .kind = WF_TOKENIZER_BPE, __VA_ARGS__), WF_ERR_ARGUMENT, words)
    REFUSED("vocab_size", .vocab_size = -1);
    REFUSED("vocab_size", .vocab_size = INT64_MAX);
    REFUSED("min_frequency", .min_frequency = -1);
    REFUSED("\"<s>\" is given twice", .specials = twice, .special_count = 3);
    REFUSED("special token 2 is empty", .specials = empty, .special_count = 2);
    REFUSED("UTF-8", .specials = bad, .special_count = 1);
    REFUSED("special", .specials = bad, .special_count = -1);
}
END_TEST

static void bad_file(const char *data, size_t bytes, wf_status status, const char *part)
{
    static const wf_tokenizer_kind kinds[] = {WF_TOKENIZER_BPE, WF_TOKENIZER_WORD, WF_TOKENIZER_BYTE_BPE};
    wf_tokenizer *t;
    for (int i = 0; i < 3; i++) {
        const char *path = test_file("bad.txt", data, bytes);
        ck_fails(wf_tokenizer_train_files(&path, 1, &t, error, .kind = kinds[i]), status, part);
        ck_assert_ptr_null(t);
    }
}

START_TEST(files_that_are_no_text)
{
    wf_tokenizer *t;
    const char *folder, *missing;
    bad_file("", 0, WF_ERR_FORMAT, "bad.txt: the file is empty");
    bad_file("\xEF\xBB\xBF", 3, WF_ERR_FORMAT, "bad.txt: the file is empty");
    bad_file("\n\r\n\n", 4, WF_ERR_FORMAT, "no word");
    bad_file("one\ntwo \xFF three\n", 17, WF_ERR_FORMAT, "bad.txt:2:5: not UTF-8: byte 0xFF");
    bad_file("\xEF\xBB\xBF\xC3(", 5, WF_ERR_FORMAT, "bad.txt:1:4: not UTF-8: byte 0xC3");
    bad_file("one\ntwo\0three\n", 14, WF_ERR_FORMAT, "bad.txt:2:4: a NUL");
    bad_file("\xFF\xFEo\0n\0", 6, WF_ERR_FORMAT, "UTF-16");
    missing = test_file("missing.txt", NULL, 0);
    ck_fails(wf_tokenizer_train_files(&missing, 1, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_IO, "missing.txt: cannot be opened");
    folder = test_folder;
    ck_fails(wf_tokenizer_train_files(&folder, 1, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_IO, "is a folder");
    ck_fails(wf_tokenizer_train(NULL, 0, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_FORMAT, "empty");
    ck_fails(wf_tokenizer_train("a\n\xFF", 3, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_FORMAT, "2:1: not UTF-8");
}
END_TEST

/* A fault behind the first block of a file, with lines before it that cross blocks. */
START_TEST(a_fault_far_into_a_file)
{
    struct wf_string text = made_up(150000);
    ck_assert_int_gt(text.length, 5 << 20);
    int64_t lines = 0, at = text.length - 100;
    while (text.data[at - 1] != '\n')
        at++;
    for (int64_t i = 0; i < at; i++)
        lines += text.data[i] == '\n';
    text.data[at + 2] = (char)0xC0;
    char where[64];
    wf_tokenizer *t;
    const char *path = test_file("long.txt", text.data, (size_t)text.length);
    snprintf(where, sizeof where, "long.txt:%ld:3: not UTF-8", lines + 1);
    for (int threads = 1; threads < 4; threads += sampled() ? 2 : 1) {
        ck_ok(wf_init(error, .threads = threads));
        ck_fails(wf_tokenizer_train_files(&path, 1, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_FORMAT, where);
        ck_fails(wf_tokenizer_train(text.data, text.length, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_FORMAT, strchr(where, ':'));
    }
    wf_string_free(&text);
}
END_TEST

START_TEST(a_megabyte_without_a_blank)
{
    int64_t length = 1 << 20;
    char *text = wf_alloc((size_t)length);
    wf_tokenizer *t;
    memset(text, 'a', (size_t)length);
    ck_ok(wf_tokenizer_train(text, length, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 100));
    /* 4 specials, a and U+2581. Then pairs double: 20 merges join the 2^20 a's, and one more joins U+2581. */
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 4 + 2 + 21);
    wf_tokenizer_free(t);
    for (int64_t i = 0; i < length; i++)
        text[i] = (char)('a' + (uint32_t)(i * i % 1000003) % 26);
    ck_ok(wf_tokenizer_train(text, length, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 300));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 300);
    wf_tokenizer_free(t);
    wf_free(text);
}
END_TEST

/* 40 MB of the same words take no more memory than 1 MB. */
START_TEST(memory_is_bounded)
{
    if (sanitized())
        return;
    struct wf_string text = made_up(20000);
    const char *path = test_file("large.txt", NULL, 0);
    FILE *f = fopen(path, "wb");
    struct stat info;
    for (int64_t bytes = 0; bytes < 40 << 20; bytes += text.length)
        ck_assert_int_eq(fwrite(text.data, 1, (size_t)text.length, f), text.length);
    fclose(f);
    ck_assert_int_eq(stat(path, &info), 0);
    struct rusage before, after;
    wf_tokenizer *t;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    ck_ok(wf_tokenizer_train_files(&path, 1, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 200));
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    ck_assert_msg(after.ru_maxrss - before.ru_maxrss < 16 << 10, "%ld MiB more for a file of %ld MiB",
                  (after.ru_maxrss - before.ru_maxrss) >> 10, (long)info.st_size >> 20);
    wf_tokenizer_free(t);
    wf_string_free(&text);
}
END_TEST

struct watch {
    int calls, reading, merging, stop_at;
    int64_t last;
    bool ended;
};

static bool watch(void *ctx, const struct wf_tokenizer_progress *p)
{
    struct watch *w = ctx;
    bool reading = strcmp(p->phase, "reading") == 0;
    ck_assert(reading || strcmp(p->phase, "merging") == 0);
    ck_assert(p->done >= 0 && (p->done <= p->total || p->total == 0));
    if ((reading ? w->reading : w->merging) > 0)
        ck_assert_int_ge(p->done, w->last);
    w->last = p->done;
    w->reading += reading;
    w->merging += !reading;
    w->ended = !reading && p->done == p->total;
    return ++w->calls != w->stop_at;
}

START_TEST(progress_and_cancelling)
{
    struct wf_string text = made_up(3000);
    const char *path = test_file("text.txt", text.data, (size_t)text.length);
    struct watch w = {0};
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_train_files(&path, 1, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 500, .progress = watch, .ctx = &w));
    wf_tokenizer_free(t);
    ck_assert(w.reading >= 2 && w.merging >= 1 && w.ended);
    int calls = w.calls;
    for (int stop = 1; stop <= calls && stop < 6; stop++) {
        int64_t live = wf_alloc_live();
        w = (struct watch){.stop_at = stop};
        ck_fails(wf_tokenizer_train_files(&path, 1, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 500, .progress = watch, .ctx = &w),
                 WF_ERR_CANCELLED, "stopped");
        ck_assert_ptr_null(t);
        ck_assert_int_eq(w.calls, stop);
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    wf_string_free(&text);
}
END_TEST

struct memory_case {
    const char *path;
    struct wf_string text;
    wf_tokenizer_kind kind;
};

static wf_status train_once(void *ctx, wf_error *error)
{
    const struct memory_case *m = ctx;
    const struct wf_tokenizer_options o = {.kind = m->kind, .vocab_size = 400};
    wf_tokenizer *t;
    wf_status status = m->path ? wf_tokenizer_train_files_with(&m->path, 1, &o, &t, error)
                               : wf_tokenizer_train_with(m->text.data, m->text.length, &o, &t, error);
    ck_assert((t == NULL) == (status != WF_OK));
    wf_tokenizer_free(t);
    return status;
}

START_TEST(without_memory)
{
    struct memory_case m = {.text = made_up(60), .kind = WF_TOKENIZER_BPE};
    ck_assert_int_gt(sweep_memory(train_once, &m), 20);
    m.kind = WF_TOKENIZER_BYTE_BPE;
    m.path = test_file("text.txt", m.text.data, (size_t)m.text.length);
    ck_assert_int_gt(sweep_memory(train_once, &m), 20);
    m.kind = WF_TOKENIZER_WORD;
    ck_assert_int_gt(sweep_memory(train_once, &m), 10);
    wf_string_free(&m.text);
}
END_TEST

WF_TEST_MAIN("data/bpe_train", the_same_as_tokenizers, the_same_on_multi30k, the_same_on_any_number_of_threads, line_ends, gives_text,
             running_text_comes_back, a_vocabulary_too_small, invalid_options, files_that_are_no_text, a_fault_far_into_a_file,
             a_megabyte_without_a_blank, memory_is_bounded, progress_and_cancelling, without_memory)

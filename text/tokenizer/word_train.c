/* SPDX-License-Identifier: MIT */
/* Word-level vocabularies: special tokens, then the words of the text, the most frequent first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "word_counts.h"
#include <weft/memory.h>

struct entry {
    const char *bytes;
    int64_t length, times;
};

static int by_frequency(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->times != y->times)
        return x->times > y->times ? -1 : 1;
    int order = memcmp(x->bytes, y->bytes, (size_t)(x->length < y->length ? x->length : y->length));
    return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

/* Heap sort: qsort takes memory of its own, past the library's allocator, and a text's words may fill most of it. */
static void sift(struct entry *entry, int64_t at, int64_t count)
{
    struct entry moved = entry[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && by_frequency(&entry[child], &entry[child + 1]) < 0)
            child++;
        if (by_frequency(&moved, &entry[child]) >= 0)
            break;
        entry[at] = entry[child];
    }
    entry[at] = moved;
}

static void sort(struct entry *entry, int64_t count)
{
    for (int64_t i = count / 2 - 1; i >= 0; i--)
        sift(entry, i, count);
    for (int64_t i = count - 1; i > 0; i--) {
        struct entry last = entry[i];
        entry[i] = entry[0];
        entry[0] = last;
        sift(entry, 0, i);
    }
}

static wf_status build(const struct word_counts *words, const struct wf_tokenizer_options *options, struct tokenizer_table *out,
                       wf_error *error)
{
    const int64_t count = words->words.count;
    struct entry *entry = wf_alloc((size_t)count * sizeof *entry);
    if (!entry)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to sort %" PRId64 " words", count);
    for (int32_t i = 0; i < count; i++) {
        entry[i].bytes = vocab_piece(&words->words, i, &entry[i].length);
        entry[i].times = words->times[i];
    }
    sort(entry, count);
    int64_t most = options->vocab_size ? options->vocab_size : INT32_MAX;
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < count && out->pieces.count < most && entry[i].times >= options->min_frequency; i++)
        if (vocab_add(&out->pieces, entry[i].bytes, entry[i].length) < 0) /* one that is a special token keeps its place */
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a vocabulary of %" PRId64 " words", out->pieces.count);
    wf_free(entry);
    return status;
}

wf_status tokenizer_train_word(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                               struct tokenizer_table *out, wf_error *error)
{
    struct word_counts words = {0};
    *out = (struct tokenizer_table){0};
    wf_status status = train_specials(options, out, error);
    int64_t specials = out->specials;
    if (status == WF_OK && options->vocab_size && options->vocab_size <= specials)
        status = wf_error_set(error, WF_ERR_ARGUMENT,
                              "a vocabulary of %" PRId64 " entries is too small: with %" PRId64
                              " special tokens and a word it needs at least %" PRId64,
                              options->vocab_size, specials, specials + 1);
    if (status == WF_OK)
        status = word_counts_read(source, options, &words, error);
    if (status == WF_OK)
        status = build(&words, options, out, error);
    if (status == WF_OK && out->pieces.count == specials)
        status =
            wf_error_set(error, WF_ERR_ARGUMENT, "no word comes %" PRId64 " times; choose a smaller min_frequency", options->min_frequency);
    word_counts_free(&words);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* Trains word-level vocabularies: the special tokens, and then the words of the text by descending frequency. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include <weft/internal/minmax.h>
#include <weft/memory.h>

static int by_frequency(const void *a, const void *b, void *ctx)
{
    const struct word_counts *words = ctx;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    int64_t m, n;
    const char *first = vocab_piece(&words->words, x, &m), *second = vocab_piece(&words->words, y, &n);
    if (words->times[x] != words->times[y])
        return words->times[x] > words->times[y] ? -1 : 1;
    int order = memcmp(first, second, (size_t)WF_MIN(m, n));
    return order ? order : m < n ? -1 : m > n;
}

static wf_status build(struct word_counts *words, const struct wf_tokenizer_options *options, struct tokenizer_table *out, wf_error *error)
{
    const int64_t count = words->words.count, most = options->vocab_size ? options->vocab_size : INT32_MAX;
    int32_t *order = wf_alloc((size_t)count * sizeof *order); /* sorts indices, because a copy of the words might not fit into memory */
    wf_status status = order ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory to sort %" PRId64 " words", count);
    for (int32_t i = 0; order && i < count; i++)
        order[i] = i;
    if (order)
        qsort_r(order, (size_t)count, sizeof *order, by_frequency, words);
    for (int64_t i = 0; order && i < count && out->pieces.count < most && words->times[order[i]] >= options->min_frequency; i++) {
        int64_t length;
        const char *word = vocab_piece(&words->words, order[i], &length);
        /* For a word that equals a special token, vocab_add adds nothing and returns that token's id. */
        if (vocab_add(&out->pieces, word, length) < 0) {
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a vocabulary of %" PRId64 " words", out->pieces.count);
            break;
        }
    }
    wf_free(order);
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
        status =
            wf_error_set(error, WF_ERR_ARGUMENT,
                         "a vocabulary of %" PRId64 " entries is too small: %" PRId64 " special tokens and a word need at least %" PRId64,
                         options->vocab_size, specials, specials + 1);
    if (status == WF_OK)
        status = word_counts_read(source, options, &words, error);
    if (status == WF_OK)
        status = build(&words, options, out, error);
    if (status == WF_OK && out->pieces.count == specials)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "no word occurs %" PRId64 " times; choose a smaller min_frequency",
                              options->min_frequency);
    word_counts_free(&words);
    return status;
}

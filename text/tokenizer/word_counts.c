/* SPDX-License-Identifier: MIT */
#include "word_counts.h"
#include <weft/internal/grow.h>
#include <weft/memory.h>

bool word_counts_add(struct word_counts *c, const char *word, int64_t length, int64_t times)
{
    int64_t count = c->words.count;
    int32_t id = vocab_add(&c->words, word, length);
    if (id < 0 || (id == count && !wf_grow(&c->times, &c->times_room, count + 1, sizeof *c->times)))
        return false;
    c->times[id] = times + (id < count ? c->times[id] : 0);
    return true;
}

void word_counts_free(struct word_counts *c)
{
    vocab_free(&c->words);
    wf_free(c->times);
    *c = (struct word_counts){0};
}

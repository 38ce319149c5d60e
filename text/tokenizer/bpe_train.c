/* SPDX-License-Identifier: MIT */
/* Trains byte-pair encodings (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909) as the package `tokenizers` does, with the same
 * merges and ids. The vocabulary is the special tokens, then the characters of the text by code point (for byte-level encodings those
 * of all 256 bytes), then one piece for each merge. Each merge takes the most frequent pair, or of equally frequent pairs the one with the
 * smallest ids.
 *
 * Counts of pairs are updated, not recomputed: a merge changes only the words that contain its pair, and in them only the counts of the
 * pairs next to it. A round is the first count of all pairs, or one merge. A candidate for a merge lists the words in which its pair arose
 * in one round. This list is complete, because all occurrences of a pair arise in the same round, namely when the newer of its two pieces
 * is made. For a piece is made in only one round: merges are the same in all words, so a string between two boundaries of pieces is divided
 * in the same way in all words, and two merges never make the same piece. */
#include <inttypes.h>
#include <string.h>

#include "bpe_pairs.h"
#include "build.h"
#include "unicode.h"
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum {
    STEP = 16,    /* symbols of a word that are compared at a time, or pairs for which memory is reserved at a time */
    ASK = 1 << 20 /* symbols of work between two calls of the user's progress function */
};

/* The distinct words as ids of pieces, called symbols. Words of one character have no pairs and are left out. */
struct words {
    int64_t count;
    int32_t *symbol; /* symbols of all words, one word after the other */
    int64_t *start;  /* [count]: index of each word's first symbol */
    int32_t *length; /* [count]: number of symbols of each word */
    int64_t *times;  /* [count]: number of occurrences of each word in the text */
};

/* A word in which a pair arose in the current round. */
struct event {
    int32_t word;
    int32_t next; /* the next event in the pair's list, which runs from the latest event to the first; -1: none */
};

struct trainer {
    const struct wf_tokenizer_options *options;
    struct train_clock clock;
    int64_t first;      /* number of pieces before the first merge */
    int64_t vocab_size; /* wanted number of pieces */
    int64_t passed;     /* number of symbols processed since go_on last called train_tick */
    wf_status status;   /* not WF_OK: the user wants to stop, and *error is set */
    wf_error *error;
    struct tokenizer_table table;
    struct words words;
    struct pairs pairs;
    struct word_lists lists;
    struct candidates heap;
    struct event *event; /* [events]: events of the current round */
    int64_t events;
    int64_t event_room;
    uint64_t *touched; /* [touches]: keys of the pairs that arose in the current round */
    int64_t touches;
    int64_t touch_room;
    int64_t merge_room;
    struct wf_string joined; /* text of a new piece */
    int32_t round;
};

/* Counts `symbols` as work done, and calls the user's progress function if it is due. False, with t->status set, if the user wants to
 * stop. */
static bool go_on(struct trainer *t, int64_t symbols)
{
    t->passed += symbols;
    if (t->passed < ASK)
        return true;
    t->passed = 0;
    t->status = train_tick(&t->clock, "merging", t->table.pieces.count - t->first, t->vocab_size - t->first, false, t->error);
    return t->status == WF_OK;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

/* Adds the characters that occur in the words to the vocabulary, by code point, and with `bytes` GPT-2's characters for all 256 bytes. Sets
 * id[point] to the id of each. False if there is no memory. */
static bool add_alphabet(const struct vocab *words, bool bytes, struct vocab *pieces, int32_t *id)
{
    uint32_t point;
    for (int byte = 0; bytes && byte < 256; byte++)
        id[unicode_of_byte((unsigned char)byte)] = 1;
    for (int64_t i = 0, length; i < words->count; i++) {
        const char *word = vocab_piece(words, (int32_t)i, &length);
        for (int64_t at = 0; at < length; id[point] = 1)
            at += wf_utf8_decode(word + at, length - at, &point);
    }
    for (point = 0; point < POINT_LIMIT; point++) {
        char text[4];
        if (id[point] && (id[point] = vocab_add(pieces, text, wf_utf8_encode(point, text))) < 0)
            return false;
    }
    return true;
}

static wf_status check_size(struct trainer *t)
{
    const int64_t specials = t->table.specials;
    t->first = t->table.pieces.count;
    if (t->vocab_size >= t->first)
        return WF_OK;
    return wf_error_set(t->error, WF_ERR_ARGUMENT,
                        "a vocabulary of %" PRId64 " entries is too small: %" PRId64 " special token%s and %" PRId64
                        " %s need at least %" PRId64,
                        t->vocab_size, specials, specials == 1 ? "" : "s", t->first - specials,
                        t->options->kind == WF_TOKENIZER_BYTE_BPE ? "bytes" : "characters", t->first);
}

static wf_status set_words(struct trainer *t, const struct word_counts *counts)
{
    const struct vocab *words = &counts->words;
    struct words *w = &t->words;
    const size_t count = (size_t)words->count;
    int64_t symbols = wf_utf8_count(words->bytes, words->start[words->count]), to = 0;
    wf_status status = WF_OK;
    int32_t *id = wf_alloc_zero(POINT_LIMIT, sizeof *id);
    w->symbol = wf_alloc((size_t)symbols * sizeof *w->symbol);
    w->start = wf_alloc(count * sizeof *w->start);
    w->length = wf_alloc(count * sizeof *w->length);
    w->times = wf_alloc(count * sizeof *w->times);
    if (!id || !w->symbol || !w->start || !w->length || !w->times ||
        !add_alphabet(words, t->options->kind == WF_TOKENIZER_BYTE_BPE, &t->table.pieces, id))
        status = wf_error_set(t->error, WF_ERR_MEMORY, "no memory for the characters of %" PRId64 " words", words->count);
    else
        status = check_size(t);
    for (int64_t i = 0, begin; status == WF_OK && i < words->count; i++) {
        uint32_t point;
        begin = to;
        for (int64_t at = words->start[i], end = words->start[i + 1] - 1; at < end;) {
            at += wf_utf8_decode(words->bytes + at, end - at, &point);
            w->symbol[to++] = id[point];
        }
        if (!go_on(t, to - begin))
            status = t->status;
        if (to - begin < 2) {
            to = begin;
            continue;
        }
        w->start[w->count] = begin;
        w->length[w->count] = (int32_t)(to - begin);
        w->times[w->count++] = counts->times[i];
    }
    wf_free(id);
    return status;
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

/* Adds `times` occurrences of a pair in a word, and an event if the pair has none for this word in this round. The caller must have called
 * room_for. */
static void came_up(struct trainer *t, uint64_t key, int32_t word, int64_t times)
{
    struct pair *p = pairs_get(&t->pairs, key);
    p->count += times;
    if (p->round != t->round) {
        p->round = t->round;
        p->head = -1;
        p->words = 0;
        t->touched[t->touches++] = key;
    } else if (p->word == word) {
        return;
    }
    p->word = word;
    p->words++;
    t->event[t->events] = (struct event){word, p->head};
    p->head = (int32_t)t->events++;
}

static bool room_for(struct trainer *t, int64_t more)
{
    return t->events + more < INT32_MAX && pairs_reserve(&t->pairs, more) &&
           wf_grow(&t->event, &t->event_room, t->events + more, sizeof *t->event) &&
           wf_grow(&t->touched, &t->touch_room, t->touches + more, sizeof *t->touched);
}

/* Pushes a candidate for each pair that arose in this round. */
static bool end_round(struct trainer *t)
{
    for (int64_t i = 0; i < t->touches; i++) {
        struct pair *p = pairs_get(&t->pairs, t->touched[i]);
        struct candidate c = {.count = p->count, .key = p->key};
        if (p->count <= 0)
            continue;
        if (!word_list_new(&t->lists, p->words, &c.words))
            return false;
        int32_t *item = word_list_items(&c.words), k = p->words;
        for (int32_t e = p->head; e >= 0; e = t->event[e].next)
            item[--k] = t->event[e].word;
        if (!candidates_push(&t->heap, &c))
            return false;
    }
    t->events = t->touches = 0;
    t->round++;
    return true;
}

static bool count_pairs(struct trainer *t)
{
    struct words *w = &t->words;
    for (int64_t i = 0; i < w->count; i++) {
        const int32_t *s = w->symbol + w->start[i];
        for (int32_t k = 0; k + 1 < w->length[i]; k++) {
            if (k % STEP == 0 && !room_for(t, STEP)) /* in steps, because most pairs of a long word are repeats, which need no room */
                return false;
            came_up(t, pair_key(s[k], s[k + 1]), (int32_t)i, w->times[i]);
        }
        if (!go_on(t, w->length[i]))
            return false;
    }
    return end_round(t);
}

/* The next index of the pair in s[at .. n-1]; n if there is none. Compares STEP symbols at a time, for speed: a word may be a page of text
 * without spaces. */
static int32_t find(const int32_t *s, int32_t at, int32_t n, int32_t left, int32_t right)
{
    for (; n - at > STEP; at += STEP) {
        int32_t found = 0;
        for (int32_t i = 0; i < STEP; i++)
            found |= (s[at + i] == left) & (s[at + i + 1] == right);
        if (found)
            break;
    }
    for (; at + 1 < n; at++)
        if (s[at] == left && s[at + 1] == right)
            return at;
    return n;
}

/* Replaces the pair in a word, from left to right, and updates the counts of the pairs next to it. */
static bool merge_word(struct trainer *t, int32_t word, int32_t left, int32_t right, int32_t joined)
{
    struct words *w = &t->words;
    int32_t *s = w->symbol + w->start[word], n = w->length[word], to = 0;
    int64_t times = w->times[word];
    for (int32_t at = 0, next; at < n;) {
        next = find(s, at, n, left, right);
        if (to != at)
            memmove(s + to, s + at, (size_t)(next - at) * sizeof *s);
        to += next - at;
        if (next == n)
            break;
        if (!room_for(t, 2))
            return false;
        if (to > 0) {
            pairs_get(&t->pairs, pair_key(s[to - 1], left))->count -= times;
            came_up(t, pair_key(s[to - 1], joined), word, times);
        }
        s[to++] = joined;
        at = next + 2;
        if (at < n) {
            pairs_get(&t->pairs, pair_key(right, s[at]))->count -= times;
            came_up(t, pair_key(joined, s[at]), word, times);
        }
    }
    w->length[word] = to;
    return true;
}

/* The id of the piece that joins two others. The piece is new, unless a special token has the same text. -1 if there is no memory. */
static int32_t join(struct trainer *t, int32_t left, int32_t right)
{
    int64_t first, second;
    const char *a = vocab_piece(&t->table.pieces, left, &first), *b = vocab_piece(&t->table.pieces, right, &second);
    t->joined.length = 0;
    wf_string_add(&t->joined, a, first);
    return wf_string_add(&t->joined, b, second) ? vocab_add(&t->table.pieces, t->joined.data, t->joined.length) : -1;
}

/* Merges a candidate's pair in all its words. False if there is no memory, or if the user wants to stop (t->status). */
static bool merge(struct trainer *t, struct candidate *c)
{
    int32_t left = (int32_t)(c->key >> 32), right = (int32_t)(c->key & 0xFFFFFFFFu), joined = join(t, left, right);
    if (joined < 0 || !wf_grow(&t->table.merge, &t->merge_room, t->table.merges + 1, sizeof *t->table.merge))
        return false;
    t->table.merge[t->table.merges++] = (struct tokenizer_merge){left, right};
    const int32_t *item = word_list_items(&c->words);
    for (int32_t i = 0; i < c->words.count; i++)
        if (!merge_word(t, item[i], left, right, joined) || !go_on(t, t->words.length[item[i]]))
            return false;
    word_list_free(&t->lists, &c->words);
    return end_round(t);
}

static wf_status train(struct trainer *t)
{
    int64_t least = WF_MAX(t->options->min_frequency, 1);
    wf_status status = WF_OK;
    bool done = count_pairs(t);
    while (done && status == WF_OK && t->table.pieces.count < t->vocab_size && t->heap.count > 0) {
        int64_t count = pairs_get(&t->pairs, t->heap.item[0].key)->count;
        if (t->heap.item[0].count != count) {
            candidates_recount(&t->heap, count);
            continue;
        }
        if (count < least)
            break;
        struct candidate best = candidates_pop(&t->heap);
        done = merge(t, &best);
        if (done)
            status = train_tick(&t->clock, "merging", t->table.pieces.count - t->first, t->vocab_size - t->first, false, t->error);
    }
    if (!done)
        return t->status != WF_OK ? t->status
                                  : wf_error_set(t->error, WF_ERR_MEMORY, "no memory to merge pairs of %" PRId64 " words", t->words.count);
    return status != WF_OK ? status
                           : train_tick(&t->clock, "merging", t->table.pieces.count - t->first, t->vocab_size - t->first, true, t->error);
}

wf_status tokenizer_train_bpe(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                              struct tokenizer_table *out, wf_error *error)
{
    struct trainer t = {
        .options = options, .clock = {options, -1}, .vocab_size = options->vocab_size ? options->vocab_size : 10000, .error = error};
    struct word_counts words = {0};
    *out = (struct tokenizer_table){0};
    wf_status status = train_specials(options, &t.table, error);
    if (status == WF_OK)
        status = word_counts_read(source, options, &words, error);
    if (status == WF_OK)
        status = set_words(&t, &words);
    word_counts_free(&words);
    if (status == WF_OK)
        status = train(&t);
    if (status == WF_OK) {
        *out = t.table;
        t.table = (struct tokenizer_table){0};
    }
    tokenizer_table_free(&t.table);
    wf_free(t.words.symbol);
    wf_free(t.words.start);
    wf_free(t.words.length);
    wf_free(t.words.times);
    pairs_free(&t.pairs);
    word_lists_free(&t.lists);
    candidates_free(&t.heap);
    wf_free(t.event);
    wf_free(t.touched);
    wf_string_free(&t.joined);
    return status;
}

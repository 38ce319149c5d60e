/* SPDX-License-Identifier: MIT */
#include <math.h>

#include <weft/internal/minmax.h>
#include <weft/internal/pair_parts.h>

#include "bitext_test.h"

static wf_pair_batches *batches_of(struct corpus *c, struct wf_pair_batches_options options)
{
    wf_pair_batches *b;
    ck_ok(wf_pair_batches_new(c->bitext, &options, &b, error));
    return b;
}

/* Of the corpus c. */
#define BATCHES(...) batches_of(&c, (struct wf_pair_batches_options){__VA_ARGS__})

static struct wf_pairs next(wf_pair_batches *b)
{
    struct wf_pairs pairs;
    ck_ok(wf_pair_batches_next(b, &pairs, error));
    return pairs;
}

static int64_t cost_of(const struct wf_pairs *p, bool side, int64_t *sum)
{
    int64_t longest[2] = {0, 0};
    for (int64_t i = 0; i < p->count; i++) {
        int64_t s = p->source_offsets[i + 1] - p->source_offsets[i], t = p->target_offsets[i + 1] - p->target_offsets[i];
        longest[0] = WF_MAX(longest[0], s);
        longest[1] = WF_MAX(longest[1], t);
        *sum += s + t;
    }
    return p->count * (side ? WF_MAX(longest[0], longest[1]) : longest[0] + longest[1]);
}

/* The ids of a batch against those of its lines, mark by mark. */
static void ck_ids(const struct corpus *c, const struct wf_pairs *p, const int64_t *index)
{
    struct wf_tokens ids = {0};
    const wf_tokenizer *t = c->tokenizer;
    int32_t bos = wf_tokenizer_special(t, WF_SPECIAL_BOS), eos = wf_tokenizer_special(t, WF_SPECIAL_EOS);
    ck_assert(p->source_offsets[0] == 0 && p->target_offsets[0] == 0);
    for (int64_t i = 0; i < p->count; i++)
        for (int side = 0; side < 2; side++) {
            int64_t n, lengths[2];
            struct wf_string text = {0};
            ck_ok(wf_bitext_text(c->bitext, index[i], side, &text, error));
            ids.count = 0;
            ck_ok(wf_tokenizer_encode(t, text.data, text.length, &ids, error));
            wf_string_free(&text);
            wf_bitext_lengths(c->bitext, index[i], lengths, lengths + 1);
            const int32_t *offsets = (side ? p->target_offsets : p->source_offsets) + i;
            n = offsets[1] - offsets[0];
            ck_assert(n == ids.count + 1 && n == lengths[side]);
            size_t bytes = (size_t)ids.count * 4;
            if (side == 0) {
                ck_assert(!memcmp(p->source + offsets[0], ids.id, bytes) && p->source[offsets[1] - 1] == eos);
            } else {
                ck_assert(!memcmp(p->target + offsets[0], ids.id, bytes) && p->target[offsets[1] - 1] == eos);
                ck_assert(!memcmp(p->input + offsets[0] + 1, ids.id, bytes) && p->input[offsets[0]] == bos);
            }
        }
    wf_tokens_free(&ids);
}

/* For costs of both kinds, windows and tolerances: each pair once an epoch, costs within the bound, batches as full as they can be. */
START_TEST(every_pair_once_an_epoch)
{
    enum { N = 700 };
    struct corpus c;
    open_corpus(&c, N, 20);
    static const struct wf_pair_batches_options cases[] = {
        {.tokens = 400},
        {.tokens = 400, .side = true},
        {.tokens = 380, .tolerance = 20, .window = 64},
        {.tokens = 200, .window = 100, .seed = 5},
        {.tokens = 200, .window = 699, .in_order = true},
        {.tokens = 30}, /* less than the longest pairs */
        {.tokens = 1},  /* each pair is a batch */
        {.tokens = 400, .window = 1},
        {.tokens = 1000000, .window = 128},
        {0},
        {.window = 10, .seed = 3},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct wf_pair_batches_options *o = cases + k;
        wf_pair_batches *b = batches_of(&c, *o);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            bool seen[N] = {false};
            int64_t ids = 0, pairs = 0, count = 0, left_open = 0;
            for (int64_t at, e; wf_pair_batches_place(b, &e, &at), e == epoch; count++) {
                ck_assert_int_eq(at, count);
                struct wf_pairs p = next(b);
                const int64_t *index = wf_pair_batches_index(b);
                int64_t cost = cost_of(&p, o->side, &ids);
                ck_assert(p.count > 0 && p.first_source == 0 && p.first_target == 0);
                ck_assert(p.count == 1 || o->tokens == 0 || cost <= o->tokens + o->tolerance);
                left_open += p.count > 1 && cost < (o->tokens + o->tolerance) / 2;
                for (int64_t i = 0; i < p.count; i++) {
                    ck_assert(!seen[index[i]]);
                    seen[index[i]] = true;
                    if (i == 0)
                        continue;
                    int64_t l[4];
                    wf_bitext_lengths(c.bitext, index[i - 1], l, l + 1);
                    wf_bitext_lengths(c.bitext, index[i], l + 2, l + 3);
                    ck_assert(l[1] < l[3] || (l[1] == l[3] && (o->side || l[0] <= l[2])));
                }
                pairs += p.count;
                if (count % 7 == 0)
                    ck_ids(&c, &p, index);
            }
            ck_assert_int_eq(pairs, N);
            ck_assert_int_eq(count, wf_pair_batches_count(b));
            ck_assert_int_eq(ids, wf_bitext_survey(c.bitext)->source_tokens + wf_bitext_survey(c.bitext)->target_tokens);
            int64_t windows = o->window && o->tokens ? (N + o->window - 1) / o->window : 1;
            ck_assert_msg(left_open <= windows, "case %d: %d batches are less than half full", (int)k, (int)left_open);
            ck_assert(o->tokens || count == 1);
            ck_assert(o->tokens != 1 || count == N);
        }
        wf_pair_batches_free(b);
    }
    close_corpus(&c);
}
END_TEST

/* If the longer side counts, pairs have other neighbours in each epoch. */
START_TEST(neighbours_change)
{
    enum { N = 700 };
    struct corpus c;
    open_corpus(&c, N, 20);
    wf_pair_batches *b = BATCHES(.tokens = 400, .side = true);
    static int64_t after[2][N];
    for (int64_t epoch = 0, e, at; epoch < 2; epoch++)
        while (wf_pair_batches_place(b, &e, &at), e == epoch) {
            struct wf_pairs p = next(b);
            const int64_t *index = wf_pair_batches_index(b);
            for (int64_t i = 0; i < p.count; i++)
                after[epoch][index[i]] = i + 1 < p.count ? index[i + 1] : -1;
        }
    int same = 0;
    for (int64_t i = 0; i < N; i++)
        same += after[0][i] >= 0 && after[0][i] == after[1][i];
    ck_assert_msg(same < N / 10, "%d of %d pairs have the same neighbour in both epochs", same, N);
    wf_pair_batches_free(b);
    close_corpus(&c);
}
END_TEST

/* Lengths of more than one digit of the sort. */
START_TEST(long_sentences_are_sorted_too)
{
    struct corpus c;
    open_corpus(&c, 60, 9000);
    wf_pair_batches *b = BATCHES(.in_order = true);
    struct wf_pairs p = next(b);
    ck_assert_int_eq(p.count, 60);
    for (int64_t i = 2; i <= 60; i++)
        ck_assert(p.target_offsets[i] - p.target_offsets[i - 1] >= p.target_offsets[i - 1] - p.target_offsets[i - 2]);
    ck_ids(&c, &p, wf_pair_batches_index(b));
    wf_pair_batches_free(b);
    close_corpus(&c);
}
END_TEST

/* The pairs of an epoch in order, and a -1 behind each batch. */
static int64_t epoch_of(wf_pair_batches *b, int64_t epoch, int64_t *list)
{
    int64_t n = 0;
    ck_ok(wf_pair_batches_seek(b, epoch, 0, error));
    for (int64_t i = 0, count = wf_pair_batches_count(b); i < count; i++) {
        struct wf_pairs p = next(b);
        memcpy(list + n, wf_pair_batches_index(b), (size_t)p.count * 8);
        n += p.count;
        list[n++] = -1;
    }
    return n;
}

START_TEST(order_is_drawn)
{
    enum { N = 500 };
    struct corpus c;
    open_corpus(&c, N, 20);
    int64_t list[5][2 * N], n[5];
    for (int i = 0; i < 5; i++) {
        wf_pair_batches *b = BATCHES(.tokens = 300, .window = 128, .seed = (const uint64_t[]){1, 1, 1, 2, 2 + (UINT64_C(1) << 40)}[i]);
        n[i] = epoch_of(b, (const int64_t[]){0, 1, INT64_C(1) << 40, 0, 0}[i], list[i]);
        wf_pair_batches_free(b);
    }
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++) {
            int64_t same = 0;
            for (int64_t j = 0; j < n[i] && j < n[k]; j++)
                same += list[i][j] == list[k][j] && list[i][j] >= 0;
            ck_assert_msg(same < N / 20, "orders %d and %d have %d of %d places in common", i, k, (int)same, N);
        }
    /* Batches are not left sorted by length, nor windows beside each other: the mean of the first quarter is like that of the rest. */
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (int64_t j = 0; j < n[0]; j++)
        if (list[0][j] >= 0) {
            int64_t s, t;
            wf_bitext_lengths(c.bitext, list[0][j], &s, &t);
            sum[j >= n[0] / 4] += (double)t;
            count[j >= n[0] / 4]++;
        }
    ck_assert(fabs(sum[0] / count[0] - sum[1] / count[1]) < 4);
    /* For evaluation: by length, the same in each epoch and for each seed. */
    for (int i = 0; i < 3; i++) {
        wf_pair_batches *b = BATCHES(.tokens = 300, .in_order = true, .seed = i == 2 ? 9 : 0);
        n[i] = epoch_of(b, i == 1 ? 3 : 0, list[i]);
        wf_pair_batches_free(b);
        ck_assert(n[i] == n[0] && !memcmp(list[i], list[0], (size_t)n[0] * 8));
    }
    for (int64_t j = 0, before = 0, s, t; j < n[0]; j++)
        if (list[0][j] >= 0) {
            wf_bitext_lengths(c.bitext, list[0][j], &s, &t);
            ck_assert(t >= before);
            before = t;
        }
    close_corpus(&c);
}
END_TEST

/* Runs are resumed by this order: it must be the same on every machine, and in every version. */
START_TEST(order_never_changes)
{
    struct corpus c = {.tokenizer = words(false)};
    char text[2][400] = {"", ""};
    for (int i = 0; i < 12; i++)
        for (int side = 0; side < 2; side++) {
            for (int k = 0; k <= (i * 5 + side * 3) % 7; k++)
                strcat(text[side], "w1 ");
            strcat(text[side], "\n");
        }
    c.source = text_file("s", text[0]);
    c.target = text_file("t", text[1]);
    const struct wf_bitext_options options = {.source = c.tokenizer, .target = c.tokenizer};
    ck_ok(wf_bitext_open(c.source, c.target, &options, &c.bitext, error));
    wf_pair_batches *b = BATCHES(.tokens = 24, .window = 7, .seed = 42);
    static const int64_t expected[2][24] = {{2, -1, 7, 6, -1, 9, -1, 4, 0, -1, 3, 10, -1, 1, 11, -1, 5, 8, -1},
                                            {8, 1, -1, 5, 4, -1, 3, 6, -1, 7, 10, -1, 11, 0, -1, 2, -1, 9, -1}};
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t list[24], n = epoch_of(b, epoch, list);
        char line[300] = "";
        for (int64_t i = 0; i < n; i++)
            snprintf(line + strlen(line), sizeof line - strlen(line), "%d, ", (int)list[i]);
        ck_assert_msg(!memcmp(list, expected[epoch], (size_t)n * 8), "epoch %d: %s", epoch, line);
    }
    wf_pair_batches_free(b);
    close_corpus(&c);
}
END_TEST

static uint64_t print_of(const struct wf_pairs *p)
{
    uint64_t h = (uint64_t)p->count;
    const int32_t *list[] = {p->source, p->source_offsets, p->input, p->target, p->target_offsets};
    const int64_t n[] = {p->source_offsets[p->count], p->count + 1, p->target_offsets[p->count], p->target_offsets[p->count], p->count + 1};
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < n[k]; i++)
            h = (h ^ (uint32_t)list[k][i]) * 0x100000001b3;
    return h;
}

/* The batches after any place are the same, also after a seek from another place and on any number of threads. */
START_TEST(any_place_is_found_again)
{
    enum { EPOCHS = 3, MOST = 400 };
    struct corpus c;
    open_corpus(&c, 600, 15);
    static uint64_t print[EPOCHS][MOST];
    int64_t count[EPOCHS];
    const struct wf_pair_batches_options o = {.tokens = 150, .window = 200, .seed = 11};
    for (int threads = 1; threads <= 4; threads *= 2) {
        ck_ok(wf_set_threads(threads, error));
        wf_pair_batches *b = batches_of(&c, o);
        for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
            for (int64_t i = 0; i == 0 || i < wf_pair_batches_count(b); i++) {
                struct wf_pairs p = next(b);
                ck_assert(threads == 1 || print[epoch][i] == print_of(&p));
                print[epoch][i] = print_of(&p);
                count[epoch] = wf_pair_batches_count(b);
            }
        wf_rng rng = wf_rng_new(1, 1);
        for (int i = 0; i < 300; i++) {
            int64_t epoch = (int64_t)wf_rng_below(&rng, EPOCHS), index = (int64_t)wf_rng_below(&rng, (uint64_t)count[epoch]), e, at;
            ck_ok(wf_pair_batches_seek(b, epoch, index, error));
            wf_pair_batches_place(b, &e, &at);
            ck_assert(e == epoch && at == index);
            struct wf_pairs p = next(b);
            ck_assert(print[epoch][index] == print_of(&p));
            wf_pair_batches_place(b, &e, &at);
            ck_assert(index + 1 < count[epoch] ? e == epoch && at == index + 1 : e == epoch + 1 && at == 0);
        }
        /* The end of an epoch is the start of the next. */
        ck_ok(wf_pair_batches_seek(b, 0, count[0], error));
        struct wf_pairs p = next(b);
        ck_assert(print[1][0] == print_of(&p));
        ck_assert_int_eq(wf_pair_batches_count(b), count[1]);
        /* A place that isn't there leaves it where it was. */
        const int64_t none[][2] = {{2, count[2] + 1}, {-1, 0}, {0, -1}, {INT64_MAX, 0}};
        for (int i = 0; i < 4; i++)
            ck_fails(wf_pair_batches_seek(b, none[i][0], none[i][1], error), WF_ERR_ARGUMENT, "no such position");
        p = next(b);
        ck_assert(print[1][1] == print_of(&p));
        wf_pair_batches_free(b);
    }
    close_corpus(&c);
}
END_TEST

START_TEST(micro_batches_are_the_batch)
{
    struct corpus c;
    open_corpus(&c, 300, 20);
    wf_pair_batches *b = BATCHES(.tokens = 500, .seed = 4);
    struct wf_pairs p;
    wf_pair_batches_part(b, 0, 2, &p);
    ck_assert(p.count == 0 && p.source_offsets[0] == 0 && p.target_offsets[0] == 0);
    for (int k = 0; k < 20; k++) {
        struct wf_pairs all = next(b);
        int64_t ids = all.source_offsets[all.count] + all.target_offsets[all.count];
        for (int64_t parts = 1; parts < 3 * all.count; parts += parts < 9 ? 1 : 13) {
            int64_t pair = 0;
            for (int64_t part = 0; part < parts; part++) {
                wf_pair_batches_part(b, part, parts, &p);
                ck_assert(p.first_source == all.source_offsets[pair] && p.first_target == all.target_offsets[pair]);
                ck_assert(p.source == all.source + p.first_source && p.input == all.input + p.first_target &&
                          p.target == all.target + p.first_target);
                for (int64_t i = 0; i <= p.count; i++)
                    ck_assert(p.source_offsets[i] == all.source_offsets[pair + i] - p.first_source &&
                              p.target_offsets[i] == all.target_offsets[pair + i] - p.first_target);
                /* A cut is off by less than a pair of at most 21 + 21 ids on either end. */
                int64_t mine = p.source_offsets[p.count] + p.target_offsets[p.count];
                ck_assert(mine * parts <= ids + 42 * parts && mine * parts >= ids - 42 * parts);
                pair += p.count;
            }
            ck_assert_int_eq(pair, all.count);
        }
        wf_pair_batches_part(b, 2, 2, &p);
        ck_assert_int_eq(p.count, 0);
    }
    wf_pair_batches_free(b);
    close_corpus(&c);
}
END_TEST

/* A process encodes its parts. The ids of other parts stay as they were until they are encoded. */
START_TEST(parts_are_encoded_alone)
{
    enum { BLANK = 0x55 };
    struct corpus c;
    open_corpus(&c, 300, 20);
    wf_pair_batches *b = BATCHES(.tokens = 500, .seed = 4), *whole = BATCHES(.tokens = 500, .seed = 4);
    for (int k = 0; k < 20; k++) {
        const int64_t parts = 1 + k % 7, begin = k % parts, end = k % 5 == 4 ? begin : begin + 1 + (k / 7) % (parts - begin);
        struct wf_pairs all = next(whole), some, p;
        const size_t source = (size_t)all.source_offsets[all.count] * 4, target = (size_t)all.target_offsets[all.count] * 4;
        int64_t epoch, index;
        wf_pair_batches_place(b, &epoch, &index);
        some = next(b); /* to know where the ids lie */
        memset((void *)(uintptr_t)some.source, BLANK, source);
        memset((void *)(uintptr_t)some.input, BLANK, target);
        memset((void *)(uintptr_t)some.target, BLANK, target);
        ck_ok(wf_pair_batches_seek(b, epoch, index, error));
        ck_ok(wf_pair_batches_next_parts(b, begin, end, parts, &some, error));
        ck_assert(some.count == all.count && memcmp(some.source_offsets, all.source_offsets, (size_t)(all.count + 1) * 4) == 0 &&
                  memcmp(some.target_offsets, all.target_offsets, (size_t)(all.count + 1) * 4) == 0);
        for (int64_t part = 0; part < parts; part++) {
            const bool own = part >= begin && part < end;
            wf_pair_batches_part(b, part, parts, &p);
            const int64_t s = p.first_source, t = p.first_target, n = p.source_offsets[p.count], m = p.target_offsets[p.count];
            for (int64_t i = 0; i < n; i++)
                ck_assert_int_eq(p.source[i], own ? all.source[s + i] : BLANK * 0x1010101);
            for (int64_t i = 0; i < m; i++)
                ck_assert(p.input[i] == (own ? all.input[t + i] : BLANK * 0x1010101) &&
                          p.target[i] == (own ? all.target[t + i] : BLANK * 0x1010101));
            if (!own)
                ck_ok(wf_pair_batches_encode_parts(b, part, part + 1, parts, error));
        }
        ck_assert(memcmp(some.source, all.source, source) == 0 && memcmp(some.input, all.input, target) == 0 &&
                  memcmp(some.target, all.target, target) == 0);
    }
    wf_pair_batches_free(b);
    wf_pair_batches_free(whole);
    close_corpus(&c);
}
END_TEST

START_TEST(nothing_is_allocated_once_it_stands)
{
    struct corpus c;
    open_corpus(&c, 3000, 20);
    ck_ok(wf_set_threads(2, error));
    wf_pair_batches *b = BATCHES(.tokens = 500, .window = 512, .seed = 4);
    int64_t before = wf_alloc_count(), count = 4 * wf_pair_batches_count(b);
    for (int64_t i = 0; i < count; i++) {
        struct wf_pairs p = next(b);
        wf_pair_batches_part(b, 0, 2, &p);
    }
    ck_ok(wf_pair_batches_seek(b, 17, 3, error));
    next(b);
    ck_assert_int_eq(wf_alloc_count(), before);
    wf_pair_batches_free(b);
    wf_pair_batches_free(NULL);
    close_corpus(&c);
}
END_TEST

START_TEST(invalid_options)
{
    struct corpus c;
    open_corpus(&c, 10, 3);
    wf_pair_batches *b;
#define REFUSED(words, ...)                                                                                                                \
    ck_fails(wf_pair_batches_new(c.bitext, &(struct wf_pair_batches_options){__VA_ARGS__}, &b, error), WF_ERR_ARGUMENT, words)
    REFUSED("-1 tokens", .tokens = -1);
    REFUSED("negative", .tolerance = -1);
    REFUSED("negative", .window = -1);
    ck_assert_ptr_null(b);
    b = BATCHES(.tokens = INT64_MAX, .tolerance = INT64_MAX, .window = INT64_MAX);
    ck_assert_int_eq(next(b).count, 10);
    wf_pair_batches_free(b);
    close_corpus(&c);
}
END_TEST

static wf_status some_batches(void *ctx, wf_error *error)
{
    struct corpus *c = ctx;
    wf_pair_batches *b;
    struct wf_pairs p;
    wf_status status = wf_pair_batches_new(c->bitext, &(struct wf_pair_batches_options){.tokens = 60, .seed = 4}, &b, error);
    for (int i = 0; i < 5 && status == WF_OK; i++)
        status = wf_pair_batches_next(b, &p, error);
    wf_pair_batches_free(b);
    return status;
}

START_TEST(no_memory)
{
    struct corpus c;
    open_corpus(&c, 50, 5);
    ck_assert_int_gt(sweep_memory(some_batches, &c), 10);
    close_corpus(&c);
}
END_TEST

/* The counts are those of the Python package tokenizers 0.23: its Whitespace, and the shared tokenizer. The raw German holds a tab, a
 * no-break space and white space at edges: all lines must stay beside each other. */
static void open_multi30k(struct corpus *c, int64_t source, int64_t target)
{
    const struct wf_bitext_options options = {.source = c->tokenizer, .target = c->tokenizer, .source_eos = true};
    ck_ok(wf_bitext_open(c->source, c->target, &options, &c->bitext, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(c->bitext);
    ck_assert(s->lines == 29000 && s->used == 29000);
    ck_assert_int_eq(s->source_tokens, source + 29000);
    ck_assert_int_eq(s->target_tokens, target + 29000);
    ck_assert(s->source_unknown == 0 && s->target_unknown == 0);
}

START_TEST(multi30k)
{
    if (!shared_folder())
        return;
    struct corpus c;
    c.source = wf_format("%s/data/multi30k/train.en", shared_folder());
    c.target = wf_format("%s/data/multi30k/train.de", shared_folder());
    char *shared = wf_format("%s/data/tokenizers/wmt14_en-de_bpe37000.json", shared_folder());
    const char *const both[] = {c.source, c.target};
    ck_ok(wf_tokenizer_load(shared, &c.tokenizer, error));
    open_multi30k(&c, 426199, 460368);
    wf_bitext_close(c.bitext);
    wf_tokenizer_free(c.tokenizer);
    wf_free(shared);

    ck_ok(wf_tokenizer_train_files(both, 2, &c.tokenizer, error, .kind = WF_TOKENIZER_WORD));
    open_multi30k(&c, 380658, 365638);
    const struct wf_bitext_survey *s = wf_bitext_survey(c.bitext);
    ck_assert(s->longest_source == 42 && s->longest_target == 46);
    wf_pair_batches *b = BATCHES(.tokens = 4096, .side = true, .seed = 1);
    bool *seen = calloc(29000, 1);
    int64_t pairs = 0, ids = 0, positions = 0;
    for (int64_t i = 0, count = wf_pair_batches_count(b); i < count; i++) {
        struct wf_pairs p = next(b);
        int64_t cost = cost_of(&p, true, &ids);
        ck_assert(cost <= 4096);
        positions += 2 * cost;
        for (int64_t k = 0; k < p.count; k++, pairs++) {
            ck_assert(!seen[wf_pair_batches_index(b)[k]]);
            seen[wf_pair_batches_index(b)[k]] = true;
        }
        if (i % 10 == 0)
            ck_ids(&c, &p, wf_pair_batches_index(b));
    }
    free(seen);
    ck_assert_int_eq(pairs, 29000);
    ck_assert_int_eq(ids, s->source_tokens + s->target_tokens);
    ck_assert_msg((double)ids / (double)positions > 0.6, "%d tokens on %d positions", (int)ids, (int)positions);
    wf_pair_batches_free(b);
    wf_bitext_close(c.bitext);
    wf_tokenizer_free(c.tokenizer);
    wf_free(c.source);
    wf_free(c.target);
}
END_TEST

WF_TEST_MAIN("pair_batches", every_pair_once_an_epoch, neighbours_change, long_sentences_are_sorted_too, order_is_drawn,
             order_never_changes, any_place_is_found_again, micro_batches_are_the_batch, parts_are_encoded_alone,
             nothing_is_allocated_once_it_stands, invalid_options, no_memory, multi30k)

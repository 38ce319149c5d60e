/* SPDX-License-Identifier: MIT */
/* In the steady state an update of a training allocates nothing and touches no new page, on texts, masked tokens and pairs: not in Weft,
 * and for small models not in BLIS or libgomp either. This program counts every malloc of the process. */
#include <errno.h>
#include <stdatomic.h>

#include "zoo.h"

/* glibc's allocator by its other names, with a counter before it. The sanitizers bring their own; there this part is left out. */
#if !defined(__SANITIZE_ADDRESS__)
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
static atomic_long mallocs;
void *malloc(size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}
#else
static atomic_long mallocs;
#endif

enum { UPDATES = 15 }; /* of a window in which page faults count */

struct counts {
    struct seen seen; /* first, for see and cancel */
    int64_t first;    /* allocations count from this update on */
    int64_t own;      /* allocations of Weft, and of the process */
    long all, faults;
    int windows;
};

static void count(void *ctx, const struct wf_event *e)
{
    struct counts *c = ctx;
    see(ctx, e);
    if (e->kind != WF_EVENT_STEP || e->step < c->first || (e->step - c->first) % UPDATES != 0)
        return;
    if (e->step > c->first && (page_faults() == c->faults || sanitized() || ++c->windows == FAULT_WINDOWS)) {
        c->own = wf_alloc_count() - c->own;
        c->all = atomic_load(&mallocs) - c->all;
        c->faults = page_faults() - c->faults;
        c->seen.cancel_after = e->step;
        return;
    }
    if (e->step == c->first) {
        c->own = wf_alloc_count();
        c->all = atomic_load(&mallocs);
    }
    c->faults = page_faults();
}

/* Lines of random words; each word of the vocabulary begins a line. */
static void write_words(const char *name, int lines, unsigned words, unsigned seed)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < 3 + i * 11 % 17; k++)
            fprintf(f, "w%u ", i < (int)words && k == 0 ? (unsigned)i : next_random(&seed) % words);
        fputc('\n', f);
    }
    fclose(f);
}

static void steady(const char *preset, const char *settings, int threads, int64_t first)
{
    struct counts c = {.first = first};
    struct wf_train_options o = preset_options(preset, preset, &c.seen, "steps=1000 save_every=0 valid_every=0 log_every=1000 keep=0");
    set_keys(&o.config, settings);
    o.event = count;
    ck_ok(wf_init(error, .threads = threads));
    write_words("text", 2000, 200, 1);
    write_words("source", 400, 90, 1);
    write_words("target", 400, 90, 2);
    if (strcmp(preset, "multi30k") == 0) {
        train_on(&o, "source", "target");
    } else {
        train_on(&o, "text", NULL);
        set_keys(&o.config, sanitized() ? "batch=4" : ""); /* they make an update ten times slower */
    }
    refused(&o, WF_ERR_CANCELLED, "");
    ck_assert_int_eq(c.own, 0);
    if (!sanitized()) {
        ck_assert_int_eq(c.all, 0);
        ck_assert_int_eq(c.faults, 0);
    }
}

START_TEST(the_counter_counts)
{
    long before = atomic_load(&mallocs);
    void *volatile block = malloc(100);
    free(block);
#if !defined(__SANITIZE_ADDRESS__)
    ck_assert(atomic_load(&mallocs) - before == 1);
#else
    ck_assert(atomic_load(&mallocs) == before);
#endif
}
END_TEST
START_TEST(nanogpt_char_small)
{
    steady("nanogpt-char-small", "", 2, 10);
}
END_TEST
START_TEST(nanogpt_char_small_dropout)
{
    steady("nanogpt-char-small", "dropout=0.1", 2, 10);
}
END_TEST
START_TEST(nanogpt_char_small_one_thread)
{
    steady("nanogpt-char-small", "", 1, 10);
}
END_TEST
START_TEST(char_rms)
{
    steady("char-rms", "", 2, 10);
}
END_TEST
/* The number of masked tokens differs from update to update. */
START_TEST(encoder_attention)
{
    steady("encoder-attention", "dropout=0.1", 2, 20);
}
END_TEST
START_TEST(pairs)
{
    steady("multi30k", "encoder_layers=2 decoder_layers=2 d_model=64 batch_tokens=800 batch_window=100 tokenizer=word", 2, 60);
}
END_TEST
START_TEST(pairs_in_parts_one_thread)
{
    steady("multi30k", "encoder_layers=2 decoder_layers=2 d_model=64 batch_tokens=800 batch_window=100 tokenizer=word accumulate=3", 1, 60);
}
END_TEST

START_TEST(lion)
{
    steady("nanogpt-char-small", "optimizer=lion clip_value=0.1", 2, 10);
}
END_TEST
START_TEST(adafactor)
{
    steady("nanogpt-char-small", "optimizer=adafactor", 2, 10);
}
END_TEST
START_TEST(muon)
{
    steady("nanogpt-char-small", "optimizer=muon schedule=wsd", 2, 10);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_counter_counts, nanogpt_char_small_dropout, char_rms, encoder_attention, pairs_in_parts_one_thread,
                                  muon,
                                  /* and, where all cases are taken: */
                                  nanogpt_char_small, nanogpt_char_small_one_thread, pairs, lion, adafactor};
    return run_tests("steady", tests, sampled() ? 6 : (int)(sizeof tests / sizeof *tests));
}

/* SPDX-License-Identifier: MIT */
/* In the steady state a training step (next batch, forward, backward, update) allocates nothing and touches no new page, on crops
 * of a text, on pairs and on masked tokens: not in Weft, and for small models not in BLIS or libgomp either. This program counts every
 * malloc of the process. */
#include <errno.h>
#include <stdatomic.h>

#include <weft/batches.h>
#include <weft/bitext.h>
#include <weft/encoder.h>
#include <weft/file.h>
#include <weft/masking.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/seq2seq.h>

#include "check_weft.h"
#include "config_test.h"

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

struct setting {
    const char *preset;
    int64_t vocab;
    double dropout;
    int threads;
};

static void steady(struct setting s)
{
    wf_error problem = {0};
    struct wf_config config;
    ck_ok(wf_init(error, .threads = s.threads));
    ck_ok(wf_config_preset(&config, s.preset, error));
    set_key(&config, "vocab_size", s.vocab);
    set_key(&config, "dropout", s.dropout);
    if (sanitized()) /* they make a step ten times slower */
        config.training.batch = 4;
    enum { TEXT = 20000 };
    int32_t *text = malloc(TEXT * sizeof *text);
    for (int i = 0; i < TEXT; i++)
        text[i] = (int32_t)((i * 7919u + (unsigned)i / 13) % (unsigned)s.vocab);
    int64_t context = key_of(&config, "context");
    size_t ids = (size_t)(config.training.batch * context);
    int32_t *x = malloc(ids * sizeof *x), *y = malloc(ids * sizeof *y);
    struct wf_crops crops;
    struct wf_masking masking = {0};
    int32_t *places = malloc(ids * sizeof *places);
    bool masked = wf_config_kind(&config) == WF_MODEL_ENCODER;
    if (masked) {
        wf_tokenizer *tokenizer;
        char words[8 * 1000] = "";
        for (int64_t i = 3, n = 0; i < s.vocab; i++)
            n += snprintf(words + n, sizeof words - (size_t)n, "w%d ", (int)i);
        ck_ok(wf_tokenizer_train(words, (int64_t)strlen(words), &tokenizer, error, .kind = WF_TOKENIZER_WORD,
                                 .specials = (const char *const[]){"<pad>", "<unk>", "<mask>"}, .special_count = 3));
        ck_assert_int_eq(wf_tokenizer_vocab_size(tokenizer), s.vocab);
        ck_ok(wf_masking_init(&masking, tokenizer, config.training.mask_rate, 1, error));
        wf_tokenizer_free(tokenizer);
    }
    ck_ok(wf_crops_init(&crops, wf_id_view_of(text, TEXT), context, 1, error));
    wf_model *model = wf_model_new(&config, &problem);
    wf_tape *tape = wf_tape_new(&problem);
    ck_assert_msg(model && tape, "%s", problem.message);
    struct wf_optimizer opt;
    ck_ok(wf_registry_build(wf_model_registry(model), 1, error));
    ck_ok(wf_adamw_init(&opt, wf_model_registry(model), error, .lr = 1e-3));
    int64_t own = 0;
    long all = 0;
    bool fine = true; /* Check's own assertions allocate: they wait until the counting is over */
    long faults = 0;
    int64_t first = 10, windows = 1; /* of 15 steps; allocations count in all of them */
    for (int64_t step = 0; step < (sanitized() ? 12 : first + 15); step++) {
        if (step == 10) {
            own = wf_alloc_count();
            all = atomic_load(&mallocs);
        }
        if (step == first)
            faults = page_faults();
        wf_crops_fill(&crops, step, 0, config.training.batch, x, y);
        /* one batch with more masked tokens than any of those that are counted goes before them: what it took is there */
        double rate = step == 5 ? 2 : 1;
        masking.threshold = (uint64_t)(rate * config.training.mask_rate * 4294967296.0);
        int64_t count = masked ? wf_masking_hide(&masking, step, 0, config.training.batch, context, x, places, y) : 0;
        wf_tape_reset(tape, WF_TRAIN, .seed = 1, .step = (uint64_t)step);
        wf_tensor *in = wf_ids(tape, x, config.training.batch, context);
        wf_tensor *loss = masked ? wf_encoder_loss(model, in, NULL, places, y, count, 0)
                                 : wf_model_loss(model, in, wf_ids(tape, y, config.training.batch, context));
        fine = fine && wf_backward(loss) == WF_OK &&
               wf_clip_norm(wf_registry_grads(wf_model_registry(model)), 1.0, NULL, &problem) == WF_OK &&
               wf_adam_step(&opt, &problem) == WF_OK;
        if (step == first + 14) {
            faults = page_faults() - faults;
            if (faults > 0 && windows++ < FAULT_WINDOWS)
                first += 15;
        }
    }
    own = wf_alloc_count() - own;
    all = atomic_load(&mallocs) - all;
    ck_assert_msg(fine, "%s%s", wf_tape_error(tape)->message, problem.message);
    ck_assert_int_eq(own, 0);
    if (!sanitized()) {
        ck_assert_int_eq(all, 0);
        ck_assert_int_eq(faults, 0);
    }
    wf_optimizer_free(&opt);
    wf_tape_free(tape);
    wf_model_free(model);
    wf_masking_free(&masking);
    free(places);
    free(text);
    free(x);
    free(y);
}

/* --- pairs --------------------------------------------------------------------------------------------------------- */

enum { PAIRS = 400, WORDS = 90 };

static void write_lines(const char *path, unsigned seed)
{
    FILE *f = fopen(path, "w");
    for (int i = 0; i < PAIRS; i++) {
        for (unsigned k = 0, n = 3 + (unsigned)(i * 11) % 17; k < n; k++) {
            seed = seed * 1664525u + 1013904223u;
            fprintf(f, "w%u ", i < WORDS && k == 0 ? (unsigned)i : (seed >> 16) % WORDS);
        }
        fputc('\n', f);
    }
    fclose(f);
}

/* Epochs after two that were not counted: their batches are other ones. */
static void steady_pairs(int threads, int64_t parts)
{
    char folder[] = "/tmp/weft-steady-XXXXXX", source[64], target[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(source, sizeof source, "%s/source", folder);
    snprintf(target, sizeof target, "%s/target", folder);
    write_lines(source, 1);
    write_lines(target, 2);
    wf_error problem = {0};
    struct wf_config config;
    wf_tokenizer *tokenizer;
    wf_bitext *bitext;
    wf_pair_batches *batches;
    struct wf_optimizer opt;
    ck_ok(wf_init(error, .threads = threads));
    ck_ok(wf_config_preset(&config, "multi30k", error));
    set_key(&config, "encoder_layers", set_key(&config, "decoder_layers", 2));
    set_key(&config, "d_model", 64);
    ck_ok(wf_tokenizer_train_files((const char *const[]){source}, 1, &tokenizer, error, .kind = WF_TOKENIZER_WORD));
    set_key(&config, "vocab_size", wf_tokenizer_vocab_size(tokenizer));
    struct wf_bitext_options o = {.source = tokenizer, .target = tokenizer, .source_eos = true};
    ck_ok(wf_bitext_open(source, target, &o, &bitext, error));
    ck_ok(wf_pair_batches_new(bitext, &(struct wf_pair_batches_options){.tokens = 800, .window = 100, .seed = 3}, &batches, error));
    wf_model *model = wf_model_new(&config, &problem);
    wf_tape *tape = wf_tape_new(&problem);
    ck_assert_msg(model && tape, "%s", problem.message);
    ck_ok(wf_registry_build(wf_model_registry(model), 1, error));
    ck_ok(wf_adam_init(&opt, wf_model_registry(model), error, .lr = 1e-3));
    int64_t own = 0, epoch = 0, index = 0;
    long all = 0;
    bool fine = true;
    int64_t counted = 2; /* the epoch of which faults are counted */
    long faults = 0;
    for (int64_t step = 0; fine; step++) {
        wf_pair_batches_place(batches, &epoch, &index);
        if (index == 0 && epoch > counted) {
            faults = page_faults() - faults;
            if (faults == 0 || sanitized() || counted + 1 == 2 + FAULT_WINDOWS)
                break;
            counted++;
        }
        if (index == 0 && epoch == counted) {
            if (epoch == 2) {
                own = wf_alloc_count();
                all = atomic_load(&mallocs);
            }
            faults = page_faults();
        }
        struct wf_pairs pairs, part;
        fine = wf_pair_batches_next(batches, &pairs, &problem) == WF_OK;
        for (int64_t i = 0; i < parts && fine; i++) {
            wf_pair_batches_part(batches, i, parts, &part);
            if (part.count == 0)
                continue;
            wf_tape_reset(tape, WF_TRAIN, .seed = 1, .step = (uint64_t)step);
            fine = wf_backward(wf_pairs_loss(model, tape, &part, .label_smoothing = 0.1)) == WF_OK;
        }
        fine = fine && wf_clip_norm(wf_registry_grads(wf_model_registry(model)), 1.0, NULL, &problem) == WF_OK &&
               wf_adam_step(&opt, &problem) == WF_OK;
    }
    own = wf_alloc_count() - own;
    all = atomic_load(&mallocs) - all;
    ck_assert_msg(fine, "%s%s", wf_tape_error(tape)->message, problem.message);
    ck_assert_int_eq(own, 0);
    if (!sanitized()) {
        ck_assert_int_eq(all, 0);
        ck_assert_int_eq(faults, 0);
    }
    wf_optimizer_free(&opt);
    wf_tape_free(tape);
    wf_model_free(model);
    wf_pair_batches_free(batches);
    wf_bitext_close(bitext);
    wf_tokenizer_free(tokenizer);
    remove(source);
    remove(target);
    remove(folder);
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
    steady((struct setting){"nanogpt-char-small", 65, 0, 2});
}
END_TEST
START_TEST(nanogpt_char_small_dropout)
{
    steady((struct setting){"nanogpt-char-small", 65, 0.1, 2});
}
END_TEST
START_TEST(nanogpt_char_small_one_thread)
{
    steady((struct setting){"nanogpt-char-small", 65, 0, 1});
}
END_TEST
START_TEST(char_rms)
{
    steady((struct setting){"char-rms", 70, 0, 2});
}
END_TEST
/* The number of masked tokens differs from step to step. */
START_TEST(encoder_attention)
{
    steady((struct setting){"encoder-attention", 200, 0.1, 2});
}
END_TEST
START_TEST(pairs)
{
    steady_pairs(2, 1);
}
END_TEST
START_TEST(pairs_in_parts_one_thread)
{
    steady_pairs(1, 3);
}
END_TEST

WF_TEST_MAIN("steady", the_counter_counts, nanogpt_char_small, nanogpt_char_small_dropout, nanogpt_char_small_one_thread, char_rms,
             encoder_attention, pairs, pairs_in_parts_one_thread)

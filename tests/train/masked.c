/* SPDX-License-Identifier: MIT */
/* Training of encoders on masked tokens: that it learns what it should and nothing else, resuming, accumulation, what is refused. */
#include <weft/corpus.h>
#include <weft/masking.h>

#include "pairs_test.h"

enum { KINDS = 12, RUN = 30, LINES = 150, STEPS = 1000 };

/* Lines of two words that take turns, each line with words of its own: "a7 b7 a7 b7 ...". A word says what its neighbours are, and
 * nothing but a neighbour says which of the two a masked one was. */
static void write_turns(const char *name, unsigned seed)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = 0; i < LINES; i++) {
        seed = seed * 1664525u + 1013904223u;
        for (unsigned k = 0, kind = i < KINDS ? (unsigned)i : (seed >> 16) % KINDS; k < RUN + kind % 2; k++)
            fprintf(f, "%c%u ", "ab"[k % 2], kind);
        fputc('\n', f);
    }
    fclose(f);
}

/* Words that say nothing of each other. */
static void write_noise(const char *name, unsigned seed)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = 0; i < LINES * RUN; i++) {
        seed = seed * 1664525u + 1013904223u;
        fprintf(f, "w%u%c", (seed >> 16) % (2 * KINDS), i % RUN == RUN - 1 ? '\n' : ' ');
    }
    fclose(f);
}

static const char *text_files[2];

static struct wf_train_options tiny(const char *out, struct seen *seen)
{
    static char kept[192];
    strcpy(kept, in_folder("text"));
    text_files[0] = kept;
    struct wf_train_options o = {
        .out = out, .train = text_files, .train_files = 1, .seed = 5, .event = see, .ctx = seen, .cancelled = cancel};
    ck_ok(wf_config_preset(&o.config, "encoder-attention", error));
    const char *set[][2] = {{"layers", "2"},   {"d_model", "32"}, {"heads", "4"},        {"d_ff", "64"},
                            {"context", "16"}, {"batch", "6"},    {"vocab_size", "0"},   {"schedule", "constant"},
                            {"warmup", "0"},   {"clip", "0"},     {"valid_every", "10"}, {"save_every", "7"},
                            {"keep", "2"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        ck_ok(wf_config_set(&o.config, set[i][0], set[i][1], error));
    o.config.training.steps = 25;
    return o;
}

/* --- learning ------------------------------------------------------------------------------------------------------ */

static struct wf_train_result learn(bool layers)
{
    struct seen seen = {0};
    struct wf_train_result result;
    struct wf_train_options o = tiny(in_folder(layers ? "run" : "blind"), &seen);
    o.config.training.steps = STEPS;
    o.event = NULL;
    o.config.training.batch = 16;
    o.config.training.valid_every = 200;
    o.config.training.save_every = 0;
    o.config.training.lr = 3e-3;
    set_key(&o.config, "dropout", 0);
    set_key(&o.config, "scale_embeddings", false);
    set_key(&o.config, "layers", layers ? 2 : 1);
    if (!layers)
        set_key(&o.config, "context", 1);
    ck_ok(wf_train(&o, &result, error));
    return result;
}

/* Each masked word is that before last, or the next but one. */
START_TEST(learns_what_stands_around)
{
    begin();
    write_turns("text", 1);
    struct wf_train_result result = learn(true);
    ck_assert_msg(result.valid < 0.35, "the loss is %g", result.valid);
    /* one token at a time there is nothing around it: what remains is a guess among all words for those that were masked or replaced */
    result = learn(false);
    ck_assert_msg(result.valid > 0.85 * log(2 * KINDS), "the loss is %g", result.valid);
    finish();
}
END_TEST

/* Of noise only the tenth that stays as it is can be known, and that only with some doubt, since others look the same: who does better
 * has been shown what was to be found. */
START_TEST(learns_nothing_from_noise)
{
    begin();
    write_noise("text", 1);
    struct wf_train_result result = learn(true);
    ck_assert_msg(result.valid > 0.85 * log(2 * KINDS) && result.valid < 1.2 * log(2 * KINDS), "the loss is %g", result.valid);
    finish();
}
END_TEST

/* --- the loop ------------------------------------------------------------------------------------------------------ */

struct counts {
    int64_t train_tokens, valid_tokens, vocab_size, warnings;
    char warning[2][256];
};

static void count(void *ctx, const struct wf_event *e)
{
    struct counts *c = ctx;
    if (e->kind == WF_EVENT_START) {
        c->train_tokens = e->train_tokens;
        c->valid_tokens = e->valid_tokens;
        c->vocab_size = e->vocab_size;
    }
    if (e->kind == WF_EVENT_WARNING) {
        ck_assert_int_lt(c->warnings, 2);
        snprintf(c->warning[c->warnings++], sizeof *c->warning, "%s", e->text);
    }
}

/* The tokenizer is that of the zoo, the counts are of what is predicted, and an evaluation of the same text says the same. */
START_TEST(tells_and_evaluates_the_same)
{
    begin();
    write_turns("text", 1);
    write_turns("valid", 7);
    write_text("valid2", "nobody knows these words a1 b1 a1 b1\n");
    struct counts counts = {0};
    struct wf_train_result result;
    struct wf_train_options o = tiny(in_folder("run"), NULL);
    const char *valid[2] = {in_folder("valid"), in_folder("valid2")};
    o.valid = valid;
    o.valid_files = 2;
    o.event = count;
    o.ctx = &counts;
    o.cancelled = NULL;
    set_key(&o.config, "vocab_size", 1000);
    o.config.training.valid_tokens = 0;
    ck_ok(wf_train(&o, &result, error));
    ck_assert_int_eq(counts.vocab_size, 3 + 2 * KINDS);
    ck_assert_int_eq(counts.warnings, 2);
    ck_assert_msg(strstr(counts.warning[0], "has 27 entries, not 1,000"), "%s", counts.warning[0]);
    ck_assert_str_eq(counts.warning[1], "validation text: unknown tokens: 4 of 4,571 (0.1 %)"); /* nobody knows these words */
    struct wf_run run;
    write_text("run/modules.json", "{}\n"); /* of whatever lay in the folder before */
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    ck_assert_int_eq(key_of(&run.config, "vocab_size"), 3 + 2 * KINDS);
    static const char *const specials[] = {"<pad>", "<unk>", "<mask>"};
    for (int32_t id = 0; id < 3; id++)
        ck_assert_str_eq(wf_tokenizer_token(run.tokenizer, id, NULL), specials[id]);
    struct wf_text_ids text;
    ck_ok(wf_text_ids_open(valid, 2, &(struct wf_corpus_options){.tokenizer = run.tokenizer}, &text, error));
    struct wf_tokens ids = {.id = wf_alloc((size_t)text.ids.count * 4), .count = text.ids.count};
    wf_id_view_copy(text.ids, 0, ids.count, ids.id);
    struct wf_masking masking;
    ck_ok(wf_masking_init(&masking, run.tokenizer, 0.15, 1, error));
    int64_t known = wf_masking_ordinary(&masking, wf_id_view_of(ids.id, ids.count));
    ck_assert_int_eq(ids.count - known, 4); /* nobody knows these words */
    wf_masking_free(&masking);
    wf_tape *tape = wf_tape_new(NULL);
    struct wf_evaluation e[2];
    for (int i = 0; i < 2; i++)
        ck_ok(wf_evaluate_masked(run.model, run.tokenizer, tape, wf_id_view_of(ids.id, ids.count), 0, &e[i], error));
    ck_assert(e[0].loss == result.valid && e[1].loss == result.valid); /* bit for bit */
    ck_assert_int_eq(e[0].tokens, counts.valid_tokens);
    /* nothing is dropped in it */
    ck_assert(real_key(&run.config, "dropout") > 0);
    struct wf_config whole = run.config;
    set_key(&whole, "dropout", 0);
    wf_model *other = wf_model_new(&whole, NULL);
    wf_safetensors *weights = wf_safetensors_open(in_folder("run/model.safetensors"), NULL);
    ck_assert(other && weights);
    ck_ok(wf_model_load(other, weights, error));
    ck_ok(wf_evaluate_masked(other, run.tokenizer, tape, wf_id_view_of(ids.id, ids.count), 0, &e[1], error));
    ck_assert(e[1].loss == result.valid);
    wf_safetensors_close(weights);
    wf_model_free(other);
    double far = fabs((double)e[0].tokens - 0.15 * (double)known) / sqrt(0.15 * 0.85 * (double)known);
    ck_assert_msg(far < 4, "%lld of %lld were masked", (long long)e[0].tokens, (long long)known);
    /* the last token counts too, and a text of one; one of which nothing is known has nothing to be masked */
    int64_t before = 0;
    for (int64_t n = 1; n <= 100; n++) {
        ck_ok(wf_evaluate_masked(run.model, run.tokenizer, tape, wf_id_view_of(ids.id, n), 0, &e[1], error));
        ck_assert(e[1].tokens >= before && e[1].tokens <= before + 1);
        before = e[1].tokens;
    }
    ck_assert(before > 5 && before < 30);
    wf_error problem = {0};
    ck_assert_int_eq(wf_evaluate_masked(run.model, run.tokenizer, tape, wf_id_view_of((const int32_t[]){1, 1, 1}, 3), 0, &e[1], &problem),
                     WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(problem.message, "no token was masked out of 3"), "%s", problem.message);
    problem = (wf_error){0};
    ck_assert_int_eq(wf_evaluate_masked(run.model, run.tokenizer, tape, wf_id_view_of(ids.id, 0), 0, &e[1], &problem), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(problem.message, "no tokens to mask"), "%s", problem.message);
    wf_bitext *none;
    problem = (wf_error){0};
    ck_assert_int_eq(wf_run_bitext(&run, valid[0], valid[1], NULL, &none, &problem), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(problem.message, "encoder-attention does not translate"), "%s", problem.message);
    wf_tape_free(tape);
    wf_tokens_free(&ids);
    wf_text_ids_close(&text);
    wf_run_close(&run);
    finish();
}
END_TEST

START_TEST(cancel_and_resume_give_the_same_bytes)
{
    begin();
    write_turns("text", 1);
    struct seen straight = {0}, first = {.cancel_at = 13}, second = {.last_step = 13};
    struct wf_train_options o = tiny(in_folder("straight"), &straight);
    o.config.training.accumulate = 4;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_int_eq(straight.count[WF_EVENT_VALID], 3);
    o = tiny(in_folder("broken"), &first);
    o.config.training.accumulate = 4;
    ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_CANCELLED);
    o = tiny(in_folder("broken"), &second);
    o.config.training.accumulate = 4;
    o.resume = true;
    wf_error problem = {0};
    struct wf_train_options other = o;
    ck_ok(wf_config_set(&other.config, "context", "8", error));
    ck_assert_int_eq(wf_train(&other, NULL, &problem), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(problem.message, "context = 16"), "%s", problem.message);
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_int_eq(second.count[WF_EVENT_STEP], 12);
    ck_assert(same_file(in_folder("straight/model.safetensors"), in_folder("broken/model.safetensors")));
    ck_assert(same_file(in_folder("straight/best.safetensors"), in_folder("broken/best.safetensors")));
    ck_assert(same_file(in_folder("straight/state.safetensors"), in_folder("broken/state.safetensors")));
    finish();
}
END_TEST

/* The parts have different numbers of masked tokens, and are of 1, 2, 1 and 2 rows. */
START_TEST(accumulation_is_the_large_batch)
{
    begin();
    write_turns("text", 1);
    struct seen whole = {0}, parts = {0};
    struct wf_train_options o = tiny(in_folder("whole"), &whole);
    o.config.training.steps = 5;
    ck_ok(wf_train(&o, NULL, error));
    o = tiny(in_folder("parts"), &parts);
    o.config.training.steps = 5;
    o.config.training.accumulate = 4;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_double_eq_tol(parts.first_loss, whole.first_loss, sizeof(wf_real) == 8 ? 1e-12 : 1e-5);
    ck_assert_double_eq_tol(parts.last_loss, whole.last_loss, sizeof(wf_real) == 8 ? 1e-9 : 1e-3);
    finish();
}
END_TEST

/* The losses of a part of the validation text: of fewer tokens, near that of all, the same after a resume. */
START_TEST(validates_on_a_part)
{
    begin();
    write_turns("text", 1);
    struct seen all = {0}, part = {0}, again = {0};
    struct wf_train_options o = tiny(in_folder("all"), &all);
    o.config.training.steps = 10;
    o.config.training.valid_tokens = 0;
    struct wf_train_result whole, some, same;
    ck_ok(wf_train(&o, &whole, error));
    o.out = in_folder("part");
    o.ctx = &part;
    o.config.training.valid_tokens = 200;
    ck_ok(wf_train(&o, &some, error));
    ck_assert(part.valid_tokens > 5 && part.valid_tokens < 60 && all.valid_tokens > part.valid_tokens); /* 0.15 of 200 */
    ck_assert(some.loss == whole.loss && some.valid != whole.valid && fabs(some.valid - whole.valid) < 0.5);
    o.out = in_folder("again");
    o.ctx = &again;
    ck_ok(wf_train(&o, &same, error));
    ck_assert(same.valid == some.valid);
    finish();
}
END_TEST

static void see_smoothed(void *ctx, const struct wf_event *e)
{
    if (e->kind == WF_EVENT_STEP && e->step == 1) {
        ((double *)ctx)[0] = e->loss;
        ((double *)ctx)[1] = e->smoothed;
    }
}

/* What is minimised is smoothed, what is told of beside it is not: before the first update it is the same with and without. */
START_TEST(smoothing)
{
    double with[2], without[2];
    begin();
    write_turns("text", 1);
    struct wf_train_options o = tiny(in_folder("without"), NULL);
    o.event = see_smoothed;
    o.ctx = without;
    o.cancelled = NULL;
    o.config.training.steps = 1;
    ck_ok(wf_train(&o, NULL, error));
    o = tiny(in_folder("with"), NULL);
    o.event = see_smoothed;
    o.ctx = with;
    o.cancelled = NULL;
    o.config.training.steps = 1;
    o.config.training.label_smoothing = 0.3;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(isnan(without[1]));
    ck_assert_double_eq_tol(with[0], without[0], sizeof(wf_real) == 8 ? 1e-12 : 1e-5);
    ck_assert(fabs(with[1] - with[0]) > 1e-3);
    finish();
}
END_TEST

static void see_empty(void *ctx, const struct wf_event *e)
{
    int64_t *empty = ctx;
    if (e->kind == WF_EVENT_STEP && e->loss == 0) {
        empty[0]++;
        ck_assert(e->tokens_per_second == 0);
    } else if (e->kind == WF_EVENT_STEP) {
        empty[1]++;
        ck_assert(e->loss > 0.1 && isfinite(e->loss));
    }
}

START_TEST(batches_without_a_masked_token)
{
    begin();
    write_turns("text", 1);
    for (int parts = 1; parts <= 2; parts++) {
        int64_t empty[2] = {0, 0};
        struct wf_train_options o = tiny(in_folder(parts == 1 ? "one" : "two"), NULL);
        o.event = see_empty;
        o.ctx = empty;
        o.cancelled = NULL;
        o.config.training.batch = 2;
        o.config.training.accumulate = parts;
        o.config.training.mask_rate = 0.02;
        ck_ok(wf_train(&o, NULL, error));
        ck_assert(empty[0] > 3 && empty[1] > 3);
    }
    finish();
}
END_TEST

/* --- what is refused ----------------------------------------------------------------------------------------------- */

static void make_tokenizer(const char *name, const char *specials, const char *text)
{
    wf_tokenizer *tokenizer;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &tokenizer, error, .kind = WF_TOKENIZER_WORD,
                             .specials = (const char *const[]){specials, "[MASK]"}, .special_count = specials[1] == 'u' ? 2 : 1));
    ck_ok(wf_tokenizer_save(tokenizer, in_folder(name), error));
    wf_tokenizer_free(tokenizer);
}

START_TEST(bad_input_is_named)
{
    begin();
    write_turns("text", 1);
    make_tokenizer("maskless", "<pad>", "a1 b1");
    make_tokenizer("strange", "<unk>", "other words");
    write_text("short", "a1 b1 a1\n");
    struct seen seen = {0};
    struct wf_train_options o = tiny(in_folder("run"), &seen);
    o.tokenizer = in_folder("maskless");
    refused(&o, WF_ERR_FORMAT, "maskless: the tokenizer has no mask token: it must have one named <mask> or [MASK]");
    o.tokenizer = in_folder("strange");
    refused(&o, WF_ERR_ARGUMENT, "tokens are unknown or special");
    o.source_tokenizer = o.tokenizer;
    refused(&o, WF_ERR_ARGUMENT, "it has one tokenizer, not two");
    o = tiny(in_folder("run"), &seen);
    set_key(&o.config, "context", 100000);
    refused(&o, WF_ERR_ARGUMENT, "a smaller context");
    set_key(&o.config, "context", 16);
    set_key(&o.config, "vocab_size", 3);
    refused(&o, WF_ERR_ARGUMENT, "a vocabulary of 3 entries is too small");
    o = tiny(in_folder("run"), &seen);
    text_files[0] = in_folder("short");
    refused(&o, WF_ERR_ARGUMENT, "needs at least 17");
    o = tiny(in_folder("run"), &seen);
    const char *valid[1] = {in_folder("valid")};
    write_text("valid", "these are all words that nobody knows and there are more of them than the context takes at once : many more\n");
    o.valid = valid;
    o.valid_files = 1;
    refused(&o, WF_ERR_ARGUMENT, "no validation token was masked");
    ck_assert_int_eq(seen.count[WF_EVENT_START], 0);
    finish();
}
END_TEST

/* A tokenizer of other names, of another kind, with an unknown token and without one. */
START_TEST(given_tokenizers)
{
    begin();
    write_turns("text", 1);
    struct seen seen = {0};
    struct wf_train_options o = tiny(in_folder("run"), &seen);
    o.event = NULL; /* most words are unknown: some batches have none to mask */
    make_tokenizer("given", "<unk>", "a1 b1 a2 b2 a3 b3");
    o.tokenizer = in_folder("given");
    o.config.training.steps = 2;
    ck_ok(wf_train(&o, NULL, error));
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    ck_assert_int_eq(key_of(&run.config, "vocab_size"), 8);
    ck_assert(run.config.tokenizer.kind == WF_TOKENIZER_WORD && run.config.tokenizer.min_frequency == 0);
    wf_run_close(&run);
    o = tiny(in_folder("run"), &seen);
    o.event = NULL;
    ck_ok(wf_train_config(in_folder("run"), &o.config, NULL, error)); /* as the command resumes */
    o.config.training.steps = 4;
    o.resume = true;
    ck_ok(wf_train(&o, NULL, error));
    static const enum wf_tokenizer_kind kinds[] = {WF_TOKENIZER_BPE, WF_TOKENIZER_BYTE_BPE};
    for (int i = 0; i < 2; i++) {
        seen = (struct seen){0};
        o = tiny(in_folder(i ? "byte-bpe" : "bpe"), &seen);
        o.config.tokenizer.kind = kinds[i];
        set_key(&o.config, "vocab_size", i ? 300 : 60);
        o.config.training.steps = 2;
        ck_ok(wf_train(&o, NULL, error));
        ck_ok(wf_run_open(&run, o.out, NULL, error));
        ck_assert_int_eq(wf_tokenizer_special(run.tokenizer, WF_SPECIAL_MASK), 2);
        wf_run_close(&run);
    }
    finish();
}
END_TEST

static wf_status train_again(wf_error *problem)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", in_folder("run"));
    ck_assert_int_eq(system(command), 0);
    struct wf_train_options o = tiny(in_folder("run"), NULL);
    o.event = NULL;
    o.cancelled = NULL;
    o.config.training.steps = 1;
    return wf_train(&o, NULL, problem);
}

START_TEST(every_allocation_may_fail)
{
    begin();
    write_turns("text", 1);
    sweep("train", train_again, 60);
    finish();
}
END_TEST

WF_TEST_MAIN("masked", learns_what_stands_around, learns_nothing_from_noise, tells_and_evaluates_the_same,
             cancel_and_resume_give_the_same_bytes, validates_on_a_part, accumulation_is_the_large_batch, smoothing,
             batches_without_a_masked_token, bad_input_is_named, given_tokenizers, every_allocation_may_fail)

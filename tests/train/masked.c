/* SPDX-License-Identifier: MIT */
/* Training of encoders on masked tokens: it learns from the neighbours and from nothing else; evaluation, tokenizers, refusals. */
#include <weft/corpus.h>
#include <weft/masking.h>

#include "zoo.h"

/* Words that say nothing of each other. */
static void write_noise(const char *name, unsigned seed)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = 0; i < LINES * RUN; i++)
        fprintf(f, "w%u%c", next_random(&seed) % (2 * KINDS), i % RUN == RUN - 1 ? '\n' : ' ');
    fclose(f);
}

/* --- learning ------------------------------------------------------------------------------------------------------ */

/* The validation loss after a training. */
static double learn(const char *settings)
{
    struct wf_train_options o = masked("run", NULL);
    set_keys(&o.config, "steps=1000 batch=16 valid_every=200 save_every=0 lr=3e-3 dropout=0 scale_embeddings=false");
    set_keys(&o.config, settings);
    const double loss = trained(&o).valid;
    remove_tree(o.out);
    return loss;
}

/* Each masked word is that before last, or the next but one. A model of one token at a time sees no neighbours: it can only guess a masked
 * or replaced word among all. */
START_TEST(learns_from_the_neighbours)
{
    ck_assert_double_lt(learn(""), 0.35);
    ck_assert_double_gt(learn("layers=1 context=1"), 0.85 * log(2 * KINDS));
}
END_TEST

/* In noise only the tenth of the chosen words that stay can be known, and not for sure, since replaced ones look the same: a lower loss
 * would mean that the model sees the words it has to find. */
START_TEST(learns_nothing_from_noise)
{
    write_noise("turns", 1);
    const double loss = learn("");
    ck_assert_msg(loss > 0.85 * log(2 * KINDS) && loss < 1.2 * log(2 * KINDS), "the loss is %g", loss);
}
END_TEST

/* --- the loop ------------------------------------------------------------------------------------------------------ */

/* The tokenizer is that of the zoo, the counts are of predicted tokens, and an evaluation of the same text gives the same loss. */
START_TEST(an_evaluation_gives_the_same_loss)
{
    write_turns("valid", 7);
    put_text("valid2", "nobody knows these words a1 b1 a1 b1\n");
    struct seen seen = {0};
    struct wf_train_options o = masked("run", &seen);
    validate_on(&o, "valid", "valid2");
    set_keys(&o.config, "vocab_size=1000 valid_tokens=0");
    const struct wf_train_result result = trained(&o);
    ck_assert_int_eq(seen.vocab_size, 3 + 2 * KINDS);
    ck_assert_int_eq(seen.count[WF_EVENT_WARNING], 2);
    assert_warned(&seen, "has 27 entries, not 1,000");
    assert_warned(&seen, "\nvalidation text: unknown tokens: 4 of 4,571 (0.1 %)");
    put_text("run/modules.json", "{}\n"); /* left in the folder by something else */
    struct wf_run run = opened("run", NULL);
    ck_assert_int_eq(key_of(&run.config, "vocab_size"), 3 + 2 * KINDS);
    static const char *const specials[] = {"<pad>", "<unk>", "<mask>"};
    for (int32_t id = 0; id < 3; id++)
        ck_assert_str_eq(wf_tokenizer_token(run.tokenizer, id, NULL), specials[id]);
    struct wf_text_ids text;
    ck_ok(wf_text_ids_open(o.valid, 2, &(struct wf_corpus_options){.tokenizer = run.tokenizer}, &text, error));
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
    ck_assert_int_eq(e[0].tokens, seen.valid_tokens);
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
    const struct wf_id_view unknown = wf_id_view_of((const int32_t[]){1, 1, 1}, 3), none = wf_id_view_of(ids.id, 0);
    ck_fails(wf_evaluate_masked(run.model, run.tokenizer, tape, unknown, 0, &e[1], error), WF_ERR_ARGUMENT, "no token was masked out of 3");
    ck_fails(wf_evaluate_masked(run.model, run.tokenizer, tape, none, 0, &e[1], error), WF_ERR_ARGUMENT, "no tokens to mask");
    wf_bitext *bitext;
    ck_fails(wf_run_bitext(&run, o.valid[0], o.valid[1], NULL, &bitext, error), WF_ERR_ARGUMENT, "encoder-attention does not translate");
    wf_tape_free(tape);
    wf_tokens_free(&ids);
    wf_text_ids_close(&text);
    wf_run_close(&run);
}
END_TEST

/* The loss of a part of the validation text is of fewer tokens, near that of all, and the same in another training. */
START_TEST(validates_on_a_part)
{
    struct seen seen[3] = {0};
    struct wf_train_result result[3];
    for (int i = 0; i < 3; i++) {
        struct wf_train_options o = masked((const char *[]){"all", "part", "again"}[i], &seen[i]);
        o.config.training.steps = 10;
        o.config.training.valid_tokens = i ? 200 : 0;
        result[i] = trained(&o);
    }
    const int64_t part = seen[1].valid_tokens; /* 0.15 of 200 */
    ck_assert(part > 5 && part < 60 && seen[0].valid_tokens > part);
    ck_assert(result[1].loss == result[0].loss && result[1].valid != result[0].valid);
    ck_assert_double_eq_tol(result[1].valid, result[0].valid, 0.5);
    ck_assert(result[2].valid == result[1].valid);
}
END_TEST

/* The minimised loss is smoothed, the reported one is not: before the first update it is the same with and without. */
START_TEST(smoothing)
{
    struct seen with = {0}, without = {0};
    struct wf_train_options o = masked("without", &without);
    o.config.training.steps = 1;
    trained(&o);
    o = masked("with", &with);
    set_keys(&o.config, "steps=1 label_smoothing=0.3");
    trained(&o);
    ck_assert(isnan(without.last_smoothed));
    ck_assert_double_eq_tol(with.last_loss, without.last_loss, sizeof(wf_real) == 8 ? 1e-12 : 1e-5);
    ck_assert(fabs(with.last_smoothed - with.last_loss) > 1e-3);
}
END_TEST

static void count_empty(void *ctx, const struct wf_event *e)
{
    int *empty = ctx;
    if (e->kind == WF_EVENT_STEP) {
        empty[e->loss != 0]++;
        ck_assert(e->loss == 0 ? e->tokens_per_second == 0 : e->loss > 0.1 && isfinite(e->loss));
    }
}

START_TEST(batches_without_a_masked_token)
{
    for (int parts = 1; parts <= 2; parts++) {
        int empty[2] = {0, 0};
        struct wf_train_options o = masked(parts == 1 ? "one" : "two", NULL);
        o.event = count_empty;
        o.ctx = empty;
        set_keys(&o.config, "batch=2 mask_rate=0.02");
        o.config.training.accumulate = parts;
        trained(&o);
        ck_assert(empty[0] > 3 && empty[1] > 3);
    }
}
END_TEST

/* --- tokenizers and refusals ---------------------------------------------------------------------------------------- */

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
    make_tokenizer("maskless", "<pad>", "a1 b1");
    make_tokenizer("strange", "<unk>", "other words");
    put_text("short", "a1 b1 a1\n");
    put_text("valid", "these are all words that nobody knows and there are more of them than the context takes at once : many more\n");
    struct seen seen = {0};
    struct wf_train_options o = masked("run", &seen);
    o.tokenizer = lasting("maskless");
    refused(&o, WF_ERR_FORMAT, "maskless: the tokenizer has no mask token: it must have one named <mask> or [MASK]");
    o.tokenizer = lasting("strange");
    refused(&o, WF_ERR_ARGUMENT, "tokens are unknown or special");
    o.source_tokenizer = o.tokenizer;
    refused(&o, WF_ERR_ARGUMENT, "it has one tokenizer, not two");
    o = masked("run", &seen);
    set_key(&o.config, "context", 100000);
    refused(&o, WF_ERR_ARGUMENT, "a smaller context");
    set_keys(&o.config, "context=16 vocab_size=3");
    refused(&o, WF_ERR_ARGUMENT, "a vocabulary of 3 entries is too small");
    o = masked("run", &seen);
    validate_on(&o, "valid", NULL);
    refused(&o, WF_ERR_ARGUMENT, "no validation token was masked");
    train_on(&o, "short", NULL);
    o.valid_files = 0;
    refused(&o, WF_ERR_ARGUMENT, "needs at least 17");
    ck_assert_int_eq(seen.count[WF_EVENT_START], 0);
}
END_TEST

/* A tokenizer of other names, of another kind, with an unknown token and without one. */
START_TEST(given_tokenizers)
{
    struct wf_train_options o = masked("run", NULL);
    make_tokenizer("given", "<unk>", "a1 b1 a2 b2 a3 b3");
    o.tokenizer = lasting("given");
    o.config.training.steps = 2;
    trained(&o);
    struct wf_run run = opened("run", NULL);
    ck_assert_int_eq(key_of(&run.config, "vocab_size"), 8);
    ck_assert(run.config.tokenizer.kind == WF_TOKENIZER_WORD && run.config.tokenizer.min_frequency == 0);
    wf_run_close(&run);
    o = masked("run", NULL);
    ck_ok(wf_train_config(in_folder("run"), &o.config, NULL, error)); /* as the command resumes */
    o.config.training.steps = 4;
    o.resume = true;
    trained(&o);
    for (int i = 0; i < 2; i++) {
        const char *const kind = i ? "byte-bpe" : "bpe";
        o = masked(kind, NULL);
        o.config.tokenizer.kind = i ? WF_TOKENIZER_BYTE_BPE : WF_TOKENIZER_BPE;
        set_keys(&o.config, i ? "vocab_size=300 steps=2" : "vocab_size=60 steps=2");
        trained(&o);
        run = opened(kind, NULL);
        ck_assert_int_eq(wf_tokenizer_special(run.tokenizer, WF_SPECIAL_MASK), 2);
        wf_run_close(&run);
    }
}
END_TEST

WF_TEST_MAIN("masked", learns_from_the_neighbours, learns_nothing_from_noise, an_evaluation_gives_the_same_loss, validates_on_a_part,
             smoothing, batches_without_a_masked_token, bad_input_is_named, given_tokenizers)

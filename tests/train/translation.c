/* SPDX-License-Identifier: MIT */
/* Training on pairs: learning, the files of a run, resumes with other settings, tokenizers, refusals. */
#include <sys/stat.h>

#include <weft/events.h>

#include "zoo.h"

START_TEST(learns_and_leaves_a_run)
{
    struct seen seen = {0};
    struct wf_train_options o = translation("run", &seen);
    o.config.training.steps = 150;
    const struct wf_train_result result = trained(&o);
    ck_assert_int_eq(seen.count[WF_EVENT_STEP], 150);
    ck_assert_int_eq(seen.count[WF_EVENT_VALID], 15);
    ck_assert_int_eq(seen.count[WF_EVENT_DATA], 2);
    ck_assert_msg(strncmp(seen.text[WF_EVENT_DATA], "training: 100 pairs", 19) == 0, "%s", seen.text[WF_EVENT_DATA]);
    ck_assert_double_lt(seen.last_loss, seen.first_loss - 0.5);
    ck_assert_double_lt(seen.last_valid, seen.first_valid - 0.3);
    ck_assert(exists("run/tokenizer.source.json") && exists("run/tokenizer.target.json"));
    ck_assert(!exists("run/tokenizer.json"));
    ck_assert(exists("run/best.safetensors"));
    ck_assert(same_file("run/model.safetensors", "run/checkpoints/step-00000150.safetensors"));
    struct wf_run run = opened("run", NULL);
    ck_assert_ptr_ne(run.source_tokenizer, run.tokenizer);
    ck_assert_int_eq(key_of(&run.config, "vocab_size"), 10); /* six words and <pad> <bos> <eos> <unk> */
    ck_assert_int_eq(key_of(&run.config, "source_vocab_size"), 10);
    wf_bitext *bitext;
    struct wf_evaluation e;
    wf_tape *tape = wf_tape_new(NULL);
    ck_ok(wf_run_bitext(&run, o.valid[0], o.valid[1], NULL, &bitext, error));
    ck_ok(wf_evaluate_pairs(run.model, tape, bitext, 0.1, 0, &e, error));
    ck_assert(e.loss == result.valid); /* the last validation, of the same weights */
    ck_assert(e.smoothed > e.loss);
    ck_assert_int_eq(e.pairs, 20);
    wf_bitext_close(bitext);
    wf_tape_free(tape);
    wf_run_close(&run);
}
END_TEST

START_TEST(without_validation)
{
    struct seen seen = {0};
    struct wf_train_options o = translation("run", &seen);
    o.valid_files = 0;
    o.config.training.steps = 12;
    const struct wf_train_result result = trained(&o);
    ck_assert(isnan(result.valid) && isnan(result.best));
    ck_assert_int_eq(seen.count[WF_EVENT_VALID], 0);
    ck_assert(!exists("run/best.safetensors") && exists("run/model.safetensors"));
    o.out = lasting("patient");
    o.config.training.patience = 3;
    refused(&o, WF_ERR_ARGUMENT, "give --valid");
}
END_TEST

START_TEST(checkpoints_are_kept_as_requested)
{
    struct wf_train_options o = translation("run", NULL);
    set_keys(&o.config, "save_every=2 keep=3 keep_every=8");
    trained(&o);
    for (int step = 2; step <= 40; step += 2) {
        char name[64];
        snprintf(name, sizeof name, "run/checkpoints/step-%08d.safetensors", step);
        ck_assert_msg(exists(name) == (step % 8 == 0 || step > 34), "step %d", step);
    }
    /* a killed process left no checkpoint: the resume writes it */
    ck_assert_int_eq(unlink(in_folder("run/checkpoints/step-00000040.safetensors")), 0);
    o.resume = true;
    trained(&o);
    ck_assert(exists("run/checkpoints/step-00000040.safetensors"));
    /* only those of keep_every */
    o.out = lasting("few");
    o.config.training.keep = 0;
    trained(&o);
    ck_assert(exists("few/checkpoints/step-00000032.safetensors"));
    ck_assert(!exists("few/checkpoints/step-00000038.safetensors"));
}
END_TEST

/* Checkpoints without a state belong to no run that could be resumed: new ones don't mix with them. */
START_TEST(checkpoints_of_a_lost_run_are_set_aside)
{
    struct seen seen = {0};
    struct wf_train_options o = translation("run", &seen);
    trained(&o);
    ck_assert_int_eq(unlink(in_folder("run/state.safetensors")), 0);
    o.config.training.steps = 7;
    trained(&o);
    /* best, model, checkpoints, config (of other steps), metrics.jsonl, and the event file; the tokenizers are the same */
    ck_assert_int_eq(seen.count[WF_EVENT_WARNING], wf_events_available() ? 6 : 5);
    ck_assert(!exists("run/tokenizer.source.previous-1.json"));
    ck_assert(exists("run/metrics.previous-1.jsonl"));
    ck_assert(exists("run/config.previous-1.json") && exists("run/config.json"));
    ck_assert(exists("run/checkpoints.previous-1/step-00000040.safetensors"));
    ck_assert(exists("run/checkpoints/step-00000007.safetensors"));
    ck_assert(!exists("run/checkpoints/step-00000040.safetensors"));
}
END_TEST

/* --- refusals and warnings ------------------------------------------------------------------------------------------ */

START_TEST(bad_input_is_named)
{
    put_text("short.de", "eins\nzwei\n");
    put_text("empty.en", "\n\n");
    struct wf_train_options o = translation("run", NULL);
    o.train_files = 1;
    refused(&o, WF_ERR_ARGUMENT, "two files, source and target, not 1");
    o.train_files = 3;
    refused(&o, WF_ERR_ARGUMENT, "two files, source and target, not 3");
    o.train_files = 2;
    o.valid_files = 1;
    refused(&o, WF_ERR_ARGUMENT, "--valid takes two files");
    o.valid_files = 2;
    train_on(&o, "train.en", "short.de");
    refused(&o, WF_ERR_FORMAT, "short.de");
    train_on(&o, "train.en", "nowhere.de");
    refused(&o, WF_ERR_IO, "nowhere.de");
    train_on(&o, "train.en", "train.de");
    validate_on(&o, "empty.en", "short.de");
    refused(&o, WF_ERR_FORMAT, "empty.en");
    /* tokenizers */
    o = translation("run", NULL);
    set_key(&o.config, "shared", true);
    o.tokenizer = o.source_tokenizer = "tokenizer.json";
    refused(&o, WF_ERR_ARGUMENT, "shares one tokenizer");
    o = translation("run", NULL);
    o.config.tokenizer.kind = WF_TOKENIZER_BPE;
    set_key(&o.config, "vocab_size", 5);
    refused(&o, WF_ERR_ARGUMENT, "vocab");
    /* a pipe that nobody writes to */
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    o = translation("run", NULL);
    train_on(&o, "train.en", "pipe");
    refused(&o, WF_ERR_IO, "pipe");
}
END_TEST

/* A warning counts words that only the validation text has, or that the vocabulary leaves out; the training continues. */
START_TEST(unknown_words_are_counted)
{
    struct seen valid = {0}, train = {0};
    put_text("new.en", "one two\ntwo seven\n");
    put_text("new.de", "eins zwei\nzwei sieben acht\n");
    struct wf_train_options o = translation("new", &valid);
    validate_on(&o, "new.en", "new.de");
    o.config.training.steps = 1;
    trained(&o);
    assert_warned(&valid, "validation target: unknown tokens: 2 of 7 (28.6 %)");
    o = translation("few", &train);
    o.valid_files = 0;
    set_keys(&o.config, "steps=1 vocab_size=6"); /* two words */
    trained(&o);
    assert_warned(&train, "training target: unknown tokens: ");
}
END_TEST

START_TEST(a_resume_with_something_else_is_refused)
{
    struct wf_train_options o = translation("run", NULL);
    o.config.training.steps = 8;
    trained(&o);
    o.resume = true;
    o.config.training.steps = 12;
    struct wf_train_options other = o;
    set_keys(&other.config, "max_length=20"); /* leaves out other pairs */
    refused(&other, WF_ERR_ARGUMENT, "");
    other = o;
    other.seed = 6;
    refused(&other, WF_ERR_ARGUMENT, "seed");
    other = o;
    other.valid = o.train;
    refused(&other, WF_ERR_ARGUMENT, "validated on another text");
    struct wf_train_options without = translation("without", NULL);
    without.config.training.steps = 8;
    without.valid_files = 0;
    trained(&without);
    without.valid_files = 2;
    without.resume = true;
    refused(&without, WF_ERR_ARGUMENT, "was trained without validation");
    write_pairs("more.en", "more.de", 30, 3);
    other = o;
    train_on(&other, "more.en", "more.de");
    refused(&other, WF_ERR_ARGUMENT, "trained on another text");
    other = o;
    other.tokenizer = lasting("run/tokenizer.source.json"); /* not the target's */
    refused(&other, WF_ERR_ARGUMENT, "another tokenizer");
    other = o;
    other.tokenizer = lasting("run/tokenizer.target.json");
    other.source_tokenizer = lasting("run/tokenizer.source.json");
    trained(&other); /* the run's tokenizers */
}
END_TEST

/* Warnings of a resume: no run, a damaged log, fewer tokens than requested. */
START_TEST(warnings_of_a_resume)
{
    struct seen seen = {0};
    uint64_t seed = 0;
    struct wf_config stored;
    struct wf_train_options o = translation("run", &seen);
    ck_fails(wf_train_config(o.out, &stored, &seed, error), WF_ERR_IO, "state.safetensors");
    o.config.training.steps = 3;
    o.seed = UINT64_C(1) << 62;
    o.resume = true;
    trained(&o);
    assert_warned(&seen, "nothing to resume in ");
    ck_ok(wf_train_config(o.out, &stored, &seed, error));
    ck_assert(seed == o.seed);
    /* a log that can't be read is set aside: the state is enough */
    put_text("run/metrics.jsonl", "garbage\n");
    o.config.training.steps = 4;
    trained(&o);
    assert_warned(&seen, "metrics.jsonl:1:");
    ck_assert(exists("run/metrics.previous-1.jsonl") && exists("run/metrics.jsonl"));
    o.out = lasting("few");
    o.resume = false;
    set_key(&o.config, "vocab_size", 500);
    trained(&o);
    assert_warned(&seen, "entries, not 500: the training text yields no more");
}
END_TEST

/* Batches of another size have no place within an epoch: a resume begins the next epoch, and a later resume gives the same bytes. */
START_TEST(other_batches_start_the_next_epoch)
{
    struct seen seen = {.cancel_after = 17};
    struct wf_train_options o = translation("run", &seen);
    refused(&o, WF_ERR_CANCELLED, "interrupted");
    char command[300];
    snprintf(command, sizeof command, "cp -r '%s' '%s'", in_folder("run"), in_folder("twice"));
    ck_assert_int_eq(system(command), 0);
    o.resume = true;
    o.config.training.batch_tokens = 60;
    seen = (struct seen){0};
    trained(&o);
    ck_assert_str_eq(seen.text[WF_EVENT_CHANGE], "resuming with batch_tokens 60 instead of 120; epoch 3 begins");
    o.out = lasting("twice");
    seen = (struct seen){.cancel_after = 20};
    refused(&o, WF_ERR_CANCELLED, "interrupted");
    ck_assert_int_eq(seen.count[WF_EVENT_CHANGE], 1);
    seen = (struct seen){0};
    trained(&o);
    ck_assert_int_eq(seen.count[WF_EVENT_CHANGE], 0);
    ck_assert(same_file("run/state.safetensors", "twice/state.safetensors"));
}
END_TEST

/* With batch_tolerance batches are those of the sum. */
START_TEST(batches_over_their_size)
{
    static const char *const settings[] = {"steps=5 batch_tokens=120", "steps=5 batch_tokens=120 batch_tolerance=60",
                                           "steps=5 batch_tokens=180"};
    double loss[3];
    for (int i = 0; i < 3; i++) {
        struct wf_train_options o = translation((const char *[]){"a", "b", "c"}[i], NULL);
        set_keys(&o.config, settings[i]);
        loss[i] = trained(&o).loss;
    }
    ck_assert(loss[1] == loss[2] && loss[0] != loss[1]);
}
END_TEST

/* A part has batches of all lengths, and a loss near that of all pairs; a resume with another part measures the best loss anew. */
START_TEST(validates_on_a_part)
{
    write_pairs("many.en", "many.de", 4000, 5);
    struct seen seen = {0};
    struct wf_train_options o = translation("all", NULL);
    validate_on(&o, "many.en", "many.de");
    set_keys(&o.config, "steps=20 valid_tokens=0");
    const struct wf_train_result whole = trained(&o);
    o = translation("part", &seen);
    validate_on(&o, "many.en", "many.de");
    set_keys(&o.config, "steps=20 valid_tokens=3000");
    struct wf_train_result some = trained(&o);
    ck_assert_int_eq(seen.valid_tokens, 3000);
    ck_assert(some.loss == whole.loss && some.valid != whole.valid);
    ck_assert_double_eq_tol(some.valid, whole.valid, 0.1);
    o.resume = true;
    set_keys(&o.config, "steps=21 valid_tokens=0");
    some = trained(&o);
    ck_assert_ptr_nonnull(strstr(seen.text[WF_EVENT_CHANGE], "valid_tokens 0 instead of 3000"));
    ck_assert(some.best == some.valid);
}
END_TEST

static void assert_words(const char *name)
{
    struct wf_run run = opened(name, NULL);
    ck_assert(run.config.tokenizer.kind == WF_TOKENIZER_WORD && run.config.tokenizer.min_frequency == 0);
    wf_run_close(&run);
}

START_TEST(given_tokenizers)
{
    struct wf_train_options o = translation("first", NULL);
    o.config.training.steps = 3;
    trained(&o);
    o.out = lasting("second");
    o.source_tokenizer = lasting("first/tokenizer.source.json");
    o.tokenizer = lasting("first/tokenizer.target.json");
    trained(&o);
    ck_assert(same_file("first/model.safetensors", "second/model.safetensors"));
    assert_words("second"); /* config.json describes the given one, not one that would have been made */
    o.out = lasting("facts");
    o.config.tokenizer.kind = WF_TOKENIZER_BPE;
    o.config.tokenizer.min_frequency = 5;
    trained(&o);
    assert_words("facts");
    o.resume = true; /* with the same options */
    o.config.training.steps = 4;
    trained(&o);
    /* one for both sides, with embeddings for each */
    o = translation("third", NULL);
    train_on(&o, "train.de", "train.de");
    validate_on(&o, "train.de", "train.de");
    o.tokenizer = lasting("first/tokenizer.target.json");
    o.config.training.steps = 3;
    trained(&o);
    assert_words("third");
    o.resume = true;
    o.config.training.steps = 5;
    trained(&o);
    o.out = lasting("alone");
    o.source_tokenizer = o.tokenizer;
    o.tokenizer = NULL;
    refused(&o, WF_ERR_ARGUMENT, "for the source alone");
    /* cancelled while the data is read */
    struct seen seen = {.cancel_at = 1};
    o = translation("cancelled", &seen);
    refused(&o, WF_ERR_CANCELLED, "");
}
END_TEST

WF_TEST_MAIN("translation", learns_and_leaves_a_run, without_validation, checkpoints_are_kept_as_requested,
             checkpoints_of_a_lost_run_are_set_aside, bad_input_is_named, unknown_words_are_counted,
             a_resume_with_something_else_is_refused, warnings_of_a_resume, other_batches_start_the_next_epoch, batches_over_their_size,
             validates_on_a_part, given_tokenizers)

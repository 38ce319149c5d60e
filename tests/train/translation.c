/* SPDX-License-Identifier: MIT */
/* Training on pairs: what it learns, what it leaves behind, broken and gone on with, in parts, and what it refuses. */
#include <sys/stat.h>

#include <weft/events.h>

#include "pairs_test.h"

START_TEST(learns_and_leaves_a_run)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.steps = 150;
    struct wf_train_result result;
    ck_ok(wf_train(&o, &result, error));
    ck_assert_int_eq(seen.count[WF_EVENT_STEP], 150);
    ck_assert_int_eq(seen.count[WF_EVENT_VALID], 15);
    ck_assert_int_eq(seen.count[WF_EVENT_DATA], 2);
    ck_assert_msg(strncmp(seen.data, "training: 100 pairs", 19) == 0, "%s", seen.data);
    ck_assert_double_lt(seen.last_loss, seen.first_loss - 0.5);
    ck_assert_double_lt(seen.last_valid, seen.first_valid - 0.3);
    ck_assert(wf_file_exists(in_folder("run/tokenizer.source.json")) && wf_file_exists(in_folder("run/tokenizer.target.json")));
    ck_assert(!wf_file_exists(in_folder("run/tokenizer.json")));
    ck_assert(wf_file_exists(in_folder("run/best.safetensors")));
    ck_assert(same_file(in_folder("run/model.safetensors"), in_folder("run/checkpoints/step-00000150.safetensors")));
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
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
    finish();
}
END_TEST

/* Broken off in the middle of an epoch, with dropout, in three micro-batches; and with another number of threads. */
START_TEST(cancel_and_resume_give_the_same_bytes)
{
    begin();
    for (int shared = 0; shared < 2; shared++) {
        struct seen straight = {0}, first = {.cancel_at = 17}, second = {.last_step = 17};
        char a[32], b[32];
        snprintf(a, sizeof a, "straight-%d", shared);
        snprintf(b, sizeof b, "broken-%d", shared);
        struct wf_train_options o = small(in_folder(a), &straight);
        o.config.training.accumulate = 3;
        set_key(&o.config, "shared", shared);
        ck_ok(wf_init(error, .threads = 2));
        ck_ok(wf_train(&o, NULL, error));
        o.out = in_folder(b);
        o.ctx = &first;
        ck_ok(wf_init(error, .threads = 1));
        ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_CANCELLED);
        ck_assert_int_eq(first.last_step, 17);
        ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_EXISTS);
        o.ctx = &second;
        o.resume = true;
        ck_ok(wf_init(error, .threads = 2));
        ck_ok(wf_train(&o, NULL, error));
        ck_assert_int_eq(second.count[WF_EVENT_STEP], 23);
        const char *names[] = {"model.safetensors",
                               "best.safetensors",
                               "config.json",
                               shared ? "tokenizer.json" : "tokenizer.source.json",
                               "checkpoints/step-00000040.safetensors",
                               "checkpoints/step-00000035.safetensors"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            char x[96], y[96];
            snprintf(x, sizeof x, "%s/%s", a, names[i]);
            snprintf(y, sizeof y, "%s/%s", b, names[i]);
            ck_assert_msg(same_file(in_folder(x), in_folder(y)), "shared %d: %s differs", shared, names[i]);
        }
    }
    finish();
}
END_TEST

START_TEST(cancelled_anywhere_gives_the_same_bytes)
{
    begin();
    struct seen seen = {0};
    cancelled_anywhere(small(folder, &seen));
    finish();
}
END_TEST

/* Micro-batches see the dropout of the whole batch, so that only the order of additions differs. */
START_TEST(accumulation_is_the_large_batch)
{
    begin();
    double loss[4];
    const int parts[] = {1, 2, 5, 64}; /* 64: more than pairs, so that some are empty */
    for (int i = 0; i < 4; i++) {
        struct seen seen = {0};
        char name[32];
        snprintf(name, sizeof name, "run-%d", parts[i]);
        struct wf_train_options o = small(in_folder(name), &seen);
        o.config.training.steps = 5;
        o.config.training.accumulate = parts[i];
        ck_ok(wf_train(&o, NULL, error));
        loss[i] = seen.last_loss;
        ck_assert_double_eq_tol(loss[i], loss[0], sizeof(wf_real) == 8 ? 1e-10 : 1e-4);
    }
    finish();
}
END_TEST

START_TEST(patience_stops_early)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    out_of_patience(&o, &seen);
    finish();
}
END_TEST

START_TEST(without_validation)
{
    begin();
    struct seen seen = {0};
    wf_error problem = {0};
    struct wf_train_result result;
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.valid_files = 0;
    o.config.training.steps = 12;
    ck_ok(wf_train(&o, &result, error));
    ck_assert(isnan(result.valid) && isnan(result.best));
    ck_assert_int_eq(seen.count[WF_EVENT_VALID], 0);
    ck_assert(!wf_file_exists(in_folder("run/best.safetensors")) && wf_file_exists(in_folder("run/model.safetensors")));
    o.out = in_folder("patient");
    o.config.training.patience = 3;
    ck_assert_int_eq(wf_train(&o, NULL, &problem), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(problem.message, "give --valid"), "%s", problem.message);
    finish();
}
END_TEST

START_TEST(checkpoints_are_kept_as_asked)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.save_every = 2;
    o.config.training.keep = 3;
    o.config.training.keep_every = 8;
    ck_ok(wf_train(&o, NULL, error));
    for (int step = 2; step <= 40; step += 2) {
        char name[64];
        snprintf(name, sizeof name, "run/checkpoints/step-%08d.safetensors", step);
        ck_assert_msg(wf_file_exists(in_folder(name)) == (step % 8 == 0 || step > 34), "step %d", step);
    }
    /* none but those for good */
    o.out = in_folder("few");
    o.config.training.keep = 0;
    seen = (struct seen){0};
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(wf_file_exists(in_folder("few/checkpoints/step-00000032.safetensors")));
    ck_assert(!wf_file_exists(in_folder("few/checkpoints/step-00000038.safetensors")));
    /* a checkpoint that a killed process did not come to is made up for */
    ck_assert_int_eq(unlink(in_folder("run/checkpoints/step-00000040.safetensors")), 0);
    o = small(in_folder("run"), &seen);
    o.config.training.save_every = 2;
    o.config.training.keep = 3;
    o.config.training.keep_every = 8;
    o.resume = true;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000040.safetensors")));
    finish();
}
END_TEST

/* Checkpoints without a state belong to no run that could go on: the new ones don't mix with them. */
START_TEST(checkpoints_of_a_lost_run_are_set_aside)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_int_eq(unlink(in_folder("run/state.safetensors")), 0);
    seen = (struct seen){0};
    o.config.training.steps = 7;
    ck_ok(wf_train(&o, NULL, error));
    /* best, model, checkpoints, config (of other steps), metrics.jsonl, and the event file; the tokenizers are the same */
    ck_assert_int_eq(seen.count[WF_EVENT_WARNING], wf_events_available() ? 6 : 5);
    ck_assert(!wf_file_exists(in_folder("run/tokenizer.source.previous-1.json")));
    ck_assert(wf_file_exists(in_folder("run/metrics.previous-1.jsonl")));
    ck_assert(wf_file_exists(in_folder("run/config.previous-1.json")) && wf_file_exists(in_folder("run/config.json")));
    ck_assert(wf_file_exists(in_folder("run/checkpoints.previous-1/step-00000040.safetensors")));
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000007.safetensors")));
    ck_assert(!wf_file_exists(in_folder("run/checkpoints/step-00000040.safetensors")));
    finish();
}
END_TEST

START_TEST(numbers_that_go_bad_name_the_tensor)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.lr = 1e18;
    o.config.training.clip = 0;
    o.config.training.accumulate = 2;
    wf_error problem = {0};
    wf_status status = wf_train(&o, NULL, &problem);
    if (sizeof(wf_real) == 4)
        ck_assert_int_eq(status, WF_ERR_NUMERIC);
    if (status == WF_ERR_NUMERIC)
        ck_assert_msg(strstr(problem.message, "is not finite") && strncmp(problem.message, "step ", 5) == 0, "%s", problem.message);
    finish();
}
END_TEST

/* --- what is refused ----------------------------------------------------------------------------------------------- */

START_TEST(bad_input_is_named)
{
    begin();
    struct seen seen = {0};
    write_text("short.de", "eins\nzwei\n");
    write_text("empty.en", "\n\n");
    const char *files[3];
    struct wf_train_options o = small(in_folder("run"), &seen);
    files[0] = o.train[0];
    files[1] = o.train[1];
    files[2] = o.train[1];
    o.train = files;
    o.train_files = 1;
    refused(&o, WF_ERR_ARGUMENT, "two files, source and target, not 1");
    o.train_files = 3;
    refused(&o, WF_ERR_ARGUMENT, "two files, source and target, not 3");
    o.train_files = 2;
    o.valid_files = 1;
    refused(&o, WF_ERR_ARGUMENT, "--valid takes two files");
    o.valid_files = 2;
    files[1] = in_folder("short.de");
    refused(&o, WF_ERR_FORMAT, "short.de");
    files[1] = in_folder("nowhere.de");
    refused(&o, WF_ERR_IO, "nowhere.de");
    files[1] = small("", &seen).train[1];
    const char *valid[2] = {in_folder("empty.en"), in_folder("short.de")};
    o.valid = valid;
    refused(&o, WF_ERR_FORMAT, "empty.en");
    /* tokenizers */
    o = small(in_folder("run"), &seen);
    set_key(&o.config, "shared", true);
    o.tokenizer = o.source_tokenizer = "tokenizer.json";
    refused(&o, WF_ERR_ARGUMENT, "shares one tokenizer");
    o = small(in_folder("run"), &seen);
    o.config.tokenizer.kind = WF_TOKENIZER_BPE;
    set_key(&o.config, "vocab_size", 5);
    refused(&o, WF_ERR_ARGUMENT, "vocab");
    /* a pipe that nobody writes to */
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    o = small(in_folder("run"), &seen);
    files[0] = o.train[0];
    files[1] = in_folder("pipe");
    o.train = files;
    refused(&o, WF_ERR_IO, "pipe");
    finish();
}
END_TEST

static void last_warning(void *ctx, const struct wf_event *e)
{
    if (e->kind == WF_EVENT_WARNING)
        snprintf(ctx, 1600, "%s", e->text);
}

/* Words that only the validation text has, and those that the settings leave out: they are counted, and training goes on. */
START_TEST(unknown_words_are_counted)
{
    begin();
    struct seen seen = {0};
    write_text("new.en", "one two\ntwo seven\n");
    write_text("new.de", "eins zwei\nzwei sieben acht\n");
    char warning[1600] = "";
    struct wf_train_options o = small(in_folder("new"), &seen);
    const char *valid[2] = {in_folder("new.en"), in_folder("new.de")};
    o.valid = valid;
    o.valid_files = 2;
    o.config.training.steps = 1;
    o.event = last_warning;
    o.ctx = warning;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_msg(strstr(warning, "validation target: unknown tokens: 2 of 7 (28.6 %)"), "%s", warning);
    o = small(in_folder("few"), &seen);
    o.config.training.steps = 1;
    set_key(&o.config, "vocab_size", 6); /* two words */
    o.valid_files = 0;
    o.event = last_warning;
    o.ctx = warning;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_msg(strstr(warning, "training target: unknown tokens: "), "%s", warning);
    finish();
}
END_TEST

START_TEST(a_resume_with_something_else_is_refused)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.steps = 8;
    ck_ok(wf_train(&o, NULL, error));
    o.resume = true;
    o.config.training.steps = 12;
    struct wf_train_options other = o;
    ck_ok(wf_config_set(&other.config, "max_length", "20", error)); /* leaves out other pairs */
    refused(&other, WF_ERR_ARGUMENT, "");
    other = o;
    other.seed = 6;
    refused(&other, WF_ERR_ARGUMENT, "seed");
    other = o;
    other.valid = o.train;
    refused(&other, WF_ERR_ARGUMENT, "validated on another text");
    struct wf_train_options without = small(in_folder("without"), &seen);
    seen = (struct seen){0};
    without.config.training.steps = 8;
    without.valid_files = 0;
    ck_ok(wf_train(&without, NULL, error));
    without.valid_files = 2;
    without.resume = true;
    refused(&without, WF_ERR_ARGUMENT, "was trained without validation");
    write_pairs("more.en", "more.de", 30, 3);
    const char *files[2] = {in_folder("more.en"), in_folder("more.de")};
    other = o;
    other.train = files;
    refused(&other, WF_ERR_ARGUMENT, "trained on another text");
    other = o;
    other.tokenizer = in_folder("run/tokenizer.source.json"); /* not the target's */
    refused(&other, WF_ERR_ARGUMENT, "another tokenizer");
    other = o;
    other.tokenizer = in_folder("run/tokenizer.target.json");
    other.source_tokenizer = in_folder("run/tokenizer.source.json");
    seen.last_step = 8;
    ck_ok(wf_train(&other, NULL, error)); /* its own, named again */
    finish();
}
END_TEST

static bool cancel_at_once(void *ctx)
{
    (void)ctx;
    return true;
}

/* What a resume says, and finds out by itself. */
START_TEST(resumes_with_less)
{
    begin();
    char warning[1600] = "";
    struct seen seen = {0};
    uint64_t seed = 0;
    struct wf_config stored;
    struct wf_train_options o = small(in_folder("run"), &seen);
    wf_error problem = {0};
    wf_status status = wf_train_config(o.out, &stored, &seed, &problem);
    ck_assert_msg(status == WF_ERR_IO && strstr(problem.message, "state.safetensors"), "%s", problem.message);
    o.config.training.steps = 3;
    o.seed = UINT64_C(1) << 62;
    o.resume = true;
    o.event = last_warning;
    o.ctx = warning;
    o.cancelled = NULL;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_msg(strstr(warning, "nothing to resume in "), "%s", warning);
    ck_ok(wf_train_config(o.out, &stored, &seed, error));
    ck_assert(seed == o.seed);
    /* a log that can't be read is put away: the state is enough */
    write_text("run/metrics.jsonl", "garbage\n");
    o.config.training.steps = 4;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_msg(strstr(warning, "metrics.jsonl:1:"), "%s", warning);
    ck_assert(wf_file_exists(in_folder("run/metrics.previous-1.jsonl")) && wf_file_exists(in_folder("run/metrics.jsonl")));
    /* fewer types than were asked for */
    o.out = in_folder("few");
    o.resume = false;
    set_key(&o.config, "vocab_size", 500);
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_msg(strstr(warning, "entries, not 500: the training text yields no more"), "%s", warning);
    finish();
}
END_TEST

static char change[512];
static void see_change(void *ctx, const struct wf_event *e)
{
    if (e->kind == WF_EVENT_CHANGE)
        snprintf(change, sizeof change, "%s", e->text);
    see(ctx, e);
}

/* Batches of another size have no place in the middle of an epoch: the next one begins, and a resume of that gives the same bytes. */
START_TEST(other_batches_start_the_next_epoch)
{
    begin();
    struct seen first = {.cancel_at = 17}, second = {.last_step = 17}, third = {.cancel_at = 20, .last_step = 17},
                fourth = {.last_step = 20};
    struct wf_train_options o = small(in_folder("run"), &first);
    ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_CANCELLED);
    char command[300];
    snprintf(command, sizeof command, "cp -r '%s' '%s'", in_folder("run"), in_folder("twice"));
    ck_assert_int_eq(system(command), 0);
    o = small(in_folder("run"), &second);
    o.resume = true;
    o.event = see_change;
    o.config.training.batch_tokens = 60;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_str_eq(change, "resuming with batch_tokens 60 instead of 120; epoch 3 begins");
    o.out = in_folder("twice");
    o.ctx = &third;
    change[0] = 0;
    ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_CANCELLED);
    ck_assert_str_ne(change, "");
    o.ctx = &fourth;
    change[0] = 0;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_str_eq(change, "");
    ck_assert(same_file(in_folder("run/state.safetensors"), in_folder("twice/state.safetensors")));
    finish();
}
END_TEST

/* Batches may exceed batch_tokens by so much, and are those of the sum. */
START_TEST(batches_over_their_size)
{
    begin();
    static const int64_t keys[3][2] = {{120, 0}, {120, 60}, {180, 0}};
    struct wf_train_result result[3];
    for (int i = 0; i < 3; i++) {
        char name[] = "run0";
        name[3] = (char)('0' + i);
        struct seen seen = {0};
        struct wf_train_options o = small(in_folder(name), &seen);
        o.config.training.steps = 5;
        set_key(&o.config, "batch_tokens", keys[i][0]);
        set_key(&o.config, "batch_tolerance", keys[i][1]);
        ck_ok(wf_train(&o, &result[i], error));
    }
    ck_assert(result[1].loss == result[2].loss && result[0].loss != result[1].loss);
    finish();
}
END_TEST

/* Batches of all lengths, whose loss is near that of all pairs; other tokens on a resume measure the best loss anew. */
START_TEST(validates_on_a_part)
{
    begin();
    write_pairs("many.en", "many.de", 4000, 5);
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("all"), &seen);
    const char *many[2] = {in_folder("many.en"), in_folder("many.de")};
    o.valid = many;
    o.config.training.steps = 20;
    o.config.training.valid_tokens = 0;
    struct wf_train_result whole, some;
    ck_ok(wf_train(&o, &whole, error));
    o.out = in_folder("part");
    o.config.training.valid_tokens = 3000;
    seen = (struct seen){0};
    ck_ok(wf_train(&o, &some, error));
    ck_assert_int_eq(seen.valid_tokens, 3000);
    ck_assert(some.loss == whole.loss && some.valid != whole.valid);
    ck_assert_double_eq_tol(some.valid, whole.valid, 0.1);
    o.resume = true;
    o.event = see_change;
    o.config.training.valid_tokens = 0;
    o.config.training.steps = 21;
    seen = (struct seen){.last_step = 20};
    change[0] = 0;
    ck_ok(wf_train(&o, &some, error));
    ck_assert_ptr_nonnull(strstr(change, "valid_tokens 0 instead of 3000"));
    ck_assert(some.best == some.valid);
    finish();
}
END_TEST

START_TEST(given_tokenizers)
{
    begin();
    struct seen seen = {0};
    struct wf_run run;
    struct wf_train_options o = small(in_folder("first"), &seen);
    o.config.training.steps = 3;
    ck_ok(wf_train(&o, NULL, error));
    o.out = in_folder("second");
    o.source_tokenizer = in_folder("first/tokenizer.source.json");
    o.tokenizer = in_folder("first/tokenizer.target.json");
    seen = (struct seen){0};
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(same_file(in_folder("first/model.safetensors"), in_folder("second/model.safetensors")));
    o.out = in_folder("alone");
    o.tokenizer = NULL;
    refused(&o, WF_ERR_ARGUMENT, "for the source alone");
    /* config.json says what a given one is, whatever would have been made */
    ck_ok(wf_run_open(&run, in_folder("second"), NULL, error));
    ck_assert(run.config.tokenizer.kind == WF_TOKENIZER_WORD && run.config.tokenizer.min_frequency == 0);
    wf_run_close(&run);
    o = small(in_folder("facts"), &seen);
    o.config.tokenizer.kind = WF_TOKENIZER_BPE;
    o.config.tokenizer.min_frequency = 5;
    o.config.training.steps = 3;
    o.source_tokenizer = in_folder("first/tokenizer.source.json");
    o.tokenizer = in_folder("first/tokenizer.target.json");
    seen = (struct seen){0};
    ck_ok(wf_train(&o, NULL, error));
    ck_ok(wf_run_open(&run, in_folder("facts"), NULL, error));
    ck_assert(run.config.tokenizer.kind == WF_TOKENIZER_WORD && run.config.tokenizer.min_frequency == 0);
    wf_run_close(&run);
    o.resume = true; /* with the same options, too */
    o.config.training.steps = 4;
    ck_ok(wf_train(&o, NULL, error));
    o.resume = false;
    o.config.training.steps = 3;
    /* one for both sides, with embeddings of their own */
    const char *both[2] = {o.train[1], o.train[1]};
    o.out = in_folder("third");
    o.source_tokenizer = NULL;
    o.train = o.valid = both;
    seen = (struct seen){0};
    ck_ok(wf_train(&o, NULL, error));
    ck_ok(wf_run_open(&run, in_folder("third"), NULL, error));
    wf_run_close(&run);
    o.resume = true;
    o.config.training.steps = 5;
    ck_ok(wf_train(&o, NULL, error));
    /* stopped while the data is read: nothing is there yet */
    o = small(in_folder("stopped"), &seen);
    seen = (struct seen){0};
    o.cancelled = cancel_at_once;
    wf_error problem = {0};
    wf_status status = wf_train(&o, NULL, &problem);
    ck_assert_int_eq(status, WF_ERR_CANCELLED);
    finish();
}
END_TEST

WF_TEST_MAIN("translation", learns_and_leaves_a_run, cancel_and_resume_give_the_same_bytes, cancelled_anywhere_gives_the_same_bytes,
             accumulation_is_the_large_batch, patience_stops_early, without_validation, checkpoints_are_kept_as_asked,
             checkpoints_of_a_lost_run_are_set_aside, numbers_that_go_bad_name_the_tensor, bad_input_is_named, unknown_words_are_counted,
             a_resume_with_something_else_is_refused, resumes_with_less, other_batches_start_the_next_epoch, batches_over_their_size,
             validates_on_a_part, given_tokenizers)

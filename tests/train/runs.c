/* SPDX-License-Identifier: MIT */
/* Runs of translation models to use: opening them, what does not belong together, the mean of checkpoints, memory that fails. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <weft/average.h>
#include <weft/safetensors.h>
#include <weft/seq2seq.h>

#include "pairs_test.h"

static void train(const char *out, const char *name, bool shared)
{
    struct seen seen = {0};
    struct wf_train_options o = small(out, &seen);
    o.config.training.steps = 9;
    o.config.training.save_every = 3;
    o.config.training.keep = 3;
    set_key(&o.config, "shared", shared);
    snprintf(o.config.model, sizeof o.config.model, "%s", name);
    ck_ok(wf_train(&o, NULL, error));
}

static void open_refused(const char *folder_name, const char *weights, wf_status code, const char *part)
{
    struct wf_run run;
    wf_error problem = {0};
    wf_status status = wf_run_open(&run, folder_name, weights, &problem);
    ck_assert_msg(status == code && strstr(problem.message, part), "%d, not %d with '%s': %s", (int)status, (int)code, part,
                  problem.message);
    ck_assert(!run.model && !run.tokenizer && !run.source_tokenizer);
}

static void copy(const char *from, const char *to)
{
    int64_t n;
    wf_error problem = {0};
    char *data = wf_file_load(from, INT64_C(1) << 30, &n, &problem);
    ck_assert_msg(data != NULL, "%s", problem.message);
    ck_ok(wf_file_save(to, data, n, error));
    wf_free(data);
}

START_TEST(what_does_not_belong_together)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder("run"), "best", error));
    ck_assert(wf_model_kind_of(run.model) == WF_MODEL_PAIRS);
    wf_run_close(&run);
    open_refused(in_folder("nowhere"), NULL, WF_ERR_IO, "is not a run folder");
    open_refused(in_folder("run"), in_folder("none.safetensors"), WF_ERR_IO, "give a safetensors file");
    /* another tokenizer of the same size: only its hash tells */
    copy(in_folder("run/tokenizer.target.json"), in_folder("target"));
    copy(in_folder("run/tokenizer.source.json"), in_folder("source"));
    copy(in_folder("source"), in_folder("run/tokenizer.target.json"));
    open_refused(in_folder("run"), NULL, WF_ERR_FORMAT, "another tokenizer than the run's target tokenizer");
    copy(in_folder("target"), in_folder("run/tokenizer.target.json"));
    copy(in_folder("target"), in_folder("run/tokenizer.source.json"));
    open_refused(in_folder("run"), NULL, WF_ERR_FORMAT, "another tokenizer than the run's source tokenizer");
    /* one of another size */
    static const char words[] = "eins zwei drei vier\n";
    wf_tokenizer *small_one, *letters;
    ck_ok(wf_tokenizer_train(words, (int64_t)strlen(words), &small_one, error, .kind = WF_TOKENIZER_WORD));
    ck_ok(wf_tokenizer_save(small_one, in_folder("run/tokenizer.source.json"), error));
    open_refused(in_folder("run"), NULL, WF_ERR_FORMAT, "has 7 tokens, the model in");
    /* of the right size, without marks */
    ck_ok(wf_tokenizer_train("abcdefghij", 10, &letters, error));
    ck_ok(wf_tokenizer_save(letters, in_folder("run/tokenizer.target.json"), error));
    copy(in_folder("source"), in_folder("run/tokenizer.source.json"));
    open_refused(in_folder("run"), NULL, WF_ERR_FORMAT, "no token for the start");
    ck_assert_int_eq(unlink(in_folder("run/tokenizer.target.json")), 0);
    open_refused(in_folder("run"), NULL, WF_ERR_IO, "tokenizer.target.json");
    wf_tokenizer_free(small_one);
    wf_tokenizer_free(letters);
    finish();
}
END_TEST

START_TEST(pairs_and_texts_are_told_apart)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", true);
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    ck_assert_ptr_eq(run.source_tokenizer, run.tokenizer);
    struct wf_run language = run;
    ck_ok(wf_config_defaults(&language.config, "gpt", error));
    wf_bitext *bitext;
    ck_assert_int_eq(wf_run_bitext(&language, in_folder("valid.en"), in_folder("valid.de"), NULL, &bitext, NULL), WF_ERR_ARGUMENT);
    ck_assert_ptr_null(bitext);
    wf_run_close(&run);
    finish();
}
END_TEST

/* --- averages ------------------------------------------------------------------------------------------------------ */

static void mean_of(int last)
{
    int64_t step;
    ck_ok(wf_average(in_folder("run"), last, in_folder("mean"), &step, error));
    ck_assert_int_eq(step, 9);
    wf_error problem = {0};
    wf_safetensors *part[3], *mean = wf_safetensors_open(in_folder("mean/model.safetensors"), &problem);
    ck_assert_msg(mean != NULL, "%s", problem.message);
    for (int i = 0; i < last; i++) {
        char name[64];
        snprintf(name, sizeof name, "run/checkpoints/step-%08d.safetensors", 9 - 3 * i);
        part[i] = wf_safetensors_open(in_folder(name), &problem);
        ck_assert_msg(part[i] != NULL, "%s", problem.message);
    }
    ck_assert_int_eq(wf_safetensors_count(mean), wf_safetensors_count(part[0]));
    for (int64_t k = 0; k < wf_safetensors_count(mean); k++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(mean, k);
        double *sum = calloc((size_t)e->count, sizeof *sum), *x = calloc((size_t)e->count, sizeof *x);
        for (int i = last - 1; i >= 0; i--) {
            ck_ok(wf_safetensors_read(part[i], e->name, WF_F64, x, e->count, error));
            for (int64_t j = 0; j < e->count; j++)
                sum[j] += x[j];
        }
        ck_ok(wf_safetensors_read(mean, e->name, WF_F64, x, e->count, error));
        for (int64_t j = 0; j < e->count; j++)
            ck_assert_msg(x[j] == (double)(wf_real)(sum[j] / last), "%s[%lld]", e->name, (long long)j);
        free(sum);
        free(x);
    }
    for (int i = 0; i < last; i++)
        wf_safetensors_close(part[i]);
    wf_safetensors_close(mean);
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder("mean"), NULL, error));
    wf_run_close(&run);
}

START_TEST(averages_are_the_mean)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    mean_of(1);
    mean_of(3); /* an older mean in that folder is replaced */
    ck_assert(same_file(in_folder("run/tokenizer.source.json"), in_folder("mean/tokenizer.source.json")));
    ck_assert(same_file(in_folder("run/config.json"), in_folder("mean/config.json")));
    finish();
}
END_TEST

static void average_refused(const char *run, int64_t last, const char *out, wf_status code, const char *part)
{
    wf_error problem = {0};
    wf_status status = wf_average(run, last, out, NULL, &problem);
    ck_assert_msg(status == code && strstr(problem.message, part), "%d, not %d with '%s': %s", (int)status, (int)code, part,
                  problem.message);
}

START_TEST(averages_that_cant_be)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    train(in_folder("other"), "seq2seq-tiny", true);
    average_refused(in_folder("run"), 4, in_folder("mean"), WF_ERR_ARGUMENT, "has 3 checkpoints, but 4 are requested");
    ck_assert(!wf_folder_exists(in_folder("mean")));
    average_refused(in_folder("run"), 0, in_folder("mean"), WF_ERR_ARGUMENT, "0 checkpoints");
    average_refused(in_folder("nowhere"), 1, in_folder("mean"), WF_ERR_IO, "is not a run folder");
    average_refused(in_folder("run"), 2, in_folder("other"), WF_ERR_EXISTS, "is a run that is being trained");
    average_refused(in_folder("run"), 2, in_folder("run"), WF_ERR_EXISTS, "is a run that is being trained");
    /* a mean is replaced, any other model is not */
    ck_ok(wf_average(in_folder("run"), 2, in_folder("mean"), NULL, error));
    ck_ok(wf_average(in_folder("run"), 1, in_folder("mean"), NULL, error));
    average_refused(in_folder("mean"), 1, in_folder("mean2"), WF_ERR_ARGUMENT, "is an average itself (1 checkpoint up to");
    ck_assert_int_eq(unlink(in_folder("other/checkpoints/step-00000003.safetensors")), 0);
    average_refused(in_folder("other"), 3, in_folder("mean2"), WF_ERR_ARGUMENT, "save_every=");
    copy(in_folder("run/model.safetensors"), in_folder("mean/model.safetensors"));
    average_refused(in_folder("run"), 2, in_folder("mean"), WF_ERR_EXISTS, "not an average");
    ck_assert(wf_file_exists(in_folder("mean/model.safetensors")));
    ck_assert_int_eq(unlink(in_folder("mean/model.safetensors")), 0);
    /* a stranger's files */
    ck_ok(wf_folder_make(in_folder("theirs"), error));
    const char *names[] = {"theirs/config.json", "theirs/tokenizer.source.json", "theirs/tokenizer.target.json"};
    for (int i = 0; i < 3; i++) {
        write_text(names[i], "theirs");
        average_refused(in_folder("run"), 2, in_folder("theirs"), WF_ERR_EXISTS, "would be replaced");
        ck_assert_int_eq(unlink(in_folder(names[i])), 0);
    }
    write_text("theirs/notes.txt", "theirs");
    ck_ok(wf_average(in_folder("run"), 2, in_folder("theirs"), NULL, error));
    /* weights of another shape among them */
    copy(in_folder("other/checkpoints/step-00000006.safetensors"), in_folder("run/checkpoints/step-00000006.safetensors"));
    average_refused(in_folder("run"), 3, in_folder("mean"), WF_ERR_FORMAT, "step-00000006");
    ck_assert(!wf_file_exists(in_folder("mean/model.safetensors")));
    finish();
}
END_TEST

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void checkpoint_name(char *name, size_t size, int step)
{
    snprintf(name, size, "%s/run/checkpoints/step-%08d.safetensors", folder, step);
}

/* A run that is being trained makes checkpoints and drops those that were listed a moment ago. */
START_TEST(averages_of_a_run_that_goes_on)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    double begun = seconds();
    ck_ok(wf_average(in_folder("run"), 3, in_folder("mean"), NULL, error));
    unsigned pause = (unsigned)(1.5e6 * (seconds() - begun));
    char from[300], to[300];
    pid_t trainer = fork();
    if (trainer == 0)
        for (int step = 12;; step += 3) {
            checkpoint_name(from, sizeof from, step - 3);
            checkpoint_name(to, sizeof to, step);
            if (link(from, to) != 0)
                _exit(1);
            checkpoint_name(from, sizeof from, step - 9);
            unlink(from);
            usleep(pause);
        }
    wf_error problem = {0};
    wf_status status = WF_OK;
    for (int i = 0; i < 25 && status == WF_OK; i++)
        status = wf_average(in_folder("run"), 3, in_folder("mean"), NULL, &problem);
    ck_assert_int_eq(kill(trainer, SIGKILL), 0);
    int end;
    waitpid(trainer, &end, 0);
    ck_assert_msg(WIFSIGNALED(end), "the trainer ended");
    ck_assert_msg(status == WF_OK, "%s", problem.message);
    finish();
}
END_TEST

/* --- memory that fails --------------------------------------------------------------------------------------------- */

static wf_status open_and_close(wf_error *problem)
{
    struct wf_run run;
    wf_status status = wf_run_open(&run, in_folder("run"), NULL, problem);
    wf_run_close(&run);
    return status;
}

static wf_status average(wf_error *problem)
{
    return wf_average(in_folder("run"), 3, in_folder("mean"), NULL, problem);
}

static int turn;
static wf_status train_again(wf_error *problem)
{
    struct seen seen = {0};
    char name[32];
    snprintf(name, sizeof name, "again-%d", turn++);
    struct wf_train_options o = small(in_folder(name), &seen);
    o.config.training.steps = 2;
    o.config.training.accumulate = 2;
    o.event = NULL;
    o.cancelled = NULL;
    return wf_train(&o, NULL, problem);
}

static wf_status evaluate(wf_error *problem)
{
    struct wf_run run;
    struct wf_translation_scores scores;
    wf_status status = wf_run_open(&run, in_folder("run"), NULL, problem);
    if (status == WF_OK)
        status = wf_evaluate_translation(&run, in_folder("valid.en"), in_folder("valid.de"), NULL, NULL, NULL, &scores, problem);
    wf_run_close(&run);
    return status;
}

START_TEST(every_allocation_may_fail)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    sweep("open", open_and_close, 1000000);
    sweep("average", average, 200);
    sweep("train", train_again, 150);
    sweep("evaluate", evaluate, 100);
    finish();
}
END_TEST

/* --- scores -------------------------------------------------------------------------------------------------------- */

struct lines_done {
    int64_t calls, last, stop_after; /* 0: never */
    bool fine;
};

static bool note_lines(void *ctx, int64_t done, int64_t total)
{
    struct lines_done *l = ctx;
    l->fine = l->fine && total == 3 && done >= l->last && done <= total;
    l->last = done;
    return ++l->calls != l->stop_after;
}

START_TEST(progress_within_a_window)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    write_text("a.en", "one two\nthree four\nfive six\n");
    write_text("a.de", "zwei eins\nvier drei\nsechs\n");
    struct wf_run run;
    struct wf_translation_scores scores;
    struct lines_done l = {.fine = true};
    struct wf_translator_options o = {.search.batch = 1};
    wf_error problem = {0};
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    ck_ok(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("a.de"), &o, note_lines, &l, &scores, error));
    ck_assert(l.fine);
    ck_assert_int_eq(l.calls, 3);
    ck_assert_int_eq(l.last, 3);
    l = (struct lines_done){.fine = true, .stop_after = 1};
    ck_assert_int_eq(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("a.de"), &o, note_lines, &l, &scores, &problem),
                     WF_ERR_CANCELLED);
    ck_assert_msg(strstr(problem.message, "cancelled after 0 of 3 lines"), "%s", problem.message);
    ck_assert_int_eq(l.calls, 1);
    wf_run_close(&run);
    finish();
}
END_TEST

START_TEST(scores_are_of_all_lines)
{
    begin();
    train(in_folder("run"), "seq2seq-tiny", false);
    write_text("a.en", "one two\n\nthree four five\r\n");
    write_text("a.de", "zwei eins\n\nfünf vier drei\n");
    write_text("b.de", "zwei eins\n");
    struct wf_run run;
    struct wf_translation_scores scores;
    wf_error problem = {0};
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    ck_ok(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("a.de"), NULL, NULL, NULL, &scores, error));
    ck_assert_int_eq(scores.bleu.segments, 3);
    ck_assert_int_eq(scores.chrf.segments, 3);
    ck_assert_int_eq(scores.bleu.reference_length, 5);
    ck_assert_int_eq(scores.counts.empty, 1);
    ck_assert(scores.bleu.score >= 0 && scores.bleu.score <= 100);
    ck_assert_int_eq(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("b.de"), NULL, NULL, NULL, &scores, &problem),
                     WF_ERR_FORMAT);
    ck_assert_msg(strstr(problem.message, "3 lines") && strstr(problem.message, "has 1"), "%s", problem.message);
    wf_run_close(&run);
    finish();
}
END_TEST

WF_TEST_MAIN("runs", what_does_not_belong_together, pairs_and_texts_are_told_apart, averages_are_the_mean, averages_that_cant_be,
             averages_of_a_run_that_goes_on, every_allocation_may_fail, scores_are_of_all_lines, progress_within_a_window)

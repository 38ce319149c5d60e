/* SPDX-License-Identifier: MIT */
/* Runs of translation models: opening them, files that do not belong together, the mean of checkpoints, scores, memory that fails. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <weft/average.h>
#include <weft/safetensors.h>
#include <weft/seq2seq.h>

#include "zoo.h"

/* 9 updates with a checkpoint after each third. */
static void train(const char *out, bool shared)
{
    struct wf_train_options o = translation(out, NULL);
    set_keys(&o.config, "steps=9 save_every=3 keep=3");
    set_key(&o.config, "shared", shared);
    trained(&o);
}

static void open_refused(const char *name, const char *weights, wf_status code, const char *words)
{
    struct wf_run run;
    ck_fails(wf_run_open(&run, in_folder(name), weights, error), code, words);
    ck_assert(!run.model && !run.tokenizer && !run.source_tokenizer);
}

static void copy(const char *from, const char *to)
{
    int64_t n;
    wf_error problem = {0};
    char *data = wf_file_load(in_folder(from), INT64_C(1) << 30, &n, &problem);
    ck_assert_msg(data != NULL, "%s", problem.message);
    write_file(in_folder(to), data, (size_t)n);
    wf_free(data);
}

START_TEST(files_of_other_runs_are_refused)
{
    train("run", false);
    struct wf_run run = opened("run", "best");
    ck_assert(wf_model_kind_of(run.model) == WF_MODEL_PAIRS);
    wf_run_close(&run);
    open_refused("nowhere", NULL, WF_ERR_IO, "is not a run folder");
    open_refused("run", in_folder("none.safetensors"), WF_ERR_IO, "give a safetensors file");
    /* another tokenizer of the same size: only its hash tells */
    copy("run/tokenizer.target.json", "target");
    copy("run/tokenizer.source.json", "source");
    copy("source", "run/tokenizer.target.json");
    open_refused("run", NULL, WF_ERR_FORMAT, "another tokenizer than the run's target tokenizer");
    copy("target", "run/tokenizer.target.json");
    copy("target", "run/tokenizer.source.json");
    open_refused("run", NULL, WF_ERR_FORMAT, "another tokenizer than the run's source tokenizer");
    /* one of another size */
    static const char words[] = "eins zwei drei vier\n";
    wf_tokenizer *small_one, *letters;
    ck_ok(wf_tokenizer_train(words, (int64_t)strlen(words), &small_one, error, .kind = WF_TOKENIZER_WORD));
    ck_ok(wf_tokenizer_save(small_one, in_folder("run/tokenizer.source.json"), error));
    open_refused("run", NULL, WF_ERR_FORMAT, "has 7 tokens, the model in");
    /* of the right size, without special tokens */
    ck_ok(wf_tokenizer_train("abcdefghij", 10, &letters, error));
    ck_ok(wf_tokenizer_save(letters, in_folder("run/tokenizer.target.json"), error));
    copy("source", "run/tokenizer.source.json");
    open_refused("run", NULL, WF_ERR_FORMAT, "no token for the start");
    ck_assert_int_eq(unlink(in_folder("run/tokenizer.target.json")), 0);
    open_refused("run", NULL, WF_ERR_IO, "tokenizer.target.json");
    wf_tokenizer_free(small_one);
    wf_tokenizer_free(letters);
}
END_TEST

START_TEST(pairs_and_texts_are_told_apart)
{
    train("run", true);
    struct wf_run run = opened("run", NULL);
    ck_assert_ptr_eq(run.source_tokenizer, run.tokenizer);
    struct wf_run language = run;
    ck_ok(wf_config_defaults(&language.config, "gpt", error));
    wf_bitext *bitext;
    ck_assert_int_eq(wf_run_bitext(&language, in_folder("valid.en"), in_folder("valid.de"), NULL, &bitext, NULL), WF_ERR_ARGUMENT);
    ck_assert_ptr_null(bitext);
    wf_run_close(&run);
}
END_TEST

/* --- averages ------------------------------------------------------------------------------------------------------ */

static void mean_of(int last)
{
    int64_t step;
    ck_ok(wf_average(in_folder("run"), last, in_folder("mean"), &step, error));
    ck_assert_int_eq(step, 9);
    wf_safetensors *part[3], *mean = tensors_of("mean/model.safetensors");
    for (int i = 0; i < last; i++) {
        char name[64];
        snprintf(name, sizeof name, "run/checkpoints/step-%08d.safetensors", 9 - 3 * i);
        part[i] = tensors_of(name);
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
    struct wf_run run = opened("mean", NULL);
    wf_run_close(&run);
}

START_TEST(averages_are_the_mean)
{
    train("run", false);
    mean_of(1);
    mean_of(3); /* an older mean in that folder is replaced */
    ck_assert(same_file("run/tokenizer.source.json", "mean/tokenizer.source.json"));
    ck_assert(same_file("run/config.json", "mean/config.json"));
}
END_TEST

static void average_refused(const char *run, int64_t last, const char *out, wf_status code, const char *words)
{
    ck_fails(wf_average(in_folder(run), last, in_folder(out), NULL, error), code, words);
}

START_TEST(averages_that_cant_be)
{
    train("run", false);
    train("other", true);
    average_refused("run", 4, "mean", WF_ERR_ARGUMENT, "has 3 checkpoints, but 4 are requested");
    ck_assert(!wf_folder_exists(in_folder("mean")));
    average_refused("run", 0, "mean", WF_ERR_ARGUMENT, "0 checkpoints");
    average_refused("nowhere", 1, "mean", WF_ERR_IO, "is not a run folder");
    average_refused("run", 2, "other", WF_ERR_EXISTS, "is a run that is being trained");
    average_refused("run", 2, "run", WF_ERR_EXISTS, "is a run that is being trained");
    /* a mean is replaced, any other model is not */
    ck_ok(wf_average(in_folder("run"), 2, in_folder("mean"), NULL, error));
    ck_ok(wf_average(in_folder("run"), 1, in_folder("mean"), NULL, error));
    average_refused("mean", 1, "mean2", WF_ERR_ARGUMENT, "is an average itself (1 checkpoint up to");
    ck_assert_int_eq(unlink(in_folder("other/checkpoints/step-00000003.safetensors")), 0);
    average_refused("other", 3, "mean2", WF_ERR_ARGUMENT, "save_every=");
    copy("run/model.safetensors", "mean/model.safetensors");
    average_refused("run", 2, "mean", WF_ERR_EXISTS, "not an average");
    ck_assert(exists("mean/model.safetensors"));
    ck_assert_int_eq(unlink(in_folder("mean/model.safetensors")), 0);
    /* files of another program */
    ck_ok(wf_folder_make(in_folder("theirs"), error));
    const char *names[] = {"theirs/config.json", "theirs/tokenizer.source.json", "theirs/tokenizer.target.json"};
    for (int i = 0; i < 3; i++) {
        put_text(names[i], "theirs");
        average_refused("run", 2, "theirs", WF_ERR_EXISTS, "would be replaced");
        ck_assert_int_eq(unlink(in_folder(names[i])), 0);
    }
    put_text("theirs/notes.txt", "theirs");
    ck_ok(wf_average(in_folder("run"), 2, in_folder("theirs"), NULL, error));
    /* weights of another shape among them */
    copy("other/checkpoints/step-00000006.safetensors", "run/checkpoints/step-00000006.safetensors");
    average_refused("run", 3, "mean", WF_ERR_FORMAT, "step-00000006");
    ck_assert(!exists("mean/model.safetensors"));
}
END_TEST

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static const char *checkpoint(int step)
{
    char name[64];
    snprintf(name, sizeof name, "run/checkpoints/step-%08d.safetensors", step);
    return in_folder(name);
}

/* A run that is being trained writes checkpoints and deletes some that were just listed. */
START_TEST(averages_of_a_run_that_goes_on)
{
    train("run", false);
    double begun = seconds();
    ck_ok(wf_average(in_folder("run"), 3, in_folder("mean"), NULL, error));
    unsigned pause = (unsigned)(1.5e6 * (seconds() - begun));
    pid_t trainer = fork();
    if (trainer == 0)
        for (int step = 12;; step += 3) {
            if (link(checkpoint(step - 3), checkpoint(step)) != 0)
                _exit(1);
            unlink(checkpoint(step - 9));
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
}
END_TEST

/* --- memory that fails --------------------------------------------------------------------------------------------- */

/* About `most` of its allocations fail, one in each call: an error of memory, and no leak. */
static void sweep(const char *name, wf_status (*call)(wf_error *), int64_t most)
{
    ck_ok(call(error));
    int64_t before = wf_alloc_count(), live = wf_alloc_live();
    ck_ok(call(error));
    const int64_t total = wf_alloc_count() - before;
    for (int64_t n = 0; n < total; n += 1 + total / (sampled() ? (most + 1) / 2 : most)) {
        wf_error problem = {0};
        wf_alloc_fail_after(n);
        const wf_status status = call(&problem);
        wf_alloc_fail_after(-1);
        assert_survived(name, n, status, &problem, live);
    }
}

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
    train("run", false);
    sweep("open", open_and_close, 1000000);
    sweep("average", average, 200);
    sweep("evaluate", evaluate, 100);
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
    train("run", false);
    put_text("a.en", "one two\nthree four\nfive six\n");
    put_text("a.de", "zwei eins\nvier drei\nsechs\n");
    struct wf_run run = opened("run", NULL);
    struct wf_translation_scores scores;
    struct lines_done l = {.fine = true};
    struct wf_translator_options o = {.search.batch = 1};
    ck_ok(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("a.de"), &o, note_lines, &l, &scores, error));
    ck_assert(l.fine);
    ck_assert_int_eq(l.calls, 3);
    ck_assert_int_eq(l.last, 3);
    l = (struct lines_done){.fine = true, .stop_after = 1};
    ck_fails(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("a.de"), &o, note_lines, &l, &scores, error), WF_ERR_CANCELLED,
             "cancelled after 0 of 3 lines");
    ck_assert_int_eq(l.calls, 1);
    wf_run_close(&run);
}
END_TEST

START_TEST(scores_are_of_all_lines)
{
    train("run", false);
    put_text("a.en", "one two\n\nthree four five\r\n");
    put_text("a.de", "zwei eins\n\nfünf vier drei\n");
    put_text("b.de", "zwei eins\n");
    struct wf_run run = opened("run", NULL);
    struct wf_translation_scores scores;
    ck_ok(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("a.de"), NULL, NULL, NULL, &scores, error));
    ck_assert_int_eq(scores.bleu.segments, 3);
    ck_assert_int_eq(scores.chrf.segments, 3);
    ck_assert_int_eq(scores.bleu.reference_length, 5);
    ck_assert_int_eq(scores.counts.empty, 1);
    ck_assert(scores.bleu.score >= 0 && scores.bleu.score <= 100);
    wf_error problem = {0};
    ck_assert_int_eq(wf_evaluate_translation(&run, in_folder("a.en"), in_folder("b.de"), NULL, NULL, NULL, &scores, &problem),
                     WF_ERR_FORMAT);
    ck_assert_msg(strstr(problem.message, "3 lines") && strstr(problem.message, "has 1"), "%s", problem.message);
    wf_run_close(&run);
}
END_TEST

WF_TEST_MAIN("runs", files_of_other_runs_are_refused, pairs_and_texts_are_told_apart, averages_are_the_mean, averages_that_cant_be,
             averages_of_a_run_that_goes_on, every_allocation_may_fail, scores_are_of_all_lines, progress_within_a_window)

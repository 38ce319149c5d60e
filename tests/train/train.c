/* SPDX-License-Identifier: MIT */
/* The training loop as a library: events, early stop, cancelling, resuming, opening runs, memory that fails. */
#include <sys/stat.h>

#include <weft/generate.h>
#include <weft/safetensors.h>

#include "train_test.h"

static char text_path[96];

static void begin(void)
{
    make_folder();
    snprintf(text_path, sizeof text_path, "%s/text.txt", folder);
    FILE *f = fopen(text_path, "w");
    for (int i = 0; i < 120; i++)
        fprintf(f, "line %d of the text, %s again\n", i * 37 % 101, i % 3 ? "over" : "and once");
    fclose(f);
}

static struct wf_train_options small(const char *out, struct seen *seen)
{
    static const char *files[1];
    files[0] = text_path;
    struct wf_train_options o = {.out = out, .train = files, .train_files = 1, .seed = 5, .event = see, .ctx = seen, .cancelled = cancel};
    ck_ok(wf_config_preset(&o.config, "nanogpt-char-small", error));
    const char *set[][2] = {{"layers", "2"},       {"d_model", "32"},   {"heads", "4"},     {"d_ff", "64"},
                            {"context", "16"},     {"batch", "6"},      {"dropout", "0.1"}, {"warmup", "5"},
                            {"valid_every", "10"}, {"save_every", "7"}, {"keep", "2"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        ck_ok(wf_config_set(&o.config, set[i][0], set[i][1], error));
    o.config.training.steps = 40;
    return o;
}

START_TEST(events_and_files)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    struct wf_train_result result;
    ck_ok(wf_train(&o, &result, error));
    ck_assert_int_eq(result.step, 40);
    ck_assert_int_eq(seen.count[WF_EVENT_START], 1);
    ck_assert_int_eq(seen.count[WF_EVENT_STEP], 40);
    ck_assert_int_eq(seen.count[WF_EVENT_VALID], 4);
    ck_assert_int_eq(seen.count[WF_EVENT_SAVE], 6); /* 7, 14, 21, 28, 35, the end */
    ck_assert_str_eq(seen.end, "trained to the end");
    ck_assert_double_lt(seen.last_loss, seen.first_loss - 0.3);
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000040.safetensors")));
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000035.safetensors")));
    ck_assert(!wf_file_exists(in_folder("run/checkpoints/step-00000028.safetensors")));
    ck_assert(same_file(in_folder("run/model.safetensors"), in_folder("run/checkpoints/step-00000040.safetensors")));
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    wf_tape *tape = wf_tape_new(NULL);
    struct wf_tokens ids = {0};
    ck_ok(wf_tokenizer_encode(run.tokenizer, "line ", 5, &ids, error));
    int32_t out[20];
    int64_t count;
    struct wf_generate_options g = {.sampler.greedy = true, .max_tokens = 20};
    ck_ok(wf_generate_with(run.model, tape, ids.id, ids.count, &g, out, &count, error));
    ck_assert_int_eq(count, 20);
    wf_tokens_free(&ids);
    wf_tape_free(tape);
    wf_run_close(&run);
    finish();
}
END_TEST

START_TEST(cancel_and_resume_give_the_same_bytes)
{
    begin();
    struct seen straight = {0}, first = {.cancel_at = 13}, second = {.last_step = 13};
    struct wf_train_options o = small(in_folder("straight"), &straight);
    ck_ok(wf_train(&o, NULL, error));
    o = small(in_folder("broken"), &first);
    ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_CANCELLED);
    ck_assert_int_eq(first.last_step, 13);
    ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_EXISTS);
    o = small(in_folder("broken"), &second);
    o.resume = true;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_int_eq(second.count[WF_EVENT_STEP], 27);
    ck_assert(same_file(in_folder("straight/model.safetensors"), in_folder("broken/model.safetensors")));
    ck_assert(same_file(in_folder("straight/best.safetensors"), in_folder("broken/best.safetensors")));
    ck_assert(same_file(in_folder("straight/tokenizer.json"), in_folder("broken/tokenizer.json")));
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

START_TEST(accumulation_is_the_large_batch)
{
    begin();
    struct seen whole = {0}, parts = {0};
    struct wf_train_options o = small(in_folder("whole"), &whole);
    o.config.training.steps = 5;
    ck_ok(wf_train(&o, NULL, error));
    double loss = whole.last_loss;
    o = small(in_folder("parts"), &parts);
    o.config.training.steps = 5;
    o.config.training.accumulate = 4; /* 6 rows in 4 parts: of 1, 2, 1 and 2 rows */
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_double_eq_tol(parts.last_loss, loss, sizeof(wf_real) == 8 ? 1e-10 : 1e-4);
    finish();
}
END_TEST

START_TEST(patience_stops_early)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    int64_t stopped = out_of_patience(&o, &seen);
    seen = (struct seen){.last_step = stopped};
    o.resume = true;
    ck_assert_int_eq(trained(&o).step, stopped); /* stays stopped */
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

/* The same settings again: silence and the same bytes. Others: a line, and they count from then on; the shape of the model stays. */
START_TEST(a_resume_changes_what_it_may)
{
    begin();
    struct seen straight = {0}, first = {.cancel_at = 13}, again = {.last_step = 13}, other = {.last_step = 40};
    struct wf_train_options o = small(in_folder("straight"), &straight);
    ck_ok(wf_train(&o, NULL, error));
    o = small(in_folder("run"), &first);
    ck_assert_int_eq(wf_train(&o, NULL, NULL), WF_ERR_CANCELLED);
    o = small(in_folder("run"), &again);
    o.event = see_change;
    o.resume = true;
    ck_ok(wf_config_set(&o.config, "dropout", "1e-1", error));
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_str_eq(change, "");
    ck_assert(same_file(in_folder("straight/state.safetensors"), in_folder("run/state.safetensors")));
    /* what would change the model or its texts */
    const char *refused[][2] = {{"d_model", "64"}, {"heads", "2"}, {"context", "8"}, {"layers", "1"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct wf_train_options bad = o;
        wf_error problem = {0};
        ck_ok(wf_config_set(&bad.config, refused[i][0], refused[i][1], error));
        ck_assert_int_eq(wf_train(&bad, NULL, &problem), WF_ERR_ARGUMENT);
        ck_assert_msg(strstr(problem.message, refused[i][0]) && strstr(problem.message, "a resume cannot change it"), "%s",
                      problem.message);
    }
    o = small(in_folder("run"), &other);
    o.event = see_change;
    o.resume = true;
    const char *changed[][2] = {{"steps", "44"},          {"lr", "0.0005"},   {"min_lr", "0.0005"},
                                {"schedule", "constant"}, {"dropout", "0.2"}, {"batch", "8"}};
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
        ck_ok(wf_config_set(&o.config, changed[i][0], changed[i][1], error));
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_int_eq(other.last_step, 44);
    ck_assert_double_eq(other.last_lr, 0.0005);
    ck_assert_msg(strncmp(change, "resuming with ", 14) == 0 && strstr(change, "lr 0.0005 instead of 0.001,") &&
                      strstr(change, "batch 8 instead of 6") && strstr(change, "dropout 0.2 instead of 0.1"),
                  "%s", change);
    struct wf_config now;
    ck_ok(wf_train_config(in_folder("run"), &now, NULL, error));
    ck_assert_double_eq(now.training.lr, 0.0005);
    ck_ok(wf_config_load(&now, in_folder("run/config.json"), error));
    ck_assert_double_eq(now.training.lr, 0.0005);
    ck_assert_int_eq(now.training.batch, 8);
    change[0] = 0;
    other = (struct seen){0};
    ck_ok(wf_train(&o, NULL, error)); /* it is the run's now */
    ck_assert_str_eq(change, "");
    finish();
}
END_TEST

/* By default a tenth of the tokens that are trained between two validations, by the settings alone; 0: all. A resume keeps to the part. */
START_TEST(validates_on_a_part)
{
    begin();
    FILE *f = fopen(in_folder("long.txt"), "w");
    for (int i = 0; i < 4000; i++)
        fprintf(f, "line %d of the text, %s again\n", i * 37 % 101, i % 3 ? "over" : "and once");
    fclose(f);
    const char *longer[1] = {in_folder("long.txt")};
    struct seen seen = {0};
    struct wf_train_result part, again, all;
    struct wf_train_options o = small(in_folder("part"), &seen);
    o.valid = longer;
    o.valid_files = 1;
    o.config.training.steps = 4;
    ck_ok(wf_train(&o, &part, error));
    const int64_t tenth = 4 * o.config.training.batch * wf_config_shape(&o.config).context / 10;
    ck_assert_int_eq(seen.valid_tokens, tenth);
    o.resume = true;
    o.config.training.steps = 5;
    o.config.training.batch *= 2;
    o.config.training.valid_every = 100000; /* a tenth of what is trained now is more */
    seen = (struct seen){.last_step = 4};
    ck_ok(wf_train(&o, &again, error));
    ck_assert_int_eq(seen.valid_tokens, tenth);
    o = small(in_folder("all"), &seen);
    o.valid = longer;
    o.valid_files = 1;
    o.config.training.steps = 4;
    o.config.training.valid_tokens = 0;
    seen = (struct seen){0};
    ck_ok(wf_train(&o, &all, error));
    ck_assert_int_gt(seen.valid_tokens, 110000);
    ck_assert(all.loss == part.loss && all.valid != part.valid);
    ck_assert_double_eq_tol(all.valid, part.valid, 0.5);
    finish();
}
END_TEST

START_TEST(patience_needs_validations)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.patience = 2;
    o.config.training.valid_every = 0;
    wf_error problem = {0};
    ck_assert_int_eq(wf_train(&o, NULL, &problem), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(problem.message, "patience=2") && strstr(problem.message, "valid_every"), "%s", problem.message);
    finish();
}
END_TEST

START_TEST(weights_that_go_bad_name_the_tensor)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.lr = 1e18;
    o.config.training.min_lr = o.config.training.clip = o.config.training.weight_decay = 0;
    o.config.training.warmup = 0;
    wf_error error = {0};
    wf_status status = wf_train(&o, NULL, &error);
    if (sizeof(wf_real) == 4)
        ck_assert_int_eq(status, WF_ERR_NUMERIC);
    if (status == WF_ERR_NUMERIC) {
        ck_assert_msg(strstr(error.message, "is not finite") && strncmp(error.message, "step ", 5) == 0, "%s", error.message);
        ck_assert(!wf_file_exists(in_folder("run/state.safetensors")));
    }
    finish();
}
END_TEST

/* An update that throws the weights to infinity right before a validation or a save: what was saved before stays. */
START_TEST(bad_weights_replace_nothing)
{
    begin();
    struct seen bad = {0};
    struct wf_train_options o = small(in_folder("bad"), &bad);
    o.config.training.lr = 1e39; /* beyond float */
    o.config.training.min_lr = o.config.training.clip = o.config.training.weight_decay = 0;
    o.config.training.warmup = 0;
    o.config.training.valid_every = o.config.training.save_every = o.config.training.steps = 1;
    wf_error problem = {0};
    wf_status status = wf_train(&o, NULL, &problem);
    if (sizeof(wf_real) == 4) {
        ck_assert_msg(status == WF_ERR_NUMERIC && strstr(problem.message, "step 1: the parameter "), "%s", problem.message);
        ck_assert(!wf_file_exists(in_folder("bad/state.safetensors")) && !wf_file_exists(in_folder("bad/model.safetensors")));
        ck_assert(!wf_file_exists(in_folder("bad/best.safetensors")));
    }
    finish();
}
END_TEST

START_TEST(checkpoints_of_others_stay)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("run"), &seen);
    o.config.training.keep = 1;
    ck_ok(wf_folder_make(in_folder("run/checkpoints"), error));
    ck_ok(wf_file_save(in_folder("run/checkpoints/step-keep.safetensors"), "x", 1, error));
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-keep.safetensors")));
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000040.safetensors")));
    ck_assert(!wf_file_exists(in_folder("run/checkpoints/step-00000035.safetensors")));
    finish();
}
END_TEST

/* Each allocation of a short training fails once: an error of memory, no leak, and a run that can be gone on with. */
START_TEST(every_allocation_may_fail)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = small(in_folder("warm"), &seen);
    o.config.training.steps = 2;
    o.event = NULL;
    o.cancelled = NULL;
    ck_ok(wf_train(&o, NULL, error));
    int64_t before = wf_alloc_count(), live = wf_alloc_live();
    o.out = in_folder("count");
    ck_ok(wf_train(&o, NULL, error));
    int64_t total = wf_alloc_count() - before;
    ck_assert_int_le(wf_alloc_live(), live + 12);
    int64_t step = 1 + total / 150;
    o.out = in_folder("run");
    o.resume = true;
    for (int64_t n = 0; n < total; n += step) {
        wf_error error = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_train(&o, NULL, &error);
        wf_alloc_fail_after(-1);
        ck_assert_msg(status == WF_OK || status == WF_ERR_MEMORY, "allocation %lld: %s", (long long)n, error.message);
        /* A thread that meets a kernel for the first time keeps its scratch memory: a few blocks in all, not a few each time. */
        ck_assert_msg(wf_alloc_live() <= live + 12, "allocation %lld: %lld blocks have leaked: %s", (long long)n,
                      (long long)(wf_alloc_live() - live), error.message);
    }
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(same_file(in_folder("run/model.safetensors"), in_folder("count/model.safetensors")));
    finish();
}
END_TEST

/* Writes a state as format 2 had it: the numbers of updates in one tensor, in the order of the registry. */
static void make_older(const char *path)
{
    wf_error e = {0};
    wf_safetensors *file = wf_safetensors_open(path, &e, .map = true);
    ck_assert_msg(file != NULL, "%s", e.message);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    const char *key, *value;
    for (int64_t i = 0; wf_safetensors_metadata_at(file, i, &key, &value); i++)
        if (strcmp(key, "adam.optimizer") != 0)
            wf_safetensors_put_metadata(w, key, strcmp(key, "format") == 0 ? "2" : value);
    int64_t steps[64], count = 0;
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *t = wf_safetensors_at(file, i);
        wf_array a = wf_array_contiguous((void *)wf_safetensors_data(file, t), t->dtype, &t->shape);
        ck_assert(count < 64 && a.data);
        if (strncmp(t->name, "adam.updates.", 13) == 0)
            steps[count++] = *(const int64_t *)a.data;
        else
            wf_safetensors_put(w, t->name, &a);
    }
    wf_array a = wf_array_contiguous(steps, WF_I64, &(wf_shape){1, {count}});
    wf_safetensors_put(w, "adam.steps", &a);
    ck_ok(wf_safetensors_commit(w, in_folder("older"), error));
    wf_safetensors_close(file);
    ck_assert_int_eq(rename(in_folder("older"), path), 0);
}

START_TEST(a_run_of_format_2_goes_on)
{
    begin();
    struct seen whole = {0}, first = {.cancel_at = 15}, second = {.last_step = 15};
    struct wf_train_options o = small(in_folder("whole"), &whole);
    struct wf_train_result result;
    ck_ok(wf_train(&o, &result, error));
    wf_error e = {0};
    o = small(in_folder("older-run"), &first);
    ck_assert_int_eq(wf_train(&o, &result, &e), WF_ERR_CANCELLED);
    make_older(in_folder("older-run/state.safetensors"));
    o = small(in_folder("older-run"), &second);
    o.resume = true;
    ck_ok(wf_train(&o, &result, error));
    ck_assert_int_eq(result.step, 40);
    ck_assert(same_file(in_folder("whole/model.safetensors"), in_folder("older-run/model.safetensors")));
    finish();
}
END_TEST

WF_TEST_MAIN("train", a_run_of_format_2_goes_on, events_and_files, cancel_and_resume_give_the_same_bytes,
             cancelled_anywhere_gives_the_same_bytes, accumulation_is_the_large_batch, patience_stops_early, validates_on_a_part,
             patience_needs_validations, a_resume_changes_what_it_may, weights_that_go_bad_name_the_tensor, bad_weights_replace_nothing,
             checkpoints_of_others_stay, every_allocation_may_fail)

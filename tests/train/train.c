/* SPDX-License-Identifier: MIT */
/* The training loop as a library: events, files, a resume with other settings, numbers that are not finite. */
#include "zoo.h"

START_TEST(events_and_files)
{
    struct seen seen = {0};
    struct wf_train_options o = language("run", &seen);
    ck_assert_int_eq(trained(&o).step, 40);
    ck_assert_int_eq(seen.count[WF_EVENT_START], 1);
    ck_assert_int_eq(seen.count[WF_EVENT_STEP], 40);
    ck_assert_int_eq(seen.count[WF_EVENT_VALID], 4);
    ck_assert_int_eq(seen.count[WF_EVENT_SAVE], 6); /* 7, 14, 21, 28, 35, the end */
    ck_assert_str_eq(seen.text[WF_EVENT_END], "trained to the end");
    ck_assert_double_lt(seen.last_loss, seen.first_loss - 0.3);
    ck_assert(exists("run/checkpoints/step-00000040.safetensors"));
    ck_assert(exists("run/checkpoints/step-00000035.safetensors"));
    ck_assert(!exists("run/checkpoints/step-00000028.safetensors"));
    ck_assert(same_file("run/model.safetensors", "run/checkpoints/step-00000040.safetensors"));
    struct wf_run run = opened("run", NULL);
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
}
END_TEST

/* A resume with the same settings reports nothing and gives the same bytes. With others a line lists them, and they count from then on; the
 * shape of the model stays. */
START_TEST(a_resume_changes_what_it_may)
{
    struct seen seen = {.cancel_after = 13};
    struct wf_train_options o = language("straight", NULL);
    trained(&o);
    o = language("run", &seen);
    refused(&o, WF_ERR_CANCELLED, "interrupted");
    seen = (struct seen){0};
    o.resume = true;
    set_keys(&o.config, "dropout=1e-1");
    trained(&o);
    ck_assert_str_eq(seen.text[WF_EVENT_CHANGE], "");
    ck_assert(same_file("straight/state.safetensors", "run/state.safetensors"));
    const char *fixed[] = {"d_model=64", "heads=2", "context=8", "layers=1"}; /* the model or its texts */
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        struct wf_train_options bad = o;
        char says[64];
        set_keys(&bad.config, fixed[i]);
        snprintf(says, sizeof says, "with %.*s = ", (int)strcspn(fixed[i], "="), fixed[i]);
        refused(&bad, WF_ERR_ARGUMENT, says);
        refused(&bad, WF_ERR_ARGUMENT, "a resume cannot change it");
    }
    set_keys(&o.config, "steps=44 lr=0.0005 min_lr=0.0005 schedule=constant dropout=0.2 batch=8");
    trained(&o);
    ck_assert_int_eq(seen.last_step, 44);
    ck_assert_double_eq(seen.last_lr, 0.0005);
    const char *change = seen.text[WF_EVENT_CHANGE];
    ck_assert_msg(strncmp(change, "resuming with ", 14) == 0 && strstr(change, "lr 0.0005 instead of 0.001,") &&
                      strstr(change, "batch 8 instead of 6") && strstr(change, "dropout 0.2 instead of 0.1"),
                  "%s", change);
    struct wf_config now;
    ck_ok(wf_train_config(in_folder("run"), &now, NULL, error));
    ck_assert_double_eq(now.training.lr, 0.0005);
    ck_ok(wf_config_load(&now, in_folder("run/config.json"), error));
    ck_assert_double_eq(now.training.lr, 0.0005);
    ck_assert_int_eq(now.training.batch, 8);
    trained(&o); /* these are the run's settings now */
    ck_assert_int_eq(seen.count[WF_EVENT_CHANGE], 1);
}
END_TEST

/* By default a tenth of the tokens that are trained between two validations; 0: all. A resume keeps to the same part. */
START_TEST(validates_on_a_part)
{
    write_lines("long", 4000);
    struct seen seen = {0};
    struct wf_train_options o = language("part", &seen);
    validate_on(&o, "long", NULL);
    o.config.training.steps = 4;
    const struct wf_train_result part = trained(&o);
    const int64_t tenth = 4 * o.config.training.batch * wf_config_shape(&o.config).context / 10;
    ck_assert_int_eq(seen.valid_tokens, tenth);
    o.resume = true;
    set_keys(&o.config, "steps=5 batch=12 valid_every=100000"); /* a tenth of the tokens between validations is more now */
    trained(&o);
    ck_assert_int_eq(seen.valid_tokens, tenth);
    o = language("all", &seen);
    validate_on(&o, "long", NULL);
    set_keys(&o.config, "steps=4 valid_tokens=0");
    const struct wf_train_result all = trained(&o);
    ck_assert_int_gt(seen.valid_tokens, 110000);
    ck_assert(all.loss == part.loss && all.valid != part.valid);
    ck_assert_double_eq_tol(all.valid, part.valid, 0.5);
}
END_TEST

START_TEST(patience_needs_validations)
{
    struct wf_train_options o = language("run", NULL);
    set_keys(&o.config, "patience=2 valid_every=0");
    refused(&o, WF_ERR_ARGUMENT, "patience=2");
    refused(&o, WF_ERR_ARGUMENT, "valid_every");
}
END_TEST

START_TEST(weights_that_go_bad_name_the_tensor)
{
    struct wf_train_options o[] = {language("run", NULL), translation("pairs", NULL)};
    set_keys(&o[0].config, "lr=1e18 min_lr=0 clip=0 weight_decay=0 warmup=0");
    set_keys(&o[1].config, "lr=1e18 clip=0 accumulate=2");
    for (int i = 0; i < 2; i++) {
        wf_error problem = {0};
        const wf_status status = wf_train(&o[i], NULL, &problem);
        ck_assert(status == WF_ERR_NUMERIC || sizeof(wf_real) == 8);
        if (status == WF_ERR_NUMERIC)
            ck_assert_msg(strstr(problem.message, "is not finite") && strncmp(problem.message, "step ", 5) == 0, "%s", problem.message);
        ck_assert(i > 0 || status == WF_OK || !exists("run/state.safetensors"));
    }
}
END_TEST

/* An update sends the weights to infinity right before a validation or a save: nothing is saved. */
START_TEST(bad_weights_replace_nothing)
{
    struct wf_train_options o = language("bad", NULL);
    set_keys(&o.config, "min_lr=0 clip=0 weight_decay=0 warmup=0 valid_every=1 save_every=1 steps=1");
    o.config.training.lr = 1e39; /* beyond float */
    if (sizeof(wf_real) == 4) {
        refused(&o, WF_ERR_NUMERIC, "step 1: the parameter ");
        ck_assert(!exists("bad/state.safetensors") && !exists("bad/model.safetensors") && !exists("bad/best.safetensors"));
    }
}
END_TEST

START_TEST(checkpoints_of_others_stay)
{
    struct wf_train_options o = language("run", NULL);
    o.config.training.keep = 1;
    ck_ok(wf_folder_make(in_folder("run/checkpoints"), error));
    put_text("run/checkpoints/step-keep.safetensors", "x");
    trained(&o);
    ck_assert(exists("run/checkpoints/step-keep.safetensors"));
    ck_assert(exists("run/checkpoints/step-00000040.safetensors"));
    ck_assert(!exists("run/checkpoints/step-00000035.safetensors"));
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
    struct seen first = {.cancel_after = 15};
    struct wf_train_options o = language("whole", NULL);
    trained(&o);
    o = language("older-run", &first);
    refused(&o, WF_ERR_CANCELLED, "interrupted");
    make_older(in_folder("older-run/state.safetensors"));
    o = language("older-run", NULL);
    o.resume = true;
    ck_assert_int_eq(trained(&o).step, 40);
    ck_assert(same_file("whole/model.safetensors", "older-run/model.safetensors"));
}
END_TEST

WF_TEST_MAIN("train", a_run_of_format_2_goes_on, events_and_files, validates_on_a_part, patience_needs_validations,
             a_resume_changes_what_it_may, weights_that_go_bad_name_the_tensor, bad_weights_replace_nothing, checkpoints_of_others_stay)

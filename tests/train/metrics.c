/* SPDX-License-Identifier: MIT */
/* The event file of a run holds the numbers and texts of metrics.jsonl, also after a kill, damage, or a later end; text samples change
 * nothing of the training. */
#include <sys/stat.h>

#include <weft/internal/json.h>
#include <weft/internal/text.h>

#include "zoo.h"

#include "events_test.h"

static const char *tokenizer_path; /* NULL: one of characters is made */

static void see_samples(void *ctx, const struct wf_event *e)
{
    see(ctx, e);
    if (e->kind == WF_EVENT_SAMPLE) {
        ck_assert_uint_ge(strlen(e->text), tokenizer_path ? 16 + 100 : 16 + 128); /* each token is a character; some bytes make one */
        ck_assert(wf_utf8_check(e->text, (int64_t)strlen(e->text)) < 0);
    }
}

/* Trains or resumes the run until update `last`; 0: to the end. */
static struct seen train(const char *out, int64_t steps, int64_t valid_every, int64_t last)
{
    FILE *f = fopen(in_folder("text.txt"), "w");
    for (int i = 0; i < 120; i++)
        fprintf(f, "Zeile %d of the text, %s again\n", i * 37 % 101, i % 3 ? "über" : "and once");
    fclose(f);
    struct seen seen = {.cancel_after = last};
    struct wf_train_options o = preset_options("nanogpt-char-small", out, &seen,
                                               "layers=1 d_model=16 heads=2 d_ff=32 context=16 batch=4 dropout=0.1 warmup=5 save_every=10");
    train_on(&o, "text.txt", NULL);
    o.tokenizer = tokenizer_path;
    o.event = see_samples;
    o.resume = true;
    o.config.training.steps = steps;
    o.config.training.valid_every = valid_every;
    ck_ends(wf_train(&o, NULL, error), last ? WF_ERR_CANCELLED : WF_OK);
    return seen;
}

/* --- the logs as text: a line for each number and sample ------------------------------------------------------------- */

enum { LOG = 1 << 17 };

static void add(char *log, const char *tag, long long step, double value, const char *text)
{
    size_t used = strlen(log);
    if (text)
        snprintf(log + used, LOG - used, "%s %lld \"%s\"", tag, step, text);
    else
        snprintf(log + used, LOG - used, "%s %lld %.9g", tag, step, (double)(float)value);
    for (char *p = log + used; (p = strchr(p, '\n'));)
        *p = '|';
    strcat(log, "\n");
}

static char *lines_of(const char *run)
{
    char name[64];
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    return text_of(in_folder(name));
}

static char *log_of_lines(const char *run)
{
    char *log = calloc(1, LOG), *text = lines_of(run);
    wf_error bad = {0};
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *event = wf_json_parse(line, (int64_t)strlen(line), "line", &bad), *value;
        ck_assert_msg(event != NULL, "%s", bad.message);
        const char *kind = json_string_value(json_object_get(event, "event")), *key;
        long long step = json_integer_value(json_object_get(event, "step"));
        if (!strcmp(kind, "sample"))
            add(log, "sample", step, 0, json_string_value(json_object_get(event, "text")));
        else if (!strcmp(kind, "step") || !strcmp(kind, "valid"))
            json_object_foreach(event, key, value) if (strcmp(key, "event") && strcmp(key, "step") && strcmp(key, "seconds") &&
                                                       strcmp(key, "tokens")) add(log, key, step, json_number_value(value), NULL);
        json_decref(event);
    }
    wf_free(text);
    return log;
}

/* The name of the run's only event file. */
static const char *event_file(const char *run)
{
    static char path[300];
    struct wf_names names;
    ck_ok(wf_event_files(in_folder(run), &names, error));
    ck_assert_int_eq(names.count, 1);
    snprintf(path, sizeof path, "%s/%s", in_folder(run), names.name[0]);
    wf_names_free(&names);
    return path;
}

static char *log_of_events(const char *run)
{
    char *log = calloc(1, LOG), text[4096];
    int64_t bytes, at = 0;
    double wall = 0;
    unsigned char *data = load_bytes(event_file(run), &bytes);
    for (Wf__Event *e; (e = next_event(data, bytes, &at)); wf__event__free_unpacked(e, NULL)) {
        ck_assert_double_ge(e->wall_time, wall);
        wall = e->wall_time;
        if (e->what_case != WF__EVENT__WHAT_SUMMARY)
            continue;
        const Wf__SummaryValue *v = e->summary->value[0];
        if (v->value_case == WF__SUMMARY_VALUE__VALUE_TENSOR) {
            ck_assert_str_eq(v->metadata->plugin_data->plugin_name, "text");
            snprintf(text, sizeof text, "%.*s", (int)v->tensor->string_val[0].len, (const char *)v->tensor->string_val[0].data);
        }
        add(log, v->tag, e->step, v->simple_value, v->value_case == WF__SUMMARY_VALUE__VALUE_TENSOR ? text : NULL);
    }
    wf_free(data);
    return log;
}

/* The two logs are the same; returns how many lines they have. */
static int assert_same_logs(const char *run)
{
    char *lines = log_of_lines(run), *events = log_of_events(run);
    int count = 0;
    ck_assert_str_eq(lines, events);
    for (char *p = lines; *p; p++)
        count += *p == '\n';
    free(lines);
    free(events);
    return count;
}

/* --- tests ----------------------------------------------------------------------------------------------------------- */

START_TEST(events_are_the_lines)
{
    const struct seen seen = train("run", 40, 20, 0);
    ck_assert_int_eq(seen.count[WF_EVENT_SAMPLE], 2);
    /* steps 1, 10, 20, 30, 40: four numbers; two validations: two, and a sample */
    ck_assert_int_eq(assert_same_logs("run"), 5 * 4 + 2 * 3);
}
END_TEST

START_TEST(samples_change_nothing)
{
    const struct seen often = train("often", 30, 3, 0), once = train("once", 30, 0, 0);
    ck_assert_int_eq(often.count[WF_EVENT_SAMPLE], 10);
    ck_assert_int_eq(once.count[WF_EVENT_SAMPLE], 1);
    ck_assert(same_file("often/model.safetensors", "once/model.safetensors"));
    char *a = log_of_lines("often"), *b = log_of_lines("once");
    ck_assert_str_eq(strstr(a, "sample 30"), strstr(b, "sample 30")); /* the same weights write the same */
    ck_assert_ptr_nonnull(strstr(a, "sample 27"));
    free(a);
    free(b);
}
END_TEST

/* An untrained model of bytes writes all of them, also NUL, which would end the text. */
START_TEST(samples_of_bytes_are_whole)
{
    static const char text[] = "of the text, again and once";
    wf_tokenizer *bytes = NULL;
    /* no end-of-text token, which would end a sample */
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &bytes, error, .kind = WF_TOKENIZER_BYTE_BPE, .vocab_size = 257,
                             .specials = (const char *const[]){"<pad>"}, .special_count = 1));
    ck_ok(wf_tokenizer_save(bytes, in_folder("bytes.json"), error));
    wf_tokenizer_free(bytes);
    tokenizer_path = lasting("bytes.json");
    ck_assert_int_eq(train("run", 8, 1, 0).count[WF_EVENT_SAMPLE], 8);
    assert_same_logs("run");
    tokenizer_path = NULL;
}
END_TEST

/* After a kill the state is of an earlier step than the logs, and the last record is torn. */
START_TEST(a_killed_run_resumes)
{
    train("run", 40, 5, 25);
    wf_error problem = {0};
    char *before = log_of_events("run");
    wf_events *e = wf_events_open(in_folder("run"), INT64_MAX, &problem);
    ck_assert_msg(e != NULL, "%s", problem.message);
    ck_ok(wf_events_scalar(e, "loss/train", 30, 0, 1.5, error));
    ck_ok(wf_events_text(e, "sample", 30, 0, "of a step that is done again", error));
    wf_events_close(e);
    struct stat info;
    ck_assert_int_eq(stat(event_file("run"), &info), 0);
    ck_assert_int_eq(truncate(event_file("run"), info.st_size - 3), 0);
    FILE *lines = fopen(in_folder("run/metrics.jsonl"), "a");
    fputs("{\"event\":\"step\",\"step\":30,\"loss/train\":1.5}\n{\"event\":\"sam", lines);
    fclose(lines);
    const struct seen second = train("run", 40, 5, 0);
    ck_assert_int_eq(second.count[WF_EVENT_SAMPLE], 4); /* 25, which was cancelled, 30, 35, 40 */
    ck_assert_int_eq(assert_same_logs("run"), 5 * 4 + 8 * 3);
    char *after = log_of_events("run");
    ck_assert_int_eq(strncmp(before, after, strlen(before)), 0);
    const struct seen third = train("run", 50, 5, 0); /* and a later end */
    ck_assert_int_eq(third.count[WF_EVENT_SAMPLE], 2);
    ck_assert_int_eq(assert_same_logs("run"), 6 * 4 + 10 * 3);
    ck_assert_int_eq(second.count[WF_EVENT_WARNING] + third.count[WF_EVENT_WARNING], 0);
    free(before);
    free(after);
}
END_TEST

/* Lines of steps and validations before step `from` hold `tokens`, the sum over all batches so far (4 rows of 16 tokens each). */
static void assert_tokens(const char *run, long long from, int expected)
{
    int count = 0;
    wf_error bad = {0};
    char *text = lines_of(run);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *event = wf_json_parse(line, (int64_t)strlen(line), "line", &bad);
        ck_assert_msg(event != NULL, "%s", bad.message);
        const char *kind = json_string_value(json_object_get(event, "event"));
        const long long step = json_integer_value(json_object_get(event, "step"));
        const json_t *tokens = json_object_get(event, "tokens");
        if ((strcmp(kind, "step") && strcmp(kind, "valid")) || step >= from)
            ck_assert_ptr_null(tokens);
        else
            ck_assert_int_eq(json_integer_value(tokens), 64 * step);
        count += tokens != NULL;
        json_decref(event);
    }
    wf_free(text);
    ck_assert_int_eq(count, expected);
}

START_TEST(tokens_are_counted)
{
    train("run", 40, 20, 25);
    train("run", 40, 20, 0);
    assert_tokens("run", 99, 5 + 2);
    /* without the sum in the state the lines have none */
    int64_t bytes;
    unsigned char *state = load_bytes(in_folder("run/state.safetensors"), &bytes);
    char *key = memmem(state, (size_t)bytes, "\"total\"", 7);
    ck_assert_ptr_nonnull(key);
    memcpy(key, "\"older\"", 7);
    ck_ok(wf_file_save(in_folder("run/state.safetensors"), state, bytes, error));
    wf_free(state);
    train("run", 60, 20, 0);
    assert_tokens("run", 41, 5 + 2);
}
END_TEST

START_TEST(a_damaged_event_file_is_set_aside)
{
    train("run", 20, 0, 12);
    FILE *f = fopen(event_file("run"), "r+b");
    fseek(f, 70, SEEK_SET);
    fputc('#', f);
    fclose(f);
    const struct seen second = train("run", 20, 0, 0);
    ck_assert_int_eq(second.count[WF_EVENT_WARNING], 1);
    assert_warned(&second, "checksum is wrong");
    assert_warned(&second, "/events.previous-1");
    ck_assert(exists("run/events.previous-1"));
    char *log = log_of_events("run"); /* from here on */
    ck_assert_int_eq(strncmp(log, "loss/train 20 ", 14), 0);
    free(log);
}
END_TEST

START_TEST(a_new_training_has_a_new_file)
{
    train("run", 10, 0, 0);
    ck_assert_int_eq(remove(in_folder("run/state.safetensors")), 0);
    put_text("run/events.out.tfevents.1.other", "theirs");
    put_text("run/events.out.tfevents.1600000000.there.weft", "not even one");
    train("run", 10, 0, 0);
    ck_assert_int_eq(assert_same_logs("run"), 2 * 4 + 3);
    ck_assert(exists("run/events.out.tfevents.1.other"));
    /* TensorBoard no longer finds the older files, one of them the first training's */
    ck_assert(exists("run/events.previous-1") && exists("run/events.previous-2"));
}
END_TEST

WF_TEST_MAIN("metrics", events_are_the_lines, samples_change_nothing, samples_of_bytes_are_whole, a_killed_run_resumes, tokens_are_counted,
             a_damaged_event_file_is_set_aside, a_new_training_has_a_new_file)

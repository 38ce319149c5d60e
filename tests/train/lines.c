/* SPDX-License-Identifier: MIT */
/* docs/files.md describes each member of each line that a training writes into metrics.jsonl, and the files and metadata of a run. */
#include <dirent.h>

#include <weft/internal/json.h>

#include "stranger.h"
#include "zoo.h"

static char *manual(void)
{
    char path[600];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/docs/files.md", root ? root : ".");
    return text_of(path);
}

/* Whether the text between two places has `word`, in backquotes. */
static bool has_word(const char *from, const char *to, const char *format, const char *a, const char *b)
{
    char word[200];
    int n = snprintf(word, sizeof word, format, a, b);
    for (const char *p = from; (p = strstr(p, word)) && p < to; p += n)
        return true;
    return false;
}

/* A member by its name, or with NAME or UNIT in place of a name that a program chose. */
static bool is_described(const char *row, const char *end, const char *key)
{
    char before[100];
    const char *slash = strchr(key, '/'), *rate = strstr(key, "_per_second");
    if (has_word(row, end, "`%s`%s", key, ""))
        return true;
    snprintf(before, sizeof before, "%.*s", slash ? (int)(slash - key) : 0, key);
    return rate ? has_word(row, end, "`UNIT_per_second`%s%s", "", "")
                : slash && (has_word(row, end, "`NAME%s`%s", slash, "") || has_word(row, end, "`%s/NAME`%s", before, ""));
}

/* The members of an event: its row, or the table under "A line of `step` has" if the row refers to it. */
static bool is_member(const char *doc, const char *row, const char *kind, const char *key)
{
    char head[64];
    const char *end = strchr(row + 1, '\n');
    if (!has_word(row, end, "%s%s", "see below", ""))
        return is_described(row, end, key);
    snprintf(head, sizeof head, "\nA line of `%s` has", kind);
    const char *table = strstr(doc, head);
    ck_assert_msg(table != NULL, "docs/files.md: event '%s' has no table of members", kind);
    const char *last = strstr(table, "|\n\n");
    ck_assert_ptr_nonnull(last);
    return is_described(table, last, key);
}

static int check_lines(const char *run, const char *doc)
{
    char path[600];
    int count = 0;
    const char *events = strstr(doc, "\n## metrics.jsonl");
    ck_assert_ptr_nonnull(events);
    wf_error bad = {0};
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    char *text = text_of(path), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && line[0]; count++) {
        json_t *event = wf_json_parse(line, (int64_t)strlen(line), "line", &bad), *value;
        ck_assert_msg(event != NULL, "%s", bad.message);
        const char *kind = json_string_value(json_object_get(event, "event")), *key;
        char begin[64];
        ck_assert(kind && json_is_integer(json_object_get(event, "step")) && json_is_real(json_object_get(event, "seconds")));
        snprintf(begin, sizeof begin, "\n| `%s` |", kind);
        const char *row = strstr(events, begin);
        ck_assert_msg(row != NULL, "docs/files.md has no row for the event '%s'", kind);
        json_object_foreach(event, key,
                            value) if (strcmp(key, "event") && strcmp(key, "step") && strcmp(key, "seconds") && strcmp(key, "text"))
            ck_assert_msg(is_member(doc, row, kind, key), "docs/files.md: event '%s' lacks the member '%s'", kind, key);
        json_decref(event);
    }
    wf_free(text);
    return count;
}

/* Each file of the run's folder, and each name of its state's metadata. */
static void check_files(const char *run, const char *doc)
{
    const char *end = doc + strlen(doc), *key, *value;
    DIR *folder = opendir(run);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        bool events = strncmp(e->d_name, "events.out.tfevents.", 20) == 0, weights = strcmp(e->d_name, "checkpoints") == 0;
        ck_assert_msg(!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || events || weights ||
                          has_word(doc, end, "`%s`%s", e->d_name, ""),
                      "docs/files.md does not know %s", e->d_name);
    }
    closedir(folder);
    char path[600];
    wf_error bad = {0};
    snprintf(path, sizeof path, "%s/state.safetensors", run);
    wf_safetensors *state = wf_safetensors_open(path, &bad);
    ck_assert_msg(state != NULL, "%s", bad.message);
    for (int64_t i = 0; wf_safetensors_metadata_at(state, i, &key, &value); i++)
        ck_assert_msg(has_word(doc, end, "`%s`%s", key, "") || !strncmp(key, "config.", 7) || !strncmp(key, "task.", 5) ||
                          strstr(key, ".optimizer"),
                      "docs/files.md does not know %s of the state", key);
    wf_safetensors_close(state);
}

static wf_tensor *shown_loss(void *ctx, struct wf_micro_batch *p)
{
    wf_tensor *loss = loss_of(ctx, p);
    p->shown = wf_scale(loss, 0.5);
    p->report[0] = wf_scale(loss, 2);
    return loss;
}

/* Trains with wf_fit and checks its lines and files; returns the number of lines. */
static int described(const struct wf_task *task, const struct wf_fit_options *o)
{
    char *doc = manual();
    ck_ok(wf_fit(task, o, NULL, error));
    const int lines = check_lines(o->out, doc);
    check_files(o->out, doc);
    wf_free(doc);
    return lines;
}

START_TEST(tasks_of_programs)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    struct wf_task task = vit_task;
    task.loss = shown_loss;
    task.reports = (const char *const[]){"double", NULL};
    o.steps = 20;
    o.resume = true; /* a warning */
    o.settings = "a=1";
    ck_assert_int_eq(described(&task, &o), 1 + 3 + 2 + 1);
    o.settings = "a=2";
    o.steps = 21;
    ck_assert_int_eq(described(&task, &o), 7 + 5);
    ASSERT_HAS(in_folder("run/metrics.jsonl"), "\"loss/train_minimized\":", "\"double/train\":", "\"change\"");
    study_close(s);
}
END_TEST

static wf_status latin_sample(void *ctx, wf_tape *tape, const char **text, wf_error *error)
{
    (void)ctx, (void)tape, (void)error;
    *text = "caf\xe9, \xc3\xa9 and \xc3";
    return WF_OK;
}

/* Texts that are not UTF-8 end no training. */
START_TEST(texts_of_any_bytes)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("caf\xe9"));
    struct wf_task task = vit_task;
    task.sample = latin_sample;
    o.steps = 2;
    o.resume = true; /* a warning with the folder's name */
    ck_ok(wf_folder_make(o.out, error));
    put_text("caf\xe9/model.safetensors", "mine");
    o.out = in_folder("caf\xe9");
    ck_assert_int_ge(described(&task, &o), 5);
    ck_assert_int_eq(s->seen.count[WF_EVENT_WARNING], 2);
    ASSERT_HAS(in_folder("caf\xe9/metrics.jsonl"), "\"caf\\\\xe9, \xc3\xa9 and \\\\xc3\"");
    study_close(s);
}
END_TEST

START_TEST(models_of_the_zoo)
{
    char *doc = manual();
    struct wf_train_options (*const models[])(const char *, struct seen *) = {language, masked, translation};
    static const char *const out[] = {"language", "masked", "translation"};
    for (int i = 0; i < 3; i++) {
        struct wf_train_options o = models[i](out[i], NULL);
        set_key(&o.config, "label_smoothing", 0.1);
        o.config.training.steps = 3;
        trained(&o);
        ck_assert_int_ge(check_lines(o.out, doc), 5);
        check_files(o.out, doc);
    }
    wf_free(doc);
}
END_TEST

WF_TEST_MAIN("lines", tasks_of_programs, texts_of_any_bytes, models_of_the_zoo)

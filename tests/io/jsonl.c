/* SPDX-License-Identifier: MIT */
#include "io_test.h"
#include <weft/internal/json.h>
#include <weft/internal/jsonl.h>

static json_t *event(int step)
{
    wf_json_init();
    return json_pack("{s:i,s:f}", "step", step, "loss", 1.5);
}

static void append(wf_jsonl *file, int step)
{
    json_t *e = event(step);
    ck_ok(wf_jsonl_append(file, e, error));
    json_decref(e);
}

static wf_status open_and_close(const char *path, int64_t last, wf_error *error)
{
    wf_jsonl *file = wf_jsonl_open(path, last, error);
    wf_jsonl_close(file);
    return file ? WF_OK : error->code;
}

START_TEST(appends_lines)
{
    const char *path = in_folder("m.jsonl");
    wf_jsonl *file = ck_makes(wf_jsonl_open(path, INT64_MAX, error));
    append(file, 1);
    assert_text_is(path, "{\"step\":1,\"loss\":1.5}\n");
    append(file, 2);
    ck_ok(wf_jsonl_sync(file, error));
    wf_jsonl_close(file);
    file = ck_makes(wf_jsonl_open(path, INT64_MAX, error));
    append(file, 3);
    wf_jsonl_close(file);
    assert_text_is(path, "{\"step\":1,\"loss\":1.5}\n{\"step\":2,\"loss\":1.5}\n{\"step\":3,\"loss\":1.5}\n");
    wf_jsonl_close(NULL);
    ck_fails_null(wf_jsonl_open(folder_of_test, 0, error), WF_ERR_IO, "not a regular file");
    ck_fails_null(wf_jsonl_open(in_folder("missing/m.jsonl"), 0, error), WF_ERR_IO, "No such file");
    ck_fails_null(wf_jsonl_open("/dev/null", 0, error), WF_ERR_IO, "not a regular file");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(a_torn_line_is_cut)
{
    const char *path = in_folder("m.jsonl");
    char text[20000], *first = "{\"step\":1}\n";
    for (int torn = 0; torn < 9000; torn = torn * 2 + 1) {
        for (int whole = 0; whole < 2; whole++) {
            int length = whole ? snprintf(text, sizeof text, "%s", first) : 0;
            memset(text + length, 'x', (size_t)torn);
            write_file(path, text, (size_t)(length + torn));
            wf_jsonl *file = ck_makes(wf_jsonl_open(path, INT64_MAX, error));
            assert_file_is(path, first, length);
            append(file, 2);
            wf_jsonl_close(file);
            assert_text_is(path, whole ? "{\"step\":1}\n{\"step\":2,\"loss\":1.5}\n" : "{\"step\":2,\"loss\":1.5}\n");
        }
    }
}
END_TEST

START_TEST(a_full_disk_leaves_whole_lines)
{
    const char *path = in_folder("m.jsonl");
    json_t *e = event(2);
    for (int room = 0; room < 22; room++) {
        remove(path);
        wf_jsonl *file = ck_makes(wf_jsonl_open(path, INT64_MAX, error));
        append(file, 1);
        ck_fails(with_file_size(22 + room, wf_jsonl_append(file, e, error)), WF_ERR_IO, "m.jsonl: cannot be written at byte 22: ");
        assert_text_is(path, "{\"step\":1,\"loss\":1.5}\n");
        append(file, 3); /* there is room again */
        wf_jsonl_close(file);
        assert_text_is(path, "{\"step\":1,\"loss\":1.5}\n{\"step\":3,\"loss\":1.5}\n");
    }
    json_decref(e);
}
END_TEST

START_TEST(drops_what_comes_after_a_step)
{
    const char *path = in_folder("m.jsonl");
    ck_ok(open_and_close(path, 5, error)); /* missing */
    assert_text_is(path, "");
    static const char text[] =
        "{\"event\": "
        "\"start\"}\n{\"step\":10,\"loss\":1.50}\n{\"step\":11}\n{\"step\":10.5}\n{\"step\":30}\n{\"step\":\"40\"}\n{\"step\":9}\n";
    write_text(path, text);
    struct stat before, after;
    stat(path, &before);
    ck_ok(open_and_close(path, 30, error));
    stat(path, &after);
    ck_assert_int_eq(before.st_ino, after.st_ino); /* nothing to do: not written again */
    ck_ok(open_and_close(path, 10, error));
    assert_text_is(path, "{\"event\": \"start\"}\n{\"step\":10,\"loss\":1.50}\n{\"step\":10.5}\n{\"step\":\"40\"}\n{\"step\":9}\n");
    ck_ok(open_and_close(path, -1, error));
    assert_text_is(path, "{\"event\": \"start\"}\n{\"step\":10.5}\n{\"step\":\"40\"}\n");
    write_text(path, "{\"step\":1}\n{\"step\":2}\n{\"st");
    ck_ok(open_and_close(path, 1, error));
    assert_text_is(path, "{\"step\":1}\n");
    static const char *const bad[][2] = {{"{\"step\":1}\n{\"step\" 2}\n", "m.jsonl:2:9: "},
                                         {"{\"step\":1}\n\n", "m.jsonl:2:1: empty"},
                                         {"[1]\n", "m.jsonl:1:1: the line is not a JSON object"}};
    for (int i = 0; i < 3; i++) {
        write_text(path, bad[i][0]);
        ck_fails(open_and_close(path, 0, error), WF_ERR_FORMAT, bad[i][1]);
        assert_text_is(path, bad[i][0]);
    }
    ck_fails(open_and_close(folder_of_test, 0, error), WF_ERR_IO, "");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

static void append_lines(int report, int last)
{
    wf_jsonl *file = wf_jsonl_open(in_folder("m.jsonl"), INT64_MAX, NULL);
    for (int step = last + 1;; step++) {
        append(file, step);
        if (write(report, &step, sizeof step) != sizeof step)
            return;
    }
}

/* After a kill at any moment each line of the reopened file is whole, and none that was reported is lost. */
START_TEST(lines_survive_a_kill)
{
    const char *path = in_folder("m.jsonl");
    for (int round = 0; round < 10; round++) {
        remove(path);
        int last = last_before_kill(append_lines, 0, (useconds_t)(1000 + round * 1777));
        ck_ok(open_and_close(path, INT64_MAX, error));
        char *text = load_file(path, NULL), *at = text;
        int step = 0;
        for (char line[64]; *at; at += strlen(line)) {
            snprintf(line, sizeof line, "{\"step\":%d,\"loss\":1.5}\n", ++step);
            ck_assert_msg(!strncmp(at, line, strlen(line)), "%.40s", at);
        }
        ck_assert_int_ge(step, last);
        ck_assert_int_le(step, last + 1);
        wf_free(text);
    }
}
END_TEST

START_TEST(a_pipe_is_refused_at_once)
{
    const char *path = in_folder("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_fails(open_and_close(path, 1, error), WF_ERR_IO, "pipe: is not a regular file"); /* it once waited for a writer, for ever */
    ck_fails(open_and_close(path, INT64_MAX, error), WF_ERR_IO, "pipe");
}
END_TEST

WF_TEST_MAIN("jsonl", a_pipe_is_refused_at_once, appends_lines, a_torn_line_is_cut, a_full_disk_leaves_whole_lines,
             drops_what_comes_after_a_step, lines_survive_a_kill)

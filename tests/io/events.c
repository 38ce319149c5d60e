/* SPDX-License-Identifier: MIT */
/* TensorBoard's event files: what is written is read back, compared with what TensorBoard's own writer gives
 * (tests/golden/make_events.py), and cut for a resume. */
#include <math.h>
#include <time.h>

#include "events_test.h"

START_TEST(checksums)
{
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    static const unsigned char read_command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
                                                   0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                                                   0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
    /* RFC 3720, B.4 */
    ck_assert_uint_eq(wf_crc32c(zeros, 32), 0x8a9136aa);
    ck_assert_uint_eq(wf_crc32c(ones, 32), 0x62a8ab43);
    ck_assert_uint_eq(wf_crc32c(up, 32), 0x46dd794e);
    ck_assert_uint_eq(wf_crc32c(down, 32), 0x113fdb5c);
    ck_assert_uint_eq(wf_crc32c(read_command, 48), 0xd9963a56);
    ck_assert_uint_eq(wf_crc32c("123456789", 9), 0xe3069283);
    ck_assert_uint_eq(wf_crc32c(NULL, 0), 0);
}
END_TEST

START_TEST(names)
{
    char *name = wf_event_file_name(1700000000, "a-1.example");
    ck_assert_str_eq(name, "events.out.tfevents.1700000000.a-1.example.weft");
    wf_free(name);
    name = wf_event_file_name(17, "a b/c\xc3\xa9\n");
    ck_assert_str_eq(name, "events.out.tfevents.0000000017.a_b_c___.weft");
    wf_free(name);
    char host[256];
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = 0;
    name = wf_event_file_name(1, host);
    ck_assert_uint_eq(strlen(name), strlen("events.out.tfevents.0000000001..weft") + 64);
    wf_free(name);
    name = wf_event_file_name(0, "");
    ck_assert_str_eq(name, "events.out.tfevents.0000000000.localhost.weft");
    wf_free(name);
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
    time_t before = time(NULL);
    wf_events *e = open_events(0);
    ck_ok(wf_events_scalar(e, "loss", 3, 0, 0.1, error));
    ck_ok(wf_events_scalar(e, "rate", 3, 12.5, -0.0, error));
    ck_ok(wf_events_text(e, "sample", 4, 13.5, "two\nlines", error));
    wf_events_close(e);
    const char *path = file_of_test();
    long long seconds = atoll(strstr(path, "tfevents.") + 9);
    ck_assert(seconds >= before && seconds <= time(NULL));
    int64_t bytes, at = 0;
    unsigned char *data = load_bytes(path, &bytes);
    Wf__Event *event = next_event(data, bytes, &at);
    ck_assert_int_eq(event->what_case, WF__EVENT__WHAT_FILE_VERSION);
    ck_assert_str_eq(event->file_version, "brain.Event:2");
    wf__event__free_unpacked(event, NULL);
    event = next_event(data, bytes, &at);
    ck_assert(event->wall_time >= (double)before && event->wall_time <= (double)time(NULL) + 1);
    ck_assert_int_eq(event->step, 3);
    ck_assert_int_eq(event->summary->n_value, 1);
    ck_assert_str_eq(event->summary->value[0]->tag, "loss");
    ck_assert_int_eq(event->summary->value[0]->value_case, WF__SUMMARY_VALUE__VALUE_SIMPLE_VALUE);
    ck_assert_float_eq(event->summary->value[0]->simple_value, 0.1f);
    wf__event__free_unpacked(event, NULL);
    event = next_event(data, bytes, &at);
    ck_assert_double_eq(event->wall_time, 12.5);
    ck_assert(signbit(event->summary->value[0]->simple_value));
    wf__event__free_unpacked(event, NULL);
    event = next_event(data, bytes, &at);
    const Wf__SummaryValue *value = event->summary->value[0];
    ck_assert_int_eq(value->value_case, WF__SUMMARY_VALUE__VALUE_TENSOR);
    ck_assert_str_eq(value->metadata->plugin_data->plugin_name, "text");
    ck_assert_int_eq(value->tensor->n_string_val, 1);
    ck_assert_int_eq(value->tensor->string_val[0].len, 9);
    ck_assert_mem_eq(value->tensor->string_val[0].data, "two\nlines", 9);
    wf__event__free_unpacked(event, NULL);
    ck_assert_ptr_null(next_event(data, bytes, &at));
    wf_free(data);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(bytes_are_those_of_tensorboard)
{
    char many[5001];
    memset(many, 'x', 5000);
    many[5000] = 0;
    wf_events *e = open_events(0);
    ck_ok(wf_events_scalar(e, "loss/train", 0, 1700000001.5, 0.1, error));
    ck_ok(wf_events_scalar(e, "loss/train", 1, 1700000002.5, 0, error));
    ck_ok(wf_events_scalar(e, "lr", INT64_C(1) << 40, 1700000003.5, -1e-30, error));
    ck_ok(wf_events_scalar(e, "größe", 7, 1700000003.75, 1e39, error));
    ck_ok(wf_events_text(e, "sample", INT64_C(1) << 40, 1700000004.5, "ROMEO:\nO, “schön” 猫 \x01", error));
    ck_ok(wf_events_text(e, "sample", INT64_C(1) << 41, 1700000005.5, many, error));
    ck_ok(wf_events_text(e, "empty", INT64_C(1) << 41, 1700000005.5, "", error));
    wf_events_close(e);
    int64_t ours, theirs;
    unsigned char *a = load_bytes(file_of_test(), &ours), *b = load_bytes(golden("weft.tfevents"), &theirs);
    int64_t skip = first_record(a), skip_theirs = first_record(b);
    ck_assert_int_eq(ours - skip, theirs - skip_theirs);
    ck_assert_mem_eq(a + skip, b + skip_theirs, (size_t)(ours - skip));
    wf_free(a);
    wf_free(b);
}
END_TEST

START_TEST(later_events_are_dropped)
{
    int64_t bytes;
    unsigned char *data = load_bytes(golden("others.tfevents"), &bytes);
    const struct {
        int64_t last;
        const char *steps;
    } cases[] = {{INT64_MAX, "0 30 10 20 40 -1"},
                 {40, "0 30 10 20 40 -1"},
                 {39, "0 30 10 20 -1"},
                 {20, "0 10 20 -1"},
                 {0, "0 -1"},
                 {-1, "-1"},
                 {-2, ""}};
    write_file(in_folder("events.out.tfevents.1600000000.other.1.0"), data, (size_t)bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        use_file(data, (size_t)bytes);
        wf_events_close(open_events(cases[i].last));
        ck_assert_str_eq(steps_of(file_of_test()), cases[i].steps);
        ck_assert_str_eq(strrchr(file_of_test(), '/'), "/events.out.tfevents.1700000000.there.weft");
    }
    assert_file_is(in_folder("events.out.tfevents.1600000000.other.1.0"), data, bytes); /* is not ours */
    ck_assert_int_eq(count_names(folder_of_test), 2);
    wf_free(data);
    /* Events at the end are cut off in place: a program that reads the file keeps the same one. */
    wf_events *e = open_events(-2);
    for (int step = 1; step <= 5; step++)
        ck_ok(wf_events_scalar(e, "loss", step, 0, step, error));
    wf_events_close(e);
    struct stat before, after;
    stat(file_of_test(), &before);
    e = open_events(3);
    stat(file_of_test(), &after);
    ck_assert_int_eq(before.st_ino, after.st_ino);
    for (int step = 4; step <= 5; step++)
        ck_ok(wf_events_scalar(e, "loss", step, 0, step, error));
    wf_events_close(e);
    ck_assert_str_eq(steps_of(file_of_test()), "1 2 3 4 5");
    stat(file_of_test(), &after);
    ck_assert_int_eq(before.st_size, after.st_size);
}
END_TEST

START_TEST(what_cant_be_opened_or_written)
{
    ck_fails_null(wf_events_open(in_folder("missing"), 0, error), WF_ERR_IO, "missing");
    if (geteuid() != 0) {
        chmod(folder_of_test, 0500);
        ck_fails_null(wf_events_open(folder_of_test, 0, error), WF_ERR_IO, "Permission denied");
        chmod(folder_of_test, 0700);
    }
    wf_events *e = open_events(0);
    ck_fails(wf_events_scalar(e, "l\xff", 1, 0, 1, error), WF_ERR_ARGUMENT, "the tag \"l\\xff\" is not UTF-8");
    ck_fails(wf_events_text(e, "sample", 1, 0, "\xc3", error), WF_ERR_ARGUMENT, "the text for sample is not UTF-8");
    wf_events_close(e);
    ck_assert_str_eq(steps_of(file_of_test()), "");
    ck_assert(wf_events_available());
    wf_events_close(NULL);
}
END_TEST

START_TEST(scalars_allocate_nothing)
{
    wf_events *e = open_events(0);
    int64_t before = wf_alloc_count();
    for (int step = 1; step <= 100; step++)
        ck_ok(wf_events_scalar(e, "tokens_per_second", step, 0, 1e5, error));
    ck_assert_int_eq(wf_alloc_count(), before);
    wf_events_close(e);
}
END_TEST

static wf_status write_some(wf_error *error)
{
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    int64_t bytes;
    unsigned char *data = (unsigned char *)wf_file_load(golden("others.tfevents"), 1 << 20, &bytes, error);
    if (!data)
        return error->code;
    use_file(data, (size_t)bytes);
    wf_free(data);
    wf_events *e = wf_events_open(folder_of_test, 20, error);
    if (!e)
        return error->code;
    wf_status status = wf_events_scalar(e, "loss", 21, 0, 1, error);
    if (status == WF_OK)
        status = wf_events_text(e, "sample", 21, 0, text, error);
    wf_events_close(e);
    return status;
}

START_TEST(memory_may_be_short)
{
    in_folder("");
    ck_assert_int_ge(sweep_allocations(write_some), 20);
}
END_TEST

WF_TEST_MAIN("events", checksums, names, what_is_written_is_read_back, bytes_are_those_of_tensorboard, later_events_are_dropped,
             what_cant_be_opened_or_written, scalars_allocate_nothing, memory_may_be_short)

/* SPDX-License-Identifier: MIT */
/* TensorBoard's event files: what is written is read back, compared with what TensorBoard's own writer gives
 * (tests/golden/make_events.py), torn, damaged and cut. */
#include <math.h>
#include <sys/wait.h>
#include <time.h>

#include <weft/internal/crc32c.h>
#include <weft/internal/event_files.h>

#include "../fuzz/events.h"
#include "events.pb-c.h"
#include "io_test.h"

static unsigned char *load(const char *path, int64_t *bytes)
{
    wf_error bad = {0};
    char *data = wf_file_load(path, 1 << 24, bytes, &bad);
    ck_assert_msg(data != NULL, "%s", bad.message);
    return (unsigned char *)data;
}

static wf_events *open_events(int64_t last)
{
    wf_error bad = {0};
    in_folder("");
    wf_events *e = wf_events_open(folder_of_test, last, &bad);
    ck_assert_msg(e != NULL, "%s", bad.message);
    return e;
}

/* The one event file of the test's folder. */
static const char *file_of_test(void)
{
    struct wf_names names;
    ck_ok(wf_event_files(folder_of_test, &names, error));
    ck_assert_int_eq(names.count, 1);
    const char *path = in_folder(names.name[0]);
    wf_names_free(&names);
    return path;
}

static void use_file(const void *data, size_t bytes)
{
    write_file(in_folder("events.out.tfevents.1700000000.there.weft"), data, bytes);
}

/* The event of the record at *at, which goes on to the next; NULL at the end. */
static Wf__Event *next_event(const unsigned char *data, int64_t bytes, int64_t *at)
{
    if (*at == bytes)
        return NULL;
    uint64_t length;
    uint32_t sum;
    ck_assert_int_ge(bytes - *at, 16);
    memcpy(&length, data + *at, 8);
    memcpy(&sum, data + *at + 8, 4);
    ck_assert_uint_eq(sum, wf_record_checksum(data + *at, 8));
    ck_assert_uint_le(length, (uint64_t)(bytes - *at - 16));
    memcpy(&sum, data + *at + 12 + length, 4);
    ck_assert_uint_eq(sum, wf_record_checksum(data + *at + 12, (int64_t)length));
    Wf__Event *event = wf__event__unpack(NULL, length, data + *at + 12);
    ck_assert_ptr_nonnull(event);
    *at += (int64_t)length + 16;
    return event;
}

/* The steps of a file's events, "0 10 20"; the version record's 0 is left out. */
static const char *steps_of(const char *path)
{
    static char text[4096];
    int64_t bytes, at = 0;
    unsigned char *data = load(path, &bytes);
    text[0] = 0;
    for (Wf__Event *event; (event = next_event(data, bytes, &at)); wf__event__free_unpacked(event, NULL))
        if (event->what_case != WF__EVENT__WHAT_FILE_VERSION)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", text[0] ? " " : "", (long long)event->step);
    wf_free(data);
    return text;
}

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
    unsigned char *data = load(path, &bytes);
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

/* The first record, of 16 + 8 + length bytes, names the writer; the rest is the same. */
static int64_t first_record(const unsigned char *data)
{
    uint64_t length;
    memcpy(&length, data, 8);
    return 16 + (int64_t)length;
}

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
    unsigned char *a = load(file_of_test(), &ours), *b = load(golden("weft.tfevents"), &theirs);
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
    unsigned char *data = load(golden("others.tfevents"), &bytes);
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
    /* What goes is the end: the file stays the same one, for who is reading it. */
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

START_TEST(a_torn_record_is_cut)
{
    wf_events *e = open_events(0);
    ck_ok(wf_events_scalar(e, "loss", 1, 0, 1, error));
    ck_ok(wf_events_text(e, "sample", 2, 0, "text", error));
    wf_events_close(e);
    int64_t bytes, at = 0, ends[4] = {0};
    unsigned char *data = load(file_of_test(), &bytes);
    for (int i = 1; i < 4; i++) {
        wf__event__free_unpacked(next_event(data, bytes, &at), NULL);
        ends[i] = at;
    }
    remove(file_of_test());
    for (int64_t cut = 0; cut < bytes; cut++) {
        use_file(data, (size_t)cut);
        e = open_events(10);
        ck_ok(wf_events_scalar(e, "loss", 7, 0, 1, error));
        wf_events_close(e);
        ck_assert_str_eq(steps_of(file_of_test()), cut < ends[2] ? "7" : "1 7");
    }
    wf_free(data);
}
END_TEST

static void assert_refused(const unsigned char *data, int64_t bytes, const char *why)
{
    wf_error bad = {0};
    use_file(data, (size_t)bytes);
    ck_assert_ptr_null(wf_events_open(folder_of_test, 1, &bad));
    assert_message(&bad, WF_ERR_FORMAT, "there.weft: byte ");
    assert_message(&bad, WF_ERR_FORMAT, why);
    assert_file_is(in_folder("events.out.tfevents.1700000000.there.weft"), data, bytes);
}

START_TEST(damage_is_named)
{
    int64_t bytes;
    unsigned char *data = load(golden("others.tfevents"), &bytes), record[64];
    for (int64_t i = 0; i < bytes; i++) { /* any one bit, anywhere */
        data[i] ^= (unsigned char)(1 << i % 8);
        assert_refused(data, bytes, "checksum is wrong");
        data[i] ^= (unsigned char)(1 << i % 8);
    }
    assert_refused(data + first_record(data), bytes - first_record(data), "byte 0: the first event does not say brain.Event");
    wf_free(data);
    const unsigned char message[] = {0x10, 0x80}; /* a step that does not end */
    assert_refused(record, (int64_t)make_record(message, sizeof message, record), "byte 0: the record is not an event");
    const unsigned char long_text[] = {0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f, 'b'};
    assert_refused(record, (int64_t)make_record(long_text, sizeof long_text, record), "byte 0: the record is not an event");
    assert_refused((const unsigned char *)"{\"step\":1,\"loss\":1}\n", 20, "byte 0: no record begins here");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(mutations)
{
    int64_t bytes;
    unsigned char *data = load(golden("others.tfevents"), &bytes), *copy = wf_alloc((size_t)bytes), records[1024];
    uint32_t random = 7;
    int accepted = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, data, (size_t)bytes);
        size_t used = 0;
        int victim = round % 7, number = 0;
        for (int64_t at = 0; at < bytes; number++) { /* bytes of one event change, its checksums fit */
            uint64_t length;
            memcpy(&length, data + at, 8);
            for (int change = 0; number == victim && change < 1 + round % 3; change++) {
                random = random * 1664525 + 1013904223;
                copy[at + 12 + (int64_t)((random >> 16) % length)] = (unsigned char)(random >> 8);
            }
            used += make_record(copy + at + 12, (size_t)length, records + used);
            at += (int64_t)length + 16;
        }
        *(drop_events(records, used, 20) ? &accepted : &refused) += 1;
    }
    ck_assert_int_gt(accepted, 1000);
    ck_assert_int_gt(refused, 1000);
    wf_free(data);
    wf_free(copy);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(a_full_disk_leaves_whole_records)
{
    wf_error bad = {0};
    wf_events *e = open_events(0);
    const char *path = file_of_test();
    ck_ok(wf_events_scalar(e, "loss", 1, 0, 1, error));
    struct stat info;
    stat(path, &info);
    for (int room = 0; room < 40; room++) {
        wf_error_clear(&bad);
        limit_file_size((rlim_t)(info.st_size + room));
        wf_status status = wf_events_scalar(e, "loss", 2, 0, 1, &bad);
        limit_file_size(RLIM_INFINITY);
        ck_assert_int_eq(status, WF_ERR_IO);
        assert_message(&bad, WF_ERR_IO, ".weft: cannot be written at byte ");
        ck_assert_str_eq(steps_of(path), "1");
    }
    ck_ok(wf_events_scalar(e, "loss", 3, 0, 1, error)); /* there is room again */
    wf_events_close(e);
    ck_assert_str_eq(steps_of(path), "1 3");
    remove(path);
    wf_error_clear(&bad);
    limit_file_size(20);
    e = wf_events_open(folder_of_test, 0, &bad);
    limit_file_size(RLIM_INFINITY);
    ck_assert_ptr_null(e);
    assert_message(&bad, WF_ERR_IO, "cannot be written");
    ck_assert_int_eq(count_names(folder_of_test), 0);
}
END_TEST

START_TEST(what_cant_be_opened_or_written)
{
    wf_error bad = {0};
    ck_assert_ptr_null(wf_events_open(in_folder("missing"), 0, &bad));
    assert_message(&bad, WF_ERR_IO, "missing");
    wf_error_clear(&bad);
    if (geteuid() != 0) {
        chmod(folder_of_test, 0500);
        ck_assert_ptr_null(wf_events_open(folder_of_test, 0, &bad));
        assert_message(&bad, WF_ERR_IO, "Permission denied");
        wf_error_clear(&bad);
        chmod(folder_of_test, 0700);
    }
    wf_events *e = open_events(0);
    ck_assert_int_eq(wf_events_scalar(e, "l\xff", 1, 0, 1, &bad), WF_ERR_ARGUMENT);
    assert_message(&bad, WF_ERR_ARGUMENT, "the tag \"l\\xff\" is not UTF-8");
    wf_error_clear(&bad);
    ck_assert_int_eq(wf_events_text(e, "sample", 1, 0, "\xc3", &bad), WF_ERR_ARGUMENT);
    assert_message(&bad, WF_ERR_ARGUMENT, "the text for sample is not UTF-8");
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

/* Whatever moment the process dies at, the file can be gone on with, and no event that was reported is lost. */
START_TEST(events_survive_a_kill)
{
    int written = 0;
    in_folder("");
    for (int round = 0; round < 10; round++) {
        int ends[2], last = 0;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            wf_events *e = wf_events_open(folder_of_test, -1, NULL);
            for (int step = 1; e; step++)
                if (wf_events_scalar(e, "loss", step, 0, step, NULL) != WF_OK || write(ends[1], &step, sizeof step) != sizeof step)
                    break;
            _exit(1);
        }
        close(ends[1]);
        usleep((useconds_t)(1000 + round * 1777));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (int step; read(ends[0], &step, sizeof step) == sizeof step;)
            last = step;
        close(ends[0]);
        wf_events_close(open_events(INT64_MAX));
        int64_t bytes, at = 0;
        unsigned char *data = load(file_of_test(), &bytes);
        int step = -1;
        for (Wf__Event *event; (event = next_event(data, bytes, &at)); wf__event__free_unpacked(event, NULL))
            ck_assert_int_eq(event->step, ++step);
        ck_assert(step >= last && step <= last + 1);
        written += last;
        wf_free(data);
    }
    ck_assert_msg(written > 0, "no event was ever written: the test shows nothing");
}
END_TEST

WF_TEST_MAIN("events", checksums, names, what_is_written_is_read_back, bytes_are_those_of_tensorboard, later_events_are_dropped,
             a_torn_record_is_cut, damage_is_named, mutations, a_full_disk_leaves_whole_records, what_cant_be_opened_or_written,
             scalars_allocate_nothing, memory_may_be_short, events_survive_a_kill)

/* SPDX-License-Identifier: MIT */
/* Event files that are torn, damaged, on a full disk, or whose writer is killed. */
#include "../fuzz/events.h"
#include "events_test.h"

START_TEST(a_torn_record_is_cut)
{
    wf_events *e = open_events(0);
    ck_ok(wf_events_scalar(e, "loss", 1, 0, 1, error));
    ck_ok(wf_events_text(e, "sample", 2, 0, "text", error));
    wf_events_close(e);
    int64_t bytes, at = 0, ends[4] = {0};
    unsigned char *data = load_bytes(file_of_test(), &bytes);
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
    unsigned char endless[40] = {[0 ... 7] = 0xff}; /* longer than any file, with the right checksum: the rest of it is missing */
    memcpy(endless + 8, &(uint32_t){wf_record_checksum(endless, 8)}, 4);
    use_file(endless, sizeof endless);
    wf_events_close(open_events(10));
    ck_assert_str_eq(steps_of(file_of_test()), "");
}
END_TEST

static void assert_refused(const unsigned char *data, int64_t bytes, const char *why)
{
    wf_error bad = {0};
    use_file(data, (size_t)bytes);
    ck_assert_ptr_null(wf_events_open(folder_of_test, 1, &bad));
    assert_message(&bad, WF_ERR_FORMAT, "there.weft: byte ");
    ck_says(bad.message, why);
    assert_file_is(in_folder("events.out.tfevents.1700000000.there.weft"), data, bytes);
}

START_TEST(damage_is_named)
{
    int64_t bytes;
    unsigned char *data = load_bytes(golden("others.tfevents"), &bytes), record[64];
    for (int64_t i = 0; i < bytes; i++) { /* any one bit, anywhere */
        data[i] ^= (unsigned char)(1 << i % 8);
        assert_refused(data, bytes, "checksum is wrong");
        data[i] ^= (unsigned char)(1 << i % 8);
    }
    assert_refused(data + first_record(data), bytes - first_record(data), "byte 0: not an event file");
    wf_free(data);
    const unsigned char message[] = {0x10, 0x80}; /* a step that does not end */
    assert_refused(record, (int64_t)make_record(message, sizeof message, record), "byte 0: the record is not a TensorBoard event");
    const unsigned char long_text[] = {0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f, 'b'};
    assert_refused(record, (int64_t)make_record(long_text, sizeof long_text, record), "byte 0: the record is not a TensorBoard event");
    assert_refused((const unsigned char *)"{\"step\":1,\"loss\":1}\n", 20, "byte 0: not a record");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(mutations)
{
    int64_t bytes;
    unsigned char *data = load_bytes(golden("others.tfevents"), &bytes), *copy = wf_alloc((size_t)bytes), records[1024];
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
    wf_events *e = open_events(0);
    const char *path = file_of_test();
    ck_ok(wf_events_scalar(e, "loss", 1, 0, 1, error));
    struct stat info;
    stat(path, &info);
    for (int room = 0; room < 40; room++) {
        ck_fails(with_file_size(info.st_size + room, wf_events_scalar(e, "loss", 2, 0, 1, error)), WF_ERR_IO,
                 ".weft: cannot be written at byte ");
        ck_assert_str_eq(steps_of(path), "1");
    }
    ck_ok(wf_events_scalar(e, "loss", 3, 0, 1, error)); /* there is room again */
    wf_events_close(e);
    ck_assert_str_eq(steps_of(path), "1 3");
    remove(path);
    ck_fails_null(with_file_size(20, wf_events_open(folder_of_test, 0, error)), WF_ERR_IO, "cannot be written");
    ck_assert_int_eq(count_names(folder_of_test), 0);
}
END_TEST

static void write_scalars(int report, int last)
{
    (void)last;
    wf_events *e = wf_events_open(folder_of_test, -1, NULL);
    for (int step = 0; e; step++)
        if ((step > 0 && wf_events_scalar(e, "loss", step, 0, step, NULL) != WF_OK) || write(report, &step, sizeof step) != sizeof step)
            break;
}

/* After a kill at any moment a run can go on with the file, and no event that was reported is lost. */
START_TEST(events_survive_a_kill)
{
    int written = 0;
    in_folder("");
    for (int round = 0; round < 10; round++) {
        /* -1: not opened yet, the events are those of the round before */
        int last = last_before_kill(write_scalars, -1, (useconds_t)(1000 + round * 1777));
        wf_events_close(open_events(INT64_MAX));
        int64_t bytes, at = 0;
        unsigned char *data = load_bytes(file_of_test(), &bytes);
        int step = -1;
        for (Wf__Event *event; (event = next_event(data, bytes, &at)); wf__event__free_unpacked(event, NULL))
            ck_assert_int_eq(event->step, ++step);
        ck_assert_msg(last < 0 || (step >= last && step <= last + 1), "%d reported, %d there", last, step);
        written += last > 0 ? last : 0;
        wf_free(data);
    }
    ck_assert_msg(written > 0, "no event was ever written: the test shows nothing");
}
END_TEST

WF_TEST_MAIN("events_damage", a_torn_record_is_cut, damage_is_named, mutations, a_full_disk_leaves_whole_records, events_survive_a_kill)

/* SPDX-License-Identifier: MIT */
/* A process that saves all the time is killed at random moments: the file is always a whole version, and never older than the last save
 * that was reported. */
#include "io_test.h"

enum { ROUNDS = 40, ELEMENTS = 30000 };

static void save_version(const char *path, int version)
{
    static float x[ELEMENTS];
    char text[16];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)version;
    wf_array a = wf_array_contiguous(x, WF_F32, &(wf_shape){2, {100, ELEMENTS / 100}}), t = wf_array_transpose(a, 0, 1);
    snprintf(text, sizeof text, "%d", version);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put_metadata(w, "version", text);
    wf_safetensors_put(w, "a", &a);
    wf_safetensors_put(w, "t", &t);
    if (wf_safetensors_commit(w, path, NULL) != WF_OK)
        _exit(1);
}

static int load_version(const char *path)
{
    static float x[ELEMENTS];
    wf_safetensors *file = open_tensors(path);
    int version = atoi(wf_safetensors_metadata(file, "version"));
    for (int tensor = 0; tensor < 2; tensor++) {
        ck_ok(wf_safetensors_read(file, tensor ? "t" : "a", WF_F32, x, ELEMENTS, error));
        for (int i = 0; i < ELEMENTS; i++)
            ck_assert_msg(x[i] == (float)version, "version %d holds a %g", version, (double)x[i]);
    }
    wf_safetensors_close(file);
    return version;
}

static void save_versions(int report, int last)
{
    for (int next = last + 1;; next++) {
        save_version(in_folder("state"), next);
        if (write(report, &next, sizeof next) != sizeof next)
            return;
    }
}

START_TEST(a_save_is_whole_or_not_there)
{
    const char *path = in_folder("state");
    uint32_t random = 12345;
    int version = 0, left = 0, removed;
    save_version(path, version);
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1664525 + 1013904223;
        int reported = last_before_kill(save_versions, version, random >> 16 & 0x3fff);
        version = load_version(path);
        ck_assert_msg(version == reported || version == reported + 1, "version %d, reported %d", version, reported);
        left += count_names(folder_of_test) - 1;
        ck_ok(wf_file_sweep(folder_of_test, &removed, error));
        ck_assert_int_eq(count_names(folder_of_test), 1);
    }
    ck_assert_msg(version > 0, "no save was ever finished: the test shows nothing");
    ck_assert_msg(left > 0, "no save was ever interrupted: the test shows nothing");
}
END_TEST

WF_TEST_MAIN("kill", a_save_is_whole_or_not_there)

/* SPDX-License-Identifier: MIT */
/* model.safetensors.index.json under libFuzzer, beside two sound shards. A refusal gives a reason in one line; all tensors of an accepted
 * index can be read. */
#include <weft/safetensors.h>

#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void write_shard(const char *name, const char *a, const char *b)
{
    float numbers[2] = {1, 2};
    wf_error error = {0};
    wf_array x = wf_array_contiguous(numbers, WF_F32, &(wf_shape){1, {2}});
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, a, &x);
    wf_safetensors_put(w, b, &x);
    check(wf_safetensors_commit(w, fuzz_path(name), &error) == WF_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!fuzz_folder[0]) {
        write_shard("one.safetensors", "w.b", "w.d");
        write_shard("two.safetensors", "w.a", "w.c");
    }
    fuzz_write("model.safetensors.index.json", data, bytes);
    for (int map = 0; map < 2; map++) {
        wf_error error = {0};
        wf_safetensors *file = wf_safetensors_open(fuzz_path("model.safetensors.index.json"), &error, .map = map);
        check((file != NULL) == (error.code == WF_OK) && !strchr(error.message, '\n') && (file || error.message[0]));
        for (int64_t i = 0; file && i < wf_safetensors_count(file); i++) {
            float two[2];
            check(wf_safetensors_read(file, wf_safetensors_at(file, i)->name, WF_F32, two, 2, &error) == WF_OK);
            check(two[0] == 1 && two[1] == 2);
        }
        wf_safetensors_close(file);
    }
    return 0;
}

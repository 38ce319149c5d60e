/* SPDX-License-Identifier: MIT */
/* Reads everything of a safetensors file that may be damaged. */
#ifndef TESTS_FUZZ_SAFETENSORS_H
#define TESTS_FUZZ_SAFETENSORS_H

#include <stdlib.h>
#include <string.h>

#include <weft/memory.h>
#include <weft/safetensors.h>

#define FUZZ_CHECK(condition) ((condition) ? (void)0 : abort())

static inline void read_entry(const wf_safetensors *file, const struct wf_safetensors_entry *entry, const unsigned char *data, size_t bytes)
{
    FUZZ_CHECK(wf_safetensors_find(file, entry->name) == entry);
    FUZZ_CHECK(entry->offset >= 8 && entry->bytes >= 0 && entry->offset + entry->bytes <= (int64_t)bytes);
    FUZZ_CHECK(wf_shape_count(&entry->shape) == entry->count && entry->count * (int64_t)wf_dtype_size(entry->dtype) == entry->bytes);
    wf_error error = {0};
    char *dst = wf_alloc((size_t)entry->count * 8 + 1); /* as large as a double for each */
    FUZZ_CHECK(dst);
    wf_status status = wf_safetensors_read(file, entry->name, entry->dtype, dst, entry->count, &error);
    FUZZ_CHECK(status == WF_OK || (entry->dtype == WF_BOOL && status == WF_ERR_FORMAT));
    FUZZ_CHECK(!entry->bytes || !memcmp(dst, data + entry->offset, (size_t)entry->bytes));
    for (int d = 0; d < WF_DTYPE_COUNT; d++)
        if (wf_safetensors_read(file, entry->name, (wf_dtype)d, dst, entry->count, &error) != WF_OK)
            FUZZ_CHECK(error.message[0] && !strchr(error.message, '\n'));
    FUZZ_CHECK(wf_safetensors_read(file, entry->name, entry->dtype, dst, entry->count + 1, NULL) == WF_ERR_SHAPE);
    const char *there = wf_safetensors_data(file, entry);
    FUZZ_CHECK(!there || !entry->bytes || !memcmp(there, data + entry->offset, (size_t)entry->bytes));
    wf_free(dst);
}

/* True when the file was accepted. */
static inline bool read_everything(const unsigned char *data, size_t bytes)
{
    wf_error error = {0};
    wf_safetensors *file = wf_safetensors_view(data, (int64_t)bytes, "fuzz", &error);
    if (!file) {
        FUZZ_CHECK(error.code == WF_ERR_FORMAT && !strncmp(error.message, "fuzz: ", 6) && !strchr(error.message, '\n'));
        return false;
    }
    const char *key, *value;
    for (int64_t i = 0; wf_safetensors_metadata_at(file, i, &key, &value); i++)
        FUZZ_CHECK(wf_safetensors_metadata(file, key) == value);
    for (int64_t i = 0; i < wf_safetensors_count(file); i++)
        read_entry(file, wf_safetensors_at(file, i), data, bytes);
    wf_safetensors_close(file);
    return true;
}

#endif

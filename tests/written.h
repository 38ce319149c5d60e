/* SPDX-License-Identifier: MIT */
#ifndef TESTS_WRITTEN_H
#define TESTS_WRITTEN_H

#include <unistd.h>

#include <weft/safetensors.h>

#include "check_weft.h"

static char written_path[64];

/* Commits to a temporary file and opens it; close it with wf_safetensors_close. The file has no name any more: written_path had it. */
static inline wf_safetensors *written(wf_safetensors_writer *w)
{
    wf_error error = {0};
    strcpy(written_path, "/tmp/weft-written-XXXXXX.safetensors");
    const int made = mkstemps(written_path, 12);
    ck_assert_int_ge(made, 0);
    close(made);
    wf_safetensors *file = wf_safetensors_commit(w, written_path, &error) == WF_OK ? wf_safetensors_open(written_path, &error) : NULL;
    ck_assert_msg(file != NULL, "%s", error.message);
    unlink(written_path);
    return file;
}

#endif

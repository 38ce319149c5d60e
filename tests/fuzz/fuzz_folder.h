/* SPDX-License-Identifier: MIT */
/* A folder in memory, if the machine has one, for fuzzers of loaders that read files. */
#ifndef TESTS_FUZZ_FOLDER_H
#define TESTS_FUZZ_FOLDER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fuzz_folder[64];

static inline void remove_fuzz_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", fuzz_folder);
    if (system(command) != 0)
        fprintf(stderr, "%s stays\n", fuzz_folder);
}

/* The path of a file in the folder, which the first call makes. Valid until the eighth call after this one. */
static inline const char *fuzz_path(const char *name)
{
    static char path[8][128];
    static int next;
    if (!fuzz_folder[0]) {
        strcpy(fuzz_folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/weft-fuzz-XXXXXX" : "/tmp/weft-fuzz-XXXXXX");
        if (!mkdtemp(fuzz_folder))
            abort();
        atexit(remove_fuzz_folder);
    }
    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", fuzz_folder, name);
    return path[next];
}

static inline void fuzz_write(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(fuzz_path(name), "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0)
        abort();
}

#endif

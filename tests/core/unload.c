/* SPDX-License-Identifier: MIT */
/* dlclose: the library's threads end with it, and threads that used it end after it. */
#include "blocks.h"

#include <dlfcn.h>

#include <weft/compute.h>
#include <weft/tape.h>

static bool is_mapped(void)
{
    char line[4096];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        found |= strstr(line, "/libweft.so") != NULL;
    fclose(f);
    return found;
}

static void add_block(void *ctx, int64_t block)
{
    *(_Atomic int64_t *)ctx += block;
    usleep(20);
}

static void *library;

#define FUNCTION(name) ((__typeof__(&name))dlsym(library, #name))

static void use_it(void)
{
    _Atomic int64_t sum = 0;
    ck_ok(FUNCTION(wf_init_with)(&(struct wf_init_options){.threads = 4}, error));
    for (int i = 0; i < 20; i++)
        FUNCTION(wf_parallel)(100, 1e9, add_block, &sum);
    ck_assert_int_eq(sum, 20 * 4950);
    ck_assert_ptr_nonnull(FUNCTION(wf_scratch)(WF_SCRATCH_OP, 100000));
    wf_tape *tape = FUNCTION(wf_tape_new_abi)(WF_ABI, &(wf_error){0});
    ck_assert_ptr_nonnull(tape);
    FUNCTION(wf_tape_reset_with)(tape, WF_INFER, NULL);
    FUNCTION(wf_tape_free)(tape);
}

static pthread_barrier_t used, closed;

static void *outlive_it(void *ctx)
{
    (void)ctx;
    use_it();
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return NULL;
}

START_TEST(unload)
{
    char path[4096];
    const char *build = getenv("WEFT_BUILD_ROOT");
    snprintf(path, sizeof path, "%s/libweft.so", build ? build : "build");
    if (sanitized() || access(path, R_OK) != 0) {
        fprintf(stderr, "skipped: no %s without sanitizers\n", path);
        return;
    }
    const int before = threads_of_process();
    for (int round = 0; round < 10; round++) {
        pthread_t thread;
        pthread_barrier_init(&used, NULL, 2);
        pthread_barrier_init(&closed, NULL, 2);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        ck_assert_msg(library, "%s", dlerror());
        ck_assert_int_eq(pthread_create(&thread, NULL, outlive_it, NULL), 0);
        pthread_barrier_wait(&used);
        use_it();
        ck_assert_int_eq(dlclose(library), 0);
        ck_assert(!is_mapped());
        pthread_barrier_wait(&closed);
        pthread_join(thread, NULL);
        for (int tries = 0; tries < 1000 && threads_of_process() != before; tries++)
            usleep(1000); /* the system counts a thread for a moment after it was joined */
        ck_assert_int_eq(threads_of_process(), before);
    }
}
END_TEST

WF_TEST_MAIN("unload", unload)

/* SPDX-License-Identifier: MIT */
/* Scratch memory (wf_scratch in weft/compute.h): each thread has one block per slot. The blocks are thread-local; when a thread ends, the
 * destructor of a thread-specific key frees its blocks. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/memory.h>

struct scratch {
    void *block[WF_SCRATCH_SLOTS];
    size_t size[WF_SCRATCH_SLOTS];
    unsigned version; /* requested_version when this thread last grew its blocks to the sizes `requested` */
    bool registered;
};

static _Thread_local struct scratch scratch;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static void free_scratch(void *p)
{
    struct scratch *s = p;
    for (int i = 0; i < WF_SCRATCH_SLOTS; i++) {
        wf_free(s->block[i]);
        s->block[i] = NULL;
        s->size[i] = 0;
    }
    s->registered = false;
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, free_scratch) == 0;
}

/* Runs at the end of the process, because the first thread does not run destructors of keys. Also runs in dlclose, because threads that
 * end later must not call a destructor that is no longer loaded. */
__attribute__((destructor)) static void at_unload(void)
{
    free_scratch(&scratch);
    if (have_key)
        pthread_key_delete(key);
    have_key = false;
}

/* For each slot the largest request of any thread in a parallel region. A thread may happen to run no block of some loop in the first
 * training steps; when it runs such a block in a later step, it would have to allocate. So every worker grows its blocks to these sizes at
 * the start of the next region. The calling thread grows its blocks only at the start of the next pass, because it may use a block of its
 * own during a region. A caller that runs all blocks because the team is busy also records its requests, because next time workers may run
 * these blocks. */
static _Atomic size_t requested[WF_SCRATCH_SLOTS];
static _Atomic unsigned requested_version;

unsigned wf_scratch_version(void)
{
    return atomic_load_explicit(&requested_version, memory_order_acquire);
}

static void *grow(int slot, size_t size)
{
    struct scratch *s = &scratch;
    size_t others = atomic_load_explicit(&requested[slot], memory_order_relaxed);
    size = WF_MAX(others, size);
    if (!s->registered) {
        pthread_once(&once, make_key);
        if (!have_key || pthread_setspecific(key, s) != 0)
            return NULL;
        s->registered = true;
    }
    wf_free(s->block[slot]);
    s->block[slot] = wf_alloc(size);
    s->size[slot] = s->block[slot] ? size : 0;
    return s->block[slot];
}

void wf_scratch_get_ready(void)
{
    unsigned version = wf_scratch_version();
    if (version == scratch.version)
        return;
    scratch.version = version;
    for (int i = 0; i < WF_SCRATCH_SLOTS; i++) {
        size_t size = atomic_load_explicit(&requested[i], memory_order_relaxed);
        if (size > scratch.size[i] && grow(i, size))
            memset(scratch.block[i], 0, size); /* touches the pages too */
    }
}

void *wf_scratch(int slot, size_t bytes)
{
    if (slot < 0 || slot >= WF_SCRATCH_SLOTS)
        return NULL;
    struct scratch *s = &scratch;
    bool here = bytes <= s->size[slot] && s->block[slot];
    size_t known = atomic_load_explicit(&requested[slot], memory_order_relaxed);
    if (here && bytes <= known)
        return s->block[slot];
    /* Sizes are powers of two, so that growing requests allocate only a few times. */
    size_t size = 4096;
    while (size < bytes) {
        if (size > (size_t)PTRDIFF_MAX / 2)
            return NULL;
        size *= 2;
    }
    if (size > known && wf_parallel_inside()) {
        while (size > known && !atomic_compare_exchange_weak(&requested[slot], &known, size))
            ;
        atomic_fetch_add_explicit(&requested_version, 1, memory_order_release);
    }
    return here ? s->block[slot] : grow(slot, size);
}

void wf_scratch_forget(void)
{
    for (int i = 0; i < WF_SCRATCH_SLOTS; i++)
        atomic_store(&requested[i], 0);
}

void wf_scratch_free(void)
{
    free_scratch(&scratch);
}

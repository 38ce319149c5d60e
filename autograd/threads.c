/* SPDX-License-Identifier: MIT */
/* Notes which tape each thread used last, and prevents a thread from replacing a registry's values while passes of other threads read
 * them. */
#include <pthread.h>

#include <weft/internal/fork.h>
#include <weft/internal/grow.h>
#include <weft/internal/parameter.h>

#include "engine.h"

wf_tensor tapeless_poison = {.kind = TENSOR_POISON, .a = {.dtype = WF_REAL, .ndim = 0}, .made_by = "poison"};

/* A parameter belongs to no tape, so an op on parameters alone runs on the tape that its thread used last. Another thread may have freed
 * that tape, and a new tape may have got the same address. The list `all` and the serial numbers tell the two tapes apart. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
WF_FREE_AFTER_FORK(lock)
static wf_tape *all;
static uint64_t serials;
static _Thread_local struct {
    const wf_tape *tape;
    uint64_t serial;
    uint64_t thread; /* number of this thread, which no other thread of the process ever gets; 0 until it is needed */
} latest;
static pthread_key_t ending;
static pthread_once_t ending_once = PTHREAD_ONCE_INIT;
static bool has_ending_key;

/* Called when the thread with this number ends. The tapes that it used last then have no user, so passes on them no longer prevent other
 * threads from replacing values. */
static void thread_ended(void *number)
{
    pthread_mutex_lock(&lock);
    for (wf_tape *tape = all; tape; tape = tape->next)
        if (atomic_load_explicit(&tape->user, memory_order_relaxed) == (uint64_t)(uintptr_t)number)
            atomic_store_explicit(&tape->user, 0, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    has_ending_key = pthread_key_create(&ending, thread_ended) == 0;
}

/* Threads that end after dlclose must not call thread_ended, whose code is unloaded. */
__attribute__((destructor)) static void at_unload(void)
{
    if (has_ending_key)
        pthread_key_delete(ending);
    has_ending_key = false;
}

static uint64_t this_thread(void)
{
    static _Atomic uint64_t threads;
    if (latest.thread == 0) {
        latest.thread = ++threads;
        pthread_once(&ending_once, make_key);
        if (has_ending_key)
            /* If this fails, thread_ended is not called for this thread, and the tapes that it used last keep its number in `user`. */
            (void)pthread_setspecific(ending, (void *)(uintptr_t)latest.thread);
    }
    return latest.thread;
}

void threads_add_tape(wf_tape *tape)
{
    pthread_mutex_lock(&lock);
    tape->serial = ++serials;
    tape->next = all;
    all = tape;
    pthread_mutex_unlock(&lock);
}

void threads_remove_tape(wf_tape *tape)
{
    pthread_mutex_lock(&lock);
    wf_tape **link = &all;
    while (*link != tape)
        link = &(*link)->next;
    *link = tape->next;
    pthread_mutex_unlock(&lock);
}

wf_tape *tape_latest(void)
{
    if (latest.serial == 0)
        return NULL;
    pthread_mutex_lock(&lock);
    wf_tape *tape = all;
    while (tape && (tape != latest.tape || tape->serial != latest.serial))
        tape = tape->next;
    bool mine = tape && atomic_load_explicit(&tape->user, memory_order_relaxed) == latest.thread;
    pthread_mutex_unlock(&lock);
    return mine ? tape : NULL;
}

void wf_tape_use(wf_tape *tape)
{
    if (!tape)
        return;
    latest.tape = tape;
    latest.serial = tape->serial;
    atomic_store_explicit(&tape->user, this_thread(), memory_order_relaxed);
}

enum reading threads_begin_reading(wf_tape *tape, struct wf_values_use *use)
{
    enum reading begun = READING_REFUSED;
    pthread_mutex_lock(&lock);
    if (!use->replaced) {
        begun = wf_grow(&tape->reading, &tape->reading_capacity, tape->readings + 1, sizeof *tape->reading) ? READING : READING_NO_MEMORY;
        if (begun == READING) {
            use->refs++;
            tape->reading[tape->readings++] = use;
        }
    }
    pthread_mutex_unlock(&lock);
    return begun;
}

void tape_reads_no_more(wf_tape *tape)
{
    if (tape->readings == 0)
        return;
    pthread_mutex_lock(&lock);
    for (; tape->readings > 0; tape->readings--)
        wf_values_use_release(tape->reading[tape->readings - 1]);
    pthread_mutex_unlock(&lock);
}

enum replacing threads_begin_replacing(struct wf_values_use *use)
{
    const uint64_t own = this_thread();
    enum replacing begun = REPLACING;
    pthread_mutex_lock(&lock);
    for (const wf_tape *tape = all; tape && begun == REPLACING; tape = tape->next) {
        const uint64_t user = atomic_load_explicit(&tape->user, memory_order_relaxed);
        for (int64_t i = 0; user != 0 && user != own && i < tape->readings; i++)
            if (tape->reading[i] == use)
                begun = REPLACING_READ;
    }
    if (use->replaced)
        begun = REPLACING_BUSY;
    else if (begun == REPLACING)
        use->replaced = true;
    pthread_mutex_unlock(&lock);
    return begun;
}

void threads_end_replacing(struct wf_values_use *use)
{
    pthread_mutex_lock(&lock);
    use->replaced = false;
    pthread_mutex_unlock(&lock);
}

wf_tape *wf_tape_of_operands(int count, wf_tensor *const x[])
{
    for (int i = 0; x && i < count; i++)
        if (x[i] && x[i]->tape)
            return x[i]->tape;
    return tape_latest();
}

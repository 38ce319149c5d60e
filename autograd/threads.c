/* SPDX-License-Identifier: MIT */
/* The tape that a thread used last. */
#include <pthread.h>

#include "engine.h"

wf_tensor lost_poison = {.kind = TENSOR_POISON, .a = {.dtype = WF_REAL, .ndim = 0}, .made_by = "poison"};

/* Parameters carry no tape. Ops on parameters alone run on the tape that their thread used last, so that they read like all others. Another
 * thread may have freed that tape, and a new one may lie in its place: hence the list and the serial numbers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wf_tape *all;
static uint64_t serials;
static _Thread_local struct {
    const wf_tape *tape;
    uint64_t serial;
} latest;

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
    bool mine = tape && atomic_load_explicit(&tape->user, memory_order_relaxed) == &latest;
    pthread_mutex_unlock(&lock);
    return mine ? tape : NULL;
}

void wf_tape_use(wf_tape *tape)
{
    if (!tape)
        return;
    latest.tape = tape;
    latest.serial = tape->serial;
    atomic_store_explicit(&tape->user, &latest, memory_order_relaxed);
}

int64_t threads_count_readers(const struct wf_values_use *use)
{
    int64_t count = 0;
    pthread_mutex_lock(&lock);
    for (const wf_tape *tape = all; tape; tape = tape->next)
        if (atomic_load_explicit(&tape->user, memory_order_relaxed) == &latest)
            for (int64_t i = 0; i < tape->readings; i++)
                count += tape->reading[i] == use;
    pthread_mutex_unlock(&lock);
    return count;
}

wf_tape *wf_tape_of_operands(int count, wf_tensor *const x[])
{
    for (int i = 0; x && i < count; i++)
        if (x[i] && x[i]->tape)
            return x[i]->tape;
    return tape_latest();
}

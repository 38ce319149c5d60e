/* SPDX-License-Identifier: MIT */
/* Keeps this process alive if another process truncates a file that is mapped: the lost pages then read as zeros, and users of the file get
 * an error. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weft/internal/fork.h>
#include <weft/internal/map.h>
#include <weft/safetensors.h>

/* The signal handler reads these members without a lock. */
static struct guarded {
    _Atomic uintptr_t first; /* 0: the place is free */
    _Atomic size_t bytes;    /* of whole pages */
    atomic_bool lost;
} table[WF_MAPS_GUARDED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
WF_FREE_AFTER_FORK(lock)
static struct sigaction before;
static size_t page;

int wf_map_guard_add(const void *memory, int64_t bytes)
{
    int place = 0;
    const size_t pages = (size_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_lock(&lock);
    while (place < WF_MAPS_GUARDED && table[place].first)
        place++;
    if (place < WF_MAPS_GUARDED) {
        table[place].bytes = ((size_t)bytes + pages - 1) / pages * pages;
        table[place].lost = false;
        table[place].first = (uintptr_t)memory;
    }
    pthread_mutex_unlock(&lock);
    return place < WF_MAPS_GUARDED ? place + 1 : 0;
}

void wf_map_guard_remove(int guard)
{
    if (guard > 0)
        table[guard - 1].first = 0;
}

bool wf_map_guard_lost(int guard)
{
    return guard > 0 && table[guard - 1].lost;
}

/* Replaces the pages of a guarded file from the address on by zeros. */
static bool replaced(uintptr_t address)
{
    for (int i = 0; i < WF_MAPS_GUARDED; i++) {
        const uintptr_t first = table[i].first, end = first + table[i].bytes, from = address - address % page;
        if (!first || address < first || address >= end)
            continue;
        table[i].lost = true;
        return mmap((void *)from, end - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
               MAP_FAILED;
    }
    return false;
}

static void on_lost_page(int number, siginfo_t *info, void *context)
{
    if (info->si_code == BUS_ADRERR && replaced((uintptr_t)info->si_addr))
        return;
    if (before.sa_handler == SIG_IGN && info->si_code <= 0) /* another process has sent it */
        return;
    if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        sigaction(number, &before, NULL); /* an access is repeated, and ends the process */
        if (info->si_code <= 0)
            pthread_kill(pthread_self(), number);
    } else if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
}

void wf_safetensors_guard(void)
{
    struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&lock);
    page = (size_t)sysconf(_SC_PAGESIZE);
    if (sigaction(SIGBUS, NULL, &now) == 0 && !((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_lost_page)) {
        before = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&lock);
}

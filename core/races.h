/* SPDX-License-Identifier: MIT */
/* ThreadSanitizer does not see libgomp's barriers: it is told that the threads of a region begin after what their caller did, and end
 * before what it does next. A function that contains a region reads what libgomp hands over, unseen. */
#ifndef WEFT_RACES_H
#define WEFT_RACES_H

#if defined __SANITIZE_THREAD__
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define comes_after(at) __tsan_acquire(at)
#define comes_before(at) __tsan_release(at)
#define HANDED_OVER __attribute__((noinline, no_sanitize("thread")))
#else
#define comes_after(at) ((void)(at))
#define comes_before(at) ((void)(at))
#define HANDED_OVER
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Creates, resets and frees tapes, and keeps a tape's error, settings and statistics. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/random.h>

#include "engine.h"

wf_tape *wf_tape_new_abi(uint32_t abi, wf_error *error)
{
    if (abi != WF_ABI) {
        wf_error_set(error, WF_ERR_ARGUMENT,
                     "the program was compiled for Weft %u.%u in %s, the library is %s in %s: compile with the flags of the same "
                     "pkg-config file that is linked",
                     abi >> 24, abi >> 16 & 255, (abi & 255) == 8 ? "double" : "float", WF_VERSION,
                     sizeof(wf_real) == 8 ? "double" : "float");
        return NULL;
    }
    if (wf_init_default(error) != WF_OK)
        return NULL;
    wf_tape *tape = wf_alloc_zero(1, sizeof *tape);
    if (tape)
        tape->arena = wf_arena_new();
    if (!tape || !tape->arena) {
        wf_free(tape);
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a tape");
        return NULL;
    }
    tape->poison = tapeless_poison;
    tape->poison.tape = tape;
    threads_add_tape(tape);
    wf_tape_reset(tape, WF_INFER);
    return tape;
}

static void set_free(struct tensor_set *set)
{
    for (int64_t i = 0; i < set->chunks; i++)
        wf_free(set->chunk[i]);
    wf_free(set->chunk);
}

void wf_tape_free(wf_tape *tape)
{
    if (!tape)
        return;
    threads_remove_tape(tape);
    for (int i = 0; i < TENSOR_SETS; i++)
        set_free(&tape->set[i]);
    set_free(&tape->leaves);
    wf_free(tape->slots);
    tape_reads_no_more(tape);
    wf_free(tape->reading);
    averages_free(tape);
    wf_arena_free(tape->arena);
    wf_free(tape);
}

/* Whether the tape is NULL. If it is, wf_tape_error(NULL) has an error that names `call`. */
static bool without(const wf_tape *tape, const char *call)
{
    if (!tape)
        wf_tape_fail(NULL, WF_ERR_ARGUMENT, "%s: the tape is NULL: look at what wf_tape_new returned", call);
    return !tape;
}

/* The seed of this pass, which is in WF_TRAIN. The first pass of a step, and with .exact every pass, takes the user's seed. Each later pass
 * of a step takes a seed that is drawn from the user's seed and the number of the pass. */
static uint64_t seed_of_pass(wf_tape *tape, const struct wf_tape_options *o)
{
    if (o->step != tape->trained_step)
        tape->trainings = 0;
    tape->trained_step = o->step;
    uint64_t pass = tape->trainings++;
    if (pass == 0 || o->exact)
        return o->seed;
    uint32_t drawn[4];
    wf_philox((const uint32_t[4]){(uint32_t)pass, (uint32_t)(pass >> 32), 0, 0},
              (const uint32_t[2]){(uint32_t)o->seed, (uint32_t)(o->seed >> 32)}, drawn);
    return (uint64_t)drawn[1] << 32 | drawn[0];
}

void wf_tape_reset_with(wf_tape *tape, wf_mode mode, const struct wf_tape_options *options)
{
    if (without(tape, "wf_tape_reset"))
        return;
    wf_tape_use(tape);
    if (tape->walking || tape->checkpoints > 0) {
        wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_reset: called inside %s: reset the tape after it",
                     tape->checkpoints > 0 ? "wf_checkpoint, by its function" : "wf_backward, from a ready function");
        return;
    }
    wf_scratch_get_ready();
    tape_reads_no_more(tape);
    averages_forget(tape);
    tape->generation++;
    tape->poison.generation = tape->generation;
    tensors_of_pass(tape)->used = tensors_of_pass(tape)->live = 0;
    tape->leaves.used = 0;
    wf_arena_reset(tape->arena);
    memset(&tape->pool, 0, sizeof tape->pool);
    tape->mode = mode;
    tape->options = options ? *options : (struct wf_tape_options){0};
    if (mode == WF_TRAIN)
        tape->options.seed = seed_of_pass(tape, &tape->options);
    wf_error_clear(&tape->error);
    tape->doing = NULL;
    tape->last = NULL;
    tape->nodes = 0;
    tape->events = 0;
    tape->no_grad = tape->bad_input = false;
    tape->dropout_calls = 0;
    tape->differentiated = false;
    if ((unsigned)mode > WF_GRADIENTS)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_reset: the mode %d is unknown: give WF_INFER, WF_TRAIN or WF_GRADIENTS", (int)mode);
    const char *refused = wf_precision_refused(tape->options.precision);
    if (refused)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_reset: %s", refused);
}

void wf_tape_first_row(wf_tape *tape, uint64_t row)
{
    if (!without(tape, "wf_tape_first_row"))
        tape->options.first_row = row;
}

bool wf_tape_no_grad(wf_tape *tape, bool on)
{
    if (without(tape, "wf_tape_no_grad"))
        return false;
    const bool before = tape->no_grad;
    tape->no_grad = on;
    return before;
}

wf_mode wf_tape_mode(const wf_tape *tape)
{
    return without(tape, "wf_tape_mode") ? WF_INFER : tape->mode;
}

/* The last error of this thread that could not be stored on a tape. */
static _Thread_local wf_error tapeless_error;

wf_tensor *fail_without_tape(wf_status code, const char *call, const wf_tensor *x)
{
    wf_tape_fail(NULL, code,
                 x ? "%s('%s'): an op on parameters alone needs a tape: call wf_tape_reset, or wf_tape_use, in this thread before it"
                   : "%s: the operand is NULL, and this thread has no tape%s",
                 call, x ? wf_name_of(x) : "");
    return &tapeless_poison;
}

const wf_error *wf_tape_error(const wf_tape *tape)
{
    static const wf_error none = {WF_ERR_STATE,
                                  "an op on parameters alone needs a tape: call wf_tape_reset, or wf_tape_use, in this thread before it"};
    return tape ? &tape->error : tapeless_error.code != WF_OK ? &tapeless_error : &none;
}

wf_status wf_tape_status(const wf_tape *tape, wf_error *error)
{
    const wf_error *e = wf_tape_error(tape);
    return wf_error_set(error, e->code != WF_OK ? e->code : WF_ERR_STATE, "%s", e->message);
}

wf_tensor *wf_tape_fail(wf_tape *tape, wf_status code, const char *format, ...)
{
    char text[sizeof tape->error.message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!tape)
        wf_error_clear(&tapeless_error);
    wf_error_set(tape ? &tape->error : &tapeless_error, code, "%s", text);
    return tape ? &tape->poison : &tapeless_poison;
}

wf_tensor *tape_out_of_memory(wf_tape *tape, size_t bytes)
{
    const bool small = bytes < 1 << 20;
    return wf_tape_fail(tape, WF_ERR_MEMORY,
                        "%s%sno memory for %.1f %s beside the %.1f MiB that the tape holds: use a smaller batch or context",
                        tape->doing ? tape->doing : "", tape->doing ? ": " : "", (double)bytes / (small ? 1024 : 1048576),
                        small ? "KiB" : "MiB", (double)wf_arena_stats(tape->arena).reserved / 1048576);
}

struct wf_tape_stats wf_tape_stats(const wf_tape *tape)
{
    if (without(tape, "wf_tape_stats"))
        return (struct wf_tape_stats){0};
    struct wf_arena_stats a = wf_arena_stats(tape->arena);
    return (struct wf_tape_stats){a.used, a.peak, a.reserved, tape->nodes};
}

void wf_tape_check_finite(wf_tape *tape, bool on)
{
    if (!without(tape, "wf_tape_check_finite"))
        tape->check_finite = on;
}

void wf_tape_cancel(wf_tape *tape, bool (*cancelled)(void *ctx), void *ctx)
{
    if (without(tape, "wf_tape_cancel"))
        return;
    tape->cancelled = cancelled;
    tape->cancel_ctx = ctx;
}

bool tape_goes_on(wf_tape *tape)
{
    if (tape->cancelled && tape->cancelled(tape->cancel_ctx))
        wf_tape_fail(tape, WF_ERR_CANCELLED, "cancelled");
    return tape->error.code == WF_OK;
}

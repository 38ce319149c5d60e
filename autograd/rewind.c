/* SPDX-License-Identifier: MIT */
/* wf_tape_rewind: drops the tensors made since a mark, except one that the caller may keep, and reuses their memory. */
#include "engine.h"

wf_tape_mark wf_tape_here(const wf_tape *tape)
{
    if (!tape) {
        wf_tape_fail(NULL, WF_ERR_ARGUMENT, "wf_tape_here: the tape is NULL: look at what wf_tape_new returned");
        return (wf_tape_mark){{0}};
    }
    wf_arena_mark at = wf_arena_here(tape->arena);
    return (wf_tape_mark){{(uint64_t)at.chunk, at.used, at.total, (uint64_t)tensors_of_pass(tape)->live, tape->events, tape->generation,
                           (uint64_t)(uintptr_t)tape}};
}

/* Whether x survives every rewind. */
static bool is_lasting(const wf_tensor *x)
{
    return x->kind == TENSOR_PARAMETER || x->kind == TENSOR_LEAF;
}

wf_tensor *wf_tape_rewind(wf_tape *tape, wf_tape_mark mark, wf_tensor *keep)
{
    if (!tape)
        return wf_tape_fail(NULL, WF_ERR_ARGUMENT, "wf_tape_rewind: the tape is NULL: look at what wf_tape_new returned");
    if (mark.word[6] != (uint64_t)(uintptr_t)tape)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_rewind: the mark was not taken on this tape with wf_tape_here");
    if (mark.word[5] != tape->generation)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: the mark was taken before the last wf_tape_reset");
    const wf_arena_mark at = wf_arena_here(tape->arena), to = {(int64_t)mark.word[0], mark.word[1], mark.word[2]};
    if (to.chunk > at.chunk || (to.chunk == at.chunk && to.used > at.used) || to.total > at.total ||
        mark.word[3] > (uint64_t)tensors_of_pass(tape)->live)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: an earlier rewind went back behind this mark: take a new one");
    if (tape->checkpoints > 0)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: called inside wf_checkpoint, by its function: rewind after it");
    if (mark.word[4] != tape->events)
        return wf_tape_fail(
            tape, WF_ERR_STATE,
            "wf_tape_rewind: since the mark ops were recorded, a backward ran, or in bf16 a tensor that a backward will read was given to "
            "wf_release, so that tensors made since are needed: take the mark after that, or rewind in WF_INFER, "
            "or between wf_tape_no_grad(tape, true) and (tape, false)");
    wf_tensor kept = {0};
    if (keep) {
        if (wf_is_poison(keep))
            return &tape->poison;
        if (!tape_accepts(tape, "wf_tape_rewind", keep))
            return &tape->poison;
        if (!wf_array_is_contiguous(&keep->a))
            return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: '%s' is a strided view: pass wf_contiguous of it as keep",
                                wf_name_of(keep));
        if (keep->needs_grad && !is_lasting(keep))
            return wf_tape_fail(tape, WF_ERR_STATE,
                                "wf_tape_rewind: '%s' needs a gradient, and what is kept is a constant: create it before "
                                "the mark",
                                wf_name_of(keep));
        kept = *keep;
    }
    const size_t bytes = keep ? (size_t)wf_array_count(&kept.a) * wf_dtype_size(kept.a.dtype) : 0;
    const bool lasting = is_lasting(&kept);
    pool_rewind(tape, to);
    if (!keep || lasting)
        wf_arena_rewind(tape->arena, to);
    else if (!(kept.a.data = wf_arena_rewind_with(tape->arena, to, kept.a.data, bytes)))
        return tape_out_of_memory(tape, bytes);
    tape_drop_tensors(tape, (int64_t)mark.word[3]);
    if (!keep || lasting)
        return keep;
    wf_tensor *x = tape_new_tensor(tape);
    if (!x)
        return &tape->poison;
    x->a = kept.a;
    x->made_by = kept.made_by;
    return x;
}

wf_tensor *wf_tape_compact(wf_tape_mark mark, wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    if (!x)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_compact: the tensor is NULL");
    if (!mark.word[6] || !tape || tape->checkpoints > 0 || mark.word[4] != tape->events || (x->needs_grad && !is_lasting(x)))
        return x;
    return wf_tape_rewind(tape, mark, x);
}

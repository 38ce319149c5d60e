/* SPDX-License-Identifier: MIT */
/* Marks, and the way back to them. */
#include <string.h>

#include <weft/internal/parallel.h>

#include "engine.h"

wf_tape_mark wf_tape_here(const wf_tape *tape)
{
    wf_arena_mark at = wf_arena_here(tape->arena);
    return (wf_tape_mark){{(uint64_t)at.chunk, at.used, at.total, (uint64_t)tape->set[tape->generation & 1].used, tape->dropout_calls,
                           tape->generation, (uint64_t)(uintptr_t)tape}};
}

wf_tensor *wf_tape_rewind(wf_tape *tape, wf_tape_mark mark, wf_tensor *keep)
{
    if (tape->mode != WF_INFER)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind works in WF_INFER only: a backward needs the recorded tensors");
    if (mark.word[6] != (uint64_t)(uintptr_t)tape)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_rewind: the mark was not taken on this tape with wf_tape_here");
    if (mark.word[5] != tape->generation)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: the mark was taken before the last wf_tape_reset");
    if (mark.word[2] > wf_arena_here(tape->arena).total || mark.word[3] > (uint64_t)tape->set[tape->generation & 1].used)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: an earlier rewind went back behind this mark: take a new one");
    wf_tensor kept = {0};
    if (keep) {
        if (wf_is_poison(keep))
            return &tape->poison;
        if (!tape_accepts(tape, "wf_tape_rewind", keep))
            return &tape->poison;
        if (!wf_array_is_dense(&keep->a))
            return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: '%s' is a strided view: pass wf_dense of it as keep",
                                wf_name_of(keep));
        kept = *keep;
    }
    /* What lies above the mark is gone after the rewind (poisoned under AddressSanitizer): the value goes by a detour. */
    size_t bytes = keep ? (size_t)wf_array_count(&kept.a) * wf_dtype_size(kept.a.dtype) : 0;
    void *detour = keep ? wf_scratch(WF_SCRATCH_OP, bytes + 1) : NULL;
    if (keep && !detour)
        return tape_out_of_memory(tape);
    if (keep)
        memcpy(detour, kept.a.data, bytes);
    wf_arena_rewind(tape->arena, (wf_arena_mark){(int64_t)mark.word[0], mark.word[1], mark.word[2]});
    memset(&tape->pool, 0, sizeof tape->pool); /* its lists may hold buffers that are gone now */
    tape->set[tape->generation & 1].used = (int64_t)mark.word[3];
    tape->dropout_calls = (uint32_t)mark.word[4];
    if (!keep)
        return NULL;
    if (kept.kind == TENSOR_PARAMETER || kept.kind == TENSOR_LEAF)
        return keep;
    void *data = wf_arena_get(tape->arena, bytes);
    if (!data)
        return tape_out_of_memory(tape);
    memcpy(data, detour, bytes);
    wf_tensor *x = tape_new_tensor(tape);
    if (!x)
        return &tape->poison;
    x->a = kept.a;
    x->a.data = data;
    x->made_by = kept.made_by;
    return x;
}

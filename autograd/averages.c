/* SPDX-License-Identifier: MIT */
/* Running averages: the changes of persistent buffers that a pass in WF_TRAIN asks for. The tape keeps them until a backward of the pass
 * has succeeded, and then adds them to the gradients (weft/internal/averages.h). */
#include <weft/internal/averages.h>
#include <weft/internal/grow.h>

#include "engine.h"

void wf_averages_clear(struct wf_averages *a)
{
    for (int64_t i = 0; i < a->numbers; i++)
        a->number[i] = 0;
    for (int k = 0; k < a->buffers; k++)
        a->number[a->buffer[k].at] = 1;
}

/* b = keep b + value after the changes of one buffer. */
static void change(double *number, const struct wf_average *of, double keep, const wf_real *x, double rate)
{
    double *to = number + of->at;
    to[0] *= keep;
    for (int64_t i = 0; i < of->count; i++) /* with a rate of 1 a NaN goes, too */
        to[1 + i] = (keep == 0 ? 0 : keep * to[1 + i]) + rate * (double)x[i];
}

void wf_averages_join(struct wf_averages *a, const double *later)
{
    for (int k = 0; k < a->buffers; k++) {
        double *to = a->number + a->buffer[k].at;
        const double *from = later + a->buffer[k].at;
        for (int64_t i = 1; i <= a->buffer[k].count; i++)
            to[i] = from[0] * to[i] + from[i];
        to[0] *= from[0];
    }
}

void wf_grads_take_buffers(wf_grads *to, wf_grads *from)
{
    if (!to || !from || to == from || to->registry != from->registry || !to->averages || !from->averages ||
        to->averages->numbers != from->averages->numbers)
        return;
    wf_averages_join(to->averages, from->averages->number);
    wf_averages_clear(from->averages);
}

/* --- the changes of a pass ------------------------------------------------------------------------------------------- */

struct change {
    const wf_tensor *buffer;
    double rate;
    int64_t at, count; /* where the elements of x lie in `element` */
};
struct changes {
    struct change *change;
    int64_t count, room;
    wf_real *element; /* copies of the values, which the tape's memory may lose before the backward */
    int64_t elements, element_room;
};

void averages_forget(wf_tape *tape)
{
    if (tape->changes)
        tape->changes->count = tape->changes->elements = 0;
}

void averages_free(wf_tape *tape)
{
    if (!tape->changes)
        return;
    wf_free(tape->changes->change);
    wf_free(tape->changes->element);
    wf_free(tape->changes);
}

/* Room for another change of `count` elements; NULL, with the error on the tape, without memory. */
static struct change *new_change(wf_tape *tape, int64_t count)
{
    struct changes *c = tape->changes;
    if (!c)
        c = tape->changes = wf_alloc_zero(1, sizeof *c);
    if (!c || !wf_grow(&c->change, &c->room, c->count + 1, sizeof *c->change) ||
        !wf_grow(&c->element, &c->element_room, c->elements + count, sizeof *c->element)) {
        tape_out_of_memory(tape, (size_t)count * sizeof(wf_real));
        return NULL;
    }
    c->change[c->count] = (struct change){.at = c->elements, .count = count};
    return &c->change[c->count];
}

void wf_running_average(wf_tensor *buffer, wf_tensor *x, double rate)
{
    wf_tape *tape = wf_tape_of(x);
    const struct wf_parameter_info *info = wf_parameter_info(buffer);
    char text[96];
    if (!tape) {
        if (!x || x->kind != TENSOR_POISON)
            fail_without_tape(WF_ERR_STATE, "wf_running_average", x);
        return;
    }
    if (!tape_accepts(tape, "wf_running_average", x) || tape->error.code != WF_OK)
        return;
    if (!info || !info->persistent) {
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_running_average: '%s' is no persistent buffer: declare it with .buffer and .persistent",
                     buffer ? wf_name_of(buffer) : "NULL");
        return;
    }
    if (!(rate >= 0 && rate <= 1)) {
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_running_average: the rate %g of '%s' is not in 0 <= rate <= 1", rate, info->name);
        return;
    }
    const wf_shape have = wf_shape_of(x), want = wf_array_shape(&info->value);
    if (wf_dtype_of(x) != WF_REAL || !wf_shape_equal(&have, &want)) {
        wf_tape_fail(tape, WF_ERR_SHAPE, "wf_running_average: '%s' is no tensor of real numbers %s, the shape of '%s'", wf_name_of(x),
                     wf_shape_text(&want, text, sizeof text), info->name);
        return;
    }
    if (tape->mode != WF_TRAIN || tape->recomputing > 0)
        return;
    const int64_t count = wf_array_count(&info->value);
    struct change *to = new_change(tape, count);
    if (!to || wf_read(x, tape->changes->element + to->at, count) != WF_OK)
        return;
    to->buffer = buffer;
    to->rate = rate;
    tape->changes->count++;
    tape->changes->elements += count;
}

/* The gradients to which the pass adds changes of this buffer; NULL if there are none. */
static wf_grads *grads_of(const wf_tape *tape, const struct wf_parameter_info *info)
{
    wf_grads *grads = tape->options.grads ? tape->options.grads : info->grads;
    return grads && grads->registry == info->registry ? grads : NULL;
}

void averages_give(wf_tape *tape)
{
    const struct changes *c = tape->changes;
    for (int64_t i = 0; c && i < c->count; i++) {
        const struct wf_parameter_info *info = c->change[i].buffer->info;
        const wf_grads *grads = grads_of(tape, info);
        const struct wf_averages *a = grads ? grads->averages : NULL;
        for (int k = 0; a && k < a->buffers; k++)
            if (a->buffer[k].parameter == info->index && a->buffer[k].count == c->change[i].count)
                change(a->number, &a->buffer[k], 1 - c->change[i].rate, c->element + c->change[i].at, c->change[i].rate);
    }
    averages_forget(tape);
}

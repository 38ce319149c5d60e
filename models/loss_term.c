/* SPDX-License-Identifier: MIT */
/* Sums the terms that a family's functions add to the loss of a training. The struct with the sum is in a thread-local variable, because
 * the family's functions have no parameter for it. */
#include <weft/internal/family.h>

static _Thread_local struct wf_loss_terms *collecting;

void wf_loss_terms_begin(struct wf_loss_terms *t, const wf_model *model, wf_tape *tape, double share, double source_share)
{
    *t = (struct wf_loss_terms){.model = model, .tape = tape, .share = share, .source_share = source_share, .outer = collecting};
    collecting = t;
}

wf_tensor *wf_loss_terms_end(struct wf_loss_terms *t, wf_tensor *loss, wf_tensor **term)
{
    collecting = t->outer;
    *term = t->sum;
    return t->sum ? wf_add(loss, t->sum) : loss;
}

void wf_loss_terms_of_source(const wf_tape *tape, bool source)
{
    if (wf_loss_term_wanted(tape))
        collecting->source = source;
}

bool wf_loss_term_wanted(const wf_tape *tape)
{
    return collecting && collecting->tape == tape;
}

void wf_loss_term_add(wf_tape *tape, wf_tensor *term)
{
    if (!wf_loss_term_wanted(tape))
        return;
    struct wf_loss_terms *t = collecting;
    const char *family = t->model->family->name;
    wf_shape shape = term ? wf_shape_of(term) : (wf_shape){0};
    char text[96];
    if (!t->model->family->loss_term)
        term = wf_tape_fail(tape, WF_ERR_ARGUMENT, "family %s: a term of the loss without a name: set .loss_term", family);
    else if (!term || (!wf_is_poison(term) && (shape.ndim != 0 || wf_dtype_of(term) != WF_REAL)))
        term = wf_tape_fail(tape, WF_ERR_SHAPE, "family %s: the %s of the loss is %s, not a real number []: take a mean", family,
                            t->model->family->loss_term, term ? wf_shape_text(&shape, text, sizeof text) : "NULL");
    else
        term = wf_scale(term, t->source ? t->source_share : t->share);
    t->sum = t->sum ? wf_add(t->sum, term) : term;
}

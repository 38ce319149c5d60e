/* SPDX-License-Identifier: MIT */
/* Packs hypotheses into bytes for other processes, and unpacks them. */
#include "translate_share.h"

#include <weft/internal/grow.h>

/* The numbers of a hypothesis as they are sent; the ids of the hypothesis follow them. */
struct packed {
    double score, log_probability;
    int64_t length, finished;
};

void results_pack(const struct results *r, const struct sentence *batch, int64_t count, const struct wf_translations *all,
                  struct wf_share *share)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < all->n_best; k++) {
            const int64_t place = batch[i].place * all->n_best + k;
            const struct wf_hypothesis *h = &all->hypothesis[place];
            const struct packed p = {h->score, h->log_probability, h->length, h->finished};
            wf_share_add(share, &p, sizeof p);
            wf_share_add(share, r->id + r->start[place], h->length * (int64_t)sizeof *r->id);
        }
}

wf_status results_unpack(struct results *r, const struct sentence *batch, int64_t count, int64_t item, struct wf_share *share,
                         struct wf_translations *all, wf_error *error)
{
    wf_status status = WF_OK;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < all->n_best; k++) {
            const int64_t place = batch[i].place * all->n_best + k;
            struct packed p;
            if ((status = wf_share_take(share, item, &p, sizeof p, error)) != WF_OK)
                return status;
            if (!wf_grow(&r->id, &r->room, r->count + p.length, sizeof *r->id))
                return wf_error_set(error, WF_ERR_MEMORY, "no memory for translations");
            if ((status = wf_share_take(share, item, r->id + r->count, p.length * (int64_t)sizeof *r->id, error)) != WF_OK)
                return status;
            r->start[place] = r->count;
            r->count += p.length;
            all->hypothesis[place] = (struct wf_hypothesis){
                .length = p.length, .score = p.score, .log_probability = p.log_probability, .finished = p.finished != 0};
        }
    return status;
}

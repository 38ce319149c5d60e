/* SPDX-License-Identifier: MIT */
/* Finds pairs of a parallel text that repeat an earlier one: a hash table finds candidates, and a comparison of the texts confirms them. */
#include <string.h>

#include <weft/memory.h>

#include "bitext_internal.h"

wf_status repeats_open(struct repeats *r, const struct wf_bitext *bitext, uint64_t *hash, wf_error *error)
{
    uint64_t slots = 16;
    while (slots < (uint64_t)bitext->survey.lines + bitext->survey.lines / 3)
        slots *= 2;
    *r = (struct repeats){.bitext = bitext, .hash = hash, .mask = slots - 1, .slot = wf_alloc_zero(slots, sizeof *r->slot)};
    return r->slot ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to find pairs that repeat", bitext->side[0].file.path);
}

void repeats_close(struct repeats *r)
{
    wf_free(r->slot);
    for (int i = 0; i < 2; i++)
        wf_string_free(&r->text[i]);
    *r = (struct repeats){0};
}

/* Compares two pairs whose hashes are equal. Their sentences nearly always are equal too: different pairs share a hash with a probability
 * of about 2^-64. */
static wf_status compare(struct repeats *r, const struct pair *a, const struct pair *b, bool *same, wf_error *error)
{
    *same = a->ids[0] == b->ids[0] && a->ids[1] == b->ids[1];
    for (int k = 0; k < 2 && *same; k++) {
        const struct bitext_side *side = r->bitext->side + k;
        wf_status status = bitext_sentence(side, a->at[k], &r->text[0], error);
        if (status == WF_OK)
            status = bitext_sentence(side, b->at[k], &r->text[1], error);
        if (status != WF_OK)
            return status;
        *same = r->text[0].length == r->text[1].length && memcmp(r->text[0].data, r->text[1].data, (size_t)r->text[0].length) == 0;
    }
    return WF_OK;
}

wf_status repeats_find(struct repeats *r, int64_t line, int64_t used, bool *found, wf_error *error)
{
    const struct pair *pair = r->bitext->pair;
    uint64_t hash = r->hash[line], at = hash & r->mask;
    *found = false;
    for (; r->slot[at] && !*found; at = (at + 1) & r->mask) {
        int64_t other = (int64_t)r->slot[at] - 1;
        wf_status status = r->hash[other] == hash ? compare(r, pair + line, pair + other, found, error) : WF_OK;
        if (status != WF_OK)
            return status;
    }
    if (!*found) {
        r->hash[used] = hash;
        r->slot[at] = (uint32_t)used + 1;
    }
    return WF_OK;
}

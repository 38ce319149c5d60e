/* SPDX-License-Identifier: MIT */
/* Special tokens around a text's ids. */
#include <stdlib.h>
#include <string.h>

#include "template.h"

int64_t template_specials(const struct template *template)
{
    int64_t count = 0;
    if (!template)
        return 0;
    if (template->type == TEMPLATE_BERT || template->type == TEMPLATE_ROBERTA)
        return 2;
    for (int64_t i = 0; i < template->single.count; i++)
        count += template->single.item[i].special ? template->single.item[i].special->count : 0;
    for (int64_t i = 0; i < template->steps; i++)
        count += template_specials(template->step[i]);
    return count;
}

/* The ids of the text, out->id[begin .. begin+count-1], go to the end, and the result is put together where they were. */
static bool run_items(const struct template *template, struct wf_tokens *out, int64_t begin)
{
    const struct items *single = &template->single;
    int64_t count = out->count - begin, sequences = 0;
    for (int64_t i = 0; i < single->count; i++)
        sequences += single->item[i].sequence;
    int64_t total = template_specials(template) + sequences * count;
    if (sequences > 0 && total > INT64_MAX / 8 / sequences)
        return false;
    if (!tokens_reserve(out, total + count))
        return false;
    int32_t *to = out->id + begin, *text = to + total;
    memmove(text, to, (size_t)count * sizeof *to);
    for (int64_t i = 0; i < single->count; i++) {
        const struct special *special = single->item[i].special;
        for (int64_t k = 0; special && k < special->count; k++)
            *to++ = (int32_t)special->ids[k];
        if (!special) {
            memcpy(to, text, (size_t)count * sizeof *to);
            to += count;
        }
    }
    out->count = begin + total;
    return true;
}

bool template_run(const struct template *template, struct wf_tokens *out, int64_t begin)
{
    if (!template || template->type == TEMPLATE_BYTE_LEVEL)
        return true;
    if (template->type == TEMPLATE)
        return run_items(template, out, begin);
    if (template->type == TEMPLATE_SEQUENCE) {
        for (int64_t i = 0; i < template->steps; i++)
            if (!template_run(template->step[i], out, begin))
                return false;
        return true;
    }
    if (!tokens_reserve(out, 2))
        return false;
    memmove(out->id + begin + 1, out->id + begin, (size_t)(out->count - begin) * sizeof *out->id);
    out->id[begin] = (int32_t) template->cls.id;
    out->count += 2;
    out->id[out->count - 1] = (int32_t) template->sep.id;
    return true;
}

struct template *template_of(wf_tokenizer *t, int32_t bos, int32_t eos)
{
    const int32_t ids[2] = {bos, eos};
    struct template *template = tokenizer_keep(t, 1, sizeof *template);
    struct special *special = tokenizer_keep(t, 2, sizeof *special), *of[2] = {NULL, NULL};
    struct item *single = tokenizer_keep(t, 3, sizeof *single), *pair = tokenizer_keep(t, 5, sizeof *pair);
    if (!template || !special || !single || !pair)
        return NULL;
    *template = (struct template){.special = special, .single = {single, 0}, .pair = {pair, 0}};
    for (int i = 0; i < 2; i++) {
        if (ids[i] < 0)
            continue;
        int64_t length;
        struct special *next = special + template->specials++;
        next->id = vocab_piece(&t->vocab, ids[i], &length);
        next->ids = tokenizer_keep(t, 1, sizeof *next->ids);
        next->token = tokenizer_keep(t, 1, sizeof *next->token);
        if (!next->ids || !next->token)
            return NULL;
        next->ids[0] = ids[i];
        next->token[0] = next->id;
        next->count = 1;
    }
    qsort(special, (size_t) template->specials, sizeof *special, template_by_name);
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < template->specials; k++)
            if (special[k].ids[0] == ids[i])
                of[i] = special + k;
    const struct item a = {.sequence = true, .id = "A"}, b = {.sequence = true, .id = "B", .type_id = 1};
    if (of[0])
        single[template->single.count++] = pair[template->pair.count++] = (struct item){.id = of[0]->id, .special = of[0]};
    single[template->single.count++] = pair[template->pair.count++] = a;
    if (of[1])
        single[template->single.count++] = pair[template->pair.count++] = (struct item){.id = of[1]->id, .special = of[1]};
    pair[template->pair.count++] = b;
    if (of[1])
        pair[template->pair.count++] = (struct item){.id = of[1]->id, .special = of[1], .type_id = 1};
    return template;
}

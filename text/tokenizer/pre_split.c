/* SPDX-License-Identifier: MIT */
/* Split: at the matches of a pattern. */
#include "pattern.h"
#include "split.h"

struct split {
    struct part part;
    const struct pattern *pattern;
    int behavior;
    bool invert;
};

static wf_status cut(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    const struct split *p = part;
    wf_status status = pattern_find(p->pattern, s, s->words.text.data, begin, end);
    int64_t run = begin;
    for (int64_t i = 0; status == WF_OK && i < s->matches.count; i++) {
        struct span match = s->matches.span[i];
        if (run != match.begin)
            split_put(sp, run, match.begin, p->invert);
        split_put(sp, match.begin, match.end, !p->invert);
        run = match.end;
    }
    if (status == WF_OK && run != end)
        split_put(sp, run, end, p->invert);
    return status;
}

static wf_status split(const void *part, struct scratch *s)
{
    return split_words(part, s, (enum behavior)((const struct split *)part)->behavior, cut);
}

const struct part_type pre_split = {.name = "Split",
                                    .stage = PART_PRE_TOKENIZER,
                                    .size = sizeof(struct split),
                                    .keys = KEYS({"pattern", &value_pattern, offsetof(struct split, pattern)},
                                                 {"behavior", &value_name, offsetof(struct split, behavior), .names = behavior_names},
                                                 {"invert", &value_bool, offsetof(struct split, invert), .optional = true}),
                                    .split = split};

bool pre_split_is_characters(const struct part *part)
{
    const struct split *p = (const struct split *)part;
    return part && part->type == &pre_split && p->behavior == SPLIT_ISOLATED && !p->invert && p->pattern->every;
}

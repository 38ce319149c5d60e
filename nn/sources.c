/* SPDX-License-Identifier: MIT */
/* Finds the tensors of a file that make up a parameter, by the rules of a load, and the shapes that they must have. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>

#include "sources.h"

const char *sources_full_name(const struct entry *e, const char *prefix, char text[WF_SOURCE_NAME])
{
    snprintf(text, WF_SOURCE_NAME, "%s%s", prefix ? prefix : "", e->info.name);
    return text;
}

/* Whether the name matches the pattern. If the pattern has a '*', which stands for digits, *number becomes the address of these digits,
 * and *digits how many there are; otherwise *digits is 0. */
static bool matches(const char *pattern, const char *name, const char **number, int *digits)
{
    size_t before = strcspn(pattern, "*");
    *number = name + before;
    *digits = 0;
    if (!pattern[before])
        return strcmp(pattern, name) == 0;
    if (strncmp(pattern, name, before) != 0)
        return false;
    *digits = (int)strspn(*number, "0123456789");
    return *digits > 0 && strcmp(pattern + before + 1, *number + *digits) == 0;
}

void sources_table_free(struct rule_table *t)
{
    wf_name_table_free(&t->names);
    wf_free(t->next);
    *t = (struct rule_table){0};
}

wf_status sources_table_make(struct rule_table *t, const struct wf_load_options *o, wf_error *error)
{
    *t = (struct rule_table){.rule = o->rule, .next = wf_alloc_zero(2 * (size_t)o->rules + 1, sizeof *t->next)};
    int *last = t->next ? t->next + o->rules : NULL; /* last[i], if rule i is the first of its name: the last rule of that name so far */
    bool ready = t->next != NULL;
    for (int i = 0; ready && i < o->rules; i++) {
        const char *name = o->rule[i].parameter;
        int64_t first = wf_name_table_find(&t->names, name, strlen(name));
        if (first < 0)
            ready = wf_name_table_add(&t->names, name, first = i);
        else
            t->next[last[first]] = i;
        last[first] = i;
    }
    if (ready)
        return WF_OK;
    sources_table_free(t);
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for %d rules of names", o->rules);
}

/* The first rule after rule `after` that is for a parameter of this name; -1 if there is none. Since '*' stands for digits, the rule may
 * write the name itself, or the name with a '*' in place of the last digits of a number: each such spelling is looked up. */
static int next_rule(const struct rule_table *t, const char *name, int after, const char **number, int *digits)
{
    char pattern[WF_SOURCE_NAME];
    int best = -1, length = (int)strlen(name);
    for (int i = -1; i < length && length < WF_SOURCE_NAME; i++) {
        int run = i < 0 ? 0 : (int)strspn(name + i, "0123456789");
        if (i >= 0 && run == 0)
            continue;
        int size =
            i < 0 ? snprintf(pattern, WF_SOURCE_NAME, "%s", name) : snprintf(pattern, WF_SOURCE_NAME, "%.*s*%s", i, name, name + i + run);
        int64_t at = wf_name_table_find(&t->names, pattern, (size_t)size);
        while (at >= 0 && at <= after)
            at = t->next[at] > 0 ? t->next[at] : -1;
        if (at >= 0 && (best < 0 || at < best) && matches(t->rule[at].parameter, name, number, digits))
            best = (int)at;
    }
    return best >= 0 && matches(t->rule[best].parameter, name, number, digits) ? best : -1;
}

static void expand(const struct wf_load_rule *rule, const char *prefix, const char *number, int digits, struct wf_sources *out)
{
    out->uneven = rule->uneven;
    out->transposed = rule->transposed;
    out->part = rule->part;
    out->parts = WF_MAX(rule->parts, 1);
    for (out->count = 0; out->count < WF_SOURCES && rule->source[out->count]; out->count++) {
        const char *pattern = rule->source[out->count];
        bool whole = pattern[0] == '/';
        pattern += whole;
        int before = (int)strcspn(pattern, "*");
        snprintf(out->name[out->count], WF_SOURCE_NAME, "%s%.*s%.*s%s", prefix && !whole ? prefix : "", before, pattern,
                 pattern[before] ? digits : 0, number, pattern + before + (pattern[before] != 0));
    }
}

void sources_find(const struct entry *e, const struct reading *r, struct wf_sources *out)
{
    const char *number, *name = e->info.name, *prefix = r->options->prefix;
    int digits, first = next_rule(&r->rules, name, -1, &number, &digits);
    for (int i = first; i >= 0; i = next_rule(&r->rules, name, i, &number, &digits)) {
        expand(&r->rules.rule[i], prefix, number, digits, out);
        if (!r->file || wf_safetensors_find(r->file, out->name[0]))
            return;
    }
    if (first >= 0 && matches(r->rules.rule[first].parameter, name, &number, &digits)) {
        expand(&r->rules.rule[first], prefix, number, digits, out);
        return;
    }
    out->count = 1;
    out->uneven = out->transposed = false;
    out->part = 0;
    out->parts = 1;
    sources_full_name(e, prefix, out->name[0]);
}

/* The shape of a source as it is stacked: that of its tensor, of the transpose, or of a part. If the tensor has no equal parts, dimension 0
 * becomes -1, which no parameter has. */
static wf_shape stacked_shape(const struct wf_safetensors_entry *found, const struct wf_sources *s)
{
    wf_shape shape = found->shape;
    if (s->parts > 1 && shape.ndim > 0)
        shape.dim[0] = shape.dim[0] % s->parts == 0 ? shape.dim[0] / s->parts : -1;
    if (s->transposed && shape.ndim == 2) {
        shape.dim[0] = found->shape.dim[1];
        shape.dim[1] = found->shape.dim[0];
    }
    return shape;
}

/* The tensor's own shape for a shape as it is stacked. */
static wf_shape own_shape(wf_shape stacked, const struct wf_sources *s)
{
    const int64_t rows = stacked.dim[0];
    if (stacked.ndim > 0)
        stacked.dim[0] *= s->parts;
    if (s->transposed && stacked.ndim == 2) {
        stacked.dim[0] = stacked.dim[1];
        stacked.dim[1] = rows;
    }
    return stacked;
}

bool sources_fit(const struct entry *e, const wf_safetensors *file, const struct wf_sources *s)
{
    int64_t rows = 0;
    for (int i = 0; i < s->count; i++) {
        wf_shape shape = stacked_shape(wf_safetensors_find(file, s->name[i]), s);
        if (s->count > 1 && shape.ndim > 0) {
            if (!s->uneven && shape.dim[0] * s->count != e->shape.dim[0])
                return false;
            rows += shape.dim[0];
            shape.dim[0] = e->shape.dim[0];
        }
        if (!wf_shape_equal(&shape, &e->shape))
            return false;
    }
    return s->count == 1 || rows == e->shape.dim[0];
}

wf_shape sources_wanted_shape(const struct entry *e, const wf_safetensors *file, const struct wf_sources *s, int i)
{
    wf_shape shape = e->shape;
    if (shape.ndim == 0)
        return shape;
    if (shape.dim[0] % s->count == 0) {
        shape.dim[0] /= s->count;
    } else if (!s->uneven) {
        shape.dim[0] = 0;
    } else if (i + 1 < s->count) { /* the last one is named */
        shape.dim[0] = stacked_shape(wf_safetensors_find(file, s->name[i]), s).dim[0];
    } else {
        for (int j = 0; j < i; j++) {
            const wf_shape before = stacked_shape(wf_safetensors_find(file, s->name[j]), s);
            shape.dim[0] -= before.ndim > 0 ? before.dim[0] : 0;
        }
        shape.dim[0] = WF_MAX(shape.dim[0], 0);
    }
    return own_shape(shape, s);
}

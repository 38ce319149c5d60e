/* SPDX-License-Identifier: MIT */
/* Surveys on the disk, so that a large text is encoded once and not at every start. A file is named after all that its content depends
 * on, and says so once more inside; it may be removed at any time. */
#include <stddef.h>
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/hash.h>
#include <weft/memory.h>

#include "bitext_internal.h"
#include "cache.h"

/* What a survey is a function of. The structs are written as they lie, without holes but behind `survey`'s last field. */
struct key {
    char magic[8];  /* "weftsrv" and the version of this format; */
    int64_t layout; /* a struct that grew is another format too */
    uint64_t content[2], tokenizer[2];
    uint64_t encoder; /* of the versions of what encodes: another Unicode can give other ids */
    int64_t bytes[2], max_length, marks;
};
struct head {
    struct key key;
    struct wf_bitext_survey survey;
    int64_t longest_at[2];
    uint64_t check; /* of everything else in the file */
};
_Static_assert(sizeof(struct key) == 88 && sizeof(struct head) % 8 == 0 && sizeof(struct pair) == 24, "the layout of the file");

static struct key key_of(const struct wf_bitext *bitext)
{
    struct key key = {.max_length = bitext->survey.max_length, .layout = (int64_t)sizeof(struct head)};
    memcpy(key.magic, "weftsrv\3", sizeof key.magic);
    key.encoder = cache_encoder();
    for (int i = 0; i < 2; i++) {
        const struct bitext_side *side = bitext->side + i;
        key.content[i] = side->content;
        key.tokenizer[i] = wf_tokenizer_hash(side->tokenizer);
        key.bytes[i] = side->file.bytes;
        key.marks |= (int64_t)(side->bos + 2 * side->eos) << 4 * i;
    }
    return key;
}

static uint64_t check_of(const struct head *head, const struct pair *pair, int64_t count)
{
    uint64_t hash = wf_hash(head, offsetof(struct head, check), 0);
    return wf_hash(pair, count * (int64_t)sizeof *pair, hash);
}

/* Whether the numbers can be those of a survey of these files. */
static bool sound(const struct wf_bitext *bitext, const struct head *head, const struct pair *pair, int64_t lines)
{
    const struct wf_bitext_survey *s = &head->survey;
    const int64_t count[] = {s->used, s->empty_source, s->empty_target, s->empty_both, s->long_source, s->long_target, s->long_both};
    const int64_t longest[2] = {s->longest_source, s->longest_target}, tokens[2] = {s->source_tokens, s->target_tokens};
    const int64_t unknown[2] = {s->source_unknown, s->target_unknown};
    int64_t sum = 0, ids[2] = {0, 0}, at[2] = {-1, -1};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        if (count[i] < 0 || count[i] > lines)
            return false;
        sum += count[i];
    }
    if (s->lines != lines || sum != lines || s->used < 1)
        return false;
    for (int64_t i = 0; i < s->used; i++)
        for (int k = 0; k < 2; k++) {
            const struct bitext_side *side = bitext->side + k;
            int64_t n = pair[i].ids[k];
            if (pair[i].at[k] <= at[k] || pair[i].at[k] >= side->file.bytes || n < 1 + side->bos + side->eos || n > longest[k] ||
                (s->max_length > 0 && n > s->max_length))
                return false;
            at[k] = pair[i].at[k];
            ids[k] += n;
        }
    for (int k = 0; k < 2; k++)
        if (ids[k] != tokens[k] || unknown[k] < 0 || unknown[k] > tokens[k] || longest[k] > INT32_MAX || head->longest_at[k] < 0 ||
            head->longest_at[k] >= bitext->side[k].file.bytes)
            return false;
    return true;
}

wf_status survey_cache_read(struct wf_bitext *bitext, const char *folder, int64_t lines, bool *found, wf_error *error)
{
    *found = false;
    struct key key = key_of(bitext);
    char *path = cache_path(folder, CACHE_SURVEY, wf_hash(&key, sizeof key, 0), error);
    if (!path)
        return WF_ERR_MEMORY;
    int64_t bytes = 0;
    wf_error failure = {0};
    struct head *head = (void *)wf_file_load(path, (int64_t)sizeof *head + lines * (int64_t)sizeof(struct pair), &bytes, &failure);
    if (head)
        cache_touch(path);
    wf_free(path);
    if (!head)
        return failure.code == WF_ERR_MEMORY ? wf_error_set(error, WF_ERR_MEMORY, "%s", failure.message) : WF_OK;
    const struct pair *pair = (const void *)(head + 1);
    int64_t rest = bytes - (int64_t)sizeof *head;
    if (rest > 0 && rest % (int64_t)sizeof *pair == 0 && !memcmp(&head->key, &key, sizeof key) &&
        head->check == check_of(head, pair, rest / (int64_t)sizeof *pair)) {
        head->survey.cached = true; /* before it is read: no other byte is a bool */
        if (head->survey.used == rest / (int64_t)sizeof *pair && head->survey.max_length == key.max_length &&
            head->survey.hash == bitext->survey.hash && sound(bitext, head, pair, lines)) {
            bitext->survey = head->survey;
            for (int i = 0; i < 2; i++)
                bitext->side[i].longest_at = head->longest_at[i];
            bitext->memory = head;
            bitext->pair = (void *)(head + 1);
            *found = true;
            return WF_OK;
        }
    }
    wf_free(head);
    return WF_OK;
}

wf_status survey_cache_write(const struct wf_bitext *bitext, const char *folder, wf_error *error)
{
    const struct bitext_side *side = bitext->side;
    struct head head = {.key = key_of(bitext), .longest_at = {side[0].longest_at, side[1].longest_at}};
    memcpy(&head.survey, &bitext->survey, sizeof head.survey);
    head.check = check_of(&head, bitext->pair, bitext->survey.used);
    char *path = cache_path(folder, CACHE_SURVEY, wf_hash(&head.key, sizeof head.key, 0), error);
    if (!path)
        return WF_ERR_MEMORY;
    int64_t bytes = bitext->survey.used * (int64_t)sizeof *bitext->pair;
    wf_error failure = {0};
    wf_status status = WF_OK;
    if (cache_make_room(folder, (int64_t)sizeof head + bytes)) {
        wf_file_writer *writer = wf_file_begin(path, &failure);
        wf_file_append(writer, &head, sizeof head);
        wf_file_append(writer, bitext->pair, bytes);
        status = wf_file_commit(writer, &failure);
    }
    wf_free(path);
    return status == WF_ERR_MEMORY ? wf_error_set(error, status, "%s", failure.message) : WF_OK;
}

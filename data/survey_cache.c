/* SPDX-License-Identifier: MIT */
/* Keeps surveys on the disk, so that a large parallel text is encoded once and not at every start. A file's name contains a hash of `struct
 * key`, and the file also begins with that struct. A user may delete the files at any time. */
#include <stddef.h>
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/hash.h>
#include <weft/memory.h>

#include "bitext_internal.h"
#include "cache.h"

/* Everything that a survey depends on. `struct head`, which contains it, is hashed and written to the file as it lies in memory. Its only
 * padding is at the end of `survey`, so survey_cache_write copies that member by memcpy, padding and all. */
struct key {
    char magic[8];         /* "weftsrv" and the version of this format */
    int64_t layout;        /* sizeof(struct head): if that struct grows, older files no longer match */
    uint64_t content[2];   /* hashes of both files */
    uint64_t tokenizer[2]; /* hashes of both tokenizers */
    uint64_t encoder;      /* hash of the versions of Weft, utf8proc and PCRE2, which can change the ids */
    int64_t bytes[2];      /* sizes of both files */
    int64_t max_length;
    int64_t marks; /* bits 0 to 7: which sides count BOS and EOS; bit 8: deduplicate */
    double max_ratio;
};
struct head {
    struct key key;
    struct wf_bitext_survey survey;
    int64_t longest_at[2];
    uint64_t check; /* hash of everything else in the file */
};
_Static_assert(sizeof(struct key) == 96 && sizeof(struct head) % 8 == 0 && sizeof(struct pair) == 24, "the layout of the file");

static struct key key_of(const struct wf_bitext *bitext)
{
    struct key key = {.max_length = bitext->survey.max_length,
                      .max_ratio = bitext->survey.max_ratio,
                      .layout = (int64_t)sizeof(struct head),
                      .marks = (int64_t)bitext->deduplicate << 8};
    memcpy(key.magic, "weftsrv\4", sizeof key.magic);
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

/* Whether the numbers can belong to a survey of these files. */
static bool sound(const struct wf_bitext *bitext, const struct head *head, const struct pair *pair, int64_t lines)
{
    const struct wf_bitext_survey *s = &head->survey;
    const int64_t count[] = {s->used,        s->empty_source, s->empty_target, s->empty_both, s->long_source,
                             s->long_target, s->long_both,    s->over_ratio,   s->duplicates};
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

/* Takes the survey from a mapped file if the file is intact and has this key. The pairs stay in the mapping, which the bitext then owns. */
static bool take(struct wf_bitext *bitext, struct wf_map *map, const struct key *key, int64_t lines)
{
    const struct head *in_file = (const void *)map->data;
    int64_t rest = map->bytes - (int64_t)sizeof *in_file, count = rest / (int64_t)sizeof(struct pair);
    if (rest <= 0 || rest % (int64_t)sizeof(struct pair) != 0 || count > lines || memcmp(&in_file->key, key, sizeof *key) != 0)
        return false;
    const struct pair *pair = (const void *)(in_file + 1);
    if (in_file->check != check_of(in_file, pair, count))
        return false;
    struct head head;
    memcpy(&head, in_file, sizeof head);
    head.survey.cached = true; /* set before anything reads it, because in a damaged file its byte may not be a valid bool */
    if (head.survey.used != count || head.survey.max_length != key->max_length || head.survey.max_ratio != key->max_ratio ||
        head.survey.hash != bitext->survey.hash || !sound(bitext, &head, pair, lines))
        return false;
    bitext->survey = head.survey;
    for (int i = 0; i < 2; i++)
        bitext->side[i].longest_at = head.longest_at[i];
    bitext->map = *map;
    bitext->pair = (struct pair *)pair;
    *map = (struct wf_map){0};
    return true;
}

wf_status survey_cache_read(struct wf_bitext *bitext, const char *folder, int64_t lines, bool *found, wf_error *error)
{
    *found = false;
    struct wf_map map = {0};
    struct key key = key_of(bitext);
    char *path = cache_path(folder, CACHE_SURVEY, wf_hash(&key, sizeof key, 0), error);
    if (!path)
        return WF_ERR_MEMORY;
    if (cache_map(path, &map))
        *found = take(bitext, &map, &key, lines);
    wf_map_close(&map);
    wf_free(path);
    return WF_OK;
}

wf_status survey_cache_write(struct wf_bitext *bitext, const char *folder, wf_error *error)
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
    bool written = false;
    if (cache_make_room(folder, (int64_t)sizeof head + bytes)) {
        wf_file_writer *writer = wf_file_begin(path, &failure);
        wf_file_append(writer, &head, sizeof head);
        wf_file_append(writer, bitext->pair, bytes);
        status = wf_file_commit(writer, &failure);
        written = status == WF_OK;
    }
    wf_free(path);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "%s", failure.message);
    if (written && (status = survey_cache_read(bitext, folder, bitext->survey.lines, &written, error)) != WF_OK)
        return status;
    if (written) { /* otherwise the pairs stay in memory */
        bitext->survey.cached = false;
        wf_free(bitext->memory);
        bitext->memory = NULL;
    }
    return WF_OK;
}

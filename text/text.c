/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>
#include <weft/text.h>

/* A bound for wf_file_load, far above any memory: nothing but the memory limits a text. */
static const int64_t most_bytes = (int64_t)1 << 46;

static char *write_place(const char *name, const char *data, int64_t offset, int64_t dropped, char *place, size_t size)
{
    int64_t line = 1, begin = -dropped;
    for (const char *p = data, *end = data + offset; (p = memchr(p, '\n', (size_t)(end - p))); line++)
        begin = ++p - data;
    snprintf(place, size, "%s:%" PRId64 ":%" PRId64, name, line, offset - begin + 1);
    return place;
}

/* The bytes of a file, mark included, against the rules in text.h. */
static wf_status check(const char *name, const char *data, int64_t length, int64_t mark, int64_t *characters, wf_error *error)
{
    char place[1024];
    if (length == mark)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the file is empty; give one with text in it", name);
    if (length > 1 && (!memcmp(data, "\xFF\xFE", 2) || !memcmp(data, "\xFE\xFF", 2)))
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s:1:1: this is UTF-16, not UTF-8; convert it, for example with iconv -f utf-16 -t utf-8", name);
    int64_t bad = wf_utf8_check(data, length);
    const char *nul = memchr(data, 0, (size_t)(bad < 0 ? length : bad));
    if (nul)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: a NUL byte (offset %td): this is not a text file, or it is in UTF-16; convert it to UTF-8",
                            write_place(name, data, nul - data, 0, place, sizeof place), nul - data);
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: not UTF-8: byte 0x%02X (offset %" PRId64 "): %s; convert the file to UTF-8",
                            write_place(name, data, bad, 0, place, sizeof place), (unsigned char)data[bad], bad,
                            wf_utf8_fault(data + bad, length - bad));
    for (int64_t i = mark; i < length; i++)
        *characters += (data[i] & 0xC0) != 0x80;
    return WF_OK;
}

/* Takes the block `data` (freed here or kept), which holds what the file holds and a NUL. */
static wf_status add(struct wf_text *text, const char *name, char *data, int64_t length, wf_error *error)
{
    int64_t mark = length >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3) ? 3 : 0, characters = 0;
    wf_status status = check(name, data, length, mark, &characters, error);
    if (status != WF_OK) {
        wf_free(data);
        return status;
    }
    int64_t kept = length - mark;
    struct wf_text_file *file = wf_realloc(text->file, (size_t)(text->files + 1) * sizeof *file);
    if (file)
        text->file = file;
    char *copy = file ? wf_strdup(name) : NULL;
    char *all = !copy ? NULL : !text->data ? data : wf_realloc(text->data, (size_t)(text->length + kept + 1));
    if (!all) {
        wf_free(copy);
        wf_free(data);
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " bytes of text", name, length);
    }
    memmove(all + text->length, data + mark, (size_t)kept + 1);
    if (all != data)
        wf_free(data);
    text->data = all;
    text->file[text->files++] = (struct wf_text_file){copy, text->length, mark};
    text->length += kept;
    text->characters += characters;
    return WF_OK;
}

wf_status wf_text_read(const char *const *paths, int64_t count, struct wf_text *out, wf_error *error)
{
    *out = (struct wf_text){0};
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text file given; name at least one");
    for (int64_t i = 0; i < count; i++) {
        /* The caller's error may be NULL, or hold an earlier failure. */
        wf_error failure = {0};
        int64_t length;
        char *data = wf_file_load(paths[i], most_bytes, &length, &failure);
        wf_status status = data ? add(out, paths[i], data, length, &failure) : failure.code;
        if (status != WF_OK) {
            wf_error_set(error, status, "%s", failure.message);
            wf_text_free(out);
            return status;
        }
    }
    return WF_OK;
}

wf_status wf_text_of(const char *data, int64_t length, const char *name, struct wf_text *out, wf_error *error)
{
    *out = (struct wf_text){0};
    char *copy = wf_alloc((size_t)length + 1);
    if (!copy)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " bytes of text", name, length);
    if (length > 0)
        memcpy(copy, data, (size_t)length);
    copy[length] = 0;
    wf_status status = add(out, name, copy, length, error);
    if (status != WF_OK)
        wf_text_free(out);
    return status;
}

char *wf_text_place(const struct wf_text *text, int64_t offset, char *place, size_t size)
{
    int64_t i = text->files - 1;
    while (i > 0 && text->file[i].start > offset)
        i--;
    const struct wf_text_file *file = text->file + i;
    return write_place(file->name, text->data + file->start, offset - file->start, file->dropped, place, size);
}

int64_t wf_text_offset(const struct wf_text *text, int64_t character)
{
    int64_t at = -1, n = -1;
    while (n < character && ++at < text->length)
        n += (text->data[at] & 0xC0) != 0x80;
    return at;
}

void wf_text_free(struct wf_text *text)
{
    if (!text)
        return;
    for (int64_t i = 0; i < text->files; i++)
        wf_free(text->file[i].name);
    wf_free(text->file);
    wf_free(text->data);
    *text = (struct wf_text){0};
}

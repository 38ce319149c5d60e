/* SPDX-License-Identifier: MIT */
/* JSON lines: a file to which events are appended, one event a line (jsonl.h). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/json.h>
#include <weft/internal/jsonl.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

#include "append.h"

static wf_status keep_lines(char *text, int64_t bytes, int64_t last, const char *where, int64_t *kept, bool *prefix, wf_error *error)
{
    const char *newline;
    *kept = 0;
    *prefix = true;
    for (int64_t at = 0, number = 1, length; (newline = memchr(text + at, '\n', (size_t)(bytes - at))); at += length, number++) {
        length = newline - (text + at) + 1;
        json_t *event = wf_json_parse_line(text + at, length - 1, where, number, error);
        if (!event)
            return error->code;
        const json_t *step = json_object_get(event, "step");
        bool stays = !json_is_integer(step) || json_integer_value(step) <= last, is_object = json_is_object(event);
        json_decref(event);
        if (!is_object)
            return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":1: the line is not a JSON object", where, number);
        if (!stays)
            continue;
        *prefix &= *kept == at;
        memmove(text + *kept, text + at, (size_t)length);
        *kept += length;
    }
    return WF_OK;
}

wf_jsonl *wf_jsonl_open(const char *path, int64_t last, wf_error *error)
{
    wf_jsonl *file = wf_alloc(sizeof *file);
    if (!file)
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to open it", path);
    else if (append_open(file, wf_strdup(path), keep_lines, last, error) == WF_OK)
        return file;
    wf_free(file);
    return NULL;
}

wf_status wf_jsonl_append(wf_jsonl *file, const json_t *event, wf_error *error)
{
    int64_t bytes;
    wf_error failure = {0};
    char *line = wf_json_text(event, 0, &bytes, &failure);
    if (!line)
        return wf_error_set(error, failure.code, "%s: %s", file->path, failure.message);
    line[bytes++] = '\n'; /* replaces the final zero */
    wf_status status = append_piece(file, line, bytes, "line", error);
    wf_free(line);
    return status;
}

wf_status wf_jsonl_sync(wf_jsonl *file, wf_error *error)
{
    if (fsync(file->fd) == 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_IO, "%s: cannot be synced at byte %" PRId64 ": %s", file->path, file->bytes, wf_reason(errno));
}

void wf_jsonl_close(wf_jsonl *file)
{
    if (file)
        append_close(file);
    wf_free(file);
}

/* SPDX-License-Identifier: MIT */
/* Scores of files, read side by side. */
#include <inttypes.h>

#include <weft/internal/lines.h>
#include <weft/memory.h>

#include "text.h"

/* Some of the files have ended, some have not: says how many lines each of an unequal pair has. */
static wf_status unequal(struct wf_lines *file, int64_t count, wf_error *error)
{
    for (int64_t i = 0; i < count; i++)
        while (file[i].text) {
            wf_status status = wf_lines_block(&file[i], 1 << 16, error);
            if (status != WF_OK)
                return status;
        }
    int64_t other = 1, lines = file[0].line - 1; /* a reader at its end stands behind the last line */
    while (other < count - 1 && file[other].line == file[0].line)
        other++;
    return wf_error_set(error, WF_ERR_FORMAT,
                        "%s has %" PRId64 " line%s of hypotheses, %s has %" PRId64 " of references: they must pair up line by line",
                        file[0].name, lines, lines == 1 ? "" : "s", file[other].name, file[other].line - 1);
}

static wf_status add_lines(struct wf_lines *file, struct wf_segment *line, int64_t count, wf_bleu *bleu, wf_chrf *chrf, wf_error *error)
{
    for (;;) {
        int64_t ended = 0;
        for (int64_t i = 0; i < count; i++) {
            wf_status status = wf_lines_next(&file[i], error);
            if (status == WF_OK)
                status = wf_lines_check(&file[i], error);
            if (status != WF_OK)
                return status;
            line[i] = (struct wf_segment){file[i].text, score_trim(file[i].text, file[i].length)};
            ended += line[i].text == NULL;
        }
        if (ended == count)
            break;
        if (ended > 0)
            return unequal(file, count, error);
        wf_status status = bleu ? wf_bleu_add(bleu, line[0], line + 1, count - 1, error) : WF_OK;
        if (status == WF_OK && chrf)
            status = wf_chrf_add(chrf, line[0], line + 1, count - 1, error);
        if (status != WF_OK)
            return status;
    }
    if (file[0].line == 1)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: no lines: there is nothing to score", file[0].name);
    return WF_OK;
}

wf_status wf_score_files(const char *hypotheses, const char *const *references, int64_t count, wf_bleu *bleu, wf_chrf *chrf,
                         wf_error *error)
{
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no file of references to compare with");
    struct wf_lines *file = wf_alloc_zero((size_t)count + 1, sizeof *file);
    struct wf_segment *line = wf_alloc_zero((size_t)count + 1, sizeof *line);
    wf_status status = file && line ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " files", count + 1);
    int64_t opened = 0;
    for (; opened <= count && status == WF_OK; opened++) /* references first: a name that is wrong need not wait for the hypotheses */
        status = opened < count ? wf_lines_open(&file[opened + 1], references[opened], error) : wf_lines_open(&file[0], hypotheses, error);
    if (status == WF_OK)
        status = add_lines(file, line, count + 1, bleu, chrf, error);
    for (int64_t i = 0; i < opened; i++)
        wf_lines_close(&file[i < count ? i + 1 : 0]);
    wf_free(line);
    wf_free(file);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* Adds whole corpora to scorers: segments in memory, or the lines of files that are read together. */
#include <inttypes.h>

#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "text.h"

wf_status score_add(wf_bleu *bleu, wf_chrf *chrf, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                    wf_error *error)
{
    wf_status status = bleu ? wf_bleu_add(bleu, hypothesis, references, count, error) : WF_OK;
    return status == WF_OK && chrf ? wf_chrf_add(chrf, hypothesis, references, count, error) : status;
}

wf_status score_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count, wf_bleu *bleu, wf_chrf *chrf,
                       wf_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (references[i].count != hypotheses.count)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%" PRId64 " hypotheses, but %" PRId64 " lines of reference %" PRId64 ": they must be aligned by line",
                                hypotheses.count, references[i].count, i + 1);
    struct wf_segment *line = wf_alloc((size_t)WF_MAX(count, 1) * sizeof *line);
    wf_status status = line ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " references", count);
    for (int64_t i = 0; i < hypotheses.count && status == WF_OK; i++) {
        for (int64_t r = 0; r < count; r++)
            line[r] = references[r].line[i];
        status = score_add(bleu, chrf, hypotheses.line[i], line, count, error);
    }
    wf_free(line);
    return status;
}

/* Returns the error for files with different numbers of lines. It reads the files to their ends, and the message gives the number of lines
 * of the hypotheses and of a file of references with another number. */
static wf_status unequal(struct wf_lines *file, int64_t count, wf_error *error)
{
    for (int64_t i = 0; i < count; i++)
        while (file[i].text) {
            wf_status status = wf_lines_block(&file[i], 1 << 16, error);
            if (status != WF_OK)
                return status;
        }
    int64_t other = 1, lines = file[0].line - 1; /* at the end of a file its .line is the number of lines + 1 */
    while (other < count - 1 && file[other].line == file[0].line)
        other++;
    return wf_error_set(error, WF_ERR_FORMAT,
                        "%s has %" PRId64 " line%s of hypotheses, %s has %" PRId64 " of references: they must be aligned by line",
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
        wf_status status = score_add(bleu, chrf, line[0], line + 1, count - 1, error);
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
    if (wf_needs(error, "references", wf_some(references, count)))
        return WF_ERR_ARGUMENT;
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no file of references to compare with");
    struct wf_lines *file = wf_alloc_zero((size_t)count + 1, sizeof *file);
    struct wf_segment *line = wf_alloc_zero((size_t)count + 1, sizeof *line);
    wf_status status = file && line ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " files", count + 1);
    int64_t opened = 0;
    for (; opened <= count && status == WF_OK; opened++) /* opens references first, to report a wrong name before waiting for input */
        status = opened < count ? wf_lines_open(&file[opened + 1], references[opened], error) : wf_lines_open(&file[0], hypotheses, error);
    if (status == WF_OK)
        status = add_lines(file, line, count + 1, bleu, chrf, error);
    for (int64_t i = 0; i < opened; i++)
        wf_lines_close(&file[i < count ? i + 1 : 0]);
    wf_free(line);
    wf_free(file);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* The program gnuplot: a script to its standard input, a picture from its standard output, complaints from its standard error. */
#include <string.h>
#include <sys/wait.h>

#include <weft/internal/text.h>
#include <weft/memory.h>

#include "fonts.h"
#include "gnuplot.h"
#include "program.h"

wf_status picture_format_of(const char *path, enum picture_format *out, wf_error *error)
{
    size_t length = strlen(path);
    const char *end = length >= 4 ? path + length - 4 : "";
    bool svg = strcmp(end, ".svg") == 0;
    if (!svg && strcmp(end, ".png") != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: no format of pictures; the name must end in .svg or .png", path);
    *out = svg ? PICTURE_SVG : PICTURE_PNG;
    return WF_OK;
}

/* --- how it ended -------------------------------------------------------------------------------------------------- */

/* gnuplot's own words: the first line of the form "line 12: ...", without what is a mere warning; else the first line that says anything. */
static char *first_complaint(char *text)
{
    static const char file[] = "\"< cat\" "; /* as gnuplot calls the script */
    char *first = NULL, *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        line += strspn(line, " \t\r");
        line += strncmp(line, file, strlen(file)) == 0 ? strlen(file) : 0;
        if (strncmp(line, "line ", 5) == 0) {
            char *words = line + 5 + strspn(line + 5, "0123456789");
            if (words > line + 5 && words[0] == ':' && words[1] == ' ' && strncmp(words + 2, "warning", 7) != 0)
                return words + 2;
        }
        if (!first && line[0])
            first = line;
    }
    return first;
}

static wf_status judge(struct program_end *end, int64_t drawn, wf_error *error)
{
    bool exited = end->known && WIFEXITED(end->status);
    if (drawn > 0 && (!end->known || (exited && WEXITSTATUS(end->status) == 0)))
        return WF_OK;
    if (strstr(end->complaint, "unknown or ambiguous terminal type"))
        return wf_error_set(error, WF_ERR_STATE,
                            "this gnuplot was built without that format of pictures: take another one (.svg), or install the package "
                            "gnuplot-nox");
    char quoted[WF_QUOTE_SIZE];
    const char *said = first_complaint(end->complaint);
    if (said)
        return wf_error_set(error, WF_ERR_STATE, "gnuplot failed: %s", wf_text_quote(said, quoted));
    if (end->known && WIFSIGNALED(end->status))
        return wf_error_set(error, WF_ERR_STATE, "gnuplot was ended by signal %d", WTERMSIG(end->status));
    if (exited && WEXITSTATUS(end->status) != 0)
        return wf_error_set(error, WF_ERR_STATE, "gnuplot failed with exit code %d and said nothing", WEXITSTATUS(end->status));
    return wf_error_set(error, WF_ERR_STATE, "gnuplot drew nothing and said nothing");
}

/* The script with what no font can show replaced, where that matters. */
static wf_status run(const struct wf_string *script, struct wf_string *out, struct program_end *end, wf_error *error)
{
    /* a script on its standard input gnuplot reads byte by byte, a pipe of its own in blocks: six times faster */
    static const char *const arguments[] = {"gnuplot", "--default-settings", "-e", "load \"< cat\"", NULL};
    static const char *const drop[] = {"GNUTERM=", "GNUPLOT_", "GDFONTPATH=", "GNUFITLOG=", NULL};
    struct wf_string mended = {0};
    bool picture = memmem(script->data, (size_t)script->length, "set terminal pngcairo", 21) != NULL;
    wf_status status = picture ? fonts_mend(script, &mended, error) : WF_OK;
    wf_error failure = {0};
    if (status == WF_OK) {
        status = program_run(arguments, drop, mended.data ? &mended : script, out, end, &failure);
        if (status == WF_ERR_EXISTS)
            status = wf_error_set(error, WF_ERR_STATE,
                                  "gnuplot, which draws the pictures, is not installed: install the package gnuplot-nox (or gnuplot)");
        else if (status != WF_OK)
            wf_error_set(error, status, "%s", failure.message);
    }
    wf_string_free(&mended);
    return status;
}

/* gnuplot writes < and & of texts as XML wants them, but not the > of "]]>", which then is no XML. */
static wf_status mend_svg(struct wf_string *out, int64_t begin, wf_error *error)
{
    static const char wrong[] = "]]>", right[] = "]]&gt;";
    int64_t count = 0, from = begin;
    for (const char *at = out->data + begin; (at = strstr(at, wrong)); at++)
        count++;
    if (count == 0 || strstr(out->data + begin, "<![CDATA["))
        return WF_OK;
    int64_t length = out->length + count * (int64_t)(sizeof right - sizeof wrong);
    struct wf_string mended = {.data = wf_alloc((size_t)length + 1), .capacity = length + 1};
    if (!mended.data)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the picture that gnuplot draws");
    memcpy(mended.data, out->data, (size_t)begin);
    mended.length = begin;
    for (const char *at; (at = strstr(out->data + from, wrong)); from = at - out->data + (int64_t)strlen(wrong)) {
        int64_t plain = at - (out->data + from);
        memcpy(mended.data + mended.length, out->data + from, (size_t)plain);
        memcpy(mended.data + mended.length + plain, right, strlen(right));
        mended.length += plain + (int64_t)strlen(right);
    }
    memcpy(mended.data + mended.length, out->data + from, (size_t)(out->length - from) + 1);
    mended.length = length;
    wf_string_free(out);
    *out = mended;
    return WF_OK;
}

wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    struct program_end end;
    int64_t before = out->length;
    wf_status status = run(script, out, &end, error);
    if (status == WF_OK)
        status = judge(&end, out->length - before, error);
    if (status == WF_OK && memmem(script->data, (size_t)script->length, "set terminal svg", 16))
        status = mend_svg(out, before, error);
    if (status != WF_OK && out->data) {
        out->length = before;
        out->data[before] = 0;
    }
    return status;
}

/* SPDX-License-Identifier: MIT */
/* The program gnuplot: a script to its standard input, a picture from its standard output, complaints from its standard error. */
#include <string.h>
#include <sys/wait.h>

#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "fonts.h"
#include "gnuplot.h"
#include "labels.h"
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

/* --- scripts -------------------------------------------------------------------------------------------------------- */

/* Letters, digits, blanks and what is beyond ASCII go as they are, all else by its number: in double quotes gnuplot runs `commands` and
 * knows escapes. Of a number that begins with 0 it reads four digits, so that those of the text behind it are safe. */
static void quote(struct wf_string *s, const char *text, bool tic)
{
    struct wf_string clean = {0};
    label_clean(&clean, text, (int64_t)strlen(text), false);
    s->failed |= clean.failed;
    wf_string_char(s, '"');
    for (int64_t i = 0; i < clean.length; i++) {
        char c = clean.data[i];
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' || (c & 0x80))
            wf_string_char(s, c);
        else
            wf_string_format(s, tic && c == '%' ? "\\%04o\\%04o" : "\\%04o", (unsigned)c, (unsigned)c);
    }
    wf_string_char(s, '"');
    wf_string_free(&clean);
}

void script_quote(struct wf_string *s, const char *text)
{
    quote(s, text, false);
}

void script_quote_tic(struct wf_string *s, const char *text)
{
    quote(s, text, true);
}

void script_terminal(struct wf_string *s, enum picture_format format, int width, int height, int font_size)
{
    /* one that there is comes for each character */
    static const char *const fonts = "DejaVu Sans,Noto Sans,Liberation Sans,Arial,sans-serif";
    wf_string_format(s, "set encoding utf8\n");
    if (format == PICTURE_TEXT)
        wf_string_format(s, "set terminal dumb size %d,%d noenhanced mono nofeed\n", width, height);
    else if (format == PICTURE_PNG) /* points of 1/72 inch, where an inch has 96 pixels */
        wf_string_format(s,
                         "set terminal pngcairo size %d,%d noenhanced font \"%s,%g\" fontscale 2 linewidth 2 pointscale 2 "
                         "background \"#ffffff\"\n",
                         2 * width, 2 * height, fonts, 0.75 * font_size);
    else
        wf_string_format(s, "set terminal svg size %d,%d noenhanced font \"%s,%d\" background \"#ffffff\"\n", width, height, fonts,
                         font_size);
}

/* --- how it ended -------------------------------------------------------------------------------------------------- */

/* gnuplot's own words: the first line of the form "line 12: ...", without what is a mere warning; else the first line that says anything.
 */
static char *first_complaint(char *text)
{
    static const char file[] = "\"/dev/stdin\" "; /* as gnuplot calls the script */
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

static wf_status judge(int end, char *complaint, int64_t drawn, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (end == 0 && drawn > 0)
        return WF_OK;
    if (end == PROGRAM_MISSING)
        return wf_error_set(error, WF_ERR_STATE,
                            "gnuplot, which draws the pictures, is not installed: install the package gnuplot-nox (or gnuplot)");
    if (strstr(complaint, "unknown or ambiguous terminal type"))
        return wf_error_set(error, WF_ERR_STATE,
                            "this gnuplot was built without that picture format: choose another one (.svg), or install the package "
                            "gnuplot-nox");
    const char *said = first_complaint(complaint);
    if (said)
        return wf_error_set(error, WF_ERR_STATE, "gnuplot failed: %s", wf_text_quote(said, quoted));
    if (WIFSIGNALED(end))
        return wf_error_set(error, WF_ERR_STATE, "gnuplot was ended by signal %d", WTERMSIG(end));
    if (end != 0)
        return wf_error_set(error, WF_ERR_STATE, "gnuplot failed with exit code %d and no message", WEXITSTATUS(end));
    return wf_error_set(error, WF_ERR_STATE, "gnuplot drew nothing and gave no message");
}

/* gnuplot writes < and & of texts as XML wants them, but not the > of "]]>", which then is no XML. */
static bool mend_svg(struct wf_string *out, int64_t begin)
{
    static const char wrong[] = "]]>";
    struct wf_string mended = {0};
    const char *from = out->data;
    if (!strstr(from + begin, wrong) || strstr(from + begin, "<![CDATA["))
        return true;
    for (const char *at = from + begin; (at = strstr(at, wrong)); from = at += strlen(wrong)) {
        wf_string_add(&mended, from, at - from);
        wf_string_text(&mended, "]]&gt;");
    }
    bool fine = wf_string_text(&mended, from);
    wf_string_free(fine ? out : &mended);
    if (fine)
        *out = mended;
    return fine;
}

wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    static const char *const arguments[] = {"gnuplot", "--default-settings", "/dev/stdin", NULL};
    struct wf_string mended = {0};
    char complaint[PROGRAM_COMPLAINT + 1];
    int64_t before = out->length;
    int end = 0;
    if (script->failed)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture");
    wf_error failure = {0}; /* error may be NULL */
    bool png = memmem(script->data, (size_t)script->length, "set terminal pngcairo", 21) != NULL,
         svg = memmem(script->data, (size_t)script->length, "set terminal svg", 16) != NULL;
    wf_status status = png ? fonts_mend(script, &mended, &failure) : WF_OK;
    if (status == WF_OK)
        status = program_run(arguments, mended.data ? &mended : script, out, &end, complaint, &failure);
    if (status == WF_OK)
        status = judge(end, complaint, out->length - before, &failure);
    if (status == WF_OK && svg && !mend_svg(out, before))
        status = wf_error_set(&failure, WF_ERR_MEMORY, "no memory for a picture");
    wf_string_free(&mended);
    if (status == WF_OK)
        return WF_OK;
    wf_string_cut(out, before);
    out->failed = false;
    return wf_error_set(error, status, "%s", failure.message);
}

/* SPDX-License-Identifier: MIT */
/* Runs the program gnuplot, which reads a script from its standard input and writes a picture to its standard output. Also runs fc-list to
 * learn which characters the installed fonts have. fc-list belongs to fontconfig, which gnuplot needs for PNGs anyway. */
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utf8proc.h>

#include <weft/internal/minmax.h>
#include <weft/internal/reason.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "labels.h"

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

/* In double quotes gnuplot runs commands in backticks and interprets escapes. Therefore each ASCII character other than a letter, digit or
 * space is written as an octal escape. The escape has four digits, the first of them 0: gnuplot then reads exactly four, so a digit that
 * follows in the text does not become part of the escape. */
void script_quote(struct wf_string *s, const char *text, bool tic)
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

void script_label(struct wf_string *s, const char *text, double x, double y, const char *how)
{
    wf_string_text(s, "set label ");
    script_quote(s, text, false);
    wf_string_format(s, " at screen %.6f,%.6f %s\n", x, y, how);
}

void script_margins(struct wf_string *s, double left, double right, double top, double bottom)
{
    wf_string_format(s, "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                     left, right, top, bottom);
}

void script_terminal(struct wf_string *s, enum picture_format format, int width, int height, int font_size)
{
    /* each character is drawn in the first of these fonts that has it */
    static const char *const fonts = "DejaVu Sans,Noto Sans,Liberation Sans,Arial,sans-serif";
    wf_string_format(s, "set encoding utf8\n");
    if (format == PICTURE_TEXT)
        wf_string_format(s, "set terminal dumb size %d,%d noenhanced mono nofeed\n", width, height);
    else if (format == PICTURE_PNG) /* font sizes are in points: 72 points are an inch, and so are 96 pixels */
        wf_string_format(s,
                         "set terminal pngcairo size %d,%d noenhanced font \"%s,%g\" fontscale 2 linewidth 2 pointscale 2 "
                         "background \"#ffffff\"\n",
                         2 * width, 2 * height, fonts, 0.75 * font_size);
    else
        wf_string_format(s, "set terminal svg size %d,%d noenhanced font \"%s,%d\" background \"#ffffff\"\n", width, height, fonts,
                         font_size);
}

/* --- running programs ---------------------------------------------------------------------------------------------- */

enum { COMPLAINT = 4096, MISSING = 127 << 8 };

/* Opens a file in memory. Its descriptor is at least 3, so that dup2 to 0, 1 or 2 in the child cannot close one that is still needed. */
static int open_memory(void)
{
    int raw = memfd_create("weft", MFD_CLOEXEC), fd = raw < 0 ? -1 : fcntl(raw, F_DUPFD_CLOEXEC, 3);
    if (raw >= 0)
        close(raw);
    return fd;
}

static bool write_all(int fd, const char *data, int64_t length)
{
    for (int64_t done = 0; done < length;) {
        ssize_t now = pwrite(fd, data + done, (size_t)(length - done), done);
        if (now < 0 && errno != EINTR)
            return false;
        done += WF_MAX(now, 0);
    }
    return true;
}

/* Appends the beginning of the file, at most `most` bytes, to *out. */
static bool read_all(int fd, int64_t most, struct wf_string *out)
{
    int64_t length = lseek(fd, 0, SEEK_END), done = 0;
    length = WF_MIN(length, most);
    if (!wf_string_reserve(out, length))
        return false;
    for (ssize_t now = 1; done < length && now != 0; done += WF_MAX(now, 0))
        now = pread(fd, out->data + out->length + done, (size_t)(length - done), done);
    out->length += done;
    out->data[out->length] = 0;
    return true;
}

/* Starts a program with the descriptors fd as its standard input, output and error. Returns 0 or an error number of the system. */
static int spawn(const char *const *arguments, const int fd[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int number = posix_spawn_file_actions_init(&actions);
    if (number != 0)
        return number;
    for (int i = 0; i < 3 && number == 0; i++)
        number = posix_spawn_file_actions_adddup2(&actions, fd[i], i);
    if (number == 0)
        number = posix_spawnp(pid, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return number;
}

/* Runs a program of PATH in a UTF-8 locale with `input` as its standard input. Appends its standard output to *out, and the beginning of
 * its standard error to *complaint. The three streams are files in memory, not pipes, so neither process ever waits for the other to read
 * or write. *status becomes the status of waitpid; it is MISSING if there is no such program, and 0 if the caller ignores SIGCHLD. Returns
 * WF_OK even if the program failed. After an error *out may hold a part of the output. */
static wf_status run(const char *const *arguments, const struct wf_string *input, struct wf_string *out, int *status,
                     struct wf_string *complaint, wf_error *error)
{
    int fd[3] = {open_memory(), open_memory(), open_memory()}, number = 0;
    pid_t pid = 0;
    *status = 0;
    if (fd[0] < 0 || fd[1] < 0 || fd[2] < 0 || !write_all(fd[0], input->data, input->length))
        number = errno;
    else if ((number = spawn(arguments, fd, &pid)) == ENOENT)
        *status = MISSING;
    else if (number == 0)
        while (waitpid(pid, status, 0) < 0 && errno == EINTR)
            continue;
    bool fine = number != 0 || (read_all(fd[1], INT64_MAX, out) && read_all(fd[2], COMPLAINT, complaint));
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    if (!fine || number == ENOMEM)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for what %s prints", arguments[4]);
    return number == 0 || number == ENOENT ? WF_OK
                                           : wf_error_set(error, WF_ERR_IO, "%s cannot be run: %s", arguments[4], wf_reason(number));
}
#define PROGRAM "env", "-u", "GNUTERM", "LC_ALL=C.UTF-8" /* the arguments before the name of the program */

/* --- fonts --------------------------------------------------------------------------------------------------------- */

enum { CHARACTERS = 0x110000, REPLACEMENT = 0xfffd };

static bool has(const uint8_t *set, uint32_t c)
{
    return set[c / 8] >> c % 8 & 1;
}

/* Adds to `set` the characters of a list of hexadecimal ranges, such as "20-7e a0 192-1ff". */
static void add_ranges(const char *text, uint8_t *set)
{
    char *end;
    for (;; text = end) {
        unsigned long from = strtoul(text, &end, 16), to = from;
        if (end == text)
            return;
        if (*end == '-')
            to = strtoul(end + 1, &end, 16);
        for (; from <= to && from < CHARACTERS; from++)
            set[from / 8] |= (uint8_t)(1 << from % 8);
    }
}

/* Adds to `set` the characters of all fonts that pango, gnuplot's library for text, can use: fonts with outlines except Type 1. */
static wf_status list_characters(uint8_t *set, wf_error *error)
{
    static const char *const arguments[] = {PROGRAM, "fc-list", "--format=%{fontformat} %{charset}\n", NULL};
    struct wf_string list = {0}, complaint = {0};
    int end;
    wf_status status = run(arguments, &(struct wf_string){0}, &list, &end, &complaint, error);
    char *rest = status == WF_OK ? list.data : NULL;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "TrueType ", 9) == 0 || strncmp(line, "CFF ", 4) == 0)
            add_ranges(strchr(line, ' '), set);
    wf_string_free(&list);
    wf_string_free(&complaint);
    return status;
}

/* Appends the script to *out with U+FFFD (or ?) in place of each character that no font has, because gnuplot's PNG terminal would draw such
 * a character as a black box over half of the picture. Invisible characters are kept. If fc-list is missing, *out stays empty. */
static wf_status mend_fonts(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    uint8_t *set = wf_alloc_zero(CHARACTERS / 8, 1);
    wf_status status = set ? list_characters(set, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for the list of fonts");
    /* without the letter a, the list of characters cannot be right, so it is not used */
    for (int64_t i = 0; status == WF_OK && has(set, 'a') && i < script->length;) {
        uint32_t c;
        int length = wf_utf8_decode(script->data + i, script->length - i, &c);
        if (length > 1 && !has(set, c) && !utf8proc_get_property((utf8proc_int32_t)c)->ignorable)
            wf_string_point(out, has(set, REPLACEMENT) ? REPLACEMENT : '?');
        else
            wf_string_add(out, script->data + i, length ? length : 1);
        i += length ? length : 1;
    }
    wf_free(set);
    return status == WF_OK && out->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a script of gnuplot") : status;
}

/* --- errors of gnuplot --------------------------------------------------------------------------------------------- */

/* Finds gnuplot's message in its standard error: the first line "line 12: ..." that is not a warning, or else the first non-empty line. */
static char *first_complaint(char *text)
{
    static const char file[] = "\"/dev/stdin\" "; /* gnuplot's name for the script, at the start of some lines */
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

static wf_status exit_status(int end, char *complaint, int64_t drawn, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (end == 0 && drawn > 0)
        return WF_OK;
    if (end == MISSING)
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

wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    static const char *const arguments[] = {PROGRAM, "gnuplot", "--default-settings", "/dev/stdin", NULL};
    struct wf_string mended = {0}, drawn = {0}, complaint = {0};
    int64_t before = out->length;
    int end = 0;
    if (script->failed)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture");
    bool png = memmem(script->data, (size_t)script->length, "set terminal pngcairo", 21) != NULL,
         svg = memmem(script->data, (size_t)script->length, "set terminal svg", 16) != NULL;
    wf_status status = png ? mend_fonts(script, &mended, error) : WF_OK;
    if (status == WF_OK)
        status = run(arguments, mended.data ? &mended : script, &drawn, &end, &complaint, error);
    if (status == WF_OK)
        status = exit_status(end, complaint.data, drawn.length, error);
    /* gnuplot escapes < and & in texts, but leaves "]]>", which is not allowed in the text of XML */
    if (status == WF_OK && svg && !strstr(drawn.data, "<![CDATA["))
        label_replace(out, drawn.data, "]]>", "]]&gt;");
    else if (status == WF_OK)
        wf_string_add(out, drawn.data, drawn.length);
    if (status == WF_OK && out->failed) {
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture");
        wf_string_cut(out, before);
        out->failed = false;
    }
    wf_string_free(&mended);
    wf_string_free(&drawn);
    wf_string_free(&complaint);
    return status;
}

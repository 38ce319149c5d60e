/* SPDX-License-Identifier: MIT */
/* Reads lines from a terminal. */
#include "line_edit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <weft/internal/string.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "cli.h"

#ifdef WEFT_LIBEDIT
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#endif

enum {
    GLANCE = 200,        /* milliseconds between two looks for a signal, which may come just before poll and not end it */
    REPLACEMENT = 0xFFFD /* stands for invalid bytes */
};

enum { KEY_ENDED = -1, KEY_HALTED = -2 };
/* Waits for a byte of the terminal. Returns it, KEY_HALTED after Ctrl-C, or KEY_ENDED. */
static int wait_byte(void)
{
    for (;;) {
        unsigned char byte;
        if (interrupted(NULL))
            return KEY_ENDED;
        if (halt_take())
            return KEY_HALTED;
        if (poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, GLANCE) <= 0)
            continue;
        const ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got == 1)
            return byte;
        if (got == 0 || (errno != EINTR && errno != EAGAIN))
            return KEY_ENDED;
    }
}

/* Reads a character in UTF-8. Returns its code point, or as wait_byte. */
static int wait_character(void)
{
    char bytes[4];
    uint32_t point;
    int first = wait_byte(), size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0x80)
        return first;
    bytes[0] = (char)first;
    for (int i = 1; i < size; i++) {
        const int next = wait_byte();
        if (next < 0)
            return next;
        bytes[i] = (char)next;
    }
    return wf_utf8_decode(bytes, size, &point) ? (int)point : REPLACEMENT;
}

#ifdef WEFT_LIBEDIT
enum { HISTORY = 1000 /* lines in the history */, CTRL_D = 4 };

struct line_edit {
    EditLine *editor;
    HistoryW *history;
    wchar_t prompt[32];
    int key; /* what ended the line, if no character did */
};

static struct line_edit *of(EditLine *editor)
{
    void *l;
    el_wget(editor, EL_CLIENTDATA, &l);
    return l;
}

static wchar_t *prompt_of(EditLine *editor)
{
    return of(editor)->prompt;
}

static int take_character(EditLine *editor, wchar_t *out)
{
    int key = wait_character();
    if (key == 0) /* a Ctrl-D that was typed before the editor took over the terminal */
        key = CTRL_D;
    *out = key < 0 ? 0 : (wchar_t)key;
    of(editor)->key = key;
    return key < 0 ? -1 : 1;
}

struct line_edit *line_edit_open(const char *prompt, wf_error *error)
{
    HistEventW event;
    struct line_edit *l = wf_alloc_zero(1, sizeof *l);
    /* libedit shows the characters that the locale calls printable; only this part of the locale is changed */
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    if (l) {
        l->editor = el_init(program(), stdin, stderr, stderr);
        l->history = history_winit();
    }
    if (!l || !l->editor || !l->history) {
        line_edit_close(l);
        wf_error_set(error, WF_ERR_MEMORY, "no memory for the editor of lines");
        return NULL;
    }
    swprintf(l->prompt, sizeof l->prompt / sizeof *l->prompt, L"%s", prompt);
    history_w(l->history, &event, H_SETSIZE, HISTORY);
    history_w(l->history, &event, H_SETUNIQUE, 1);
    el_wset(l->editor, EL_CLIENTDATA, l);
    el_wset(l->editor, EL_PROMPT, prompt_of);
    el_wset(l->editor, EL_EDITOR, L"emacs");
    el_wset(l->editor, EL_SIGNAL, 0);
    el_wset(l->editor, EL_HIST, history_w, l->history);
    el_wset(l->editor, EL_GETCFN, take_character);
    el_source(l->editor, NULL); /* the user's .editrc */
    return l;
}

enum line_edit_end line_edit_read(struct line_edit *l, struct wf_string *line)
{
    int count;
    HistEventW event;
    l->key = 0;
    wf_string_cut(line, 0);
    el_resize(l->editor); /* the window may have changed during the answer */
    const wchar_t *text = el_wgets(l->editor, &count);
    if (l->key == KEY_HALTED || !text || count <= 0) {
        fputc('\n', stderr);
        return l->key == KEY_HALTED ? LINE_EDIT_HALTED : LINE_EDIT_ENDED;
    }
    for (int i = 0; i < count && text[i] != '\n'; i++)
        wf_string_point(line, (uint32_t)text[i]);
    if (line->length > 0)
        history_w(l->history, &event, H_ENTER, text);
    return LINE_EDIT_LINE;
}

void line_edit_close(struct line_edit *l)
{
    if (!l)
        return;
    if (l->editor)
        el_end(l->editor);
    if (l->history)
        history_wend(l->history);
    wf_free(l);
}

#else
struct line_edit {
    const char *prompt;
};

struct line_edit *line_edit_open(const char *prompt, wf_error *error)
{
    struct line_edit *l = wf_alloc_zero(1, sizeof *l);
    if (l)
        l->prompt = prompt;
    else
        wf_error_set(error, WF_ERR_MEMORY, "no memory for the reader of lines");
    return l;
}

enum line_edit_end line_edit_read(struct line_edit *l, struct wf_string *line)
{
    int key;
    wf_string_cut(line, 0);
    fputs(l->prompt, stderr);
    while ((key = wait_character()) >= 0 && key != '\n') /* the terminal gives whole lines, which Ctrl-C clears */
        wf_string_point(line, (uint32_t)key);
    if (key == '\n' || (key == KEY_ENDED && line->length > 0))
        return LINE_EDIT_LINE;
    fputc('\n', stderr);
    return key == KEY_HALTED ? LINE_EDIT_HALTED : LINE_EDIT_ENDED;
}

void line_edit_close(struct line_edit *l)
{
    wf_free(l);
}
#endif

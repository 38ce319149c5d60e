/* SPDX-License-Identifier: MIT */
#include "terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utf8proc.h>

bool terminal_available(void)
{
    int controller = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    bool available = controller >= 0 && grantpt(controller) == 0 && unlockpt(controller) == 0 && ptsname(controller);
    if (controller >= 0)
        close(controller);
    if (!available)
        puts("skipped: no pseudo terminals here (/dev/pts is not mounted); what needs none ran");
    return available;
}

void terminal_open(struct terminal *t, bool reflows, int columns)
{
    memset(t, 0, sizeof *t);
    t->reflows = reflows;
    t->columns = columns;
    t->wrap = true;
}

static void next_row(struct terminal *t)
{
    if (t->row + 1 < TERMINAL_ROWS)
        t->row++;
    else
        t->unknown = true;
}

static void put(struct terminal *t, int32_t c)
{
    int cells = utf8proc_charwidth(c);
    if (cells == 0) /* a mark on the character before */
        return;
    if (cells > t->columns)
        cells = 1;
    if (t->pending || t->column + cells > t->columns) {
        if (t->wrap) {
            t->continues[t->row] = true;
            next_row(t);
            t->column = 0;
        } else {
            t->column = t->columns - cells;
        }
    }
    t->pending = false;
    for (int i = 0; i < cells; i++)
        t->cell[t->row][t->column + i] = i ? -1 : c;
    t->lowest = t->row > t->lowest ? t->row : t->lowest;
    t->column += cells;
    if (t->column == t->columns) {
        t->column--;
        t->pending = t->wrap;
    }
}

static void erase_right(struct terminal *t)
{
    for (int i = t->column; i < TERMINAL_COLUMNS; i++)
        t->cell[t->row][i] = 0;
    t->continues[t->row] = false;
}

static void control(struct terminal *t)
{
    const char *s = t->sequence + 2;
    int rows;
    t->pending = false;
    if (!strcmp(s, "J") || !strcmp(s, "0J")) {
        /* tmux saves the screen into its history where this is done in the first cell of the first row, wherever that lies now */
        t->unknown |= t->column == 0 && t->columns > 1;
        erase_right(t);
        for (int i = t->row + 1; i <= t->lowest; i++) {
            memset(t->cell[i], 0, sizeof t->cell[i]);
            t->continues[i] = false;
        }
    } else if (!strcmp(s, "K") || !strcmp(s, "0K")) {
        erase_right(t);
    } else if (!strcmp(s, "?7h") || !strcmp(s, "?7l")) {
        t->wrap = s[2] == 'h';
    } else if (s[strlen(s) - 1] == 'A') {
        rows = s[0] == 'A' ? 1 : atoi(s);
        t->row = rows < t->row ? t->row - rows : 0;
    } else {
        t->unknown = true;
    }
}

static int character_bytes(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

void terminal_byte(struct terminal *t, char byte)
{
    if (t->held == 0 && byte == '\r') {
        t->column = 0;
        t->pending = false;
        return;
    }
    if (t->held == 0 && byte == '\n') {
        next_row(t);
        t->pending = false;
        return;
    }
    if (t->held + 1 == sizeof t->sequence || (t->held == 0 && byte != 033 && (unsigned char)byte < 0x20)) {
        t->unknown = true;
        t->held = 0;
        return;
    }
    t->sequence[t->held++] = byte;
    t->sequence[t->held] = 0;
    if (t->sequence[0] == 033) {
        if (t->held == 2 && byte != '[')
            t->unknown = true;
        if (t->held < 3 || byte < '@')
            return;
        control(t);
    } else {
        utf8proc_int32_t c;
        if (t->held < character_bytes((unsigned char)t->sequence[0]))
            return;
        if (utf8proc_iterate((utf8proc_uint8_t *)t->sequence, t->held, &c) != t->held)
            t->unknown = true;
        else
            put(t, c);
    }
    t->held = 0;
}

void terminal_write(struct terminal *t, const char *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        terminal_byte(t, bytes[i]);
}

/* --- another width ------------------------------------------------------------------------------------------------- */

static int used(const struct terminal *t, int row)
{
    int n = TERMINAL_COLUMNS;
    while (n > 0 && t->cell[row][n - 1] == 0)
        n--;
    return n;
}

static void cut(struct terminal *t, int columns)
{
    for (int row = 0; row < TERMINAL_ROWS; row++) {
        for (int i = columns; i < TERMINAL_COLUMNS; i++)
            t->cell[row][i] = 0;
        t->continues[row] = false;
    }
    t->column = t->column < columns ? t->column : columns - 1;
}

/* Cell by cell into a new screen; the cursor goes along with its cell. */
static void reflow(struct terminal *t, int columns)
{
    struct terminal *n = malloc(sizeof *n);
    int last = terminal_last_row(t);
    if (!n)
        abort();
    terminal_open(n, true, columns);
    n->wrap = t->wrap;
    int row = 0, column = 0;
    for (int r = 0; r <= last || r <= t->row; r++) {
        int cells = used(t, r), until = r == t->row && t->column >= cells ? t->column + 1 : cells;
        for (int i = 0; i < until; i++) {
            bool wide = i + 1 < cells && t->cell[r][i + 1] == -1;
            if (column + 1 + wide > columns && t->cell[r][i] != -1 && i < cells) {
                n->continues[row++] = true;
                column = 0;
            }
            if (r == t->row && i == t->column) {
                n->row = row;
                n->column = column < columns ? column : columns - 1;
            }
            if (i < cells)
                n->cell[row][column++] = t->cell[r][i];
            n->lowest = row;
        }
        if (!t->continues[r]) {
            row++;
            column = 0;
        }
    }
    n->unknown = t->unknown;
    n->held = t->held;
    memcpy(n->sequence, t->sequence, sizeof t->sequence);
    *t = *n;
    free(n);
}

void terminal_resize(struct terminal *t, int columns)
{
    if (t->reflows)
        reflow(t, columns);
    else
        cut(t, columns);
    t->columns = columns;
    t->pending = false;
}

/* --- to look at ---------------------------------------------------------------------------------------------------- */

char *terminal_row(const struct terminal *t, int row, char text[TERMINAL_TEXT])
{
    int length = 0, cells = used(t, row);
    for (int i = 0; i < cells; i++) {
        int32_t c = t->cell[row][i];
        if (c >= 0)
            length += (int)utf8proc_encode_char(c ? c : ' ', (utf8proc_uint8_t *)text + length);
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = 0;
    return text;
}

int terminal_count(const struct terminal *t, const char *text)
{
    int found = 0, length = (int)strlen(text), last = terminal_last_row(t);
    for (int row = 0; row <= last; row++)
        for (int i = 0; i < t->columns; i++) {
            int r = row, c = i, k = 0;
            while (k < length && t->cell[r][c] == text[k]) {
                k++;
                if (++c == t->columns) {
                    c = 0;
                    if (!t->continues[r] || r + 1 == TERMINAL_ROWS)
                        break;
                    r++;
                }
            }
            found += k == length;
        }
    return found;
}

int terminal_last_row(const struct terminal *t)
{
    char text[TERMINAL_TEXT];
    int row = t->lowest;
    while (row >= 0 && (used(t, row) == 0 || !*terminal_row(t, row, text)))
        row--;
    return row;
}

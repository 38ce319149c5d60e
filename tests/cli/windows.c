/* SPDX-License-Identifier: MIT */
/* The bar of weft train on a pseudo terminal whose window is narrow, shrinks and grows. */
#include <weft/internal/minmax.h>

#include "terminal_test.h"

/* --- what a terminal shows ------------------------------------------------------------------------------------------ */

/* A terminal, as far as the command uses one. When it becomes narrower it breaks its rows anew, as most do, or cuts them. */
enum { ROWS = 400, WIDEST = 256 };
struct screen {
    char row[ROWS][WIDEST];
    int length[ROWS];
    bool goes_on[ROWS]; /* the row is the rest of the one before */
    int columns, y, x;
    bool no_wrap, cuts;
    int overwritten; /* characters that found no column */
};

static void put(struct screen *s, char c)
{
    ck_assert(s->y + 2 < ROWS && s->columns < WIDEST);
    if (s->x == s->columns && !s->no_wrap) {
        s->goes_on[++s->y] = true;
        s->x = 0;
    } else if (s->x == s->columns) {
        s->overwritten++;
        s->x--;
    }
    while (s->length[s->y] < s->x)
        s->row[s->y][s->length[s->y]++] = ' ';
    s->row[s->y][s->x++] = c;
    s->length[s->y] = WF_MAX(s->length[s->y], s->x);
}

/* Returns the bytes that were taken. */
static int64_t feed(struct screen *s, const char *bytes)
{
    static const char *const known[] = {"\033[J", "\033[?7l", "\033[?7h", "\033[K"};
    if (*bytes == '\r')
        s->x = 0;
    else if (*bytes == '\n')
        s->goes_on[++s->y] = false;
    else if (*bytes != 033)
        put(s, *bytes);
    else {
        int which = 0;
        while (which < 4 && strncmp(bytes, known[which], strlen(known[which])) != 0)
            which++;
        ck_assert_msg(which < 4, "an unknown sequence: %.6s", bytes + 1);
        s->no_wrap = which == 1 || (which % 3 == 0 && s->no_wrap);
        if (which % 3 == 0) {
            s->length[s->y] = WF_MIN(s->x, s->length[s->y]);
            for (int y = s->y + 1; which == 0 && y < ROWS; y++)
                s->length[y] = s->goes_on[y] = 0;
        }
        return (int64_t)strlen(known[which]);
    }
    return 1;
}

static void resize(struct screen *s, int columns)
{
    static struct screen was;
    was = *s;
    int last = was.y, y = -1, cursor_y = 0, cursor_x = 0;
    for (int row = 0; row < ROWS; row++)
        last = was.length[row] > 0 ? WF_MAX(row, last) : last;
    *s = (struct screen){.columns = columns, .cuts = was.cuts, .overwritten = was.overwritten};
    for (int row = 0; row <= last; row++) {
        if (was.cuts || !was.goes_on[row]) {
            s->x = 0;
            y++;
        }
        for (int x = 0; x <= was.length[row] || (row == was.y && x <= was.x); x++) {
            if (row == was.y && x == was.x) { /* the cursor stays where it is in the text */
                cursor_y = WF_MAX(s->y, y);
                cursor_x = WF_MIN(s->x, columns - 1);
            }
            s->y = WF_MAX(s->y, y);
            if (x < was.length[row] && (!was.cuts || x < columns))
                put(s, was.row[row][x]);
        }
        y = s->y;
    }
    s->y = cursor_y;
    s->x = cursor_x;
    s->no_wrap = was.no_wrap;
}

/* The place of the text in a row; -1: it is in none. *count: in how many. */
static int find_row(const struct screen *s, const char *text, int *count)
{
    int found = -1;
    *count = 0;
    for (int y = 0; y < ROWS; y++)
        if (memmem(s->row[y], (size_t)s->length[y], text, strlen(text))) {
            found = y;
            ++*count;
        }
    return found;
}

/* In a narrow window, and in one that shrinks: no column is written twice, and nothing of a wider bar is left. */
enum { WINDOWS = 5 };
static const int window[WINDOWS] = {80, 40, 20, 60, 20};
static int64_t resized[WINDOWS]; /* in `seen` */

static void check_windows(bool cuts)
{
    static struct screen s;
    int drawings = 0, phase = -1, checked[WINDOWS] = {0};
    s = (struct screen){.columns = window[0], .cuts = cuts};
    for (int64_t at = 0; at < length;) {
        for (; phase + 1 < WINDOWS && resized[phase + 1] <= at; drawings = 0)
            resize(&s, window[++phase]);
        const bool done = at + 5 < length && memcmp(seen + at, "\033[?7h", 5) == 0;
        const int before = s.overwritten;
        at += feed(&s, seen + at);
        if (drawings < 2) /* may be of the window before */
            s.overwritten = 0;
        ck_assert_msg(s.overwritten == before || drawings < 2, "a column is written twice in a window of %d: %.*s", s.columns,
                      s.length[s.y], s.row[s.y]);
        if (!done || ++drawings < 3)
            continue;
        int count, y = find_row(&s, "/87654", &count), end = s.length[y < 0 ? 0 : y];
        ck_assert_msg(count == 1 && y == s.y && s.x == 0 && end < s.columns, "%d rows in a window of %d, the last: %.*s", count, s.columns,
                      end, s.row[s.y]);
        const char *last = s.columns >= 60 ? " left" : s.columns == 40 ? " tok/s" : "/87654"; /* whole fields */
        ck_assert_msg(memcmp(s.row[y] + end - strlen(last), last, strlen(last)) == 0, "cut: %.*s", end, s.row[y]);
        ck_assert(find_row(&s, " tok/s", &count) == (s.columns > 20 ? y : -1));
        checked[phase]++;
    }
    for (int i = 0; i < WINDOWS; i++)
        ck_assert_msg(checked[i] > 0, "no drawing was seen in window %d of %d columns", i, window[i]);
    /* nothing is left of the bar; the message of the end is broken between words */
    int count, y = find_row(&s, " of 87654:", &count);
    ck_assert(y >= 0 && find_row(&s, "tok/s", &count) < 0);
    for (; y <= s.y; y++)
        ck_assert_msg(!s.goes_on[y] && s.length[y] <= window[WINDOWS - 1], "broken in a word: %.*s", s.length[y], s.row[y]);
    ck_assert(find_row(&s, "--resume", &count) >= 0);
}

START_TEST(in_windows_that_change)
{
    int terminal;
    pid_t child = train_on_terminal("valid_every=0", window[0], &terminal);
    for (int i = 0; i < WINDOWS; i++) {
        if (i > 0)
            set_window(terminal, window[i]);
        resized[i] = i > 0 ? length : 0;
        watch(terminal, 6);
    }
    interrupt(terminal, child);
    check_windows(false);
    check_windows(true);
    end();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {in_windows_that_change};
    return terminal_available() ? run_tests("windows", tests, 1) : 77; /* Meson: skipped */
}

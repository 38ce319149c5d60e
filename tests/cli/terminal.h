/* SPDX-License-Identifier: MIT */
/* A terminal that tests can look at: what programs print of controls here is CR, LF, CSI A, CSI J, CSI K and wrapping at the right margin
 * on and off (CSI ? 7 h, l). Rows are never scrolled away. */
#ifndef WEFT_TESTS_TERMINAL_H
#define WEFT_TESTS_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

enum { TERMINAL_ROWS = 600, TERMINAL_COLUMNS = 250 };

struct terminal {
    bool reflows; /* VTE, kitty, tmux: a narrower window wraps its lines anew, and the cursor stays with its cell. Else xterm: cuts them */
    int columns, row, column;
    bool wrap, pending;                            /* pending: a character stands in the last column, the next one wraps */
    int32_t cell[TERMINAL_ROWS][TERMINAL_COLUMNS]; /* 0: empty; -1: the right half of a wide character */
    bool continues[TERMINAL_ROWS];                 /* the next row is the same line */
    int lowest;                                    /* row with anything in it, at most; those below are empty */
    /* the parser */
    char sequence[32];
    int held;
    bool unknown; /* something came that it does not know, that leaves the screen, or that some terminal takes for something else */
};
void terminal_open(struct terminal *t, bool reflows, int columns);
void terminal_byte(struct terminal *t, char byte);
void terminal_write(struct terminal *t, const char *bytes, int64_t count);
void terminal_resize(struct terminal *t, int columns);
/* The text of a row, without blanks at its end. */
enum { TERMINAL_TEXT = TERMINAL_COLUMNS * 4 + 1 };
char *terminal_row(const struct terminal *t, int row, char text[TERMINAL_TEXT]);
/* How often ASCII text stands on the screen, over the ends of rows that were wrapped too. */
int terminal_count(const struct terminal *t, const char *text);
/* Whether this machine has pseudo terminals: a chroot without /dev/pts has none. Says so where not. */
bool terminal_available(void);
int terminal_last_row(const struct terminal *t); /* with anything to see; -1: none */

#endif

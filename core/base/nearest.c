/* SPDX-License-Identifier: MIT */
/* Finds the candidate that is nearest to a misspelt name, for "did you mean ...?". */
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/text.h>

enum { LONGEST = 96 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c == '-' ? '_' : c;
}

/* The edit distance: the least number of edits that turn a into b. An edit changes, adds or removes one letter, or swaps two neighbouring
 * letters (Damerau 1964; the restricted form, in which swapped letters are not edited again). Upper and lower case count as equal, and so
 * do '-' and '_'. */
static int distance(const char *a, int n, const char *b, int m)
{
    int row[3][LONGEST + 1];
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *previous = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = WF_MIN(WF_MIN(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                now[j] = WF_MIN(now[j], previous[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

const char *wf_nearest(const char *text, const char *const *candidates, int count)
{
    const char *best = NULL;
    size_t n = strlen(text);
    int lowest = LONGEST;
    for (int i = 0; n > 0 && n <= LONGEST && i < count; i++) {
        size_t m = strlen(candidates[i]);
        if (m > LONGEST)
            continue;
        int d = distance(text, (int)n, candidates[i], (int)m), allowed = (int)WF_MAX(n, m) / 3;
        /* A candidate that begins with the text (of at least 3 letters) is near, however long the rest is. */
        bool begun = n >= 3 && m > n && strncmp(text, candidates[i], n) == 0;
        if ((d <= (allowed > 0 ? allowed : 1) || begun) && d < lowest) {
            lowest = d;
            best = candidates[i];
        }
    }
    return best;
}

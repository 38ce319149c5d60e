/* SPDX-License-Identifier: MIT */
/* Compares files, and renames a file or folder that would be replaced. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/internal/files.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

/* Returns true if the path exists. A symbolic link counts even if its target does not exist. */
static bool is_there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

bool wf_file_same(const char *a, const char *b)
{
    enum { PIECE = 1 << 16 };
    struct stat x, y;
    if (stat(a, &x) != 0 || stat(b, &y) != 0 || !S_ISREG(x.st_mode) || !S_ISREG(y.st_mode) || x.st_size != y.st_size)
        return false;
    FILE *one = fopen(a, "rbe"), *other = fopen(b, "rbe");
    char *piece = wf_alloc(2 * PIECE);
    bool same = one && other && piece;
    for (size_t got = PIECE; same && got == PIECE;) {
        got = fread(piece, 1, PIECE, one);
        same = fread(piece + PIECE, 1, PIECE, other) == got && memcmp(piece, piece + PIECE, got) == 0 && !ferror(one) && !ferror(other);
    }
    if (one)
        fclose(one);
    if (other)
        fclose(other);
    wf_free(piece);
    return same;
}

wf_status wf_file_set_aside(const char *folder, const char *name, const char *as, char **moved, wf_error *error)
{
    const char *new_name = as ? as : name, *dot = strrchr(new_name, '.');
    int stem = (int)(dot && dot > new_name ? dot - new_name : (ptrdiff_t)strlen(new_name));
    char *from = wf_format("%s/%s", folder, name), *to = NULL;
    wf_status status = from ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for a path in %s", folder);
    *moved = NULL;
    for (int n = 1; status == WF_OK && !*moved && is_there(from); n++) {
        wf_free(to);
        to = wf_format("%s/%.*s.previous-%d%s", folder, stem, new_name, n, new_name + stem);
        if (!to)
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a path in %s", folder);
        else if (!is_there(to) && rename(from, to) != 0)
            status = wf_error_set(error, WF_ERR_IO, "%s: would be replaced, and cannot be renamed to %s: %s", from, to, wf_reason(errno));
        else if (!is_there(from))
            *moved = to;
    }
    wf_free(from);
    if (!*moved)
        wf_free(to);
    return status;
}

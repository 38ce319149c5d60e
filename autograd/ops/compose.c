/* SPDX-License-Identifier: MIT */
/* Errors of functions that are composed of ops, in the form of an op's errors. */
#include <stdarg.h>
#include <stdio.h>

#include "common.h"

wf_tensor *wf_composed_fail(const char *name, int count, wf_tensor *const in[], wf_status code, const char *format, ...)
{
    char operands[320] = "", shape[96], text[256];
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const wf_shape s = wf_shape_of(in[i]);
        const int n = snprintf(operands + at, sizeof operands - at, "%s%s%s%s", i ? ", " : "", in[i] ? wf_name_of(in[i]) : "none",
                               in[i] ? " " : "", in[i] ? wf_shape_text(&s, shape, sizeof shape) : "");
        at = n < 0 || (size_t)n >= sizeof operands - at ? sizeof operands - 1 : at + (size_t)n;
    }
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wf_tape *tape = wf_tape_of_operands(count, in);
    return wf_tape_fail(tape ? tape : wf_tape_of(NULL), code, "%s(%s): %s", name, operands, text);
}

wf_tensor *wf_first_poison(int count, wf_tensor *const in[])
{
    for (int i = 0; i < count; i++)
        if (in[i] && wf_is_poison(in[i]))
            return in[i];
    return NULL;
}

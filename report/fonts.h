/* SPDX-License-Identifier: MIT */
/* Which characters the fonts of this machine can show. */
#ifndef WEFT_REPORT_FONTS_H
#define WEFT_REPORT_FONTS_H

#include <weft/error.h>
#include <weft/strings.h>

/* Appends a script for gnuplot's pngcairo to *out, with U+FFFD (or ?) for the characters that no font has: the terminal draws such a
 * character as a black box over half of the picture. *out stays empty where the fonts are not known (no fontconfig). */
wf_status fonts_mend(const struct wf_string *script, struct wf_string *out, wf_error *error) WF_CHECKED;

#endif

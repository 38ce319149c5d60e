/* SPDX-License-Identifier: MIT */
/* Which characters the fonts of this machine can show. */
#ifndef WEFT_REPORT_FONTS_H
#define WEFT_REPORT_FONTS_H

#include <weft/tokenizer.h>

/* A script for gnuplot's pngcairo with the characters that no font has as U+FFFD (or ?), in *out, which stays empty when nothing is to be
 * replaced or nobody knows (no fontconfig). The terminal draws a character that is in no font as a box that covers the picture. */
wf_status fonts_mend(const struct wf_string *script, struct wf_string *out, wf_error *error) WF_CHECKED;

#endif

/* SPDX-License-Identifier: MIT */
/* What a map must be before it is drawn or written: the caller may have made it himself. */
#ifndef WEFT_REPORT_MAP_CHECK_H
#define WEFT_REPORT_MAP_CHECK_H

#include <weft/attention_map.h>

/* WF_ERR_ARGUMENT: its kind is none, it has no heads, tokens or weights, or a token has no name (says which); WF_ERR_NUMERIC: a weight
 * that is not finite (says of which head). */
wf_status map_check(const struct wf_attention_map *map, wf_error *error) WF_CHECKED;

#endif

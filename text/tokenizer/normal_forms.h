/* SPDX-License-Identifier: MIT */
/* Unicode's normal forms (UAX 15). */
#ifndef WEFT_DATA_TOKENIZER_NORMAL_FORMS_H
#define WEFT_DATA_TOKENIZER_NORMAL_FORMS_H

#include "internal.h"
#include "scratch.h"

/* NFD, or with `compatible` NFKD, or with `compose` NFC and NFKC. WF_ERR_MEMORY. Linear in the text. */
wf_status normal_form(struct scratch *s, struct view *text, bool compatible, bool compose);

#endif

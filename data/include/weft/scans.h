/* SPDX-License-Identifier: MIT */
/* Walks over texts, handed on from call to call. A call that looks a result up in a cache, or encodes a text, first walks over all bytes of
 * its files, to hash them and to count characters and lines; 500 MB take about 0.15 s. Calls that are given the same wf_scans walk over a
 * file once, as long as it stays the same: its inode, size and times of change. A pipe is never the same.
 *
 *   wf_scans *scans = wf_scans_new();
 *   wf_tokenizer_train_cached(&path, 1, &options, cache, scans, &tokenizer, &error);
 *   wf_text_ids_open(&path, 1, &(struct wf_corpus_options){tokenizer, cache, .scans = scans}, &ids, &error);
 *   wf_scans_free(scans);
 *
 * Results and keys of caches are the same with and without. For one thread at a time. */
#ifndef WEFT_SCANS_H
#define WEFT_SCANS_H

#include <weft/base.h>

WF_BEGIN_DECLS

typedef struct wf_scans wf_scans;           /* takes 16 bytes for each 256 KiB of text */
WF_API wf_scans *wf_scans_new(void);        /* NULL without memory; functions that take scans accept NULL */
WF_API void wf_scans_free(wf_scans *scans); /* NULL is allowed; what was opened with them stays as it is */

WF_END_DECLS

#endif

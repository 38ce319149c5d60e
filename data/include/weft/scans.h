/* SPDX-License-Identifier: MIT */
/* A wf_scans lets several calls share the scans of texts. A call that encodes a text, or looks in a cache for the result, first scans the
 * files of the text: it reads all bytes, to hash them and to count characters and lines. Such a scan of 500 MB takes about 0.15 s. Calls
 * that get the same wf_scans scan a file only once, as long as the file's inode, size and times of change stay the same. A pipe is scanned
 * by every call.
 *
 *   wf_scans *scans = wf_scans_new();
 *   wf_tokenizer_train_cached(&path, 1, &options, cache, scans, &tokenizer, &error);
 *   wf_text_ids_open(&path, 1, &(struct wf_corpus_options){tokenizer, cache, .scans = scans}, &ids, &error);
 *   wf_scans_free(scans);
 *
 * Results and cache keys are the same with and without a wf_scans. Only one thread may use a wf_scans at a time. */
#ifndef WEFT_SCANS_H
#define WEFT_SCANS_H

#include <weft/base.h>

WF_BEGIN_DECLS

typedef struct wf_scans wf_scans;           /* holds 16 bytes for each 256 KiB of text */
WF_API wf_scans *wf_scans_new(void);        /* NULL if there is no memory; functions that take scans accept NULL */
WF_API void wf_scans_free(wf_scans *scans); /* NULL is allowed; results of calls that used the scans stay valid */

WF_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/* Converts models between run folders and folders of Hugging Face, which transformers opens, and between dtypes. */
#ifndef WEFT_CONVERT_H
#define WEFT_CONVERT_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

enum wf_convert_to {
    WF_CONVERT_OTHER, /* a run becomes a folder of Hugging Face, and such a folder a run */
    WF_CONVERT_HF,    /* names, shapes and config.json of transformers */
    WF_CONVERT_WEFT   /* a run folder, without the state of a training */
};

struct wf_convert_options {
    enum wf_convert_to to;
    const char *weights; /* as in wf_run_open: NULL, "best", "ema" or the path of a file */
    bool cast;           /* convert the floats to `dtype`; otherwise each tensor keeps its dtype, and so its values */
    wf_dtype dtype;      /* WF_F32, WF_BF16 or WF_F16; values are rounded to nearest, ties to even */
    /* Maximum bytes of the tensors in one file. 0: 5 GB, the default of transformers, in a folder of Hugging Face, and no maximum in a
     * run. */
    int64_t shard;
    bool (*cancelled)(void *ctx); /* called for each piece of a tensor; if it returns true, the call ends with WF_ERR_CANCELLED */
    void *ctx;
};

struct wf_converted {
    enum wf_convert_to to; /* WF_CONVERT_HF or WF_CONVERT_WEFT */
    int files;             /* files with weights */
    int64_t tensors, bytes;
    int64_t left_out; /* tensors of `from` that Weft does not use, such as the pooler of a BERT, and that a run does not have */
    wf_dtype dtype;   /* of most bytes */
    bool several_dtypes;
};

/* Converts the model in the folder `from`, a run or a folder of Hugging Face, and writes the folder `to`, which must be missing or empty.
 * `options` is NULL for the defaults; *converted says what was written, and may be NULL.
 *
 * Tensors are copied one after another, so the memory does not depend on the size of the model. Without .cast the bytes of each value stay
 * the same, so converting there and back gives the same tensors. The tokenizer, generation_config.json, and the template of conversations
 * are kept. A run of the family gpt without biases is written with biases of 0, because GPT-2 always has them.
 *
 * The folder is written beside `to`, under another name, synced and then renamed. After any error `to` is as it was, and nothing else is
 * left. WF_ERR_EXISTS: `to` has content. WF_ERR_ARGUMENT: transformers has no counterpart of the model; the message names the family or the
 * settings. WF_ERR_NUMERIC: a value is beyond the range of the dtype. WF_ERR_BUSY: another process converts to `to`. Otherwise the errors
 * of wf_run_open, and WF_ERR_IO. */
WF_API wf_status wf_run_convert(const char *from, const char *to, const struct wf_convert_options *options, struct wf_converted *converted,
                                wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

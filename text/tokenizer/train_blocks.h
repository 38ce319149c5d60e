/* SPDX-License-Identifier: MIT */
/* A source of text as blocks of whole lines, so that files may be larger than the memory. */
#ifndef WEFT_DATA_TOKENIZER_TRAIN_BLOCKS_H
#define WEFT_DATA_TOKENIZER_TRAIN_BLOCKS_H

#include "build.h"

struct train_blocks {
    const struct tokenizer_source *source;
    int64_t done, total; /* bytes; total is 0 when a length is not known beforehand */
    const char *data;    /* the block: whole lines, the last one of a file perhaps without its end */
    int64_t length;

    const char *name;    /* of the file, for messages */
    int64_t file;        /* the next one to open */
    int64_t line, begin; /* lines and bytes of the file before the block */
    int64_t mark;        /* bytes of the block's first line before it: of a byte order mark */
    int fd;              /* -1: none is open */
    bool ended;          /* the file has been read to its end */
    char *buffer;
    int64_t taken, filled, capacity; /* of the buffer: given out as blocks, read, in all */
};

wf_status train_blocks_open(struct train_blocks *blocks, const struct tokenizer_source *source, wf_error *error) WF_CHECKED;
/* The next block; length 0 at the end. */
wf_status train_blocks_next(struct train_blocks *blocks, wf_error *error) WF_CHECKED;
/* The message for the byte at `offset` of the block, which no text may hold. Returns WF_ERR_FORMAT. */
wf_status train_blocks_fault(const struct train_blocks *blocks, int64_t offset, wf_error *error);
void train_blocks_close(struct train_blocks *blocks);

#endif

/* SPDX-License-Identifier: MIT */
/* weft tokenizer SUB-COMMAND ... */
#include "tokenizer.h"

static const struct command commands[] = {
    {"train", "train a tokenizer on text", run_tokenizer_train},
    {"encode", "convert text on standard input to ids", run_tokenizer_encode},
    {"decode", "convert ids on standard input to text", run_tokenizer_decode},
    {"info", "show what is in a tokenizer.json", run_tokenizer_info},
    {"survey", "line lengths in tokens, of one text or of two aligned by line", run_tokenizer_survey},
};

int run_tokenizer(int argc, char **argv)
{
    return dispatch(&(struct commands){"weft tokenizer", commands, sizeof commands / sizeof *commands}, argc, argv);
}

/* SPDX-License-Identifier: MIT */
/* Includes all public headers of Weft. Each of them may also be included alone. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

/* core */
#include <weft/core.h>
/* autograd */
#include <weft/gradcheck.h>
#include <weft/op.h>
#include <weft/ops.h>
#include <weft/tape.h>
/* dist */
#include <weft/dist.h>
/* io */
#include <weft/io.h>
/* nn */
#include <weft/cache.h>
#include <weft/check.h>
#include <weft/lstm.h>
#include <weft/moe.h>
#include <weft/nn.h>
#include <weft/registry.h>
#include <weft/relative.h>
#include <weft/ssm.h>
/* optim */
#include <weft/optim.h>
#include <weft/optimizer_rule.h>
/* text */
#include <weft/detokenize.h>
#include <weft/tokenizer.h>
/* data */
#include <weft/data.h>
/* score */
#include <weft/score.h>
/* models */
#include <weft/blocks.h>
#include <weft/config.h>
#include <weft/encoder.h>
#include <weft/family.h>
#include <weft/models.h>
#include <weft/optimizers.h>
#include <weft/seq2seq.h>
/* infer */
#include <weft/average.h>
#include <weft/chat.h>
#include <weft/choices.h>
#include <weft/convert.h>
#include <weft/embed.h>
#include <weft/generate.h>
#include <weft/generator.h>
#include <weft/run.h>
#include <weft/search.h>
#include <weft/translate.h>
/* train */
#include <weft/fit.h>
#include <weft/train.h>
/* report */
#include <weft/attention_map.h>
#include <weft/plot.h>
/* cli */
#include <weft/main.h>

#endif

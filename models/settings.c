/* SPDX-License-Identifier: MIT */
/* The keys that are not a family's: of training, of the tokenizer that training makes, and of generation. */
#include <math.h>

#include "keys.h"

#define KINDS(which) .kinds = which
#define LANGUAGE (1 << WF_MODEL_LANGUAGE)
#define PAIRS (1 << WF_MODEL_PAIRS)
#define ENCODER (1 << WF_MODEL_ENCODER)
#define NUMBER(...) WF_NUMBER_KEY(struct wf_training, __VA_ARGS__)
#define WORD(...) WF_WORD_KEY(struct wf_training, __VA_ARGS__)
#define MANY WF_KEY_MANY
#define ABOVE .above = true
#define BELOW .below = true

/* Enums of rooms that models do not include, wf_schedule_kind and wf_tokenizer_kind: tests compare them. */
static const char *const schedules[] = {"constant", "cosine", "inverse_sqrt", NULL};
static const char *const tokenizers[] = {"char", "word", "bpe", "byte-bpe", "wordpiece", NULL};
static const char *const costs[] = {"both", "side", NULL};
static const char *const measures[] = {"loss", "bleu", "chrf", NULL};

/* clang-format off */
static const struct wf_key training[] = {
    NUMBER(steps, "1000", 1, MANY, "total number of updates; --steps sets it too"),
    NUMBER(epochs, "0", 0, 1e9, "passes through the training text, instead of steps, which follow from it; 0: steps counts", .also = "num_train_epochs max_epoch"),
    NUMBER(batch, "16", 1, 1048576, "sequences per update", KINDS(LANGUAGE | ENCODER), .also = "batch_tokens batch_tolerance batch_cost batch_window"),
    NUMBER(mask_rate, "0.15", 0, 1, "fraction of the tokens that are masked", ABOVE, BELOW, KINDS(ENCODER)),
    NUMBER(crop, "0", 0, 1048576, "tokens of a row in training and evaluation, at most the context; 0: the context", KINDS(ENCODER)),
    WF_BOOL_KEY(struct wf_training, frame, "false", "each row begins and ends with the tokenizer's start and end tokens, as [CLS] and [SEP]", KINDS(ENCODER)),
    NUMBER(batch_tokens, "4096", 0, 1073741824, "tokens per update, padding included; 0: all pairs at once", KINDS(PAIRS), .also = "batch"),
    NUMBER(batch_tolerance, "0", 0, 1073741824, "tokens by which an update may exceed batch_tokens", KINDS(PAIRS)),
    WORD(batch_cost, "both", costs, "length of a pair: source + target, or the longer side", KINDS(PAIRS)),
    NUMBER(batch_window, "0", 0, MANY, "number of pairs sorted by length at a time; 0: all", KINDS(PAIRS)),
    NUMBER(max_ratio, "0", 0, INFINITY, "pairs with a higher ratio of lengths, longer to shorter in tokens, are not trained on; 0: no limit", KINDS(PAIRS)),
    WF_BOOL_KEY(struct wf_training, deduplicate, "false", "trains on the first of several equal pairs only", KINDS(PAIRS)),
    NUMBER(accumulate, "1", 1, 1048576, "micro-batches per update; more take less memory"),
    NUMBER(leaves, "0", 0, 1048576, "number of partial sums of micro-batches, a power of two that divides accumulate; added as a tree; 0: at most 8"),
    NUMBER(lr, "0.001", 0, INFINITY, "peak learning rate", ABOVE),
    NUMBER(min_lr, "0", 0, INFINITY, "final learning rate of schedule=cosine"),
    NUMBER(warmup, "0", 0, MANY, "updates until the peak learning rate"),
    WORD(schedule, "constant", schedules, "learning rate after the warmup"),
    NUMBER(weight_decay, "0", 0, INFINITY, "weight decay of matrices; of AdamW decoupled"),
    NUMBER(beta1, "0.9", 0, 1, "AdamW's decay rate of the mean of gradients", ABOVE, BELOW),
    NUMBER(beta2, "0.999", 0, 1, "AdamW's decay rate of the mean of squared gradients", ABOVE, BELOW),
    NUMBER(eps, "1e-08", 0, 1, "AdamW's epsilon", ABOVE),
    NUMBER(clip, "1", 0, INFINITY, "maximum gradient norm; 0 disables clipping"),
    NUMBER(ema, "0", 0, 1, "decay of a moving average of the weights, such as 0.999, saved in ema.safetensors; 0: none", BELOW, .also = "ema_decay"),
    NUMBER(label_smoothing, "0", 0, 1, "label smoothing: probability spread over the vocabulary", BELOW),
    NUMBER(save_every, "250", 0, MANY, "updates between saves; 0: only at the end"),
    NUMBER(valid_every, "250", 0, MANY, "updates between validations; 0: only at the end"),
    NUMBER(valid_tokens, "-1", -1, MANY, "tokens per validation; 0: all; -1: a tenth of those trained between two validations, at most 1,000,000"),
    NUMBER(log_every, "10", 1, MANY, "updates between two lines of metrics.jsonl", .also = "logging_steps log_interval"),
    NUMBER(keep, "2", 0, 1000000, "number of latest checkpoints to keep; 0: none", .also = "keep_every"),
    NUMBER(keep_every, "0", 0, MANY, "checkpoints at multiples of this step are never deleted; 0: none", KINDS(PAIRS)),
    NUMBER(patience, "0", 0, MANY, "stop after this many validations in a row without improvement; 0: never"),
    WORD(best_by, "loss", measures, "what the best weights and patience go by; bleu and chrf translate all of the validation text each time", KINDS(PAIRS)),
    WF_BOOL_KEY(struct wf_training, valid_scores, "false", "translate the validation text at each validation for its BLEU and chrF, also with best_by=loss", KINDS(PAIRS)),
};

#undef NUMBER
#define NUMBER(...) WF_NUMBER_KEY(struct wf_generation, __VA_ARGS__)
static const struct wf_key tokenizer[] = {
    {.name = "tokenizer", .offset = offsetof(struct wf_tokenizer_settings, kind), .kind = WF_KEY_WORD, .value = "char", .words = tokenizers,
     .settable = 4, .meaning = "kind of tokenizer to train if none is given", KINDS(LANGUAGE)},
    {.name = "tokenizer", .offset = offsetof(struct wf_tokenizer_settings, kind), .kind = WF_KEY_WORD, .value = "bpe", .words = tokenizers,
     .settable = 4, .meaning = "kind of tokenizer to train if none is given", KINDS(PAIRS | ENCODER)},
    WF_NUMBER_KEY(struct wf_tokenizer_settings, min_frequency, "1", 0, MANY, "minimum number of occurrences of a word or a merge"),
};

static const struct wf_key optimizer[] = {
    {.name = "optimizer", .offset = offsetof(struct wf_optimizer_settings, kind), .kind = WF_KEY_WORD, .value = "adamw", .words = optimizer_names,
     .meaning = "optimiser; keys NAME.KEY belong to it"},
};

static const struct wf_key generation[] = {
    NUMBER(temperature, "1", 0, 1000, "softmax temperature; below 1 less random", ABOVE, KINDS(LANGUAGE)),
    NUMBER(top_k, "0", 0, 16777216, "sample from the k most likely tokens; 0: all", KINDS(LANGUAGE), .also = "beam"),
    NUMBER(top_p, "1", 0, 1, "sample from the most likely tokens with a total probability of p", ABOVE, KINDS(LANGUAGE)),
    NUMBER(max_tokens, "500", 1, MANY, "maximum length of a text in tokens", KINDS(LANGUAGE), .also = "extra_tokens"),
    NUMBER(max_tokens, "0", 0, MANY, "maximum length of a translation in tokens; 0: max_length", KINDS(PAIRS)),
    NUMBER(beam, "1", 1, 1024, "beam width; 1: greedy", KINDS(PAIRS), .also = "top_k top_p temperature"),
    NUMBER(length_penalty, "0.6", 0, INFINITY, "A in score / ((5 + length) / 6)^A; higher: longer translations", KINDS(PAIRS)),
    NUMBER(extra_tokens, "0", 0, MANY, "maximum length of a translation minus that of its source; 0: no limit", KINDS(PAIRS)),
};
/* clang-format on */

const struct section sections[SECTIONS] = {
    {"tokenizer", offsetof(struct wf_config, tokenizer), WF_ROWS(tokenizer)},
    {"training", offsetof(struct wf_config, training), WF_ROWS(training)},
    {"optimizer", offsetof(struct wf_config, optimizer), WF_ROWS(optimizer)},
    {"generation", offsetof(struct wf_config, generation), WF_ROWS(generation)},
};

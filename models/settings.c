/* SPDX-License-Identifier: MIT */
/* The tables of the keys that are common to all families: training, optimiser, tokenizer and generation. */
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

/* The words have the order of the enums wf_precision, wf_schedule_kind, wf_schedule_curve, wf_tokenizer_kind, wf_batch_cost and wf_best_by.
 * The enums of schedules and tokenizers are in headers of other rooms, so a test checks that the words still have their order. */
static const char *const schedules[] = {"constant", "cosine", "inverse_sqrt", "linear", "wsd", "one_cycle", NULL};
static const char *const curves[] = {"default", "linear", "cosine", "sqrt", NULL};
static const char *const tokenizers[] = {"char", "word", "bpe", "byte-bpe", "wordpiece", NULL};
static const char *const costs[] = {"both", "side", NULL};
static const char *const precisions[] = {"f32", "bf16", NULL};
static const char *const measures[] = {"loss", "bleu", "chrf", NULL};

/* clang-format off */
static const struct wf_key training[] = {
    NUMBER(steps, "1000", 1, MANY, "total number of updates; --steps sets it too", .also = "max_iters max_steps max_update max_updates total_steps num_steps train_steps training_steps num_train_steps num_training_steps iters iterations n_iters total_iters"),
    NUMBER(epochs, "0", 0, 1e9, "passes through the training text, instead of steps, which follow from it; 0: steps counts", .also = "num_train_epochs max_epoch max_epochs n_epochs num_epochs nb_epochs epoch"),
    NUMBER(batch, "16", 1, 1048576, "sequences per update", KINDS(LANGUAGE | ENCODER), .also = "batch_tokens batch_tolerance batch_cost batch_window batch_size micro_batch_size per_device_train_batch_size train_batch_size train_micro_batch_size_per_gpu max_sentences n_batch bsz"),
    NUMBER(mask_rate, "0.15", 0, 1, "fraction of the tokens that are masked", ABOVE, BELOW, KINDS(ENCODER), .of_validation = true, .also = "mlm_probability masking_ratio mask_prob mask_probability"),
    NUMBER(crop, "0", 0, 1048576, "tokens of a row in training and evaluation, at most the context; 0: the context", KINDS(ENCODER), .of_validation = true),
    WF_BOOL_KEY(struct wf_training, frame, "false", "each row begins and ends with the tokenizer's start and end tokens, as [CLS] and [SEP]", KINDS(ENCODER), .of_validation = true),
    NUMBER(batch_tokens, "4096", 0, 1073741824, "tokens per update, padding included; 0: all pairs at once", KINDS(PAIRS), .of_batches = true, .also = "batch batch_size micro_batch_size per_device_train_batch_size train_batch_size train_micro_batch_size_per_gpu max_sentences n_batch bsz tokens_per_batch batch_size_tokens"),
    NUMBER(batch_tolerance, "0", 0, 1073741824, "tokens by which an update may exceed batch_tokens", KINDS(PAIRS), .of_batches = true),
    WORD(batch_cost, "both", costs, "length of a pair: source + target, or the longer side", KINDS(PAIRS), .of_batches = true),
    NUMBER(batch_window, "0", 0, MANY, "number of pairs sorted by length at a time; 0: all", KINDS(PAIRS), .of_batches = true),
    NUMBER(max_ratio, "0", 0, INFINITY, "pairs with a higher ratio of lengths, longer to shorter in tokens, are not trained on; 0: no limit", KINDS(PAIRS), .of_batches = true, .also = "max_length_ratio"),
    WF_BOOL_KEY(struct wf_training, deduplicate, "false", "trains on the first of several equal pairs only", KINDS(PAIRS), .of_batches = true),
    NUMBER(accumulate, "1", 1, 1048576, "micro-batches per update; more take less memory", .also = "gradient_accumulation_steps gradient_accumulation grad_accumulation accumulation_steps grad_accum_steps accumulate_grad_batches accum_steps update_freq"),
    NUMBER(leaves, "0", 0, 1048576, "number of partial sums of micro-batches, a power of two that divides accumulate; added as a tree; 0: at most 8"),
    WORD(precision, "f32", precisions, "arithmetic of matrix products: f32, or bf16, whose operands are rounded to bf16; all else is f32", .of_bits = true, .also = "dtype torch_dtype bf16 fp16 amp autocast mixed_precision precision_mode"),
    WF_BOOL_KEY(struct wf_training, checkpoint, "false", "blocks are computed a second time in backward: less memory, a third more time, the same bits", .also = "gradient_checkpointing activation_checkpointing activations_checkpoint checkpoint_activations recompute recompute_activations use_checkpoint grad_checkpointing"),
    NUMBER(lr, "0.001", 0, INFINITY, "peak learning rate", ABOVE, .also = "learning_rate max_lr peak_lr base_lr"),
    NUMBER(min_lr, "0", 0, INFINITY, "final learning rate of a schedule that decays: cosine, linear, wsd, one_cycle", .also = "stop_min_lr eta_min lr_min final_lr min_learning_rate"),
    NUMBER(warmup, "0", 0, MANY, "updates until the peak learning rate", .also = "warmup_steps warmup_iters warmup_updates num_warmup_steps lr_warmup_steps warmup_ratio"),
    WORD(schedule, "constant", schedules, "learning rate after the warmup", .also = "lr_scheduler lr_scheduler_type lr_schedule scheduler decay_lr lr_decay_style"),
    NUMBER(decay, "0", 0, MANY, "updates of the decay at the end of schedule=wsd; 0: a tenth of steps", .also = "decay_steps num_decay_steps cooldown cooldown_steps"),
    NUMBER(start_lr, "0", 0, INFINITY, "first learning rate of schedule=one_cycle; 0: lr / 25", .also = "initial_lr div_factor"),
    WORD(curve, "default", curves, "curve of schedule=wsd (default: linear) and one_cycle (default: cosine)", .also = "anneal_strategy decay_type"),
    NUMBER(weight_decay, "0", 0, INFINITY, "weight decay of matrices; decoupled from the gradient, but for SGD", .also = "wd"),
    NUMBER(beta1, "0.9", 0, 1, "AdamW's decay rate of the mean of gradients", ABOVE, BELOW, .also = "adam_beta1 beta_1 betas adam_betas"),
    NUMBER(beta2, "0.999", 0, 1, "AdamW's decay rate of the mean of squared gradients", ABOVE, BELOW, .also = "adam_beta2 beta_2 betas adam_betas"),
    NUMBER(eps, "1e-08", 0, 1, "AdamW's epsilon", ABOVE, .also = "adam_epsilon adam_eps epsilon"),
    NUMBER(clip, "1", 0, INFINITY, "maximum gradient norm; 0 disables clipping", .also = "max_grad_norm grad_clip clip_norm clip_grad clip_grad_norm gradient_clip_val gradient_clipping max_norm"),
    NUMBER(clip_value, "0", 0, INFINITY, "maximum absolute value of a gradient's elements, applied before clip; 0 disables it", .also = "grad_clip_value clip_grad_value"),
    NUMBER(ema, "0", 0, 1, "decay of a moving average of the weights, such as 0.999, saved in ema.safetensors; 0: none", BELOW, .also = "ema_decay use_ema ema_rate"),
    NUMBER(label_smoothing, "0", 0, 1, "label smoothing: probability spread over the vocabulary", BELOW, .also = "label_smoothing_factor"),
    NUMBER(save_every, "250", 0, MANY, "updates between saves; 0: only at the end", .also = "save_steps save_interval save_interval_updates checkpoint_interval checkpoint_every save_freq"),
    NUMBER(valid_every, "250", 0, MANY, "updates between validations; 0: only at the end", .also = "eval_steps eval_interval eval_every validate_interval validate_interval_updates val_check_interval val_interval"),
    NUMBER(valid_tokens, "-1", -1, MANY, "tokens per validation; 0: all; -1: a tenth of those trained between two validations, at most 1,000,000", .of_validation = true, .also = "eval_iters eval_batches limit_val_batches"),
    NUMBER(log_every, "10", 1, MANY, "updates between two lines of metrics.jsonl", .also = "logging_steps log_interval log_every_n_steps print_every"),
    NUMBER(keep, "2", 0, 1000000, "number of latest checkpoints to keep; 0: none", .also = "keep_every save_total_limit keep_interval_updates keep_last_epochs keep_last save_top_k"),
    NUMBER(keep_every, "0", 0, MANY, "checkpoints at multiples of this step are never deleted; 0: none", KINDS(PAIRS)),
    NUMBER(patience, "0", 0, MANY, "stop after this many validations in a row without improvement; 0: never", .also = "early_stopping_patience early_stopping"),
    WORD(best_by, "loss", measures, "what the best weights and patience go by; bleu and chrf translate all of the validation text each time", KINDS(PAIRS), .also = "metric_for_best_model best_checkpoint_metric monitor"),
    WF_BOOL_KEY(struct wf_training, valid_scores, "false", "translate the validation text at each validation for its BLEU and chrF, also with best_by=loss", KINDS(PAIRS), .also = "predict_with_generate eval_bleu"),
};

#undef NUMBER
#define NUMBER(...) WF_NUMBER_KEY(struct wf_generation, __VA_ARGS__)
static const struct wf_key tokenizer[] = {
    {.name = "tokenizer", .offset = offsetof(struct wf_tokenizer_settings, kind), .kind = WF_KEY_WORD, .value = "char", .words = tokenizers,
     .settable = 4, .meaning = "kind of tokenizer to train if none is given", .also = "tokenizer_type", KINDS(LANGUAGE)},
    {.name = "tokenizer", .offset = offsetof(struct wf_tokenizer_settings, kind), .kind = WF_KEY_WORD, .value = "bpe", .words = tokenizers,
     .settable = 4, .meaning = "kind of tokenizer to train if none is given", .also = "tokenizer_type", KINDS(PAIRS | ENCODER)},
    WF_NUMBER_KEY(struct wf_tokenizer_settings, min_frequency, "1", 0, MANY, "minimum number of occurrences of a word or a merge", .also = "min_freq threshold thresholdsrc thresholdtgt min_count"),
};

static const struct wf_key optimizer[] = {
    {.name = "optimizer", .offset = offsetof(struct wf_optimizer_settings, kind), .kind = WF_KEY_WORD, .value = "adamw", .words = optimizer_names,
     .meaning = "optimiser; keys NAME.KEY belong to it"},
};

static const struct wf_key generation[] = {
    NUMBER(temperature, "1", 0, 1000, "softmax temperature; below 1 less random; 0: always the most likely token", KINDS(LANGUAGE), .also = "temp sampling_temperature"),
    NUMBER(top_k, "0", 0, 16777216, "sample from the k most likely tokens; 0: all", KINDS(LANGUAGE), .also = "beam topk sampling_topk"),
    NUMBER(top_p, "1", 0, 1, "sample from the most likely tokens with a total probability of p", ABOVE, KINDS(LANGUAGE), .also = "topp sampling_topp nucleus"),
    NUMBER(min_p, "0", 0, 1, "sample from tokens that are at least p times as likely as the likeliest; 0: all", KINDS(LANGUAGE), .also = "minp"),
    NUMBER(repetition_penalty, "1", 0, 1000, "divides positive logits, and multiplies others, of tokens that prompt or text have; 1: none", ABOVE, KINDS(LANGUAGE), .also = "repeat_penalty rep_penalty"),
    NUMBER(max_tokens, "500", 1, MANY, "maximum length of a text in tokens", KINDS(LANGUAGE), .also = "extra_tokens max_new_tokens n_predict"),
    NUMBER(max_tokens, "0", 0, MANY, "maximum length of a translation in tokens; 0: max_length", KINDS(PAIRS), .also = "max_new_tokens generation_max_length max_decode_length"),
    NUMBER(beam, "1", 1, 1024, "beam width; 1: greedy", KINDS(PAIRS), .also = "top_k top_p temperature num_beams beam_size beam_width generation_num_beams nbeams"),
    NUMBER(length_penalty, "0.6", 0, INFINITY, "A in score / ((5 + length) / 6)^A; higher: longer translations", KINDS(PAIRS), .also = "lenpen len_penalty"),
    NUMBER(extra_tokens, "0", 0, MANY, "maximum length of a translation minus that of its source; 0: no limit", KINDS(PAIRS), .also = "max_len_b"),
};
/* clang-format on */

const struct section sections[SECTIONS] = {
    {"tokenizer", offsetof(struct wf_config, tokenizer), WF_ROWS(tokenizer)},
    {"training", offsetof(struct wf_config, training), WF_ROWS(training)},
    {"optimizer", offsetof(struct wf_config, optimizer), WF_ROWS(optimizer)},
    {"generation", offsetof(struct wf_config, generation), WF_ROWS(generation)},
};

/* SPDX-License-Identifier: MIT */
/* Run folders, which training writes, and which generation, translation, evaluation and a resumed training read. A run folder has the files
 * of a Hugging Face model (config.json, model.safetensors, tokenizer.json), and also best.safetensors,
 * checkpoints/step-00000100.safetensors, state.safetensors, metrics.jsonl and events.out.tfevents.*.weft (TensorBoard). A translation model
 * with two tokenizers has tokenizer.source.json and tokenizer.target.json instead of tokenizer.json. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include <weft/batches.h>
#include <weft/bitext.h>
#include <weft/embed.h>
#include <weft/generate.h>
#include <weft/models.h>
#include <weft/score.h>
#include <weft/tokenizer.h>
#include <weft/translate.h>

WF_BEGIN_DECLS

enum { WF_RUN_ENDS = 16, WF_RUN_BEGINS = 16, WF_RUN_REFUSED_SIZE = 64 };
/* A trained model with its tokenizers. */
struct wf_run {
    struct wf_config config;
    wf_tokenizer *tokenizer;        /* the tokenizer, or the target's tokenizer if the model translates */
    wf_tokenizer *source_tokenizer; /* the source's tokenizer if the model translates, which may be the same pointer; else NULL */
    wf_model *model;
    /* Options for wf_embedder_new. A sentence-transformers model, and a run that started from one, store them in modules.json, in the files
     * that modules.json names, and in sentence_bert_config.json. For other models: mean pooling without normalisation. */
    struct wf_embedder_options embed;
    /* Of a language model in a Hugging Face folder, or in a run that started from one: the tokens that end a text ("eos_token_id" of
     * generation_config.json, or else of config.json), for wf_generate_options.end and .ends. */
    int32_t end[WF_RUN_ENDS];
    int ends;
    /* Of a language model: how to choose tokens, from the configuration, or from generation_config.json of a Hugging Face folder: greedily
     * if that file does not say "do_sample": true, or if there is none. */
    struct wf_sampler sampler;
    /* Of a language model whose tokenizer's template puts special tokens before a text and none behind it: these tokens, such as the BOS
     * token of Llama 3 and Gemma. The model was trained with them: encode prompts with .specials of wf_encode_options. */
    int32_t begin[WF_RUN_BEGINS];
    int begins;       /* their number; if it is above WF_RUN_BEGINS, `begin` has the first WF_RUN_BEGINS only */
    bool needs_begin; /* the model predicts badly without them: Gemma */
    /* A key of generation_config.json that asks for what Weft does not do, such as num_beams; "": there is none. The model works, but its
     * texts are not those of transformers. */
    char refused[WF_RUN_REFUSED_SIZE];
};
/* Opens a run: configuration, tokenizer and weights. Also opens a Hugging Face folder with a model whose "model_type" in config.json a
 * family reads: bert, gemma2, gemma3_text, gpt2, llama, mistral, phi3, qwen2 or qwen3. Its tokenizer is tokenizer.json, or vocab.txt with
 * tokenizer_config.json, and its weights are model.safetensors, or the files that model.safetensors.index.json lists. Settings of sampling
 * in generation_config.json replace the defaults. `weights` is NULL for model.safetensors, "best" for best.safetensors, "ema" for
 * ema.safetensors, or the path of a file. Close the run with wf_run_close.
 *
 * It is an error if a file is missing, if the vocabulary sizes of tokenizer and model differ, if the tokenizer of a translation model has
 * no BOS or EOS token, or if the weights were trained with another tokenizer. To detect that, files of weights store the
 * wf_tokenizer_hash of their tokenizer as "tokenizer_content"; weights without this entry are accepted. */
WF_API wf_status wf_run_open(struct wf_run *run, const char *folder, const char *weights, wf_error *error) WF_CHECKED;
/* Whether weights that need no change stay in the file (wf_load_options.map, weft/registry.h). Then a folder opens at once, even one that
 * is larger than the free memory, but the model computes up to 10 % slower, because the kernel maps files in small pages. Mapped weights
 * cannot be trained; see also wf_safetensors_guard (weft/safetensors.h). A file that cannot be mapped (WF_ERR_MEMORY there) is read. */
enum wf_run_map {
    WF_RUN_READ,      /* they are read into memory */
    WF_RUN_MAP_LARGE, /* they stay in the file if it is larger than a quarter of the free memory */
    WF_RUN_MAP        /* they stay in the file */
};
struct wf_run_options {
    const char *weights;   /* as in wf_run_open */
    enum wf_stored stored; /* how to store the weights of linear maps and embeddings (weft/registry.h); bf16 halves their memory */
    enum wf_run_map map;
};
/* wf_run_open with options, which may be NULL. */
WF_API wf_status wf_run_open_with(struct wf_run *run, const char *folder, const struct wf_run_options *options, wf_error *error) WF_CHECKED;
/* Frees the contents of the run and leaves it empty; a zeroed struct is allowed. */
WF_API void wf_run_close(struct wf_run *run);

/* Opens parallel text with the tokenizers, special tokens and max_length of the run's translation model. `cache` is a folder where the
 * lengths of all sentences are cached, or NULL. The run must outlive *out. WF_ERR_ARGUMENT: the model is not a translation model. */
WF_API wf_status wf_run_bitext(const struct wf_run *run, const char *source, const char *target, const char *cache, wf_bitext **out,
                               wf_error *error) WF_CHECKED;

/* The loss of a model on a text. */
struct wf_evaluation {
    double loss;     /* nats per predicted token, without label smoothing; NaN after a failure */
    double smoothed; /* for a translation model the loss with label smoothing, which equals `loss` if label_smoothing is 0; NaN for other
                        models */
    int64_t tokens;  /* predicted tokens: of a translation model the target tokens with EOS, of an encoder the masked tokens */
    int64_t pairs;   /* number of sentence pairs of a translation model; 0 for other models */
};
/* The next functions compute the loss of a trained model on a text. If `limit` is above 0, they use only about `limit` tokens, which
 * are spread evenly over the text and are the same in every call. If `limit` is 0, they use the whole text. `limit` counts predicted
 * tokens, except for an encoder: there it counts all tokens, and the fraction mask_rate of them is predicted. The tape is reset.
 *
 * wf_model_evaluate computes the loss of a language model on a sequence of ids, in adjacent windows of one context each (wf_windows).
 * WF_ERR_STATE: the model is not a language model. */
WF_API wf_status wf_model_evaluate(const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit, struct wf_evaluation *out,
                                   wf_error *error) WF_CHECKED;
/* Windows of wf_evaluate_windows. */
struct wf_window_options {
    int64_t context; /* tokens of a window; 0: the model's context */
    int64_t stride;  /* each window begins this many tokens after the one before, 1 to `context` less `begins`; 0: windows do not overlap,
                        as in wf_model_evaluate */
    int64_t rows;    /* windows that are computed at once; 0: about 4096 tokens. With a stride it does not change a bit of the result */
    /* Ids with which each window begins, before its ids of the text, such as `begin` of a struct wf_run: a model that was trained with a
     * BOS token before each text predicts badly without it. They are tokens of the window, so a stride is at most the rest of it, and they
     * are not scored; the first id of the text in a window then is. NULL: none. */
    const int32_t *begin;
    int64_t begins;
};
/* Computes the loss of a language model on the whole sequence of ids, in overlapping windows, as the guide on perplexity of Hugging Face's
 * transformers does. Window i has .begin and then the ids from i * stride on, up to `context` ids in all; the last window ends with the
 * text. Each window scores the ids that no window before it has scored, and sees the others as context. Without .begin the first id of a
 * window is not scored, because nothing precedes it: with stride < context that is only the first id of the text. `loss` is the mean over
 * the scored ids, each of which counts the same (the guide weights a window by its scored ids less one). Without a stride and .begin the
 * result is that of wf_model_evaluate with this context. `options` may be NULL. WF_ERR_ARGUMENT: an option is out of its range, or the text
 * has no id to score: it needs two, or one with .begin. WF_ERR_STATE: the model is not a language model. */
WF_API wf_status wf_evaluate_windows(const wf_model *model, wf_tape *tape, struct wf_id_view ids, const struct wf_window_options *options,
                                     struct wf_evaluation *out, wf_error *error) WF_CHECKED;
/* Computes the loss of a translation model on the used pairs of a bitext, which are those that the survey did not skip (weft/bitext.h).
 * WF_ERR_ARGUMENT: the model is not a translation model. */
WF_API wf_status wf_evaluate_pairs(const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing, int64_t limit,
                                   struct wf_evaluation *out, wf_error *error) WF_CHECKED;
/* Computes the masked-language-modelling loss of an encoder that Weft has trained. The text is read in adjacent windows of one context
 * each, or of `crop` tokens each if the configuration sets `crop`. Tokens are masked with probability mask_rate as in training
 * (<weft/masking.h>), but the masks are the same in every call. WF_ERR_ARGUMENT: the model is no such encoder, the tokenizer's vocabulary
 * does not fit the model, or no token was masked. WF_ERR_FORMAT: the tokenizer has no mask token. */
WF_API wf_status wf_evaluate_masked(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                                    int64_t limit, struct wf_evaluation *out, wf_error *error) WF_CHECKED;

struct wf_translation_scores {
    struct wf_bleu_score bleu; /* BLEU with tokenizer 13a, case-sensitive */
    struct wf_chrf_score chrf;
    struct wf_translator_counts counts;
};
/* Translates every line of the file `source`, and scores the translations against the unchanged lines of the file `target`. `options` is
 * NULL for the model's own beam width and length penalty. A line that is too long is truncated if options->truncate is set; otherwise it is
 * an error. `progress` (may be NULL) is called with the number of translated lines and of all lines; if it returns false,
 * wf_evaluate_translation returns WF_ERR_CANCELLED. WF_ERR_FORMAT: the files have different numbers of lines. */
WF_API wf_status wf_evaluate_translation(const struct wf_run *run, const char *source, const char *target,
                                         const struct wf_translator_options *options,
                                         bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                                         struct wf_translation_scores *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

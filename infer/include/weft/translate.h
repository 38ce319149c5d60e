/* SPDX-License-Identifier: MIT */
/* Translates batches of sentences, given as ids, and lines of text, by greedy or beam search. The translation of a sentence does not depend
 * on the other sentences, nor on the order or size of batches. */
#ifndef WEFT_TRANSLATE_H
#define WEFT_TRANSLATE_H

#include <weft/search.h>
#include <weft/seq2seq.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_translate_options {
    int64_t beam;            /* beam width, at most 1,024; 1 is greedy search; 0: the model's default */
    bool has_length_penalty; /* uses `length_penalty`; false: the model's default */
    double length_penalty; /* the exponent A in score = log-probability / ((5 + length) / 6)^A (Wu et al. 2016); the length includes EOS */
    int64_t max_tokens;    /* maximum length of a hypothesis, EOS included, at most the model's max_length; 0: the model's default */
    int64_t n_best;        /* number of hypotheses to return for each sentence, at most the beam width; 0: 1 */
    int64_t batch;         /* number of sentences decoded together; 0: 64, or fewer if their caches would take more than
                              512 MiB. Does not change the result */
    bool (*cancelled)(void *ctx); /* called after each step; true ends the search with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;                    /* argument of both callbacks */
    /* Called after each batch with the number of translated sentences and of all sentences. In wf_translator_lines a sentence is a line
     * that is not empty. May be NULL. */
    void (*progress)(void *ctx, int64_t done, int64_t count);
};
/* Translations of `count` sentences, with n_best hypotheses each: hypothesis[i * n_best + k] is hypothesis k of sentence i. The hypotheses
 * of a sentence are first those that are finished, then those that reached the maximum length, each from best to worst. If a sentence has
 * fewer than n_best hypotheses, because the vocabulary is tiny, the missing ones have log_probability -infinity. Free the struct with
 * wf_translations_free. */
struct wf_translations {
    struct wf_hypothesis *hypothesis;
    int64_t count, n_best;
    void *memory; /* holds the ids */
};
/* Translates packed sentences: sentence i is ids[offsets[i] .. offsets[i+1]-1], with its special tokens. `bos` and `eos` are the special
 * tokens that begin and end a target sentence.
 *
 * The search keeps at most `beam` active hypotheses for each sentence. Each step considers the 2 x beam likeliest continuations of these
 * hypotheses by one token (greedy search: the likeliest one). Continuations with equal log-probability are ordered by the rank of the
 * hypotheses that they continue, and then by id. A continuation that ends with EOS is finished; of the other continuations the `beam`
 * likeliest become the new active hypotheses. The search of a sentence ends at the maximum length, or earlier if `beam` hypotheses are
 * finished and no active one can still reach a better score than the best finished one. The maximum length is the smallest of max_tokens,
 * the model's max_length, and the source length (without special tokens) plus the setting extra_tokens.
 *
 * Resets the tape. WF_ERR_ARGUMENT, with the index of the sentence: a sentence is empty, is longer than the model's max_length, or has an
 * id outside the vocabulary. After an error *out is empty. */
WF_API wf_status wf_translate_with(const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                                   int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                                   wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_translate(model, tape, ids, offsets, count, bos, eos, out, error, ...)                                                          \
    wf_translate_with(model, tape, ids, offsets, count, bos, eos, &(struct wf_translate_options){__VA_ARGS__}, out, error)
#endif
/* Frees the translations; a zeroed struct is allowed. */
WF_API void wf_translations_free(struct wf_translations *translations);

/* --- lines of text ------------------------------------------------------------------------------------------------- */
/* A model with its tokenizers, which translates lines of text to lines of text. Line ends ("\n" and "\r\n") and white space at both ends of
 * a line, no-break spaces included, are removed. The translation of an empty line is empty. Use a translator from one thread at a time. */
typedef struct wf_translator wf_translator;

struct wf_translator_options {
    struct wf_translate_options search;
    bool truncate;        /* truncates lines longer than the model's max_length; false: such a line is an error */
    bool keep_tokens;     /* if tokens are words, the text is the words with spaces between them; false: wf_detokenize joins them */
    const char *language; /* target language, for wf_detokenize; may be NULL */
    const char *name;     /* name of the input in messages; NULL: "source" */
};
/* Totals over all calls since the translator was made. */
struct wf_translator_counts {
    int64_t lines;      /* all lines */
    int64_t empty;      /* empty lines */
    int64_t truncated;  /* truncated lines */
    int64_t tokens;     /* tokens of the source, without special tokens */
    int64_t unknown;    /* unknown tokens of the source */
    int64_t unfinished; /* lines whose best hypothesis reached the maximum length */
};
struct wf_line_translation {
    const char *text;       /* NUL-terminated, "" for an empty line; NULL: the line has fewer than n_best hypotheses */
    int64_t length;         /* bytes of the text */
    double score;           /* the log-probability divided by the length penalty */
    double log_probability; /* log-probability of the translation, given the source */
    bool finished;          /* the hypothesis ended with EOS; false: it reached the maximum length */
};
struct wf_line_translations {
    /* [count * n_best]: the hypotheses of a line together, in the order of wf_translations. */
    const struct wf_line_translation *translation;
    int64_t count, n_best;
};
/* Makes a translator; `options` may be NULL. The model and the tokenizers must outlive the translator; `source` and `target` may be the
 * same tokenizer. Returns NULL with *error set. WF_ERR_ARGUMENT: the model is not an encoder-decoder, a tokenizer has another vocabulary
 * size than the model or lacks a BOS or EOS token that the model needs, or an option is out of its range. */
WF_API wf_translator *wf_translator_new(const wf_model *model, const wf_tokenizer *source, const wf_tokenizer *target,
                                        const struct wf_translator_options *options, wf_error *error) WF_CHECKED;
WF_API void wf_translator_free(wf_translator *translator);
/* Translates `length` bytes of whole lines; the last line may lack its "\n". It is fastest to give some hundreds of lines in a call,
 * because lines of about the same length are then translated together. *out belongs to the translator and is valid until its next call.
 *
 * WF_ERR_FORMAT: a line is invalid, because it is not UTF-8, has a NUL, is longer than max_length (unless .truncate is set), or has a word
 * outside the vocabulary of a tokenizer without unknown token. The message begins with name:line: or name:line:byte:, where lines are
 * counted over all calls. *out then holds the translations of the lines before the invalid one. After any other error *out is empty. */
WF_API wf_status wf_translator_lines(wf_translator *translator, const char *text, int64_t length, struct wf_line_translations *out,
                                     wf_error *error) WF_CHECKED;
WF_API struct wf_translator_counts wf_translator_counts(const wf_translator *translator);

WF_END_DECLS

#endif

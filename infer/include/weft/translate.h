/* SPDX-License-Identifier: MIT */
/* Translating: greedy and beam search over batches of sentences, and over lines of text. Hypotheses don't depend on what else is in
 * the batch, on its order or its size. */
#ifndef WEFT_TRANSLATE_H
#define WEFT_TRANSLATE_H

#include <weft/seq2seq.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_translate_options {
    int64_t beam;          /* hypotheses that are followed, up to 1,024; 1: greedy. 0: the model's */
    bool has_length_penalty;
    double length_penalty; /* score = log-probability / ((5 + length) / 6)^A (Wu et al. 2016); length counts EOS. Else the model's */
    int64_t max_tokens;    /* the most ids of a hypothesis, EOS included; 0: the model's. Never more than its max_length */
    int64_t n_best;        /* hypotheses that are returned, at most `beam`. 0: 1 */
    int64_t batch;         /* sentences decoded side by side; 0: 64, or fewer where their caches would take over 512 MiB. Does not
                              change the result. */
    bool (*cancelled)(void *ctx); /* looked at after each step: true ends with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
    /* Called after each batch: sentences of this call that are done (of wf_translator_lines: lines that are not empty). May be NULL. */
    void (*progress)(void *ctx, int64_t done, int64_t count);
};
struct wf_hypothesis {
    const int32_t *ids;      /* without BOS and EOS */
    int64_t length;
    double score, log_probability;
    bool finished;           /* ended by EOS, not by the limit */
};
/* Translations of `count` sentences, n_best each: hypothesis[i * n_best + k], the best first: those that ended, then those that
 * the limit cut. Where a tiny vocabulary allows fewer, the rest has a log_probability of -infinity. Freed with
 * wf_translations_free. */
struct wf_translations {
    struct wf_hypothesis *hypothesis;
    int64_t count, n_best;
    void *memory;
};
/* Sentences with their marks, end to end: number i is ids[offsets[i] .. offsets[i+1]-1]. Search: at each step the 2 x beam best
 * continuations of the live hypotheses are looked at (greedy: the best one alone), of equal ones the earlier hypothesis and then
 * the smaller id; those that end with EOS are put aside, the best `beam` others live on. It stops when `beam` hypotheses have
 * ended and the best of them is at least what the best live one could still reach, or at the limit, the least of the source's length
 * without its marks + extra_tokens, max_tokens and max_length. The tape is reset. A sentence that is empty or longer than the
 * model's max_length, and an id that the vocabulary lacks, is WF_ERR_ARGUMENT with the sentence's number, from 0. On an error
 * there are no translations. */
WF_API wf_status wf_translate_with(const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                                   int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                                   wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_translate(model, tape, ids, offsets, count, bos, eos, out, error, ...)                                                          \
    wf_translate_with(model, tape, ids, offsets, count, bos, eos, &(struct wf_translate_options){__VA_ARGS__}, out, error)
#endif
WF_API void wf_translations_free(struct wf_translations *translations); /* of zeros: fine */

/* --- lines of text ------------------------------------------------------------------------------------------------- */
/* A model with its tokenizers, for text that comes in pieces: lines in, lines out. Line ends, "\r\n" too, and white space at
 * the edges of a line, no-break spaces too, belong to no sentence; a line that has nothing else is empty, and so is its
 * translation. Used by one thread at a time. */
typedef struct wf_translator wf_translator;

struct wf_translator_options {
    struct wf_translate_options search;
    bool truncate;    /* a line longer than the model takes loses its end; else it is an error */
    bool keep_tokens; /* what a word-level tokenizer gives stays tokens between blanks; else it is detokenised (wf_detokenize) */
    const char *language; /* of the translations, as wf_detokenize takes it; may be NULL */
    const char *name; /* stands for the file in messages; NULL: "source" */
};
/* What a translator met since it was made. */
struct wf_translator_counts {
    int64_t lines, empty;
    int64_t truncated;        /* lines that lost their end */
    int64_t tokens, unknown;  /* of the source, without marks; unknown ones among them */
    int64_t unfinished;       /* best hypotheses that the limit cut */
};
struct wf_line_translation {
    const char *text; /* NUL-terminated, `length` bytes; NULL: there are fewer than n_best. Of an empty line: "" once */
    int64_t length;
    double score, log_probability;
    bool finished;
};
struct wf_line_translations {
    const struct wf_line_translation *translation; /* [count * n_best] */
    int64_t count, n_best;
};
/* Model and tokenizers must outlive the translator; the same tokenizer may stand for both. WF_ERR_ARGUMENT: the model does not translate,
 * a tokenizer is not of its size or lacks a mark (BOS, EOS) that the model needs, options out of range. NULL with *error. */
WF_API wf_translator *wf_translator_new(const wf_model *model, const wf_tokenizer *source, const wf_tokenizer *target,
                                        const struct wf_translator_options *options, wf_error *error) WF_CHECKED;
WF_API void wf_translator_free(wf_translator *translator);
/* Translates `length` bytes of whole lines; the last may do without its "\n". They are sorted by length inside, so give some hundreds
 * at a time where there are as many. *out belongs to the translator, until the next call. A line that can't be translated is
 * WF_ERR_FORMAT as name:line: or name:line:byte:, lines counted over all calls: not UTF-8 or a NUL, longer than the model takes,
 * a word that the vocabulary lacks where it has no unknown token. *out then holds the lines before it; otherwise, on an error,
 * nothing. */
WF_API wf_status wf_translator_lines(wf_translator *translator, const char *text, int64_t length, struct wf_line_translations *out,
                                     wf_error *error) WF_CHECKED;
WF_API struct wf_translator_counts wf_translator_counts(const wf_translator *translator);

WF_END_DECLS

#endif

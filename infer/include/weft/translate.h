/* SPDX-License-Identifier: MIT */
/* Translation: greedy and beam search over batches of sentences, and over lines of text. Hypotheses do not depend on the other
 * sentences of a batch, on its order or its size. */
#ifndef WEFT_TRANSLATE_H
#define WEFT_TRANSLATE_H

#include <weft/search.h>
#include <weft/seq2seq.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_translate_options {
    int64_t beam;                 /* beam width, up to 1,024; 1: greedy; 0: the model's default */
    bool has_length_penalty;      /* false: the model's default */
    double length_penalty;        /* score = log-probability / ((5 + length) / 6)^A (Wu et al. 2016); length counts EOS */
    int64_t max_tokens;           /* maximum length of a hypothesis, EOS included; 0: the model's default. At most its max_length */
    int64_t n_best;               /* number of hypotheses returned, at most `beam`; 0: 1 */
    int64_t batch;                /* sentences decoded together; 0: 64, or fewer if their caches would exceed 512 MiB. Does not change the
                                     result. */
    bool (*cancelled)(void *ctx); /* called after each step: true ends with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
    /* Called after each batch with the number of finished sentences (for wf_translator_lines: of lines that are not empty). May be NULL. */
    void (*progress)(void *ctx, int64_t done, int64_t count);
};
/* Translations of `count` sentences, n_best each: hypothesis[i * n_best + k], best first, finished ones before those that
 * reached the maximum length. If a tiny vocabulary allows fewer, the rest has log_probability -infinity. Free it with
 * wf_translations_free. */
struct wf_translations {
    struct wf_hypothesis *hypothesis;
    int64_t count, n_best;
    void *memory;
};
/* Packed sentences with their special tokens: sentence i is ids[offsets[i] .. offsets[i+1]-1]. Search: each step considers the
 * 2 x beam best continuations of the active hypotheses (greedy: the best one), ties by the earlier hypothesis, then the smaller id;
 * continuations with EOS are finished, and the best `beam` others stay active. The search stops when `beam` hypotheses are finished
 * and no active one can exceed the best of them, or at the maximum length: the least of source length (without special tokens) +
 * extra_tokens, max_tokens and max_length. The tape is reset. An empty sentence, one longer than the model's max_length, and an id
 * outside the vocabulary are WF_ERR_ARGUMENT with the index of the sentence. On an error there are no translations. */
WF_API wf_status wf_translate_with(const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                                   int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                                   wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_translate(model, tape, ids, offsets, count, bos, eos, out, error, ...)                                                          \
    wf_translate_with(model, tape, ids, offsets, count, bos, eos, &(struct wf_translate_options){__VA_ARGS__}, out, error)
#endif
WF_API void wf_translations_free(struct wf_translations *translations); /* a zeroed struct is allowed */

/* --- lines of text ------------------------------------------------------------------------------------------------- */
/* A model with its tokenizers: lines of text in, lines out. Line ends ("\n" and "\r\n") and white space at both ends of a line,
 * no-break spaces included, are removed; the translation of an empty line is empty. Use it from one thread at a time. */
typedef struct wf_translator wf_translator;

struct wf_translator_options {
    struct wf_translate_options search;
    bool truncate;        /* truncates a line longer than max_length; otherwise it is an error */
    bool keep_tokens;     /* keeps word-level tokens separated by spaces; otherwise they are detokenised (wf_detokenize) */
    const char *language; /* target language for wf_detokenize; may be NULL */
    const char *name;     /* name of the input in messages; NULL: "source" */
};
/* Totals since the translator was created. */
struct wf_translator_counts {
    int64_t lines, empty;
    int64_t truncated;       /* truncated lines */
    int64_t tokens, unknown; /* of the source, without special tokens; the unknown ones among them */
    int64_t unfinished;      /* best hypotheses that reached the maximum length */
};
struct wf_line_translation {
    const char *text; /* NUL-terminated, `length` bytes; NULL: fewer than n_best hypotheses. For an empty line "" once */
    int64_t length;
    double score, log_probability;
    bool finished;
};
struct wf_line_translations {
    const struct wf_line_translation *translation; /* [count * n_best] */
    int64_t count, n_best;
};
/* Model and tokenizers must outlive the translator; both tokenizers may be the same. WF_ERR_ARGUMENT: the model is not an encoder-decoder,
 * a vocabulary size differs, a tokenizer lacks BOS or EOS, options out of range. NULL with *error. */
WF_API wf_translator *wf_translator_new(const wf_model *model, const wf_tokenizer *source, const wf_tokenizer *target,
                                        const struct wf_translator_options *options, wf_error *error) WF_CHECKED;
WF_API void wf_translator_free(wf_translator *translator);
/* Translates `length` bytes of whole lines; the last "\n" may be missing. Lines are sorted by length internally, so some hundreds at a time
 * are fastest. *out belongs to the translator and is valid until the next call. An invalid line is WF_ERR_FORMAT as name:line: or
 * name:line:byte:, counted over all calls: not UTF-8, a NUL, longer than max_length, an unknown word without an unknown token. *out then
 * holds the lines before it; after any other error nothing. */
WF_API wf_status wf_translator_lines(wf_translator *translator, const char *text, int64_t length, struct wf_line_translations *out,
                                     wf_error *error) WF_CHECKED;
WF_API struct wf_translator_counts wf_translator_counts(const wf_translator *translator);

WF_END_DECLS

#endif

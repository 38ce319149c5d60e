/* SPDX-License-Identifier: MIT */
/* Scores of translations: BLEU and chrF, as sacreBLEU 2.6 (Post 2018) computes them.
 *
 * A scorer takes one segment at a time, a hypothesis with its references, and holds only counts, so that a corpus may have any
 * size:
 *
 *   wf_bleu *bleu;
 *   struct wf_bleu_score score;
 *   if (wf_bleu_new(NULL, &bleu, &error) == WF_OK) {
 *       while (there is a next line)
 *           if (wf_bleu_add(bleu, hypothesis, &reference, 1, &error) != WF_OK)
 *               break;
 *       if (wf_bleu_result(bleu, &score, &error) == WF_OK)
 *           puts(wf_bleu_line(&score, 2, line, sizeof line));
 *   }
 *   wf_bleu_free(bleu);
 *
 * Counts and the order of the arithmetic are sacreBLEU's. White space is that of Python, lower case that of Unicode with the
 * final sigma. Punctuation and symbols of the tokenizer `intl` follow the Unicode version of utf8proc. Different threads may use
 * different scorers. */
#ifndef WEFT_SCORE_H
#define WEFT_SCORE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* A line of text, UTF-8, without its line end. A negative length: up to the NUL. text NULL is a missing reference, unlike an
 * empty line, which is a reference without words. */
struct wf_segment {
    const char *text;
    int64_t length;
};
/* The lines of a file, as an array. */
struct wf_segments {
    const struct wf_segment *line;
    int64_t count;
};

/* --- BLEU (Papineni et al. 2002) ------------------------------------------------------------------------------------- */
enum { WF_BLEU_ORDER = 4 };

enum wf_bleu_tokenizer {
    WF_BLEU_13A,  /* the default: mteval-v13a, as used by WMT, for untokenised text */
    WF_BLEU_INTL, /* mteval-v14 --international-tokenization: splits at Unicode symbols and punctuation, except between digits */
    WF_BLEU_NONE, /* splits at white space, for tokenised text */
    WF_BLEU_CHAR  /* every character is a token */
};
/* Smoothing of zero precisions (Chen and Cherry 2014). */
enum wf_bleu_smooth {
    WF_SMOOTH_EXP,   /* the default: the k-th order without a match counts 1 / 2^k matches (their method 3, NIST's) */
    WF_SMOOTH_FLOOR, /* `smooth_value` matches, 0.1 (method 1) */
    WF_SMOOTH_ADD_K, /* `smooth_value`, 1, is added to matches and totals of the orders above 1 (method 2) */
    WF_SMOOTH_NONE   /* none: an order without a match makes the score 0 */
};
/* The names in signatures: "13a", "exp". false for an unknown name, with *out unchanged. */
WF_API const char *wf_bleu_tokenizer_name(enum wf_bleu_tokenizer tokenizer);
WF_API bool wf_bleu_tokenizer_parse(const char *name, enum wf_bleu_tokenizer *out);
WF_API const char *wf_bleu_smooth_name(enum wf_bleu_smooth smooth);
WF_API bool wf_bleu_smooth_parse(const char *name, enum wf_bleu_smooth *out);

struct wf_bleu_options {
    enum wf_bleu_tokenizer tokenizer;
    enum wf_bleu_smooth smooth;
    double smooth_value; /* for floor and add-k; 0: the default */
    bool lowercase;
    bool effective_order; /* ignores orders longer than the hypotheses: for single sentences */
};

struct wf_bleu_score {
    double score;                     /* 0 .. 100 */
    double precisions[WF_BLEU_ORDER]; /* in percent, after smoothing */
    double brevity_penalty, ratio;    /* ratio: hypothesis_length / reference_length, 0 if the references have no words */
    int64_t matches[WF_BLEU_ORDER], totals[WF_BLEU_ORDER]; /* of n-grams, before smoothing */
    int64_t hypothesis_length, reference_length; /* in tokens; of several references the closest in length, on a tie the shorter */
    int64_t segments;
    int64_t pre_tokenized; /* hypotheses that end in " ."; 100 or more suggest tokenised text */
    char signature[128];   /* "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-0.1.0" */
};

typedef struct wf_bleu wf_bleu;
/* options NULL: the defaults. WF_ERR_ARGUMENT for a smooth_value that is negative or not finite, WF_ERR_MEMORY. Free with wf_bleu_free. */
WF_API wf_status wf_bleu_new(const struct wf_bleu_options *options, wf_bleu **out, wf_error *error) WF_CHECKED;
WF_API void wf_bleu_free(wf_bleu *bleu); /* NULL is allowed */
/* Clears all counts, for a new corpus or a single sentence. */
WF_API void wf_bleu_reset(wf_bleu *bleu);
/* Counts a hypothesis against its `count` references. Their number may differ between segments. On an error nothing is counted:
 * WF_ERR_FORMAT for text that is not UTF-8 (segment and byte, both from 1), WF_ERR_ARGUMENT without a hypothesis or without any
 * reference, WF_ERR_MEMORY. */
WF_API wf_status wf_bleu_add(wf_bleu *bleu, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                             wf_error *error) WF_CHECKED;
/* The score of the segments so far; more may follow. WF_ERR_STATE when there are none. */
WF_API wf_status wf_bleu_result(const wf_bleu *bleu, struct wf_bleu_score *out, wf_error *error) WF_CHECKED;
/* A whole corpus: references[r].line[i] belongs to hypotheses.line[i]. WF_ERR_FORMAT, with both counts, for different numbers of lines;
 * otherwise as above. */
WF_API wf_status wf_bleu_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count,
                                const struct wf_bleu_options *options, struct wf_bleu_score *out, wf_error *error) WF_CHECKED;
/* "BLEU|nrefs:1|...|version:weft-0.1.0 = 36.03 68.1/43.3/29.5/20.4 (BP = 0.930 ratio = 0.932 hyp_len = 11265 ref_len = 12087)" with
 * `width` (0 .. 15) decimals of the score; signature false: "BLEU = 36.03 68.1/...". Returns text, at most 512 bytes. */
WF_API char *wf_bleu_line(const struct wf_bleu_score *score, bool signature, int width, char *text, size_t size);

/* --- chrF (Popovic 2015), chrF++ (Popovic 2017) ---------------------------------------------------------------------- */
enum { WF_CHRF_MAX_ORDER = 32 };

struct wf_chrf_options {
    int char_order; /* longest n-gram of characters. 0: 6 */
    int word_order; /* longest n-gram of words. 0: none; 2 makes it chrF++ */
    int beta;       /* weight of recall relative to precision. 0: 2 */
    bool lowercase;
    bool whitespace;    /* include white space in n-grams of characters */
    bool eps_smoothing; /* averages the F scores of all orders, with 1e-16 for undefined values. Default: the F score of the mean precision
                           and mean recall, over the orders that occur in hypothesis and reference */
};

struct wf_chrf_score {
    double score; /* 0 .. 100 */
    int64_t segments;
    char name[64];       /* "chrF2", "chrF2++" */
    char signature[128]; /* "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-0.1.0" */
};

typedef struct wf_chrf wf_chrf;
/* As for BLEU. Orders go up to WF_CHRF_MAX_ORDER, beta to 1000. With several references each segment counts the one with the best
 * score. */
WF_API wf_status wf_chrf_new(const struct wf_chrf_options *options, wf_chrf **out, wf_error *error) WF_CHECKED;
WF_API void wf_chrf_free(wf_chrf *chrf);
WF_API void wf_chrf_reset(wf_chrf *chrf);
WF_API wf_status wf_chrf_add(wf_chrf *chrf, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                             wf_error *error) WF_CHECKED;
WF_API wf_status wf_chrf_result(const wf_chrf *chrf, struct wf_chrf_score *out, wf_error *error) WF_CHECKED;
WF_API wf_status wf_chrf_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count,
                                const struct wf_chrf_options *options, struct wf_chrf_score *out, wf_error *error) WF_CHECKED;
WF_API char *wf_chrf_line(const struct wf_chrf_score *score, bool signature, int width, char *text, size_t size);

/* --- files ----------------------------------------------------------------------------------------------------------- */
/* Adds the lines of a file of hypotheses (NULL: standard input) and of `count` files of references to the scorers; either may be
 * NULL. The files are read in parallel, one line of each in memory. Lines end at "\n"; trailing white space, "\r" too, is removed, as
 * sacreBLEU does. WF_ERR_FORMAT: different numbers of lines (both counts), no lines, bytes that are not UTF-8
 * (file:line:byte); WF_ERR_IO; WF_ERR_MEMORY. */
WF_API wf_status wf_score_files(const char *hypotheses, const char *const *references, int64_t count, wf_bleu *bleu, wf_chrf *chrf,
                                wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/* Scores of translations: BLEU and chrF, as sacreBLEU 2.6 (Post 2018) computes them.
 *
 * A scorer takes one segment of a corpus at a time, which is a hypothesis (the translation to score) with its references. It keeps only
 * counts, so a corpus may have any size:
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
 * Counts and the order of the arithmetic are those of sacreBLEU. White space and lower case are defined as in Python (lower case by
 * Unicode, with the final sigma). Punctuation and symbols of the tokenizer `intl` follow the Unicode version of utf8proc. Several threads
 * may work at the same time if each uses its own scorer. */
#ifndef WEFT_SCORE_H
#define WEFT_SCORE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* One text of a segment, either the hypothesis or a reference: a line without its line end. */
struct wf_segment {
    const char *text; /* UTF-8. NULL: the reference is missing and is ignored; in contrast, an empty text is a reference without words */
    int64_t length;   /* in bytes; a negative length: the text ends with a NUL */
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
/* Smoothing: an n-gram order without a match has precision 0, and would make the score 0 if the precision were not changed (methods of Chen
 * and Cherry 2014). */
enum wf_bleu_smooth {
    WF_SMOOTH_EXP,   /* the default: the k-th order without a match counts as having 1 / 2^k matches (method 3, of NIST) */
    WF_SMOOTH_FLOOR, /* an order without a match counts as having `smooth_value` matches, by default 0.1 (method 1) */
    WF_SMOOTH_ADD_K, /* adds `smooth_value`, by default 1, to matches and totals of all orders above 1 (method 2) */
    WF_SMOOTH_NONE   /* no smoothing: an order without a match makes the score 0 */
};
/* The first and the third function return the name that a tokenizer or a smoothing has in signatures, such as "13a" or "exp". The second
 * and the fourth set *out to the tokenizer or smoothing called `name`; for an unknown name they return false and leave *out unchanged. */
WF_API const char *wf_bleu_tokenizer_name(enum wf_bleu_tokenizer tokenizer);
WF_API bool wf_bleu_tokenizer_parse(const char *name, enum wf_bleu_tokenizer *out);
WF_API const char *wf_bleu_smooth_name(enum wf_bleu_smooth smooth);
WF_API bool wf_bleu_smooth_parse(const char *name, enum wf_bleu_smooth *out);

struct wf_bleu_options {
    enum wf_bleu_tokenizer tokenizer;
    enum wf_bleu_smooth smooth;
    double smooth_value; /* for WF_SMOOTH_FLOOR and WF_SMOOTH_ADD_K; 0: the default of the smoothing */
    bool lowercase;
    bool effective_order; /* ignores the orders of n-grams for which all hypotheses have too few tokens, as single sentences often have */
};

struct wf_bleu_score {
    double score;                     /* 0 .. 100 */
    double precisions[WF_BLEU_ORDER]; /* in percent, after smoothing */
    double brevity_penalty;
    double ratio;                   /* hypothesis_length / reference_length; 0 if the references have no words */
    int64_t matches[WF_BLEU_ORDER]; /* by order, the number of n-grams of the hypotheses that the references contain, before smoothing */
    int64_t totals[WF_BLEU_ORDER];  /* by order, the number of all n-grams of the hypotheses, before smoothing */
    int64_t hypothesis_length;      /* number of tokens of all hypotheses */
    int64_t reference_length; /* number of tokens of all references. If a segment has several, only the reference whose length is closest to
                                 that of the hypothesis counts, and of two equally close ones the shorter */
    int64_t segments;
    int64_t pre_tokenized; /* number of hypotheses that end in " ."; 100 or more suggest that the text is already tokenised */
    char signature[128];   /* "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-0.1.0" */
};

typedef struct wf_bleu wf_bleu;
/* Makes a scorer, to which no segment was added yet. `options` may be NULL for the defaults. WF_ERR_ARGUMENT: smooth_value is negative or
 * not finite. WF_ERR_MEMORY. Free the scorer with wf_bleu_free. */
WF_API wf_status wf_bleu_new(const struct wf_bleu_options *options, wf_bleu **out, wf_error *error) WF_CHECKED;
WF_API void wf_bleu_free(wf_bleu *bleu); /* NULL is allowed */
/* Clears all counts, so that the scorer can be used for another corpus or sentence. */
WF_API void wf_bleu_reset(wf_bleu *bleu);
/* Adds a segment, which is a hypothesis and its `count` references. `count` may differ between segments. On an error nothing is added.
 * WF_ERR_FORMAT: a text is not UTF-8 (the message gives segment and byte, counted from 1). WF_ERR_ARGUMENT: there is no hypothesis, or no
 * reference. WF_ERR_MEMORY. */
WF_API wf_status wf_bleu_add(wf_bleu *bleu, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                             wf_error *error) WF_CHECKED;
/* Computes the score of the segments that were added so far; further segments may follow. WF_ERR_STATE: no segment was added. */
WF_API wf_status wf_bleu_result(const wf_bleu *bleu, struct wf_bleu_score *out, wf_error *error) WF_CHECKED;
/* Scores a whole corpus; references[r].line[i], with r = 0 .. count-1, is a reference of hypotheses.line[i]. WF_ERR_FORMAT: the numbers of
 * lines differ (the message gives both), or an error of wf_bleu_add. Other errors are those of the functions above. */
WF_API wf_status wf_bleu_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count,
                                const struct wf_bleu_options *options, struct wf_bleu_score *out, wf_error *error) WF_CHECKED;
/* Writes the score as sacreBLEU prints it, with `width` (0 .. 15) decimals:
 * "BLEU|nrefs:1|...|version:weft-0.1.0 = 36.03 68.1/43.3/29.5/20.4 (BP = 0.930 ratio = 0.932 hyp_len = 11265 ref_len = 12087)", or without
 * `signature` "BLEU = 36.03 68.1/...". Returns `text`; 512 bytes are always enough. */
WF_API char *wf_bleu_line(const struct wf_bleu_score *score, bool signature, int width, char *text, size_t size);

/* --- chrF (Popovic 2015), chrF++ (Popovic 2017) ---------------------------------------------------------------------- */
enum { WF_CHRF_MAX_ORDER = 32 };

struct wf_chrf_options {
    int char_order; /* length of the longest n-grams of characters; 0: the default 6 */
    int word_order; /* length of the longest n-grams of words; 0: no words, chrF; 2: chrF++ */
    int beta;       /* weight of recall relative to precision; 0: the default 2 */
    bool lowercase;
    bool whitespace;    /* includes white space in n-grams of characters */
    bool eps_smoothing; /* true: the score is the mean of the F scores of all orders, with 1e-16 for undefined values. False: the score is
                           the F score of mean precision and mean recall; the means are over the orders that occur both in hypothesis
                           and in reference */
};

struct wf_chrf_score {
    double score; /* 0 .. 100 */
    int64_t segments;
    char name[64];       /* "chrF2", "chrF2++" */
    char signature[128]; /* "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-0.1.0" */
};

typedef struct wf_chrf wf_chrf;
/* These functions work like those for BLEU, with the same errors. Orders are at most WF_CHRF_MAX_ORDER, and beta is at most 1000. If a
 * segment has several references, only the reference with the best score counts. */
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
/* Adds all lines of a file of hypotheses (`hypotheses` is its path, or NULL for standard input) and of `count` files of references to the
 * scorers `bleu` and `chrf`. Each of the two scorers may be NULL. All files are read at the same time, and only one line of each is in
 * memory. Lines end at "\n". White space at the end of a line, including "\r", is removed, as sacreBLEU does. WF_ERR_FORMAT: the files have
 * different numbers of lines (the message gives both numbers), have no lines, or contain bytes that are not UTF-8 (the message gives
 * file:line:byte). WF_ERR_IO. WF_ERR_MEMORY. */
WF_API wf_status wf_score_files(const char *hypotheses, const char *const *references, int64_t count, wf_bleu *bleu, wf_chrf *chrf,
                                wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/* Functions on text that do what sacreBLEU's Python code does, and scoring of whole corpora. */
#ifndef WEFT_DATA_SCORE_TEXT_H
#define WEFT_DATA_SCORE_TEXT_H

#include <weft/internal/string.h>
#include <weft/score.h>
#include <weft/tokenizer.h>

/* True for white space as in Python's str.isspace() and str.split(). */
bool score_space(uint32_t point);
/* The length of a UTF-8 text without the white space at its end. */
int64_t score_trim(const char *text, int64_t length);
/* Returns the first word at or after *at, sets *word to its length in bytes, and moves *at to its end. NULL: no word follows. */
const char *score_word(const char **at, const char *end, int64_t *word);

/* Sets *out to the tokens of the text with white space between them. `scratch` is working memory. False without memory. */
bool score_tokenize(enum wf_bleu_tokenizer tokenizer, const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch);

/* Checks that segment `number` has a hypothesis and a reference, and that its texts are UTF-8. Sets *present to the number of its
 * references that are not NULL. */
wf_status score_check(struct wf_segment hypothesis, const struct wf_segment *references, int64_t count, int64_t number, int64_t *present,
                      wf_error *error);
/* Sets *out to the text of a segment and its length in bytes, which replaces a negative length. With `lowercase` the text is a copy in
 * lower case in *memory. False without memory. */
bool score_text(struct wf_segment segment, bool lowercase, struct wf_string *memory, struct wf_segment *out);

/* score_add adds a segment to both scorers, and score_corpus every segment of a corpus. Each scorer may be NULL. */
wf_status score_add(wf_bleu *bleu, wf_chrf *chrf, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                    wf_error *error);
wf_status score_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count, wf_bleu *bleu, wf_chrf *chrf,
                       wf_error *error);

/* Keeps the number of references per segment for the signature: *count is 0 before the first segment, and VARIES after two segments with
 * different numbers. */
enum { VARIES = -1 };
static inline void reference_count_add(int64_t *count, int64_t number)
{
    *count = *count == 0 || *count == number ? number : VARIES;
}
char *reference_count_text(int64_t count, char *text, size_t size);

#endif

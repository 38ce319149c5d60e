/* SPDX-License-Identifier: MIT */
/* Inside the room: text as sacreBLEU's Python sees it. */
#ifndef WEFT_DATA_SCORE_TEXT_H
#define WEFT_DATA_SCORE_TEXT_H

#include <weft/internal/string.h>
#include <weft/score.h>
#include <weft/tokenizer.h>

/* White space by Python's str.isspace() and str.split(). */
bool score_space(uint32_t point);
/* The length without white space at the end. The text is UTF-8. */
int64_t score_trim(const char *text, int64_t length);
/* The next word, *word bytes long, from *at on, which is moved behind it; NULL at the end. */
const char *score_word(const char **at, const char *end, int64_t *word);

/* Splits by `tokenizer`: *out (emptied first) gets the tokens with white space between them. `scratch` is memory to work in. */
bool score_tokenize(enum wf_bleu_tokenizer tokenizer, const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch);

/* Checks what the user gave of segment `number`; *present is the number of references that are there. */
wf_status score_check(struct wf_segment hypothesis, const struct wf_segment *references, int64_t count, int64_t number, int64_t *present,
                      wf_error *error);
/* Sets *out to a segment with its length, with `lowercase` in lower case, in *memory; false
 * without memory. */
bool score_text(struct wf_segment segment, bool lowercase, struct wf_string *memory, struct wf_segment *out);

/* Adds a segment, or every segment of a corpus, to the scorers; either may be NULL. */
wf_status score_add(wf_bleu *bleu, wf_chrf *chrf, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                    wf_error *error);
wf_status score_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count, wf_bleu *bleu, wf_chrf *chrf,
                       wf_error *error);

/* The number of references of every segment, for signatures: 0 before the first segment, VARIES where it differs between segments. */
enum { VARIES = -1 };
static inline void reference_count_add(int64_t *count, int64_t number)
{
    *count = *count == 0 || *count == number ? number : VARIES;
}
char *reference_count_text(int64_t count, char *text, size_t size);

#endif

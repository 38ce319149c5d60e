/* SPDX-License-Identifier: MIT */
/* Inside the room: text as sacreBLEU's Python sees it. */
#ifndef WEFT_DATA_SCORE_TEXT_H
#define WEFT_DATA_SCORE_TEXT_H

#include <weft/internal/string.h>
#include <weft/score.h>
#include <weft/tokenizer.h>

/* What str.isspace() and str.split() take for white space. */
bool score_space(uint32_t point);
/* The length without white space at the end. The text is UTF-8. */
int64_t score_trim(const char *text, int64_t length);
/* The next word, *word bytes long, from *at on, which is moved behind it; NULL at the end. */
const char *score_word(const char **at, const char *end, int64_t *word);

/* str.lower(), appended to *out: one character to one, but for U+0130 and the sigma at a word's end. */
bool score_lower(const char *text, int64_t length, struct wf_string *out);

/* Splits by `tokenizer`: *out (emptied first) gets the tokens with white space between them. `scratch` is memory to work in. */
bool score_tokenize(enum wf_bleu_tokenizer tokenizer, const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch);

/* Checks what the user gave: lengths below 0 are found out. The message names hypothesis or reference and the segment. */
wf_status score_check(struct wf_segment *segment, const char *what, int64_t number, wf_error *error);
/* The same for a hypothesis and its references, of which those that are there are counted. */
wf_status score_check_all(struct wf_segment *hypothesis, const struct wf_segment *references, int64_t count, int64_t number,
                          int64_t *present, wf_error *error);
/* The lines of all must be as many. */
wf_status score_check_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count, wf_error *error);

/* Adds every segment of a corpus by add(ctx, hypothesis, references, count, error). */
wf_status score_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t count,
                       wf_status (*add)(void *ctx, struct wf_segment hypothesis, const struct wf_segment *references, int64_t count,
                                        wf_error *error),
                       void *ctx, wf_error *error);

/* The number of references as signatures tell it. */
struct reference_count {
    int64_t number; /* 0: no segment yet */
    bool varies;
};
void reference_count_add(struct reference_count *c, int64_t number);
char *reference_count_text(const struct reference_count *c, char *text, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* Generates several texts at once. Texts come and go: when one is done, another takes its row. Each text is the one that its prompt, its
 * settings and its seed give alone, to the bit, whatever else is computed with it.
 *
 *   wf_generator *g = wf_generator_new(&next, tape, &(struct wf_generator_options){.rows = 16}, &error);
 *   while (more prompts, or wf_generator_active(g) > 0) {
 *       while (more prompts, and wf_generator_active(g) < 16)
 *           wf_generator_add(g, prompt, length, &options, &error);        options.token and options.done tell what comes
 *       wf_generator_step(g, &error);
 *   }
 *   wf_generator_free(g);
 */
#ifndef WEFT_GENERATOR_H
#define WEFT_GENERATOR_H

#include <weft/search.h>

WF_BEGIN_DECLS

struct wf_generator_options {
    int64_t rows;  /* maximum number of texts at once, at most 4096; 0: 1 */
    int64_t chunk; /* maximum number of a prompt's ids that one pass processes; bounds the memory; 0: 512 */
    bool no_cache; /* computes all ids of the context again for each token, which gives the same ids; for tests */
    /* A smaller model with the same ids, which guesses the next tokens of a text; the model checks several guesses in one pass
     * (speculative decoding, Leviathan et al. 2023). The text is exactly the one without a draft, with sampling too: a guess counts only if
     * the model's own choice at that position, with the random number of that position, is the same token. Needs .all of struct wf_next,
     * one row, and a cache of keys and values on both sides. NULL: no draft. */
    const struct wf_next *draft;
    int64_t guesses; /* maximum number of guesses in a pass, at most 64; 0: 8. The number adapts to how many were right */
};
/* Makes a generator for `model`, which is copied; its ctx must stay valid. The generator uses the tape for itself until it is freed, and a
 * reset of the tape breaks it. Its cache grows with the texts. NULL on an error: an option is out of range, or there is no memory. */
WF_API wf_generator *wf_generator_new(const struct wf_next *model, wf_tape *tape, const struct wf_generator_options *options,
                                      wf_error *error) WF_CHECKED;
WF_API void wf_generator_free(wf_generator *generator); /* resets the tape; NULL is allowed */
/* Begins a text that continues prompt[length], which has at least one id and is copied; see wf_generate_with. The pointers in the options
 * must stay valid until the text is done. `result`, `token`, `scored` and `done` are filled and called by wf_generator_step. If a row that
 * is free holds ids with which the prompt begins, they are not computed again. WF_ERR_STATE: all rows are taken, or a callback of a step
 * calls this. WF_ERR_MEMORY: the cache cannot grow; the texts that were added before are not affected. */
WF_API wf_status wf_generator_add(wf_generator *generator, const int32_t *prompt, int64_t length, const struct wf_generate_options *options,
                                  wf_error *error) WF_CHECKED;
/* As wf_generator_add, but returns text as wf_generate_text does: pieces to `text`, and to options->done that the text is done, both with
 * `ctx`. The text of the prompt is given out at once, in this call. If `text` returned false in it, the text is done, too. The members
 * `token`, `ctx` and `types` of the options are ignored; an end token and an empty prompt are treated as wf_generate_text says. */
WF_API wf_status wf_generator_add_text(wf_generator *generator, const wf_tokenizer *tokenizer, const int32_t *prompt, int64_t length,
                                       const struct wf_generate_options *options, bool (*text)(void *ctx, const char *text, int64_t length),
                                       void *ctx, wf_error *error) WF_CHECKED;
/* The number of texts that are not done. */
WF_API int64_t wf_generator_active(const wf_generator *generator);
/* Computes up to one chunk of one prompt, and then the next token of each text whose prompt is computed. After an error the generator can
 * only be freed. Without active texts nothing happens. */
WF_API wf_status wf_generator_step(wf_generator *generator, wf_error *error) WF_CHECKED;
/* Counts of a generator's work, for reports. */
struct wf_generator_counts {
    int64_t prompt;  /* ids of prompts that were computed */
    int64_t reused;  /* ids of prompts that were in the cache already */
    int64_t tokens;  /* new tokens, end tokens included */
    int64_t passes;  /* passes of the model that chose tokens */
    int64_t guesses; /* tokens that the draft guessed */
    int64_t right;   /* guesses that were the model's choice */
};
WF_API struct wf_generator_counts wf_generator_counts(const wf_generator *generator);

WF_END_DECLS

#endif

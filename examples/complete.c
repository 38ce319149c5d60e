/* SPDX-License-Identifier: MIT */
/* Opens a folder of Hugging Face or a run, continues a text token by token, and reads the logits of the next token:
 *
 *   cc complete.c $(pkg-config --cflags --libs weft) -o complete && ./complete FOLDER 'The capital of France is'
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

static bool print(void *ctx, const char *text, int64_t length) /* a piece for each token, always whole characters */
{
    (void)ctx;
    return fwrite(text, 1, (size_t)length, stdout) == (size_t)length && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    wf_error error = {0};
    struct wf_run run = {0};
    struct wf_tokens ids = {0};
    int32_t best = 0;
    wf_tape *tape = wf_tape_new(&error);
    if (argc != 3)
        return fprintf(stderr, "usage: complete FOLDER TEXT\n"), 2;
    if (!tape || wf_run_open(&run, argv[1], NULL, &error) ||
        wf_tokenizer_encode_with(run.tokenizer, argv[2], (int64_t)strlen(argv[2]), &(struct wf_encode_options){.specials = run.begins},
                                 &ids, &error))
        return fprintf(stderr, "complete: %s\n", error.message), 1;
    struct wf_generate_options o = {.sampler.greedy = true, .max_tokens = 40, .end = run.ends ? run.end : NULL, .ends = run.ends};
    if (wf_generate_text(run.model, run.tokenizer, tape, ids.id, ids.count, &o, print, NULL, &error))
        return fprintf(stderr, "complete: %s\n", error.message), 1;
    const int64_t types = wf_model_shape_of(run.model)->vocab_size;
    wf_real *logits = malloc((size_t)types * sizeof *logits);
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *next = wf_model_next(run.model, wf_ids(tape, ids.id, 1, ids.count), NULL); /* [1,T] -> [1,V] */
    if (!logits || wf_read(next, logits, types) != WF_OK)
        return fprintf(stderr, "complete: %s\n", wf_tape_error(tape)->message), 1;
    for (int32_t id = 0; id < wf_tokenizer_vocab_size(run.tokenizer); id++)
        if (logits[id] > logits[best])
            best = id;
    printf("\nthe likeliest token after the text: '%s', logit %.4f\n", wf_tokenizer_token(run.tokenizer, best, NULL), (double)logits[best]);
    free(logits), wf_tokens_free(&ids), wf_tape_free(tape), wf_run_close(&run);
}

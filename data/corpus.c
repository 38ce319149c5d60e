/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include <weft/internal/encode.h>
#include <weft/corpus.h>

wf_status wf_text_encode(const struct wf_text *text, int64_t begin, int64_t end, const wf_tokenizer *tokenizer, struct wf_tokens *out,
                         wf_error *error)
{
    struct wf_encode_fault fault = {0};
    const struct wf_encode_options options = {.whole = true}; /* a text is no sentence of a batch */
    wf_status status = wf_tokenizer_encode_placed(tokenizer, text->data + begin, end - begin, &options, out, &fault);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "no memory for the ids of %" PRId64 " bytes of text", end - begin);
    if (status == WF_ERR_FORMAT) {
        char place[1024];
        fault.offset += begin;
        wf_tokenizer_fault(tokenizer, text->data, text->length, &fault, wf_text_place(text, fault.offset, place, sizeof place), error);
    }
    return status;
}

static wf_status check_length(const char *part, const struct wf_tokens *tokens, int64_t context, bool held_out, wf_error *error)
{
    if (tokens->count > context)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "the %s part has %" PRId64 " tokens, and a context of %" PRId64 " needs at least %" PRId64
                        "; use a longer text or a smaller context%s",
                        part, tokens->count, context, context + 1,
                        held_out ? ", or give a validation file instead of holding out the last tenth" : "");
}

wf_status wf_corpus_build(const wf_tokenizer *tokenizer, const struct wf_text *train, const struct wf_text *valid, int64_t context,
                          struct wf_corpus *out, wf_error *error)
{
    *out = (struct wf_corpus){0};
    /* n - ceil(n / 10) is floor(0.9 n) without a product that could overflow. */
    int64_t kept = valid ? train->characters : train->characters - (train->characters + 9) / 10, cut = wf_text_offset(train, kept);
    const struct wf_text *held = valid ? valid : train;
    if (context < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a context of %" PRId64 " tokens; it must be at least 1", context);
    out->train_characters = kept;
    out->valid_characters = valid ? valid->characters : train->characters - kept;
    wf_status status = wf_text_encode(train, 0, cut, tokenizer, &out->train, error);
    if (status == WF_OK)
        status = wf_text_encode(held, valid ? 0 : cut, held->length, tokenizer, &out->valid, error);
    if (status == WF_OK)
        status = check_length("training", &out->train, context, !valid, error);
    if (status == WF_OK)
        status = check_length("validation", &out->valid, context, !valid, error);
    if (status != WF_OK)
        wf_corpus_free(out);
    return status;
}

void wf_corpus_free(struct wf_corpus *corpus)
{
    wf_tokens_free(&corpus->train);
    wf_tokens_free(&corpus->valid);
    *corpus = (struct wf_corpus){0};
}

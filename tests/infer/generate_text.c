/* SPDX-License-Identifier: MIT */
/* Stop texts, and text from a generator with several rows. */
#include <string.h>

#include <weft/generator.h>

#include "../models/memory_test.h"

static const char story[] =
    "Die k\xC3\xBChle See \xE2\x80\x94 \xE6\xB5\xB7. Wer ruft? \xC3\x84rger! Die See, die See ruft wieder und wieder.\n";
enum { MANY = 60 };

struct heard {
    char text[4000];
    int64_t length, most; /* after `most` bytes the caller wants no more; 0: it wants all */
    struct wf_generate_result result;
    int done;
};

static bool hear(void *ctx, const char *text, int64_t length)
{
    struct heard *h = ctx;
    ck_assert(length < (int64_t)sizeof h->text - h->length && text[length] == 0);
    memcpy(h->text + h->length, text, (size_t)length);
    h->length += length;
    h->text[h->length] = 0;
    ck_assert_msg((text[0] & 0xc0) != 0x80, "a piece begins within a character");
    return h->most == 0 || h->length < h->most;
}

static void end(void *ctx, const struct wf_generate_result *result)
{
    struct heard *h = ctx;
    h->result = *result;
    h->done++;
}

struct fixture {
    wf_tokenizer *tokenizer;
    struct wf_tokens ids;
    wf_model *model;
    wf_tape *tape;
};

static void open_fixture(struct fixture *f, wf_tokenizer_kind kind)
{
    *f = (struct fixture){.tape = new_tape()};
    ck_ok(
        wf_tokenizer_train(story, sizeof story - 1, &f->tokenizer, error, .kind = kind, .vocab_size = kind == WF_TOKENIZER_CHAR ? 0 : 300));
    ck_ok(wf_tokenizer_encode(f->tokenizer, story, 14, &f->ids, error));
    struct wf_config c = small_config("char-rms", 16, wf_tokenizer_vocab_size(f->tokenizer));
    f->model = model_of(&c, 3);
}

static void close_fixture(struct fixture *f)
{
    wf_tokenizer_free(f->tokenizer);
    wf_tokens_free(&f->ids);
    wf_model_free(f->model);
    wf_tape_free(f->tape);
}

static struct heard text_of(struct fixture *f, struct wf_generate_options o, uint64_t seed)
{
    struct heard h = {0};
    int32_t none = -1;
    o.sampler.seed = seed;
    o.max_tokens = MANY;
    o.end = &none;
    o.result = &h.result;
    ck_ok(wf_generate_text(f->model, f->tokenizer, f->tape, f->ids.id, f->ids.count, &o, hear, &h, error));
    return h;
}

/* Each piece of a text as a stop text: the text ends before its first place after the prompt. */
START_TEST(a_text_ends_before_a_stop_text)
{
    static const wf_tokenizer_kind kinds[] = {WF_TOKENIZER_CHAR, WF_TOKENIZER_BYTE_BPE};
    for (int k = 0; k < 2; k++) {
        struct fixture f;
        open_fixture(&f, kinds[k]);
        int tried = 0;
        for (uint64_t seed = 0; seed < 6; seed++) {
            const struct heard whole = text_of(&f, (struct wf_generate_options){0}, seed);
            ck_assert_int_eq(whole.result.end, WF_GENERATE_MAX_TOKENS);
            const int64_t prompt = 14;
            for (int64_t at = prompt; at < whole.length; at += 3)
                for (int64_t length = 1; length < 9 && at + length <= whole.length; length += 2) {
                    char stop[16] = {0};
                    if ((whole.text[at] & 0xc0) == 0x80 || (whole.text[at + length] & 0xc0) == 0x80)
                        continue;
                    memcpy(stop, whole.text + at, (size_t)length);
                    if (strlen(stop) != (size_t)length) /* with a NUL */
                        continue;
                    const char *first = memmem(whole.text + prompt, (size_t)(whole.length - prompt), stop, (size_t)length);
                    const char *stops[] = {"no such text, surely", stop};
                    const struct heard h = text_of(&f, (struct wf_generate_options){.stop = stops, .stops = 2}, seed);
                    ck_assert_int_eq(h.result.end, WF_GENERATE_STOP_TEXT);
                    ck_assert_msg(h.length == first - whole.text && !memcmp(h.text, whole.text, (size_t)h.length),
                                  "stop text \"%s\": \"%s\" of \"%s\"", stop, h.text, whole.text);
                    tried++;
                }
            const char *never[] = {"no such text", "ruft nie"};
            const struct heard h = text_of(&f, (struct wf_generate_options){.stop = never, .stops = 2}, seed);
            ck_assert_int_eq(h.result.end, WF_GENERATE_MAX_TOKENS);
            ck_assert_int_eq(h.length, whole.length);
            ck_assert_mem_eq(h.text, whole.text, whole.length);
        }
        ck_assert_int_gt(tried, 50);
        const char *empty[] = {""};
        ck_fails(wf_generate_text(f.model, f.tokenizer, f.tape, f.ids.id, f.ids.count,
                                  &(struct wf_generate_options){.max_tokens = 1, .stop = empty, .stops = 1}, hear, &(struct heard){0},
                                  error),
                 WF_ERR_ARGUMENT, "stop text 1 of 1 is empty");
        close_fixture(&f);
    }
}
END_TEST

/* Twelve texts in three rows: those of wf_generate_text. One caller has enough at some point, one within the prompt. */
START_TEST(texts_of_a_batch_are_those_alone)
{
    enum { TEXTS = 12, ROWS = 3 };
    struct fixture f;
    static struct heard batch[TEXTS];
    open_fixture(&f, WF_TOKENIZER_BYTE_BPE);
    const struct wf_next next = wf_next_of(f.model);
    wf_tape *tape = new_tape();
    wf_error failed = {0};
    wf_generator *g = wf_generator_new(&next, tape, &(struct wf_generator_options){.rows = ROWS}, &failed);
    ck_assert_ptr_nonnull(g);
    const char *stops[] = {"e"};
    int32_t none = -1;
    for (int i = 0; i < TEXTS || wf_generator_active(g) > 0;) {
        for (; i < TEXTS && wf_generator_active(g) < ROWS; i++) {
            struct wf_generate_options o = {.max_tokens = MANY, .sampler.seed = (uint64_t)i, .end = &none, .done = end};
            if (i % 3 == 1)
                o.stop = stops, o.stops = 1;
            batch[i] = (struct heard){.most = i == 5 ? 4 : i == 8 ? 30 : 0};
            ck_ok(wf_generator_add_text(g, f.tokenizer, f.ids.id, f.ids.count, &o, hear, &batch[i], error));
        }
        ck_ok(wf_generator_step(g, error));
    }
    for (int i = 0; i < TEXTS; i++) {
        struct wf_generate_options o = {0};
        if (i % 3 == 1)
            o.stop = stops, o.stops = 1;
        const struct heard alone = text_of(&f, o, (uint64_t)i);
        ck_assert_int_eq(batch[i].done, 1);
        ck_assert(batch[i].length <= alone.length && memcmp(batch[i].text, alone.text, (size_t)batch[i].length) == 0);
        if (batch[i].most == 0)
            ck_assert_int_eq(batch[i].length, alone.length);
        ck_assert_int_eq(batch[i].result.end, batch[i].most ? WF_GENERATE_STOPPED : alone.result.end);
    }
    /* one that is not done is freed with the generator */
    struct heard h = {0};
    ck_ok(wf_generator_add_text(g, f.tokenizer, NULL, 0, &(struct wf_generate_options){.max_tokens = 5}, hear, &h, error));
    ck_ok(wf_generator_step(g, error));
    wf_generator_free(g);
    wf_tape_free(tape);
    close_fixture(&f);
}
END_TEST

WF_TEST_MAIN("infer/generate_text", a_text_ends_before_a_stop_text, texts_of_a_batch_are_those_alone)

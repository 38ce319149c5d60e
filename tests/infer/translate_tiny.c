/* SPDX-License-Identifier: MIT */
/* The preset seq2seq-tiny: six pairs, 200 steps on all of them, every target comes back. */
#include <time.h>

#include "translate_test.h"

enum { PAIRS = 6, STEPS = 200 };

static const char *const english[PAIRS] = {
    "The cat is sleeping on the warm roof.", "Where does this old road lead?",         "She gave her brother a red bicycle.",
    "We never drink coffee in the evening.", "The children are building a boat, too.", "Winter came early, and the lake froze.",
};
static const char *const german[PAIRS] = {
    "Die Katze schläft auf dem warmen Dach.", "Wohin führt diese alte Straße?",  "Sie schenkte ihrem Bruder ein rotes Fahrrad.",
    "Abends trinken wir nie Kaffee.",         "Auch die Kinder bauen ein Boot.", "Der Winter kam früh, und der See fror zu.",
};

struct side {
    wf_tokenizer *tokenizer;
    struct wf_tokens ids;
    int32_t offsets[PAIRS + 1];
};

static void side_make(struct side *s, const char *const *lines)
{
    char text[1000] = "";
    for (int i = 0; i < PAIRS; i++)
        strcat(strcat(text, lines[i]), "\n");
    *s = (struct side){0};
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &s->tokenizer, error, .kind = WF_TOKENIZER_WORD));
    for (int i = 0; i < PAIRS; i++) {
        ck_ok(wf_tokenizer_encode(s->tokenizer, lines[i], (int64_t)strlen(lines[i]), &s->ids, error));
        s->offsets[i + 1] = (int32_t)s->ids.count;
    }
}

static void side_free(struct side *s)
{
    wf_tokenizer_free(s->tokenizer);
    wf_tokens_free(&s->ids);
}

/* The targets with their marks: input <bos> y, target y <eos>. */
static void mark(const struct side *s, int32_t *input, int32_t *target, int32_t *offsets)
{
    int32_t bos = wf_tokenizer_special(s->tokenizer, WF_SPECIAL_BOS), eos = wf_tokenizer_special(s->tokenizer, WF_SPECIAL_EOS), at = 0;
    ck_assert_int_eq(wf_tokenizer_special(s->tokenizer, WF_SPECIAL_PAD), 0);
    ck_assert_int_eq(bos, 1);
    ck_assert_int_eq(eos, 2);
    for (int i = 0; i < PAIRS; i++) {
        offsets[i] = at;
        input[at] = bos;
        for (int32_t j = s->offsets[i]; j < s->offsets[i + 1]; j++) {
            target[at] = s->ids.id[j];
            input[++at] = s->ids.id[j];
        }
        target[at++] = eos;
    }
    offsets[PAIRS] = at;
}

static void train(wf_model *m, wf_tape *tape, const struct wf_pairs *pairs, uint64_t seed, double *first, double *last)
{
    struct wf_optimizer adam;
    ck_ok(wf_adam_init(&adam, wf_model_registry(m), error, .lr = 1e-3));
    for (int step = 0; step < STEPS; step++) {
        wf_tape_reset(tape, WF_TRAIN, .seed = seed, .step = (uint64_t)step);
        wf_tensor *loss = wf_pairs_loss(m, tape, pairs);
        *(step == 0 ? first : last) = backward(loss);
        ck_ok(wf_adam_step(&adam, error));
    }
    wf_optimizer_free(&adam);
}

START_TEST(every_target_comes_back)
{
    struct timespec start, end;
    struct side en, de;
    side_make(&en, english);
    side_make(&de, german);
    int32_t input[200], target[200], offsets[PAIRS + 1];
    mark(&de, input, target, offsets);
    struct wf_pairs pairs = {
        .count = PAIRS, .source = en.ids.id, .source_offsets = en.offsets, .input = input, .target = target, .target_offsets = offsets};
    struct wf_config c = preset("seq2seq-tiny");
    set_key(&c, "source_vocab_size", wf_tokenizer_vocab_size(en.tokenizer));
    set_key(&c, "vocab_size", wf_tokenizer_vocab_size(de.tokenizer));
    wf_tape *tape = new_tape();
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        wf_model *m = model_of(&c, seed);
        double first, last;
        train(m, tape, &pairs, seed, &first, &last);
        ck_assert(first > 3 && last < 0.5);

        struct wf_translations t;
        ck_ok(wf_translate(m, tape, en.ids.id, en.offsets, PAIRS, 1, 2, &t, error));
        for (int i = 0; i < PAIRS; i++) {
            const struct wf_hypothesis *h = &t.hypothesis[i];
            ck_assert(h->finished);
            ck_assert_int_eq(h->length, de.offsets[i + 1] - de.offsets[i]);
            ck_assert_mem_eq(h->ids, de.ids.id + de.offsets[i], (size_t)h->length * sizeof *h->ids);
        }
        wf_translations_free(&t);

        wf_translator *translator = new_translator(m, en.tokenizer, de.tokenizer, (struct wf_translator_options){.language = "de"});
        struct wf_line_translations lines;
        for (int i = 0; i < PAIRS; i++) {
            ck_ok(wf_translator_lines(translator, english[i], (int64_t)strlen(english[i]), &lines, error));
            ck_assert_int_eq(lines.count, 1);
            ck_assert_str_eq(lines.translation[0].text, german[i]);
        }
        wf_translator_free(translator);
        wf_model_free(m);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    printf("five trainings of %d steps: %.2f s\n", STEPS, seconds);
    wf_tape_free(tape);
    side_free(&en);
    side_free(&de);
}
END_TEST

/* A word that was not in the pairs is named, with its line. */
START_TEST(new_words_are_named)
{
    struct side en, de;
    side_make(&en, english);
    side_make(&de, german);
    struct wf_config c = preset("seq2seq-tiny");
    set_key(&c, "source_vocab_size", wf_tokenizer_vocab_size(en.tokenizer));
    set_key(&c, "vocab_size", wf_tokenizer_vocab_size(de.tokenizer));
    wf_model *m = model_of(&c, 1);
    wf_translator *t = new_translator(m, en.tokenizer, de.tokenizer, (struct wf_translator_options){.name = "new.en"});
    struct wf_line_translations lines;
    static const char text[] = "The cat.\nThe dog.\nThe roof.\n";
    ck_fails(wf_translator_lines(t, text, (int64_t)strlen(text), &lines, error), WF_ERR_FORMAT, "new.en:2:5: ");
    ck_fails(wf_translator_lines(t, text, (int64_t)strlen(text), &lines, error), WF_ERR_FORMAT, "dog");
    ck_assert_int_eq(lines.count, 1);
    wf_translator_free(t);
    wf_model_free(m);
    side_free(&en);
    side_free(&de);
}
END_TEST

WF_TEST_MAIN("models/translate_tiny", every_target_comes_back, new_words_are_named)

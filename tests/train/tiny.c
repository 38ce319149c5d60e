/* SPDX-License-Identifier: MIT */
/* seq2seq-tiny learns six pairs by heart: with each of five seeds every target is decoded exactly after its 200 steps. */
#include <time.h>

#include "zoo.h"

static const char english[] = "the cat sleeps on the warm stone\n"
                              "the dog runs through the garden\n"
                              "a child reads a book under the tree\n"
                              "two birds sing in the morning\n"
                              "my sister drinks cold water\n"
                              "we walk home in the rain\n";
static const char german[] = "die Katze schläft auf dem warmen Stein\n"
                             "der Hund läuft durch den Garten\n"
                             "ein Kind liest ein Buch unter dem Baum\n"
                             "zwei Vögel singen am Morgen\n"
                             "meine Schwester trinkt kaltes Wasser\n"
                             "wir gehen im Regen nach Hause\n";

/* The lines of a run's translations of `english`. */
static void translate(const char *out, char *text, size_t size)
{
    struct wf_run run = opened(out, NULL);
    wf_error problem = {0};
    struct wf_line_translations lines;
    wf_translator *t = wf_translator_new(run.model, run.source_tokenizer, run.tokenizer, &(struct wf_translator_options){0}, &problem);
    ck_assert_msg(t != NULL, "%s", problem.message);
    ck_ok(wf_translator_lines(t, english, (int64_t)strlen(english), &lines, error));
    ck_assert_int_eq(lines.count, 6);
    text[0] = 0;
    for (int64_t i = 0; i < lines.count; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s\n", lines.translation[i * lines.n_best].text);
    wf_translator_free(t);
    wf_run_close(&run);
}

START_TEST(six_pairs_are_learnt_by_heart)
{
    put_text("pairs.en", english);
    put_text("pairs.de", german);
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int seed = 1; seed <= 5; seed++) {
        char name[32], text[1024];
        snprintf(name, sizeof name, "run-%d", seed);
        struct wf_train_options o = preset_options("seq2seq-tiny", name, NULL, "");
        o.seed = (uint64_t)seed;
        train_on(&o, "pairs.en", "pairs.de");
        const struct wf_train_result result = trained(&o);
        ck_assert_int_eq(result.step, 200);
        translate(name, text, sizeof text);
        ck_assert_msg(strcmp(text, german) == 0, "seed %d, loss %g:\n%s", seed, result.loss, text);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("seq2seq-tiny, five seeds: %.2f s\n", (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
}
END_TEST

WF_TEST_MAIN("tiny", six_pairs_are_learnt_by_heart)

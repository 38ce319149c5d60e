/* SPDX-License-Identifier: MIT */
/* seq2seq-tiny learns six pairs by heart: with each of five seeds every target is decoded exactly after its 200 steps. */
#include <time.h>

#include <weft/translate.h>

#include "pairs_test.h"

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
    struct wf_run run;
    wf_error problem = {0};
    struct wf_line_translations lines;
    ck_ok(wf_run_open(&run, out, NULL, error));
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
    strcpy(folder, "/tmp/weft-tiny-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_text("pairs.en", english);
    write_text("pairs.de", german);
    const char *files[2] = {in_folder("pairs.en"), in_folder("pairs.de")};
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int seed = 1; seed <= 5; seed++) {
        char name[32], text[1024];
        snprintf(name, sizeof name, "run-%d", seed);
        struct wf_train_options o = {.out = in_folder(name), .train = files, .train_files = 2, .seed = (uint64_t)seed};
        ck_ok(wf_config_preset(&o.config, "seq2seq-tiny", error));
        struct wf_train_result result;
        ck_ok(wf_train(&o, &result, error));
        ck_assert_int_eq(result.step, 200);
        translate(in_folder(name), text, sizeof text);
        ck_assert_msg(strcmp(text, german) == 0, "seed %d, loss %g:\n%s", seed, result.loss, text);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("seq2seq-tiny, five seeds: %.2f s\n", (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
    finish();
}
END_TEST

WF_TEST_MAIN("tiny", six_pairs_are_learnt_by_heart)

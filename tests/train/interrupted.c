/* SPDX-License-Identifier: MIT */
/* A training that is cancelled or killed and then resumed has the bytes of one that was not, for each task. */
#include "scenarios.h"

static const struct trainee tasks[] = {
    {"language", train_zoo, language, ""},
    {"vit", train_vit},
    {"gan", train_gan},
    {"ranks", train_by_rank},
    {"masked", train_zoo, masked, "accumulate=4"},
    {"translation", train_zoo, translation, "accumulate=3"},
    {"bleu", train_zoo, translation, "best_by=bleu"},
    {"one-tokenizer", train_zoo, translation, "accumulate=3 shared=true"},
    {"ema", train_zoo, translation, "ema=0.75"},
};
enum { KILLED = 4, ANYWHERE = 7, TASKS = sizeof tasks / sizeof *tasks }; /* the first ones also in the longer scenarios */

START_TEST(anywhere)
{
    for (int i = 0; i < ANYWHERE; i++)
        cancelled_anywhere(&tasks[i]);
}
END_TEST

START_TEST(after_an_update)
{
    for (int i = 0; i < TASKS; i++)
        cancelled_after_an_update(&tasks[i]);
}
END_TEST

START_TEST(by_a_kill)
{
    if (sanitized()) { /* all tests are one process then, whose threads a fork does not have */
        fprintf(stderr, "skipped: kills need processes of their own\n");
        return;
    }
    for (int i = 0; i < KILLED; i++)
        killed(&tasks[i]);
}
END_TEST

WF_TEST_MAIN("train/interrupted", anywhere, after_an_update, by_a_kill)

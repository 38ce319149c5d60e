/* SPDX-License-Identifier: MIT */
/* Each task gives the loss of the large batch in micro-batches, stops early, fails cleanly without memory, and allocates nothing in the
 * steady state. */
#include "scenarios.h"

#define FALLS "stopped early: the validation loss no longer falls"
static const struct trainee tasks[] = {
    {"language", train_zoo, language, "", {4}, FALLS},              /* 6 rows: 1, 2, 1 and 2 */
    {"masked", train_zoo, masked, "", {4}, FALLS},                  /* the same, with different numbers of masked tokens */
    {"translation", train_zoo, translation, "", {2, 5, 64}, FALLS}, /* 64: more than pairs, so that some are empty */
    {"vit", train_vit, .parts = {3}, .early = "stopped early: the validation accuracy no longer rises"}, /* 16 rows: 5, 5 and 6 */
    {"gan", train_gan, .parts = {3}},
};
enum { TASKS = sizeof tasks / sizeof *tasks };

START_TEST(accumulation_is_the_large_batch)
{
    for (int i = 0; i < TASKS; i++)
        accumulated(&tasks[i]);
}
END_TEST

START_TEST(patience_stops_early)
{
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].early)
            out_of_patience(&tasks[i]);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (int i = 0; i < TASKS; i++)
        short_of_memory(&tasks[i]);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    for (int i = 0; i < TASKS; i++) {
        const struct seen seen = completes(
            &tasks[i], &(struct wf_fit_options){
                           .out = run_of(&tasks[i], "steady"), .steps = 30, .log_every = 1000, .save_every = 1000, .valid_every = 1000});
        ck_assert_msg(seen.most == 0, "%s: %d", tasks[i].name, (int)seen.most);
    }
}
END_TEST

WF_TEST_MAIN("train/scenarios", accumulation_is_the_large_batch, patience_stops_early, every_allocation_may_fail,
             nothing_is_allocated_in_the_steady_state)

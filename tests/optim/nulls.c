/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of optim/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_clip_norm_of(NULL, 1, 1, GIVEN, &error), "wf_clip_norm_of: grads is NULL");
    STATUS(wf_adam_init_with(NULL, GIVEN, GIVEN, &error), "wf_adam_init_with: opt is NULL");
    STATUS(wf_adam_init_with(GIVEN, NULL, GIVEN, &error), "wf_adam_init_with: registry is NULL");
    STATUS(wf_sgd_init_with(NULL, GIVEN, GIVEN, &error), "wf_sgd_init_with: opt is NULL");
    STATUS(wf_sgd_init_with(GIVEN, NULL, GIVEN, &error), "wf_sgd_init_with: registry is NULL");
    STATUS(wf_adam_init_with(GIVEN, GIVEN, NULL, &error), "wf_adam_init_with: options is NULL");
    STATUS(wf_sgd_init_with(GIVEN, GIVEN, NULL, &error), "wf_sgd_init_with: options is NULL");
    STATUS(wf_optimizer_group_where(GIVEN, GIVEN, GIVEN, NULL, &error), "wf_optimizer_group_where: options is NULL");
    STATUS(wf_optimizer_add(NULL, GIVEN, GIVEN, &error), "wf_optimizer_add: opt is NULL");
    STATUS(wf_optimizer_add(GIVEN, NULL, GIVEN, &error), "wf_optimizer_add: registry is NULL");
    STATUS(wf_optimizer_group_with(NULL, GIVEN, GIVEN, &error), "wf_optimizer_group_with: opt is NULL");
    STATUS(wf_optimizer_group_with(GIVEN, NULL, GIVEN, &error), "wf_optimizer_group_with: pattern is NULL");
    STATUS(wf_optimizer_group_where(NULL, GIVEN, GIVEN, GIVEN, &error), "wf_optimizer_group_where: opt is NULL");
    STATUS(wf_optimizer_group_where(GIVEN, NULL, GIVEN, GIVEN, &error), "wf_optimizer_group_where: match is NULL");
    STATUS(wf_optimizer_only(NULL, GIVEN, GIVEN, &error), "wf_optimizer_only: opt is NULL");
    STATUS(wf_optimizer_only(GIVEN, NULL, GIVEN, &error), "wf_optimizer_only: match is NULL");
    STATUS(wf_optimizer_init_with(NULL, GIVEN, GIVEN, GIVEN, GIVEN, &error), "wf_optimizer_init_with: opt is NULL");
    STATUS(wf_optimizer_init_with(GIVEN, NULL, GIVEN, GIVEN, GIVEN, &error), "wf_optimizer_init_with: registry is NULL");
    STATUS(wf_optimizer_init_with(GIVEN, GIVEN, NULL, GIVEN, GIVEN, &error), "wf_optimizer_init_with: rule is NULL");
    STATUS(wf_optimizer_init_with(GIVEN, GIVEN, GIVEN, GIVEN, NULL, &error), "wf_optimizer_init_with: options is NULL");
    STATUS(wf_optimizer_rule_check(NULL, &error), "wf_optimizer_rule_check: rule is NULL");
    STATUS(wf_optimizer_step(NULL, &error), "wf_optimizer_step: opt is NULL");
    STATUS(wf_optimizer_load(NULL, GIVEN, GIVEN, &error), "wf_optimizer_load: opt is NULL");
    STATUS(wf_optimizer_load(GIVEN, NULL, GIVEN, &error), "wf_optimizer_load: file is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    ck_assert(isnan(wf_grad_norm_of(NULL, 1)));
    wf_optimizer_free(NULL);
    wf_optimizer_decay_matrices_only(NULL);
    wf_optimizer_save(NULL, GIVEN, GIVEN);
    wf_optimizer_save(GIVEN, NULL, GIVEN);
    ck_assert(isnan(wf_schedule_lr(NULL, 1)));
}
END_TEST

WF_TEST_MAIN("optim/nulls", refused_by_name, without_an_error)

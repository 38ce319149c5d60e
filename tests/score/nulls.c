/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of score/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_bleu_new(GIVEN, NULL, &error), "wf_bleu_new: out is NULL");
    STATUS(wf_bleu_add(NULL, (struct wf_segment){0}, GIVEN, 1, &error), "wf_bleu_add: bleu is NULL");
    STATUS(wf_bleu_add(GIVEN, (struct wf_segment){0}, NULL, 1, &error), "wf_bleu_add: references is NULL");
    STATUS(wf_bleu_result(NULL, GIVEN, &error), "wf_bleu_result: bleu is NULL");
    STATUS(wf_bleu_result(GIVEN, NULL, &error), "wf_bleu_result: out is NULL");
    STATUS(wf_bleu_corpus((struct wf_segments){0}, NULL, 1, GIVEN, GIVEN, &error), "wf_bleu_corpus: references is NULL");
    STATUS(wf_bleu_corpus((struct wf_segments){0}, GIVEN, 1, GIVEN, NULL, &error), "wf_bleu_corpus: out is NULL");
    STATUS(wf_chrf_new(GIVEN, NULL, &error), "wf_chrf_new: out is NULL");
    STATUS(wf_chrf_add(NULL, (struct wf_segment){0}, GIVEN, 1, &error), "wf_chrf_add: chrf is NULL");
    STATUS(wf_chrf_add(GIVEN, (struct wf_segment){0}, NULL, 1, &error), "wf_chrf_add: references is NULL");
    STATUS(wf_chrf_result(NULL, GIVEN, &error), "wf_chrf_result: chrf is NULL");
    STATUS(wf_chrf_result(GIVEN, NULL, &error), "wf_chrf_result: out is NULL");
    STATUS(wf_chrf_corpus((struct wf_segments){0}, NULL, 1, GIVEN, GIVEN, &error), "wf_chrf_corpus: references is NULL");
    STATUS(wf_chrf_corpus((struct wf_segments){0}, GIVEN, 1, GIVEN, NULL, &error), "wf_chrf_corpus: out is NULL");
    STATUS(wf_score_files(GIVEN, NULL, 1, GIVEN, GIVEN, &error), "wf_score_files: references is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    ck_assert(!wf_bleu_tokenizer_parse(NULL, GIVEN));
    ck_assert(!wf_bleu_tokenizer_parse(GIVEN, NULL));
    ck_assert(!wf_bleu_smooth_parse(NULL, GIVEN));
    ck_assert(!wf_bleu_smooth_parse(GIVEN, NULL));
    wf_bleu_free(NULL);
    wf_bleu_reset(NULL);
    ck_assert_ptr_eq(wf_bleu_line(NULL, false, 1, GIVEN, 1), GIVEN);
    (void)wf_bleu_line(GIVEN, false, 1, NULL, 1);
    wf_chrf_free(NULL);
    wf_chrf_reset(NULL);
    ck_assert_ptr_eq(wf_chrf_line(NULL, false, 1, GIVEN, 1), GIVEN);
    (void)wf_chrf_line(GIVEN, false, 1, NULL, 1);
}
END_TEST

WF_TEST_MAIN("score/nulls", refused_by_name, without_an_error)

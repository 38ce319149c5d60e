/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of data/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_crops_init(NULL, (struct wf_id_view){0}, 1, 1, &error), "wf_crops_init: crops is NULL");
    STATUS(wf_epochs_init_with(NULL, 1, 1, 1, NULL, &error), "wf_epochs_init_with: epochs is NULL");
    STATUS(wf_rows_copy(NULL, GIVEN, 1, WF_REAL, GIVEN, &error), "wf_rows_copy: array is NULL");
    STATUS(wf_rows_copy(GIVEN, NULL, 1, WF_REAL, GIVEN, &error), "wf_rows_copy: rows is NULL");
    STATUS(wf_rows_copy(GIVEN, GIVEN, 1, WF_REAL, NULL, &error), "wf_rows_copy: out is NULL");
    STATUS(wf_text_lines_open_with(NULL, GIVEN, NULL, &error), "wf_text_lines_open_with: lines is NULL");
    STATUS(wf_text_lines_open_with(GIVEN, NULL, NULL, &error), "wf_text_lines_open_with: path is NULL");
    STATUS(wf_windows_init(NULL, (struct wf_id_view){0}, 1, 1, &error), "wf_windows_init: windows is NULL");
    STATUS(wf_bitext_open(GIVEN, GIVEN, GIVEN, NULL, &error), "wf_bitext_open: out is NULL");
    STATUS(wf_bitext_open(NULL, GIVEN, GIVEN, GIVEN, &error), "wf_bitext_open: source is NULL");
    STATUS(wf_bitext_open(GIVEN, NULL, GIVEN, GIVEN, &error), "wf_bitext_open: target is NULL");
    STATUS(wf_bitext_open(GIVEN, GIVEN, NULL, GIVEN, &error), "wf_bitext_open: options is NULL");
    STATUS(wf_bitext_text(NULL, 1, 1, GIVEN, &error), "wf_bitext_text: bitext is NULL");
    STATUS(wf_bitext_text(GIVEN, 1, 1, NULL, &error), "wf_bitext_text: out is NULL");
    STATUS(wf_pair_batches_new(GIVEN, GIVEN, NULL, &error), "wf_pair_batches_new: out is NULL");
    STATUS(wf_pair_batches_new(NULL, GIVEN, GIVEN, &error), "wf_pair_batches_new: bitext is NULL");
    STATUS(wf_pair_batches_seek(NULL, 1, 1, &error), "wf_pair_batches_seek: batches is NULL");
    STATUS(wf_pair_batches_next(NULL, GIVEN, &error), "wf_pair_batches_next: batches is NULL");
    STATUS(wf_pair_batches_next(GIVEN, NULL, &error), "wf_pair_batches_next: pairs is NULL");
    STATUS(wf_text_ids_open(GIVEN, 1, GIVEN, NULL, &error), "wf_text_ids_open: out is NULL");
    STATUS(wf_text_ids_open(NULL, 1, GIVEN, GIVEN, &error), "wf_text_ids_open: paths is NULL");
    STATUS(wf_text_ids_open(GIVEN, 1, NULL, GIVEN, &error), "wf_text_ids_open: options is NULL");
    STATUS(wf_corpus_open(GIVEN, 1, GIVEN, 1, 1, GIVEN, NULL, &error), "wf_corpus_open: out is NULL");
    STATUS(wf_corpus_open(NULL, 1, GIVEN, 1, 1, GIVEN, GIVEN, &error), "wf_corpus_open: train is NULL");
    STATUS(wf_corpus_open(GIVEN, 1, GIVEN, 1, 1, NULL, GIVEN, &error), "wf_corpus_open: options is NULL");
    STATUS(wf_tokenizer_train_cached(GIVEN, 1, GIVEN, GIVEN, GIVEN, NULL, &error), "wf_tokenizer_train_cached: out is NULL");
    STATUS(wf_tokenizer_train_cached(NULL, 1, GIVEN, GIVEN, GIVEN, GIVEN, &error), "wf_tokenizer_train_cached: paths is NULL");
    STATUS(wf_cache_folder(NULL, &error), "wf_cache_folder: folder is NULL");
    STATUS(wf_masking_init(NULL, GIVEN, 1, 1, &error), "wf_masking_init: masking is NULL");
    STATUS(wf_masking_init(GIVEN, NULL, 1, 1, &error), "wf_masking_init: tokenizer is NULL");
    STATUS(wf_masking_frame(NULL, 1, 1, GIVEN, &error), "wf_masking_frame: masking is NULL");
    STATUS(wf_masking_frame(GIVEN, 1, 1, NULL, &error), "wf_masking_frame: ids is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    wf_crops_fill(NULL, 1, 1, 1, GIVEN, GIVEN);
    wf_crops_fill(GIVEN, 1, 1, 1, NULL, GIVEN);
    ck_assert_int_eq(wf_crops_start(NULL, 1, 1), 0);
    ck_assert_int_eq(wf_epochs_batch(NULL, 1, GIVEN), 0);
    ck_assert_int_eq(wf_epochs_batch(GIVEN, 1, NULL), 0);
    ck_assert_int_eq(wf_epochs_steps(NULL), 0);
    ck_assert_int_eq(wf_epochs_epoch(NULL, 1), 0);
    ck_assert_int_eq(wf_epochs_item(NULL, 1, 1), -1);
    wf_text_lines_close(NULL);
    ck_assert_ptr_null(wf_text_lines_at(NULL, 0, NULL));
    wf_windows_limit(NULL, 1);
    ck_assert(!wf_windows_next(NULL, GIVEN));
    ck_assert(!wf_windows_next(GIVEN, NULL));
    wf_windows_free(NULL);
    wf_bitext_close(NULL);
    ck_assert_ptr_null(wf_bitext_survey(NULL));
    wf_bitext_lengths(NULL, 1, GIVEN, GIVEN);
    wf_bitext_lengths(GIVEN, 1, NULL, GIVEN);
    wf_bitext_lengths(GIVEN, 1, GIVEN, NULL);
    ck_assert_ptr_eq(wf_bitext_describe(NULL, GIVEN, 1), GIVEN);
    (void)wf_bitext_describe(GIVEN, NULL, 1);
    wf_pair_batches_free(NULL);
    wf_pair_batches_place(NULL, GIVEN, GIVEN);
    wf_pair_batches_place(GIVEN, NULL, GIVEN);
    wf_pair_batches_place(GIVEN, GIVEN, NULL);
    ck_assert_int_eq(wf_pair_batches_count(NULL), 0);
    ck_assert_ptr_null(wf_pair_batches_index(NULL));
    wf_pair_batches_part(NULL, 1, 1, GIVEN);
    wf_pair_batches_part(GIVEN, 1, 1, NULL);
    wf_text_ids_close(NULL);
    wf_corpus_close(NULL);
    wf_masking_free(NULL);
    ck_assert_int_eq(wf_masking_hide(NULL, 1, 1, 1, 1, GIVEN, GIVEN, GIVEN), 0);
    ck_assert_int_eq(wf_masking_hide(GIVEN, 1, 1, 1, 1, NULL, GIVEN, GIVEN), 0);
    ck_assert_int_eq(wf_masking_hide(GIVEN, 1, 1, 1, 1, GIVEN, NULL, GIVEN), 0);
    ck_assert_int_eq(wf_masking_hide(GIVEN, 1, 1, 1, 1, GIVEN, GIVEN, NULL), 0);
    ck_assert_int_eq(wf_masking_ordinary(NULL, (struct wf_id_view){0}), 0);
    wf_scans_free(NULL);
}
END_TEST

WF_TEST_MAIN("data/nulls", refused_by_name, without_an_error)

/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of io/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    POINTER(wf_events_open(NULL, 1, &error), "wf_events_open: folder is NULL");
    STATUS(wf_events_scalar(NULL, GIVEN, 1, 1, 1, &error), "wf_events_scalar: events is NULL");
    STATUS(wf_events_scalar(GIVEN, NULL, 1, 1, 1, &error), "wf_events_scalar: tag is NULL");
    STATUS(wf_events_text(NULL, GIVEN, 1, 1, GIVEN, &error), "wf_events_text: events is NULL");
    STATUS(wf_events_text(GIVEN, NULL, 1, 1, GIVEN, &error), "wf_events_text: tag is NULL");
    STATUS(wf_events_text(GIVEN, GIVEN, 1, 1, NULL, &error), "wf_events_text: text is NULL");
    POINTER(wf_file_load(NULL, 1, GIVEN, &error), "wf_file_load: path is NULL");
    STATUS(wf_file_save(NULL, GIVEN, 1, &error), "wf_file_save: path is NULL");
    STATUS(wf_file_save(GIVEN, NULL, 1, &error), "wf_file_save: data is NULL");
    STATUS(wf_folder_make(NULL, &error), "wf_folder_make: path is NULL");
    STATUS(wf_npy_save(NULL, GIVEN, &error), "wf_npy_save: path is NULL");
    STATUS(wf_npy_save(GIVEN, NULL, &error), "wf_npy_save: array is NULL");
    POINTER(wf_npy_load(NULL, &error), "wf_npy_load: path is NULL");
    POINTER(wf_npy_view(NULL, 1, GIVEN, &error), "wf_npy_view: data is NULL");
    POINTER(wf_npy_view(GIVEN, 1, NULL, &error), "wf_npy_view: label is NULL");
    POINTER(wf_safetensors_open_with(NULL, GIVEN, &error), "wf_safetensors_open_with: path is NULL");
    POINTER(wf_safetensors_view(NULL, 1, GIVEN, &error), "wf_safetensors_view: data is NULL");
    POINTER(wf_safetensors_view(GIVEN, 1, NULL, &error), "wf_safetensors_view: label is NULL");
    STATUS(wf_safetensors_read(NULL, GIVEN, 0, GIVEN, 1, &error), "wf_safetensors_read: file is NULL");
    STATUS(wf_safetensors_read(GIVEN, NULL, 0, GIVEN, 1, &error), "wf_safetensors_read: name is NULL");
    STATUS(wf_safetensors_read(GIVEN, GIVEN, 0, NULL, 1, &error), "wf_safetensors_read: dst is NULL");
    STATUS(wf_safetensors_read_range(NULL, GIVEN, 0, 0, GIVEN, 1, &error), "wf_safetensors_read_range: file is NULL");
    STATUS(wf_safetensors_read_range(GIVEN, NULL, 0, 0, GIVEN, 1, &error), "wf_safetensors_read_range: name is NULL");
    STATUS(wf_safetensors_read_range(GIVEN, GIVEN, 0, 0, NULL, 1, &error), "wf_safetensors_read_range: dst is NULL");
    STATUS(wf_safetensors_commit(GIVEN, NULL, &error), "wf_safetensors_commit: path is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    wf_events_close(NULL);
    ck_assert(!wf_file_exists(NULL));
    ck_assert(!wf_folder_exists(NULL));
    wf_safetensors_close(NULL);
    ck_assert_int_eq(wf_safetensors_count(NULL), 0);
    ck_assert_ptr_null(wf_safetensors_at(NULL, 1));
    ck_assert_ptr_null(wf_safetensors_find(NULL, GIVEN));
    ck_assert_ptr_null(wf_safetensors_find(GIVEN, NULL));
    ck_assert_ptr_null(wf_safetensors_data(NULL, GIVEN));
    ck_assert_ptr_null(wf_safetensors_data(GIVEN, NULL));
    ck_assert_ptr_null(wf_safetensors_metadata(NULL, GIVEN));
    ck_assert_ptr_null(wf_safetensors_metadata(GIVEN, NULL));
    ck_assert(!wf_safetensors_metadata_at(NULL, 1, GIVEN, GIVEN));
    wf_safetensors_discard(NULL);
}
END_TEST

WF_TEST_MAIN("io/nulls", refused_by_name, without_an_error)

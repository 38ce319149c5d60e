/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of report/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_attention_of(GIVEN, GIVEN, NULL, &error), "wf_attention_of: maps is NULL");
    STATUS(wf_attention_of(NULL, GIVEN, GIVEN, &error), "wf_attention_of: run is NULL");
    STATUS(wf_attention_of(GIVEN, NULL, GIVEN, &error), "wf_attention_of: request is NULL");
    STATUS(wf_attention_check_head(NULL, GIVEN, (struct wf_head){0}, &error), "wf_attention_check_head: maps is NULL");
    STATUS(wf_attention_check_head(GIVEN, NULL, (struct wf_head){0}, &error), "wf_attention_check_head: map is NULL");
    STATUS(wf_attention_draw(NULL, GIVEN, GIVEN, 1, GIVEN, &error), "wf_attention_draw: maps is NULL");
    STATUS(wf_attention_draw(GIVEN, NULL, GIVEN, 1, GIVEN, &error), "wf_attention_draw: map is NULL");
    STATUS(wf_attention_draw(GIVEN, GIVEN, GIVEN, 1, NULL, &error), "wf_attention_draw: path is NULL");
    STATUS(wf_attention_save_json(NULL, GIVEN, GIVEN, GIVEN, &error), "wf_attention_save_json: maps is NULL");
    STATUS(wf_attention_save_json(GIVEN, NULL, GIVEN, GIVEN, &error), "wf_attention_save_json: map is NULL");
    STATUS(wf_attention_save_json(GIVEN, GIVEN, GIVEN, NULL, &error), "wf_attention_save_json: path is NULL");
    STATUS(wf_attention_save_html(NULL, GIVEN, GIVEN, &error), "wf_attention_save_html: maps is NULL");
    STATUS(wf_attention_save_html(GIVEN, GIVEN, NULL, &error), "wf_attention_save_html: path is NULL");
    STATUS(wf_plot_save(NULL, 1, GIVEN, GIVEN, &error), "wf_plot_save: runs is NULL");
    STATUS(wf_plot_save(GIVEN, 1, GIVEN, NULL, &error), "wf_plot_save: path is NULL");
    STATUS(wf_plot_text(NULL, 1, GIVEN, GIVEN, &error), "wf_plot_text: runs is NULL");
    STATUS(wf_plot_text(GIVEN, 1, GIVEN, NULL, &error), "wf_plot_text: out is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    wf_attention_free(NULL);
    ck_assert_ptr_null(wf_attention_find(NULL, 0));
}
END_TEST

WF_TEST_MAIN("report/nulls", refused_by_name, without_an_error)

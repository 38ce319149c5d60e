/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of train/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_fit_get_int(NULL, GIVEN, GIVEN, &error), "wf_fit_get_int: state is NULL");
    STATUS(wf_fit_get_int(GIVEN, NULL, GIVEN, &error), "wf_fit_get_int: name is NULL");
    STATUS(wf_fit_get_int(GIVEN, GIVEN, NULL, &error), "wf_fit_get_int: value is NULL");
    STATUS(wf_fit_get_array(NULL, GIVEN, 0, GIVEN, 1, &error), "wf_fit_get_array: state is NULL");
    STATUS(wf_fit_get_array(GIVEN, NULL, 0, GIVEN, 1, &error), "wf_fit_get_array: name is NULL");
    STATUS(wf_fit_get_array(GIVEN, GIVEN, 0, NULL, 1, &error), "wf_fit_get_array: out is NULL");
    STATUS(wf_train(NULL, GIVEN, &error), "wf_train: options is NULL");
    STATUS(wf_train_from(NULL, GIVEN, &error), "wf_train_from: from is NULL");
    STATUS(wf_train_from(GIVEN, NULL, &error), "wf_train_from: config is NULL");
    STATUS(wf_train_config(NULL, GIVEN, GIVEN, &error), "wf_train_config: folder is NULL");
    STATUS(wf_train_config(GIVEN, NULL, GIVEN, &error), "wf_train_config: config is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    wf_fit_put_int(NULL, GIVEN, 1);
    wf_fit_put_int(GIVEN, NULL, 1);
    wf_fit_put_array(NULL, GIVEN, GIVEN);
    wf_fit_put_array(GIVEN, NULL, GIVEN);
    wf_fit_put_array(GIVEN, GIVEN, NULL);
}
END_TEST

WF_TEST_MAIN("train/nulls", refused_by_name, without_an_error)

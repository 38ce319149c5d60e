/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of infer/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_average(NULL, 1, GIVEN, GIVEN, &error), "wf_average: folder is NULL");
    STATUS(wf_average(GIVEN, 1, NULL, GIVEN, &error), "wf_average: out is NULL");
    POINTER(wf_embedder_new(NULL, GIVEN, GIVEN, &error), "wf_embedder_new: model is NULL");
    POINTER(wf_embedder_new(GIVEN, NULL, GIVEN, &error), "wf_embedder_new: tokenizer is NULL");
    STATUS(wf_embed(NULL, GIVEN, GIVEN, 1, 1, GIVEN, GIVEN, &error), "wf_embed: embedder is NULL");
    STATUS(wf_embed(GIVEN, NULL, GIVEN, 1, 1, GIVEN, GIVEN, &error), "wf_embed: lines is NULL");
    STATUS(wf_embed(GIVEN, GIVEN, NULL, 1, 1, GIVEN, GIVEN, &error), "wf_embed: lengths is NULL");
    STATUS(wf_embed(GIVEN, GIVEN, GIVEN, 1, 1, NULL, GIVEN, &error), "wf_embed: out is NULL");
    STATUS(wf_cosines(NULL, 1, 1, 1, 1, GIVEN, &error), "wf_cosines: x is NULL");
    STATUS(wf_cosines(GIVEN, 1, 1, 1, 1, NULL, &error), "wf_cosines: out is NULL");
    STATUS(wf_sample(NULL, GIVEN, 1, 1, GIVEN, GIVEN, &error), "wf_sample: sampler is NULL");
    STATUS(wf_sample(GIVEN, NULL, 1, 1, GIVEN, GIVEN, &error), "wf_sample: logits is NULL");
    STATUS(wf_sample(GIVEN, GIVEN, 1, 1, NULL, GIVEN, &error), "wf_sample: order is NULL");
    STATUS(wf_sample(GIVEN, GIVEN, 1, 1, GIVEN, NULL, &error), "wf_sample: id is NULL");
    STATUS(wf_generate_with(NULL, GIVEN, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_with: model is NULL");
    STATUS(wf_generate_with(GIVEN, NULL, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_with: tape is NULL");
    STATUS(wf_generate_with(GIVEN, GIVEN, NULL, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_with: prompt is NULL");
    STATUS(wf_generate_with(GIVEN, GIVEN, GIVEN, 1, NULL, GIVEN, GIVEN, &error), "wf_generate_with: options is NULL");
    STATUS(wf_generate_with(GIVEN, GIVEN, GIVEN, 1, GIVEN, GIVEN, NULL, &error), "wf_generate_with: count is NULL");
    STATUS(wf_generate_text(NULL, GIVEN, GIVEN, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_text: model is NULL");
    STATUS(wf_generate_text(GIVEN, NULL, GIVEN, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_text: tokenizer is NULL");
    STATUS(wf_generate_text(GIVEN, GIVEN, NULL, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_text: tape is NULL");
    STATUS(wf_generate_text(GIVEN, GIVEN, GIVEN, GIVEN, 1, NULL, GIVEN, GIVEN, &error), "wf_generate_text: options is NULL");
    STATUS(wf_generate_text(GIVEN, GIVEN, GIVEN, GIVEN, 1, GIVEN, NULL, GIVEN, &error), "wf_generate_text: text is NULL");
    STATUS(wf_run_open(NULL, GIVEN, GIVEN, &error), "wf_run_open: run is NULL");
    STATUS(wf_run_open(GIVEN, NULL, GIVEN, &error), "wf_run_open: folder is NULL");
    STATUS(wf_run_bitext(GIVEN, GIVEN, GIVEN, GIVEN, NULL, &error), "wf_run_bitext: out is NULL");
    STATUS(wf_run_bitext(NULL, GIVEN, GIVEN, GIVEN, GIVEN, &error), "wf_run_bitext: run is NULL");
    STATUS(wf_run_bitext(GIVEN, NULL, GIVEN, GIVEN, GIVEN, &error), "wf_run_bitext: source is NULL");
    STATUS(wf_run_bitext(GIVEN, GIVEN, NULL, GIVEN, GIVEN, &error), "wf_run_bitext: target is NULL");
    STATUS(wf_model_evaluate(GIVEN, GIVEN, (struct wf_id_view){0}, 1, NULL, &error), "wf_model_evaluate: out is NULL");
    STATUS(wf_model_evaluate(NULL, GIVEN, (struct wf_id_view){0}, 1, GIVEN, &error), "wf_model_evaluate: model is NULL");
    STATUS(wf_model_evaluate(GIVEN, NULL, (struct wf_id_view){0}, 1, GIVEN, &error), "wf_model_evaluate: tape is NULL");
    STATUS(wf_evaluate_pairs(GIVEN, GIVEN, GIVEN, 1, 1, NULL, &error), "wf_evaluate_pairs: out is NULL");
    STATUS(wf_evaluate_pairs(NULL, GIVEN, GIVEN, 1, 1, GIVEN, &error), "wf_evaluate_pairs: model is NULL");
    STATUS(wf_evaluate_pairs(GIVEN, NULL, GIVEN, 1, 1, GIVEN, &error), "wf_evaluate_pairs: tape is NULL");
    STATUS(wf_evaluate_pairs(GIVEN, GIVEN, NULL, 1, 1, GIVEN, &error), "wf_evaluate_pairs: bitext is NULL");
    STATUS(wf_evaluate_masked(GIVEN, GIVEN, GIVEN, (struct wf_id_view){0}, 1, NULL, &error), "wf_evaluate_masked: out is NULL");
    STATUS(wf_evaluate_masked(NULL, GIVEN, GIVEN, (struct wf_id_view){0}, 1, GIVEN, &error), "wf_evaluate_masked: model is NULL");
    STATUS(wf_evaluate_masked(GIVEN, NULL, GIVEN, (struct wf_id_view){0}, 1, GIVEN, &error), "wf_evaluate_masked: tokenizer is NULL");
    STATUS(wf_evaluate_masked(GIVEN, GIVEN, NULL, (struct wf_id_view){0}, 1, GIVEN, &error), "wf_evaluate_masked: tape is NULL");
    STATUS(wf_evaluate_translation(GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, NULL, &error), "wf_evaluate_translation: out is NULL");
    STATUS(wf_evaluate_translation(NULL, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, &error), "wf_evaluate_translation: run is NULL");
    STATUS(wf_evaluate_translation(GIVEN, NULL, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, &error), "wf_evaluate_translation: source is NULL");
    STATUS(wf_evaluate_translation(GIVEN, GIVEN, NULL, GIVEN, GIVEN, GIVEN, GIVEN, &error), "wf_evaluate_translation: target is NULL");
    STATUS(wf_generate_next(NULL, GIVEN, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_next: model is NULL");
    STATUS(wf_generate_next(GIVEN, NULL, GIVEN, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_next: tape is NULL");
    STATUS(wf_generate_next(GIVEN, GIVEN, NULL, 1, GIVEN, GIVEN, GIVEN, &error), "wf_generate_next: prompt is NULL");
    STATUS(wf_generate_next(GIVEN, GIVEN, GIVEN, 1, NULL, GIVEN, GIVEN, &error), "wf_generate_next: options is NULL");
    STATUS(wf_generate_next(GIVEN, GIVEN, GIVEN, 1, GIVEN, GIVEN, NULL, &error), "wf_generate_next: count is NULL");
    STATUS(wf_beam_search_with(GIVEN, GIVEN, GIVEN, 1, GIVEN, NULL, &error), "wf_beam_search_with: out is NULL");
    STATUS(wf_beam_search_with(NULL, GIVEN, GIVEN, 1, GIVEN, GIVEN, &error), "wf_beam_search_with: model is NULL");
    STATUS(wf_beam_search_with(GIVEN, NULL, GIVEN, 1, GIVEN, GIVEN, &error), "wf_beam_search_with: tape is NULL");
    STATUS(wf_beam_search_with(GIVEN, GIVEN, NULL, 1, GIVEN, GIVEN, &error), "wf_beam_search_with: prompt is NULL");
    STATUS(wf_translate_with(GIVEN, GIVEN, GIVEN, GIVEN, 1, 1, 1, GIVEN, NULL, &error), "wf_translate_with: out is NULL");
    STATUS(wf_translate_with(NULL, GIVEN, GIVEN, GIVEN, 1, 1, 1, GIVEN, GIVEN, &error), "wf_translate_with: model is NULL");
    STATUS(wf_translate_with(GIVEN, NULL, GIVEN, GIVEN, 1, 1, 1, GIVEN, GIVEN, &error), "wf_translate_with: tape is NULL");
    STATUS(wf_translate_with(GIVEN, GIVEN, NULL, GIVEN, 1, 1, 1, GIVEN, GIVEN, &error), "wf_translate_with: ids is NULL");
    STATUS(wf_translate_with(GIVEN, GIVEN, GIVEN, NULL, 1, 1, 1, GIVEN, GIVEN, &error), "wf_translate_with: offsets is NULL");
    POINTER(wf_translator_new(NULL, GIVEN, GIVEN, GIVEN, &error), "wf_translator_new: model is NULL");
    STATUS(wf_translator_lines(GIVEN, GIVEN, 1, NULL, &error), "wf_translator_lines: out is NULL");
    STATUS(wf_translator_lines(NULL, GIVEN, 1, GIVEN, &error), "wf_translator_lines: translator is NULL");
    STATUS(wf_translator_lines(GIVEN, NULL, 1, GIVEN, &error), "wf_translator_lines: text is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    wf_embedder_free(NULL);
    ck_assert_int_eq(wf_embedder_width(NULL), 0);
    wf_run_close(NULL);
    wf_hypotheses_free(NULL);
    wf_translations_free(NULL);
    wf_translator_free(NULL);
    (void)wf_translator_counts(NULL);
}
END_TEST

WF_TEST_MAIN("infer/nulls", refused_by_name, without_an_error)

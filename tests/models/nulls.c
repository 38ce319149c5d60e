/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of models/. */
#include "null_test.h"

static wf_tape *tape;
static wf_tensor *ids;

static void begin(void)
{
    wf_tape_reset(tape, WF_INFER);
    ids = wf_ids(tape, (int32_t[]){0}, 1, 1);
}

static void refused(const char *says)
{
    ck_assert_str_eq(wf_tape_error(tape)->message, says);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_ERR_ARGUMENT);
}

/* clang-format off */
#define TENSOR(call, says) do { begin(); ck_assert(wf_is_poison(call)); refused(says); } while (0)
#define NOTHING(call, says) do { begin(); call; refused(says); } while (0)
/* clang-format on */

#define PACKED(list) ((struct wf_packed){list, 1})

START_TEST(refused_by_name)
{
    tape = wf_tape_new(NULL);
    begin();
    STATUS(wf_config_preset(NULL, GIVEN, &error), "wf_config_preset: config is NULL");
    STATUS(wf_config_preset(GIVEN, NULL, &error), "wf_config_preset: name is NULL");
    STATUS(wf_config_defaults(NULL, GIVEN, &error), "wf_config_defaults: config is NULL");
    STATUS(wf_config_defaults(GIVEN, NULL, &error), "wf_config_defaults: family is NULL");
    STATUS(wf_config_set(NULL, GIVEN, GIVEN, &error), "wf_config_set: config is NULL");
    STATUS(wf_config_set(GIVEN, NULL, GIVEN, &error), "wf_config_set: key is NULL");
    STATUS(wf_config_set(GIVEN, GIVEN, NULL, &error), "wf_config_set: value is NULL");
    STATUS(wf_config_set_all(NULL, GIVEN, &error), "wf_config_set_all: config is NULL");
    STATUS(wf_config_set_all(GIVEN, NULL, &error), "wf_config_set_all: settings is NULL");
    STATUS(wf_config_check(NULL, &error), "wf_config_check: config is NULL");
    STATUS(wf_config_save(NULL, GIVEN, &error), "wf_config_save: config is NULL");
    STATUS(wf_config_save(GIVEN, NULL, &error), "wf_config_save: path is NULL");
    STATUS(wf_config_load(NULL, GIVEN, &error), "wf_config_load: config is NULL");
    STATUS(wf_config_load(GIVEN, NULL, &error), "wf_config_load: path is NULL");
    STATUS(wf_config_load_over(NULL, GIVEN, &error), "wf_config_load_over: config is NULL");
    STATUS(wf_config_load_over(GIVEN, NULL, &error), "wf_config_load_over: path is NULL");
    TENSOR(wf_encoder_forward_with(NULL, ids, GIVEN), "wf_encoder_forward_with: model is NULL");
    TENSOR(wf_encoder_forward_with(GIVEN, NULL, GIVEN), "wf_encoder_forward_with: ids is NULL");
    TENSOR(wf_encoder_logits_with(NULL, ids, GIVEN), "wf_encoder_logits_with: model is NULL");
    TENSOR(wf_encoder_logits_with(GIVEN, NULL, GIVEN), "wf_encoder_logits_with: ids is NULL");
    TENSOR(wf_encoder_loss_with(NULL, ids, GIVEN, GIVEN, GIVEN, 1, GIVEN), "wf_encoder_loss_with: model is NULL");
    TENSOR(wf_encoder_loss_with(GIVEN, NULL, GIVEN, GIVEN, GIVEN, 1, GIVEN), "wf_encoder_loss_with: ids is NULL");
    TENSOR(wf_encoder_loss_with(GIVEN, ids, GIVEN, NULL, GIVEN, 1, GIVEN), "wf_encoder_loss_with: places is NULL");
    TENSOR(wf_encoder_loss_with(GIVEN, ids, GIVEN, GIVEN, NULL, 1, GIVEN), "wf_encoder_loss_with: targets is NULL");
    STATUS(wf_family_register(NULL, &error), "wf_family_register: family is NULL");
    POINTER(wf_family_find(NULL, &error), "wf_family_find: name is NULL");
    STATUS(wf_family_check(NULL, &error), "wf_family_check: family is NULL");
    STATUS(wf_key_conflict(NULL, 1, GIVEN, GIVEN, 1, &error), "wf_key_conflict: key is NULL");
    STATUS(wf_key_conflict(GIVEN, 1, NULL, GIVEN, 1, &error), "wf_key_conflict: rule is NULL");
    STATUS(wf_key_conflict(GIVEN, 1, GIVEN, NULL, 1, &error), "wf_key_conflict: other is NULL");
    POINTER(wf_model_new(NULL, &error), "wf_model_new: config is NULL");
    POINTER(wf_model_new_with(NULL, GIVEN, &error), "wf_model_new_with: config is NULL");
    STATUS(wf_model_load(NULL, GIVEN, &error), "wf_model_load: model is NULL");
    STATUS(wf_model_load(GIVEN, NULL, &error), "wf_model_load: file is NULL");
    STATUS(wf_model_load_with(NULL, GIVEN, GIVEN, &error), "wf_model_load_with: model is NULL");
    STATUS(wf_model_load_with(GIVEN, NULL, GIVEN, &error), "wf_model_load_with: file is NULL");
    TENSOR(wf_model_logits(NULL, ids, GIVEN), "wf_model_logits: model is NULL");
    TENSOR(wf_model_logits(GIVEN, NULL, GIVEN), "wf_model_logits: ids is NULL");
    TENSOR(wf_model_attention(NULL, ids, GIVEN), "wf_model_attention: model is NULL");
    TENSOR(wf_model_attention(GIVEN, NULL, GIVEN), "wf_model_attention: ids is NULL");
    TENSOR(wf_model_attention(GIVEN, ids, NULL), "wf_model_attention: weights is NULL");
    TENSOR(wf_model_next(NULL, ids, GIVEN), "wf_model_next: model is NULL");
    TENSOR(wf_model_next(GIVEN, NULL, GIVEN), "wf_model_next: ids is NULL");
    TENSOR(wf_model_loss_with(NULL, ids, ids, GIVEN), "wf_model_loss_with: model is NULL");
    TENSOR(wf_model_loss_with(GIVEN, NULL, ids, GIVEN), "wf_model_loss_with: ids is NULL");
    TENSOR(wf_model_loss_with(GIVEN, ids, NULL, GIVEN), "wf_model_loss_with: targets is NULL");
    STATUS(wf_model_cache(NULL, GIVEN, 1, &error), "wf_model_cache: model is NULL");
    STATUS(wf_model_cache(GIVEN, NULL, 1, &error), "wf_model_cache: cache is NULL");
    STATUS(wf_model_cache_with(NULL, GIVEN, 1, GIVEN, &error), "wf_model_cache_with: model is NULL");
    STATUS(wf_model_cache_with(GIVEN, NULL, 1, GIVEN, &error), "wf_model_cache_with: cache is NULL");
    TENSOR(wf_pairs_logits(NULL, tape, GIVEN, GIVEN), "wf_pairs_logits: model is NULL");
    TENSOR(wf_pairs_logits(GIVEN, tape, NULL, GIVEN), "wf_pairs_logits: pairs is NULL");
    TENSOR(wf_pairs_loss_with(NULL, tape, GIVEN, GIVEN), "wf_pairs_loss_with: model is NULL");
    TENSOR(wf_pairs_loss_with(GIVEN, tape, NULL, GIVEN), "wf_pairs_loss_with: pairs is NULL");
    TENSOR(wf_model_encode(NULL, tape, GIVEN, PACKED(GIVEN)), "wf_model_encode: model is NULL");
    TENSOR(wf_model_encode(GIVEN, tape, NULL, PACKED(GIVEN)), "wf_model_encode: ids is NULL");
    TENSOR(wf_model_encode(GIVEN, tape, GIVEN, PACKED(NULL)), "wf_model_encode: source.offsets is NULL");
    NOTHING(wf_model_memory(NULL, ids, GIVEN), "wf_model_memory: model is NULL");
    NOTHING(wf_model_memory(GIVEN, NULL, GIVEN), "wf_model_memory: memory is NULL");
    NOTHING(wf_model_memory(GIVEN, ids, NULL), "wf_model_memory: kv is NULL");
    TENSOR(wf_model_decode(NULL, ids, GIVEN, GIVEN, PACKED(GIVEN), PACKED(GIVEN)), "wf_model_decode: model is NULL");
    TENSOR(wf_model_decode(GIVEN, NULL, GIVEN, GIVEN, PACKED(GIVEN), PACKED(GIVEN)), "wf_model_decode: ids is NULL");
    TENSOR(wf_model_decode(GIVEN, ids, NULL, GIVEN, PACKED(GIVEN), PACKED(GIVEN)), "wf_model_decode: cache is NULL");
    TENSOR(wf_model_decode(GIVEN, ids, GIVEN, NULL, PACKED(GIVEN), PACKED(GIVEN)), "wf_model_decode: kv is NULL");
    TENSOR(wf_model_decode(GIVEN, ids, GIVEN, GIVEN, PACKED(NULL), PACKED(GIVEN)), "wf_model_decode: translations.offsets is NULL");
    TENSOR(wf_model_decode(GIVEN, ids, GIVEN, GIVEN, PACKED(GIVEN), PACKED(NULL)), "wf_model_decode: source.offsets is NULL");
    wf_tape_free(tape);
}
END_TEST

START_TEST(without_an_error)
{
    tape = wf_tape_new(NULL);
    begin();
    wf_config_set_vocab(NULL, 1, 1);
    ck_assert(!wf_config_get(NULL, GIVEN, GIVEN, 1));
    ck_assert(!wf_config_get(GIVEN, NULL, GIVEN, 1));
    ck_assert(!wf_config_get(GIVEN, GIVEN, NULL, 1));
    ck_assert_str_eq(wf_config_family(NULL), "");
    ck_assert_int_eq(wf_config_kind(NULL), WF_MODEL_LANGUAGE);
    ck_assert(!wf_config_read_only(NULL));
    (void)wf_config_shape(NULL);
    ck_assert(!wf_config_key_at(NULL, 1, GIVEN));
    ck_assert(!wf_config_key_at(GIVEN, 1, NULL));
    ck_assert(!wf_config_section_key(NULL, 1, GIVEN));
    ck_assert(!wf_config_section_key(GIVEN, 1, NULL));
    wf_model_free(NULL);
    ck_assert_ptr_null(wf_model_registry(NULL));
    ck_assert_ptr_null(wf_model_config(NULL));
    ck_assert_int_eq(wf_model_kind_of(NULL), WF_MODEL_LANGUAGE);
    ck_assert_ptr_null(wf_model_shape_of(NULL));
    wf_tape_free(tape);
}
END_TEST

WF_TEST_MAIN("models/nulls", refused_by_name, without_an_error)

/* SPDX-License-Identifier: MIT */
/* NULL where a pointer must be given, in each public function of text/. */
#include "null_test.h"

START_TEST(refused_by_name)
{
    STATUS(wf_detokenize(NULL, 1, GIVEN, GIVEN, &error), "wf_detokenize: text is NULL");
    STATUS(wf_detokenize(GIVEN, 1, GIVEN, NULL, &error), "wf_detokenize: out is NULL");
    STATUS(wf_tokenizer_train_with(GIVEN, 1, GIVEN, NULL, &error), "wf_tokenizer_train_with: out is NULL");
    STATUS(wf_tokenizer_train_with(NULL, 1, GIVEN, GIVEN, &error), "wf_tokenizer_train_with: text is NULL");
    STATUS(wf_tokenizer_train_files_with(GIVEN, 1, GIVEN, NULL, &error), "wf_tokenizer_train_files_with: out is NULL");
    STATUS(wf_tokenizer_train_files_with(NULL, 1, GIVEN, GIVEN, &error), "wf_tokenizer_train_files_with: paths is NULL");
    STATUS(wf_tokenizer_load(GIVEN, NULL, &error), "wf_tokenizer_load: out is NULL");
    STATUS(wf_tokenizer_load(NULL, GIVEN, &error), "wf_tokenizer_load: path is NULL");
    STATUS(wf_tokenizer_parse(GIVEN, 1, GIVEN, NULL, &error), "wf_tokenizer_parse: out is NULL");
    STATUS(wf_tokenizer_parse(NULL, 1, GIVEN, GIVEN, &error), "wf_tokenizer_parse: json is NULL");
    STATUS(wf_tokenizer_load_vocab_with(GIVEN, GIVEN, NULL, &error), "wf_tokenizer_load_vocab_with: out is NULL");
    STATUS(wf_tokenizer_load_vocab_with(NULL, GIVEN, GIVEN, &error), "wf_tokenizer_load_vocab_with: path is NULL");
    STATUS(wf_tokenizer_save(NULL, GIVEN, &error), "wf_tokenizer_save: tokenizer is NULL");
    STATUS(wf_tokenizer_save(GIVEN, NULL, &error), "wf_tokenizer_save: path is NULL");
    STATUS(wf_tokenizer_json(NULL, GIVEN, &error), "wf_tokenizer_json: tokenizer is NULL");
    STATUS(wf_tokenizer_json(GIVEN, NULL, &error), "wf_tokenizer_json: out is NULL");
    POINTER(wf_token_cache_new(NULL, 1, &error), "wf_token_cache_new: tokenizer is NULL");
    STATUS(wf_tokenizer_encode_with(NULL, GIVEN, 1, GIVEN, GIVEN, &error), "wf_tokenizer_encode_with: tokenizer is NULL");
    STATUS(wf_tokenizer_encode_with(GIVEN, NULL, 1, GIVEN, GIVEN, &error), "wf_tokenizer_encode_with: text is NULL");
    STATUS(wf_tokenizer_encode_with(GIVEN, GIVEN, 1, GIVEN, NULL, &error), "wf_tokenizer_encode_with: out is NULL");
    STATUS(wf_tokenizer_encode(NULL, GIVEN, 1, GIVEN, &error), "wf_tokenizer_encode: tokenizer is NULL");
    STATUS(wf_tokenizer_encode(GIVEN, NULL, 1, GIVEN, &error), "wf_tokenizer_encode: text is NULL");
    STATUS(wf_tokenizer_encode(GIVEN, GIVEN, 1, NULL, &error), "wf_tokenizer_encode: out is NULL");
    STATUS(wf_tokenizer_decode_with(NULL, GIVEN, 1, GIVEN, GIVEN, &error), "wf_tokenizer_decode_with: tokenizer is NULL");
    STATUS(wf_tokenizer_decode_with(GIVEN, NULL, 1, GIVEN, GIVEN, &error), "wf_tokenizer_decode_with: ids is NULL");
    STATUS(wf_tokenizer_decode_with(GIVEN, GIVEN, 1, GIVEN, NULL, &error), "wf_tokenizer_decode_with: out is NULL");
    STATUS(wf_tokenizer_decode(NULL, GIVEN, 1, GIVEN, &error), "wf_tokenizer_decode: tokenizer is NULL");
    STATUS(wf_tokenizer_decode(GIVEN, NULL, 1, GIVEN, &error), "wf_tokenizer_decode: ids is NULL");
    STATUS(wf_tokenizer_decode(GIVEN, GIVEN, 1, NULL, &error), "wf_tokenizer_decode: out is NULL");
    POINTER(wf_decoder_new(NULL, GIVEN, &error), "wf_decoder_new: tokenizer is NULL");
    STATUS(wf_decoder_push(NULL, 1, GIVEN, GIVEN, &error), "wf_decoder_push: decoder is NULL");
    STATUS(wf_decoder_push(GIVEN, 1, NULL, GIVEN, &error), "wf_decoder_push: text is NULL");
    STATUS(wf_decoder_push(GIVEN, 1, GIVEN, NULL, &error), "wf_decoder_push: length is NULL");
    STATUS(wf_decoder_finish(NULL, GIVEN, GIVEN, &error), "wf_decoder_finish: decoder is NULL");
    STATUS(wf_decoder_finish(GIVEN, NULL, GIVEN, &error), "wf_decoder_finish: text is NULL");
    STATUS(wf_decoder_finish(GIVEN, GIVEN, NULL, &error), "wf_decoder_finish: length is NULL");
}
END_TEST

START_TEST(without_an_error)
{
    wf_tokens_free(NULL);
    wf_tokenizer_free(NULL);
    ck_assert_int_eq(wf_tokenizer_kind_of(NULL), WF_TOKENIZER_CHAR);
    ck_assert(!wf_tokenizer_kind_parse(NULL, GIVEN));
    ck_assert(!wf_tokenizer_kind_parse(GIVEN, NULL));
    ck_assert_int_eq(wf_tokenizer_hash(NULL), 0);
    ck_assert_int_eq(wf_tokenizer_special(NULL, 0), -1);
    ck_assert_int_eq(wf_tokenizer_vocab_size(NULL), 0);
    ck_assert_ptr_null(wf_tokenizer_token(NULL, 1, GIVEN));
    ck_assert_int_eq(wf_tokenizer_id(NULL, GIVEN, 1), -1);
    ck_assert_int_eq(wf_tokenizer_id(GIVEN, NULL, 1), -1);
    wf_token_cache_free(NULL);
    wf_decoder_free(NULL);
    ck_assert(!wf_tokenizer_gives_text(NULL));
}
END_TEST

WF_TEST_MAIN("text/nulls", refused_by_name, without_an_error)

/* SPDX-License-Identifier: MIT */
/* Encoder-decoders: parameters and their initial values. */
#include "pairs_test.h"

/* Counted in PyTorch on models of the same shapes. */
START_TEST(parameter_counts)
{
    static const struct {
        const char *name;
        int64_t source_vocab, vocab, count;
    } cases[] = {
        {"seq2seq-tiny", 41, 37, 63237},          {"seq2seq-postnorm", 0, 1000, 1182696}, {"transformer-base", 0, 37000, 63084544},
        {"transformer-big", 0, 37000, 214249472}, {"multi30k", 0, 10000, 2605568},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct wf_config c = preset(cases[i].name);
        set_key(&c, "vocab_size", cases[i].vocab);
        set_key(&c, "source_vocab_size", cases[i].source_vocab);
        wf_model *m = bare_model(&c);
        ck_assert_msg(wf_registry_parameters(wf_model_registry(m)) == cases[i].count, "%s: %lld", cases[i].name,
                      (long long)wf_registry_parameters(wf_model_registry(m)));
        ck_assert_ptr_null(wf_registry_values(wf_model_registry(m)));
        ck_assert(wf_model_kind_of(m) == WF_MODEL_PAIRS);
        wf_model_free(m);
    }
}
END_TEST

START_TEST(names_and_shapes)
{
    struct wf_config c = small_pairs_config("seq2seq-tiny", 0);
    set_key(&c, "source_vocab_size", 17);
    wf_model *m = model_of(&c, 1);
    has(m, "source_embed.weight", 17, 24);
    has(m, "target_embed.weight", 29, 24);
    has(m, "positions.table", 64, 24); /* a buffer */
    has(m, "encoder.1.attn.qkv.weight", 72, 24);
    has(m, "encoder.1.attn.out.bias", 24, 0);
    has(m, "encoder.1.norm1.weight", 24, 0);
    has(m, "encoder.1.ffn.up.weight", 40, 24);
    has(m, "encoder.1.norm2.bias", 24, 0);
    has(m, "encoder_norm.weight", 24, 0);
    has(m, "decoder.0.self.qkv.weight", 72, 24);
    has(m, "decoder.0.norm1.weight", 24, 0);
    has(m, "decoder.0.cross.q.weight", 24, 24);
    has(m, "decoder.0.cross.kv.weight", 48, 24);
    has(m, "decoder.0.cross.out.weight", 24, 24);
    has(m, "decoder.0.norm2.weight", 24, 0);
    has(m, "decoder.0.ffn.down.weight", 24, 40);
    has(m, "decoder.0.norm3.weight", 24, 0);
    has(m, "decoder_norm.bias", 24, 0);
    has(m, "head.weight", 29, 24);
    has(m, "head.bias", 29, 0);
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 3 + 2 * 12 + 2 + 2 * 20 + 2 + 2);
    wf_model_free(m);
    c = small_pairs_config("multi30k", 0);
    m = model_of(&c, 1);
    has(m, "embed.weight", 29, 24);
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 2 + 2 * 12 + 2 + 2 * 20 + 2);
    wf_model_free(m);
}
END_TEST

/* Rows begin .. begin+rows-1 of a matrix are uniform in +-bound, or normal with that deviation. */
static void spread(const wf_model *m, const char *name, int64_t begin, int64_t rows, double bound, bool normal)
{
    const wf_array *a = value_of(m, name);
    const wf_real *w = (const wf_real *)a->data + begin * a->stride[0];
    int64_t n = rows * (a->ndim > 1 ? a->dim[1] : 1);
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)w[i]));
    ck_spread(w, n, normal ? bound : bound / sqrt(3), name);
    ck_assert_msg(normal || (most <= bound && most > 0.99 * bound), "%s: up to %g, not %g", name, most, bound);
}

/* For Xavier q, k and v are three matrices, though they are stored as one. */
START_TEST(initialisation)
{
    struct wf_config c = preset("multi30k");
    set_key(&c, "vocab_size", 3000);
    wf_model *m = model_of(&c, 5);
    const double square = sqrt(6.0 / 256), wide = sqrt(6.0 / 384);
    spread(m, "embed.weight", 0, 3000, 1 / sqrt(128.0), true);
    for (int i = 0; i < 3; i++)
        spread(m, "encoder.2.attn.qkv.weight", 128 * i, 128, square, false);
    spread(m, "encoder.0.attn.out.weight", 0, 128, square, false);
    spread(m, "decoder.3.self.qkv.weight", 0, 384, square, false);
    spread(m, "decoder.3.cross.q.weight", 0, 128, square, false);
    for (int i = 0; i < 2; i++)
        spread(m, "decoder.3.cross.kv.weight", 128 * i, 128, square, false);
    spread(m, "decoder.1.ffn.up.weight", 0, 256, wide, false);
    spread(m, "decoder.1.ffn.down.weight", 0, 128, wide, false);
    for (int i = 0; i < wf_registry_count(wf_model_registry(m)); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(wf_model_registry(m), i));
        size_t n = strlen(info->name);
        double value = n > 5 && strcmp(info->name + n - 5, ".bias") == 0 ? 0 : 1;
        for (int64_t k = 0; info->value.ndim == 1 && k < wf_array_count(&info->value); k++)
            ck_assert(((const wf_real *)info->value.data)[k] == (wf_real)value);
    }
    wf_model_free(m);
    c = preset("seq2seq-postnorm"); /* PyTorch's defaults */
    set_key(&c, "positions", 0);
    m = model_of(&c, 5);
    spread(m, "embed.weight", 0, 1000, 1, true);
    spread(m, "encoder.0.attn.qkv.weight", 0, 384, 1 / sqrt(128.0), false);
    spread(m, "decoder.1.cross.kv.bias", 0, 256, 1 / sqrt(128.0), false);
    spread(m, "decoder.1.ffn.down.weight", 0, 128, 1 / sqrt(512.0), false);
    spread(m, "head.weight", 0, 1000, 1 / sqrt(128.0), false);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("pairs_parameters", parameter_counts, names_and_shapes, initialisation)

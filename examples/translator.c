/* SPDX-License-Identifier: MIT */
/* An encoder-decoder in one file outside Weft: rotary positions instead of a table, RMS norms, one embedding for both languages. The
 * program has the whole command:
 *
 *   cc translator.c $(pkg-config --cflags --libs weft) -o translator
 *   ./translator train rotary-tiny --train train.en,train.de --out RUN
 *   ./translator translate RUN --beam 4 < test.en
 *   ./translator attention RUN --source 'a sentence' --kind cross --out cross.svg
 */
#include <stdio.h>

#include <weft/weft.h>

struct rotary_config {
    int64_t d_model, heads, d_ff, encoder_layers, decoder_layers, max_length, vocab_size;
    double dropout;
    bool shared, source_eos;
};

#define NUMBER(...) WF_NUMBER_KEY(struct rotary_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct rotary_config, __VA_ARGS__)
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(d_ff, "256", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(encoder_layers, "2", 1, 1024, "blocks of the encoder", .role = WF_KEY_ENCODER_LAYERS),
    NUMBER(decoder_layers, "2", 1, 1024, "blocks of the decoder", .role = WF_KEY_LAYERS),
    NUMBER(max_length, "128", 2, 1048576, "maximum length of a sentence in tokens; longer pairs are skipped", .role = WF_KEY_CONTEXT),
    NUMBER(vocab_size, "1000", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB),
    NUMBER(dropout, "0", 0, 1, "dropout probability", .below = true, .resumable = true),
    BOOL(shared, "true", "one tokenizer for source and target", .role = WF_KEY_SHARED),
    BOOL(source_eos, "true", "the source ends with the end token", .role = WF_KEY_SOURCE_EOS),
};
static const struct wf_preset presets[] = {
    {"rotary-tiny", "an encoder-decoder for a handful of sentence pairs",
     "d_model=32 d_ff=64 steps=200 batch_tokens=0 lr=3e-3 tokenizer=word"},
};

/* A block of the encoder, or with cross-attention of the decoder. */
struct block {
    struct wf_rms_norm norm1, norm2, norm3;
    struct wf_mha self, cross;
    struct wf_ffn ffn;
};

static void block_init(wf_scope s, struct block *b, const struct rotary_config *c, bool decoder)
{
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model);
    wf_mha_init(wf_sub(s, "self"), &b->self, c->d_model, (int)c->heads, .rope = true, .residual_dropout = c->dropout);
    if (decoder) {
        wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model);
        wf_mha_init(wf_sub(s, "cross"), &b->cross, c->d_model, (int)c->heads, .cross = true, .residual_dropout = c->dropout);
    }
    wf_rms_norm_init(wf_sub(s, "norm3"), &b->norm3, c->d_model);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = WF_GELU, .residual_dropout = c->dropout);
}

struct rotary {
    struct wf_embedding embed;
    struct wf_rms_norm encoder_norm, decoder_norm;
    struct wf_linear head;
    int64_t encoder_layers, decoder_layers;
    struct block block[]; /* the encoder's, then the decoder's */
};

static void rotary_init(wf_scope s, void *model, const void *config)
{
    const struct rotary_config *c = config;
    struct rotary *m = model;
    m->encoder_layers = c->encoder_layers;
    m->decoder_layers = c->decoder_layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    for (int64_t i = 0; i < c->encoder_layers; i++)
        block_init(wf_sub_at(s, "encoder", i), &m->block[i], c, false);
    wf_rms_norm_init(wf_sub(s, "encoder_norm"), &m->encoder_norm, c->d_model);
    for (int64_t i = 0; i < c->decoder_layers; i++)
        block_init(wf_sub_at(s, "decoder", i), &m->block[c->encoder_layers + i], c, true);
    wf_rms_norm_init(wf_sub(s, "decoder_norm"), &m->decoder_norm, c->d_model);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size);
}

/* Sentences lie end to end: M ids of all sources, N of all targets. One alone, for its attention weights, is [1,S]. */
static wf_tensor *rotary_encode(const void *model, wf_tensor *ids, const struct wf_packed *source, wf_tensor **weights)
{
    const struct rotary *m = model;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [M] -> [M,d] */
    for (int64_t i = 0; i < m->encoder_layers; i++) {
        const struct block *b = &m->block[i];
        x = wf_mha_forward(&b->self, wf_rms_norm_forward(&b->norm1, x), .packed = *source, .weights = weights ? &weights[i] : NULL,
                           .residual = x);
        x = wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm3, x), .residual = x);
    }
    return wf_rms_norm_forward(&m->encoder_norm, x);
}

/* Keys and values of the memory for cross-attention, once for a whole translation: [M,d] -> [M,2d]. */
static wf_tensor *rotary_memory(const void *model, int64_t layer, wf_tensor *memory)
{
    const struct rotary *m = model;
    return wf_mha_memory(&m->block[m->encoder_layers + layer].cross, memory);
}

/* Whole targets [N]; or with a cache the next ids [R,T] of R rows, which attend to what the cache holds of their row. */
static wf_tensor *rotary_decode(const void *model, wf_tensor *ids, const struct wf_decoding *d)
{
    const struct rotary *m = model;
    const struct wf_packed target = d->cache ? (struct wf_packed){0} : d->target; /* a cache's rows are [R,T,d] */
    wf_tensor *x = wf_embedding_forward(&m->embed, ids);                          /* [N,d], or [R,T,d] */
    wf_shape shape = wf_shape_of(x);
    for (int64_t i = 0; i < m->decoder_layers; i++) {
        const struct block *b = &m->block[m->encoder_layers + i];
        x = wf_mha_forward(&b->self, wf_rms_norm_forward(&b->norm1, x), .causal = true, .packed = target,
                           .cache = d->cache ? &d->cache->layer[i] : NULL, .weights = d->weights ? &d->weights[i] : NULL, .residual = x);
        if (d->cache)
            x = wf_reshape(x, -1, shape.dim[2]); /* [R T,d] */
        x = wf_mha_forward(&b->cross, wf_rms_norm_forward(&b->norm2, x), .memory = d->kv ? NULL : d->memory,
                           .memory_kv = d->kv ? d->kv[i] : NULL, .packed = d->target, .k_packed = d->source,
                           .weights = d->cross_weights ? &d->cross_weights[i] : NULL, .residual = x);
        x = wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm3, x), .residual = x);
        if (d->cache && i + 1 < m->decoder_layers)
            x = wf_reshape(x, shape.dim[0], shape.dim[1], shape.dim[2]);
    }
    return wf_rms_norm_forward(&m->decoder_norm, x); /* [N,d], or [R T,d] */
}

static const struct wf_family rotary = {
    .abi = WF_FAMILY_ABI,
    .name = "rotary",
    .kind = WF_MODEL_PAIRS,
    .config_size = sizeof(struct rotary_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .size = sizeof(struct rotary),
    .block_size = sizeof(struct block),
    .init = rotary_init,
    .head = WF_HEAD_AT(struct rotary, head),
    .encode = rotary_encode,
    .memory = rotary_memory,
    .decode = rotary_decode,
};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_family_register(&rotary, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}

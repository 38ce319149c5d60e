/* SPDX-License-Identifier: MIT */
/* A selective state-space model, Mamba (Gu and Dao 2023): no attention, and a cache of one state for each row, which does not grow with
 * its text. weft/ssm.h describes a layer. Crops of a training and windows of an evaluation begin with zeros; generation begins anew from
 * zeros beyond the context: wf_generate_next drops a full one's oldest quarter and computes the state from the rest, at most `context`
 * tokens.
 *
 *   cc ssm.c $(pkg-config --cflags --libs weft) -o ssm
 *   ./ssm train ssm-small --train FILE --out RUN           also --resume, --set layers=4, --steps
 *   ./ssm generate RUN --prompt 'The '                     --no-cache computes each token from the whole context: the same text
 *
 * Its 400 updates learn a story of 6.6 KB (tests/golden/story.txt) to at most 1 bit per character. */
#include <stdio.h>

#include <weft/weft.h>

struct ssm_config {
    int64_t d_model, states, layers, context, vocab_size;
};

#define NUMBER(...) WF_NUMBER_KEY(struct ssm_config, __VA_ARGS__)
static const struct wf_key keys[] = {
    NUMBER(d_model, "64", 1, 65536, "width of the model; its layers have twice that", .role = WF_KEY_WIDTH),
    NUMBER(states, "8", 1, 1024, "numbers of state for each channel"),
    NUMBER(layers, "2", 1, 1024, "layers", .role = WF_KEY_LAYERS),
    NUMBER(context, "64", 1, 65536, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB),
};
static const struct wf_preset presets[] = {
    {"ssm-small", "a selective state-space model for characters", "steps=400 batch=16 lr=5e-3 min_lr=5e-4 warmup=20 schedule=cosine"},
};

struct block {
    struct wf_rms_norm norm;
    struct wf_ssm mixer;
};

static void block_init(wf_scope s, struct block *b, const struct ssm_config *c)
{
    wf_rms_norm_init(wf_sub(s, "norm"), &b->norm, c->d_model);
    wf_ssm_init(wf_sub(s, "mixer"), &b->mixer, c->d_model, .states = c->states);
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call) /* [B,T,d] -> [B,T,d] */
{
    const struct block *b = block;
    return wf_ssm_forward(&b->mixer, wf_rms_norm_forward(&b->norm, x), .residual = x, .cache = call->cache);
}

struct ssm {
    struct wf_embedding embed;
    struct wf_rms_norm norm;
    struct wf_linear head;
    int64_t layers;
    struct block block[]; /* .block_size below gives the room */
};

static void ssm_init(wf_scope s, void *model, const void *config)
{
    const struct ssm_config *c = config;
    struct ssm *m = model;
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size);
}

static wf_tensor *ssm_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct ssm *m = model;
    const wf_tape_mark mark = wf_tape_here(wf_tape_of(ids));
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    (void)weights;                                       /* there are none: no attention */
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .since = mark);
    return wf_rms_norm_forward(&m->norm, x);
}

static wf_status ssm_cache(const void *model, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    const struct ssm *m = model;
    (void)capacity; /* any: a state does not grow */
    return wf_cache_init_states(cache, (int)m->layers, rows, wf_ssm_width(&m->block[0].mixer), error);
}

static const struct wf_family ssm = {
    .abi = WF_FAMILY_ABI,
    .name = "ssm",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct ssm_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .size = sizeof(struct ssm),
    .block_size = sizeof(struct block),
    .init = ssm_init,
    .forward = ssm_forward,
    .cache = ssm_cache,
    .head = WF_HEAD_AT(struct ssm, head),
};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_family_register(&ssm, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}

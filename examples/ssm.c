/* SPDX-License-Identifier: MIT */
/* A selective state-space model in the manner of Mamba (Gu and Dao 2023): no attention, and a cache of one state for each row, which does
 * not grow with its text. Crops of a training and windows of an evaluation begin with zeros; generation begins anew from zeros beyond the
 * context: wf_generate_next drops a full one's oldest quarter and computes the state from the rest, at most `context` tokens.
 *
 *   cc ssm.c $(pkg-config --cflags --libs weft) -o ssm
 *   ./ssm train ssm-small --train FILE --out RUN           also --resume, --set layers=4, --steps
 *   ./ssm generate RUN --prompt 'The '                     --no-cache computes each token from the whole context: the same text
 *
 * Its 400 updates learn a story of 6.6 KB (tests/golden/story.txt) to at most 1 bit per character. */
#include <math.h>
#include <stdio.h>

#include <weft/weft.h>

enum { TAPS = 4 }; /* of the convolution: a token and the three before it */
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

/* E = 2d channels with N states each. Of the convolved inputs u the step D_t > 0, B_t and C_t [N] are chosen token by token:
 *
 *   h_t = exp(-D_t A) h_(t-1) + D_t B_t u_t        y_t = C_t h_t + skip u_t        out(silu(z_t) y_t) */
struct block {
    struct wf_rms_norm norm;
    struct wf_linear in, select, step, out;
    wf_tensor *taps, *log_a, *skip;
    int64_t e, n, rank;
};

/* A = 1 .. N in each channel: a state forgets the faster the later it stands. */
static void fill_log_a(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    (void)ctx, (void)seed, (void)name;
    for (int64_t i = 0; i < shape->dim[0] * shape->dim[1]; i++)
        value[i] = (wf_real)log(1 + (double)(i / shape->dim[1]));
}

static void block_init(wf_scope s, struct block *b, const struct ssm_config *c)
{
    b->e = 2 * c->d_model;
    b->n = c->states;
    b->rank = (c->d_model + 15) / 16;
    wf_rms_norm_init(wf_sub(s, "norm"), &b->norm, c->d_model);
    wf_linear_init(wf_sub(s, "in"), &b->in, c->d_model, 2 * b->e, .no_bias = true);
    wf_linear_init(wf_sub(s, "select"), &b->select, b->e, b->rank + 2 * b->n, .no_bias = true);
    wf_linear_init(wf_sub(s, "step"), &b->step, b->rank, b->e);
    wf_linear_init(wf_sub(s, "out"), &b->out, b->e, c->d_model, .no_bias = true, .residual = true);
    b->taps = wf_parameter(s, "taps", WF_SHAPE(TAPS, b->e), .init = {.kind = WF_INIT_UNIFORM, .a = 0.5});
    b->log_a = wf_parameter(s, "log_a", WF_SHAPE(b->n, b->e), .init = {.kind = WF_INIT_FUNCTION, .fill = fill_log_a});
    b->skip = wf_parameter(s, "skip", WF_SHAPE(b->e), .init = {.kind = WF_INIT_CONSTANT, .a = 1});
}

static wf_tensor *block_forward(const struct block *b, wf_tensor *x, struct wf_kv *cache) /* [B,T,d] -> [B,T,d] */
{
    const int64_t rows = wf_dim(x, 0), length = wf_dim(x, 1), before = TAPS - 1;
    /* the inputs of the last tokens, and h: zeros at first */
    wf_tensor *uz[2], *state = wf_reshape(wf_kv_state(cache, x, (before + b->n) * b->e), rows, before + b->n, b->e);
    wf_split(wf_linear_forward(&b->in, wf_rms_norm_forward(&b->norm, x)), -1, 2, uz); /* [B,T,E] each */
    /* a causal convolution of each channel: a sum of shifted inputs */
    wf_tensor *all = wf_concat((wf_tensor *[]){wf_slice(state, 1, 0, before), uz[0]}, 2, 1); /* [B,TAPS-1+T,E] */
    wf_tensor *u = wf_mul(wf_slice(all, 1, 0, length), wf_select(b->taps, 0, 0));
    for (int k = 1; k < TAPS; k++)
        u = wf_add(u, wf_mul(wf_slice(all, 1, k, length), wf_select(b->taps, 0, k)));
    u = wf_silu(u);
    wf_tensor *chosen = wf_linear_forward(&b->select, u);                                            /* [B,T,rank+2N] */
    wf_tensor *step = wf_softplus(wf_linear_forward(&b->step, wf_slice(chosen, -1, 0, b->rank)), 1); /* [B,T,E] */
    wf_tensor *enter = wf_unsqueeze(wf_slice(chosen, -1, b->rank, b->n), -1);                        /* [B,T,N,1] */
    wf_tensor *leave = wf_unsqueeze(wf_slice(chosen, -1, b->rank + b->n, b->n), -1);
    wf_tensor *keep = wf_exp(wf_mul(wf_unsqueeze(step, 2), wf_neg(wf_exp(b->log_a)))); /* [B,T,N,E] */
    wf_tensor *h = wf_scan(keep, wf_mul(wf_unsqueeze(wf_mul(step, u), 2), enter), wf_slice(state, 1, before, b->n), 1);
    wf_tensor *y = wf_add(wf_sum_dim(wf_mul(h, leave), 2, false), wf_mul(u, b->skip)); /* [B,T,E] */

    state = wf_concat((wf_tensor *[]){wf_slice(all, 1, length, before), wf_select(h, 1, -1)}, 2, 1); /* [B,TAPS-1+N,E] */
    wf_kv_set_state(cache, wf_reshape(state, rows, -1));
    return wf_add(x, wf_linear_forward(&b->out, wf_mul(y, wf_silu(uz[1]))));
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
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    (void)weights;                                       /* there are none: no attention */
    for (int64_t i = 0; i < m->layers; i++)
        x = block_forward(&m->block[i], x, cache ? &cache->layer[i] : NULL);
    return wf_rms_norm_forward(&m->norm, x);
}

static wf_status ssm_cache(const void *model, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    const struct ssm *m = model;
    (void)capacity; /* any: a state does not grow */
    return wf_cache_init_states(cache, (int)m->layers, rows, (TAPS - 1 + m->block[0].n) * m->block[0].e, error);
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

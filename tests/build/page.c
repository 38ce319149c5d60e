/* SPDX-License-Identifier: MIT */
/* The page that the design shows as the test of the API, in a program: a model, and its training. tests/build/page.sh compares what stands
 * between the lines "page" and "end of page" with the page, compiles it against the installed library and runs it. */
#include <stdio.h>
#include <weft/weft.h>

enum { B = 4, T = 16, VOCABULARY = 11, LAYERS = 2 };

struct gpt_config {
    int64_t d_model, d_ff;
    int heads, kv_heads;
};

/* page */
struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static void block_init(wf_scope s, struct block *b, const struct gpt_config *c)
{
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, c->heads, .kv_heads = c->kv_heads, .rope = true);
    wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = WF_SWIGLU);
}

static wf_tensor *block_forward(const struct block *b, wf_tensor *x, struct wf_kv *cache)
{
    x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .cache = cache, .residual = x);
    return wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm2, x), .residual = x);
}
/* end of page */

struct gpt {
    struct wf_embedding embedding;
    struct block block[LAYERS];
    struct wf_rms_norm norm;
};

static void gpt_init(wf_scope s, struct gpt *m, const struct gpt_config *c)
{
    wf_embedding_init(wf_sub(s, "embedding"), &m->embedding, VOCABULARY, c->d_model);
    for (int i = 0; i < LAYERS; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model);
}

/* ids [B,T] -> logits [B,T,VOCABULARY], through the embedding again */
static wf_tensor *gpt_forward(const struct gpt *m, wf_tensor *ids, struct wf_cache *cache)
{
    wf_tensor *x = wf_embedding_forward(&m->embedding, ids); /* [B,T,d_model] */
    for (int i = 0; i < LAYERS; i++)
        x = block_forward(&m->block[i], x, cache ? &cache->layer[i] : NULL);
    return wf_linear(wf_rms_norm_forward(&m->norm, x), m->embedding.weight, NULL);
}

static int fail(const wf_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

/* Counting in steps of 1 to 4: the next number follows from the two before. */
static void take_batch(uint64_t step, int32_t *x, int32_t *y)
{
    wf_rng rng = wf_rng_new(3, step);
    for (int b = 0; b < B; b++) {
        uint64_t at = wf_rng_below(&rng, VOCABULARY), by = 1 + wf_rng_below(&rng, 4);
        for (int t = 0; t < T; t++, at += by) {
            x[b * T + t] = (int32_t)(at % VOCABULARY);
            y[b * T + t] = (int32_t)((at + by) % VOCABULARY);
        }
    }
}

static struct wf_optimizer opt;

static int train(wf_registry *registry, wf_tape *tape)
{
    const struct gpt_config config = {.d_model = 32, .d_ff = 48, .heads = 4, .kv_heads = 2};
    const uint64_t seed = 1;
    struct gpt m;
    wf_error error = {0};
    double value = 0, first = 0;
    int32_t x[B * T], y[B * T];
    /* page */
    /* once */
    gpt_init(wf_root(registry), &m, &config);               /* declares names and shapes */
    if (wf_registry_build(registry, seed, &error) != WF_OK) /* allocates and initialises; or _load */
        return fail(&error);
    /* end of page */
    if (wf_adamw_init(&opt, registry, &error, .lr = 1e-2) != WF_OK)
        return fail(&error);
    for (uint64_t step = 0; step < 60; step++) {
        take_batch(step, x, y);
        /* page */
        /* a training step */
        wf_tape_reset(tape, WF_TRAIN, .step = step);
        wf_tensor *loss = wf_cross_entropy(gpt_forward(&m, wf_ids(tape, x, B, T), NULL), wf_ids(tape, y, B, T));
        if (wf_backward(loss) != WF_OK)
            return fail(wf_tape_error(tape));
        if (wf_clip_norm(wf_registry_grads(registry), 1.0, NULL, &error) != WF_OK || wf_adamw_step(&opt, &error) != WF_OK)
            return fail(&error);
        /* end of page */
        if (wf_item(loss, &value) != WF_OK)
            return fail(wf_tape_error(tape));
        first = step == 0 ? value : first;
    }
    printf("loss: %.3f, after 60 steps %.3f\n", first, value);
    return value < 0.5 * first ? 0 : 1;
}

int main(void)
{
    wf_error error = {0};
    wf_registry *registry = wf_registry_new(&error);
    wf_tape *tape = wf_tape_new(&error);
    if (!registry || !tape)
        return fail(&error);
    int result = train(registry, tape);
    wf_optimizer_free(&opt);
    wf_tape_free(tape);
    wf_registry_free(registry);
    return result;
}

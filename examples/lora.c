/* SPDX-License-Identifier: MIT */
/* Low-rank adapters, LoRA (Hu et al. 2021): a small language model learns English sentences; then adapters of rank 4 alone, with all of its
 * weights frozen, learn German ones.
 *
 *   cc lora.c $(pkg-config --cflags --libs weft) -o lora
 *   ./lora            500 updates each (the English weights are in lora-base.safetensors): by training 7 % of the parameters the loss of
 * new German sentences falls to at most 0.2 nats per character, else it exits with 1; 0.14 is in the choice of words
 *   ./lora --steps 5  only a few updates; nothing is asked of the result
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { WIDTH = 64, HEADS = 4, BLOCKS = 2, VOCAB = 128, LENGTH = 48, BATCH = 16, STEPS = 500 };

struct model {
    struct wf_embedding embed;
    struct {
        struct wf_rms_norm norm1, norm2;
        struct wf_mha attn;
        struct wf_ffn ffn;
    } block[BLOCKS];
    struct wf_linear head;
    wf_registry *registry;
};

static void model_init(wf_scope s, struct model *m)
{
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, VOCAB, WIDTH);
    for (int i = 0; i < BLOCKS; i++) {
        wf_scope b = wf_sub_at(s, "blocks", i);
        wf_rms_norm_init(wf_sub(b, "norm1"), &m->block[i].norm1, WIDTH);
        wf_mha_init(wf_sub(b, "attn"), &m->block[i].attn, WIDTH, HEADS, .rope = true);
        wf_rms_norm_init(wf_sub(b, "norm2"), &m->block[i].norm2, WIDTH);
        wf_ffn_init(wf_sub(b, "ffn"), &m->block[i].ffn, WIDTH, 4 * WIDTH, .activation = WF_GELU);
    }
    wf_linear_init(wf_sub(s, "head"), &m->head, WIDTH, VOCAB);
}

static wf_tensor *model_forward(const struct model *m, wf_tensor *ids) /* [B,T] -> [B,T,VOCAB] */
{
    wf_tensor *x = wf_embedding_forward(&m->embed, ids);
    for (int i = 0; i < BLOCKS; i++) {
        x = wf_mha_forward(&m->block[i].attn, wf_rms_norm_forward(&m->block[i].norm1, x), .causal = true, .residual = x);
        x = wf_ffn_forward(&m->block[i].ffn, wf_rms_norm_forward(&m->block[i].norm2, x), .residual = x);
    }
    return wf_linear_forward(&m->head, x);
}

/* Sentences of random words, one after the other: their bytes are the ids. */
static const char *const english[3][4] = {{"the cat ", "a dog ", "the old king ", "my sister "},
                                          {"sees ", "has found ", "never liked ", "looks for "},
                                          {"a river. ", "the castle. ", "the moon. ", "some bread. "}};
static const char *const german[3][4] = {{"die Katze ", "ein Hund ", "der alte Graf ", "meine Tante "},
                                         {"sucht ", "findet ", "mag nur ", "zeichnet "},
                                         {"den Fluss. ", "das Schloss. ", "den Mond. ", "ein Brot. "}};

static wf_tensor *model_loss(const struct model *m, wf_tape *tape, const char *const words[3][4], uint64_t seed, uint64_t stream)
{
    static int32_t ids[BATCH][LENGTH], targets[BATCH][LENGTH];
    wf_rng rng = wf_rng_new(seed, stream);
    for (int b = 0; b < BATCH; b++) {
        char text[LENGTH + 64] = "";
        for (int part = 0; strlen(text) <= LENGTH; part = (part + 1) % 3)
            strcat(text, words[part][wf_rng_below(&rng, 4)]);
        for (int t = 0; t < LENGTH; t++)
            ids[b][t] = text[t], targets[b][t] = text[t + 1];
    }
    return wf_cross_entropy(model_forward(m, wf_ids(tape, ids[0], BATCH, LENGTH)), wf_ids(tape, targets[0], BATCH, LENGTH));
}

static wf_status train(const struct model *m, wf_tape *tape, const char *const words[3][4], int64_t steps, wf_error *error)
{
    struct wf_optimizer adam;
    wf_status status = wf_adamw_init(&adam, m->registry, error, .lr = 3e-3);
    for (int64_t step = 0; step < steps && status == WF_OK; step++) {
        wf_tape_reset(tape, WF_TRAIN);
        if (wf_backward(model_loss(m, tape, words, 1, (uint64_t)step)) != WF_OK)
            status = wf_tape_status(tape, error);
        else
            status = wf_adamw_step(&adam, error);
    }
    wf_optimizer_free(&adam);
    return status;
}

/* The loss of sentences that were not trained on. */
static double unseen(const struct model *m, wf_tape *tape, const char *const words[3][4])
{
    double value;
    wf_tape_reset(tape, WF_INFER);
    return wf_item(model_loss(m, tape, words, 2, 0), &value) == WF_OK ? value : -1;
}

/* A model with adapters, which begins as that in the file; only the adapters will be trained. */
static wf_status adapt(struct model *m, const char *path, wf_error *error)
{
    if (wf_registry_lora(m->registry, "blocks.*", error, .rank = 4, .alpha = 8) != WF_OK)
        return error->code;
    model_init(wf_root(m->registry), m);
    if (wf_registry_freeze_matching(m->registry, "*", true, error) != WF_OK ||
        wf_registry_freeze_matching(m->registry, "*.lora_*", false, error) != WF_OK || wf_registry_build(m->registry, 2, error) != WF_OK)
        return error->code;
    wf_safetensors *file = wf_safetensors_open(path, error);
    wf_status status = error->code;
    if (file)
        status = wf_registry_load_with(m->registry, file, &(struct wf_load_options){.allow_missing = true}, error);
    wf_safetensors_close(file);
    return status;
}

static wf_status run(struct model *base, struct model *adapted, wf_tape *tape, int64_t steps, double *loss, wf_error *error)
{
    model_init(wf_root(base->registry), base);
    if (wf_registry_build(base->registry, 1, error) != WF_OK || train(base, tape, english, steps, error) != WF_OK)
        return error->code;
    wf_safetensors_writer *writer = wf_safetensors_writer_new();
    wf_registry_save(base->registry, writer, "");
    if (wf_safetensors_commit(writer, "lora-base.safetensors", error) != WF_OK)
        return error->code;
    printf("English %.3f, German %.3f: trained on English\n", unseen(base, tape, english), unseen(base, tape, german));
    if (adapt(adapted, "lora-base.safetensors", error) != WF_OK || train(adapted, tape, german, steps, error) != WF_OK)
        return error->code;
    const int64_t all = wf_registry_parameters(adapted->registry), trained = all - wf_registry_parameters(base->registry);
    *loss = unseen(adapted, tape, german);
    printf("English %.3f, German %.3f: with adapters, %lld of %lld parameters\n", unseen(adapted, tape, english), *loss, (long long)trained,
           (long long)all);
    return *loss >= 0 ? WF_OK : wf_tape_status(tape, error);
}

int main(int argc, char **argv)
{
    wf_error error = {0};
    double loss = 0;
    int64_t steps = argc == 3 && strcmp(argv[1], "--steps") == 0 ? atoll(argv[2]) : STEPS;
    wf_tape *tape = wf_tape_new(&error);
    struct model base = {.registry = wf_registry_new(&error)}, adapted = {.registry = wf_registry_new(&error)};
    wf_status status = error.code;
    if (status == WF_OK)
        status = run(&base, &adapted, tape, steps, &loss, &error);
    if (status != WF_OK)
        fprintf(stderr, "lora: %s\n", error.message);
    wf_registry_free(base.registry);
    wf_registry_free(adapted.registry);
    wf_tape_free(tape);
    return status != WF_OK || (steps >= STEPS && !(loss <= 0.2));
}

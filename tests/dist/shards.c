/* SPDX-License-Identifier: MIT */
/* A program that mpirun starts several times (tests/dist/shards.sh): an optimiser's memory that the processes share, of parameters of every
 * size, two optimisers of one registry, and a parameter that is frozen at first.
 *
 *   shards OUT STEPS [late] [again] [RULE]     late: .values_by_ops; again: in two calls of wf_fit with the same optimisers; RULE: an
 *                                              optimiser instead of AdamW: lion, adafactor, muon, or of the program's own, rule, or whole,
 *                                              which wants whole parameters
 *
 * Afterwards each process writes what its optimisers hold into OUT/optimizers-RANK.safetensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#include "../optim/rules.h"

enum { PARAMETERS = 7 };
static const struct {
    const char *name;
    wf_shape shape;
} sizes[PARAMETERS] = {{"first", {2, {300, 100}}}, {"bias", {1, {5}}},          {"whole", {1, {8192}}}, {"frozen", {2, {3, 9001}}},
                       {"none", {1, {1}}},         {"large", {2, {1000, 257}}}, {"last", {1, {16385}}}};
struct program {
    wf_registry *registry;
    wf_tensor *p[PARAMETERS];
    struct wf_optimizer adam, sgd;
    wf_real *input; /* one for each element of the largest parameter */
};
static wf_error error;

static int fail(const char *what)
{
    fprintf(stderr, "FAILED: %s (%s)\n", what, error.message);
    return 1;
}

/* The third update trains what was frozen; the parameter `none` never has a gradient. */
static wf_status next(void *ctx, int64_t step, double *weight, wf_error *why)
{
    struct program *s = ctx;
    *weight = 8;
    if (step != 2)
        return WF_OK;
    wf_registry_freeze(s->registry, s->p[3], false);
    return wf_registry_gradients(s->registry, why);
}

/* Sums over parameter * noise + parameter^2, of some of the parameters in each part. */
static wf_tensor *loss(void *ctx, struct wf_micro_batch *part)
{
    struct program *s = ctx;
    wf_tensor *sum = NULL;
    if ((part->step + part->index) % 5 == 4)
        return NULL;
    for (int i = 0; i < PARAMETERS; i++) {
        if (i == 4 || (part->index + i) % 3 == 0)
            continue;
        const int64_t count = wf_shape_count(&sizes[i].shape);
        wf_fill_normal(s->input, count, 0, 1, 5, (uint64_t)(part->step * 1000 + part->index * 10 + i));
        wf_tensor *x = wf_input(part->tape, s->input, &sizes[i].shape, false), *p = wf_dropout(s->p[i], 0.2);
        wf_tensor *y = wf_sum(wf_add(wf_mul(p, x), wf_mul(p, p)));
        sum = sum ? wf_add(sum, y) : y;
    }
    return wf_scale(sum, 1 / part->weight);
}

static bool is_matrix(void *ctx, const char *name, const wf_tensor *p)
{
    (void)name;
    return (wf_ndim(p) >= 2) == *(const bool *)ctx;
}

static wf_status train(struct program *s, const char *out, int64_t steps, bool late)
{
    const struct wf_task task = {WF_TASK_ABI, .name = "shards", .next = next, .loss = loss};
    const struct wf_fit_registry registry[] = {{.registry = s->registry}};
    const struct wf_fit_optimizer optimizer[] = {{"adam", &s->adam}, {"sgd", &s->sgd}};
    const struct wf_fit_options options = {.out = out,
                                           .registry = registry,
                                           .registries = 1,
                                           .optimizer = optimizer,
                                           .optimizers = 2,
                                           .steps = steps,
                                           .accumulate = 8,
                                           .clip = 0.5,
                                           .save_every = 3,
                                           .log_every = 1,
                                           .seed = 3,
                                           .resume = true,
                                           .ctx = s,
                                           .values_by_ops = late};
    return wf_fit(&task, &options, NULL, &error);
}

static bool has(char *const *arguments, const char *name)
{
    while (*arguments && strcmp(*arguments, name) != 0)
        arguments++;
    return *arguments != NULL;
}

static wf_status first(struct program *s, char *const *arguments)
{
    if (has(arguments, "rule"))
        return wf_optimizer_init(&s->adam, s->registry, &amsgrad, &amsgrad_settings, &error, .weight_decay = 0.1);
    if (has(arguments, "whole"))
        return wf_optimizer_init(&s->adam, s->registry, &unit, NULL, &error);
    if (has(arguments, "lion"))
        return wf_lion_init(&s->adam, s->registry, &error, .weight_decay = 0.1);
    if (has(arguments, "adafactor"))
        return wf_adafactor_init(&s->adam, s->registry, &error, .weight_decay = 0.1);
    if (has(arguments, "muon"))
        return wf_muon_init(&s->adam, s->registry, &error, .weight_decay = 0.1);
    return wf_adamw_init(&s->adam, s->registry, &error, .weight_decay = 0.1);
}

int main(int argc, char **argv)
{
    static struct program s;
    bool matrices = true, others = false;
    if (argc < 3)
        return 2;
    const bool late = has(argv + 3, "late");
    const int64_t steps = atoll(argv[2]);
    s.registry = wf_registry_new(&error);
    for (int i = 0; i < PARAMETERS; i++)
        s.p[i] = wf_parameter(wf_root(s.registry), sizes[i].name, &sizes[i].shape);
    s.input = malloc(1000 * 257 * sizeof *s.input);
    wf_registry_freeze(s.registry, s.p[3], true);
    if (!s.input || wf_registry_build(s.registry, 1, &error) || first(&s, argv + 3) ||
        wf_sgd_init(&s.sgd, s.registry, &error, .lr = 0.1, .momentum = 0.9) || wf_optimizer_only(&s.adam, is_matrix, &matrices, &error) ||
        wf_optimizer_only(&s.sgd, is_matrix, &others, &error))
        return fail("the beginning");
    if (has(argv + 3, "again") && train(&s, argv[1], steps / 2, late))
        return fail("the first half");
    if (train(&s, argv[1], steps, late))
        return fail("the training");
    char path[4096];
    snprintf(path, sizeof path, "%s/optimizers-%d.safetensors", argv[1], wf_dist_rank(wf_dist_world(&error)));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_optimizer_save(&s.adam, w, "adam.");
    wf_optimizer_save(&s.sgd, w, "sgd.");
    if (wf_safetensors_commit(w, path, &error) != WF_OK)
        return fail("what the optimisers hold");
    /* The optimisers belong to the program again, which may step. */
    if (wf_optimizer_step(&s.adam, &error) != WF_OK)
        return fail("a step after it");
    wf_optimizer_free(&s.adam);
    wf_optimizer_free(&s.sgd);
    wf_registry_free(s.registry);
    free(s.input);
    return 0;
}

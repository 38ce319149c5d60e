/* SPDX-License-Identifier: MIT */
/* Several processes each hold a shard of an optimiser's state and compute the same as one process with all of it. They are simulated one
 * after the other, with the same gradients. */
#include <math.h>

#include <weft/internal/optimizer.h>
#include <weft/weft.h>

#include "../check_weft.h"
#include "rules.h"

enum { PARAMETERS = 4, PROCESSES = 3, STEPS = 3 };
static const wf_shape shapes[PARAMETERS] = {{1, {20000}}, {1, {3}}, {2, {4, 8192}}, {1, {8193}}};

struct one {
    wf_registry *registry;
    struct wf_optimizer opt;
    struct wf_shard shard;
    double *partial; /* of all, as one process has them */
};

/* The messages of the other processes. */
static wf_status share(void *ctx, wf_grads *grads, wf_error *why)
{
    const struct one *s = ctx;
    (void)why;
    for (int64_t i = 0; i < grads->blocks; i++) {
        if (wf_shard_owns(&s->shard, grads->block[i].parameter, grads->block[i].at))
            ck_assert(grads->partial[i] == s->partial[i]);
        grads->partial[i] = s->partial[i];
    }
    return WF_OK;
}

/* Every block of another process than the one before, and every whole parameter. */
static void shard_make(struct wf_shard *s, int rank, struct one *one)
{
    int64_t blocks = 0;
    s->parameters = PARAMETERS;
    s->first = calloc(PARAMETERS + 1, sizeof *s->first);
    for (int i = 0; i < PARAMETERS; i++)
        s->first[i + 1] = blocks += (wf_shape_count(&shapes[i]) + WF_GRADS_BLOCK - 1) / WF_GRADS_BLOCK;
    s->before = calloc((size_t)blocks + 1, sizeof *s->before);
    s->whole = calloc(PARAMETERS, sizeof *s->whole);
    for (int i = 0; i < PARAMETERS; i++) {
        s->whole[i] = wf_rule_is_whole(one->opt.rule, NULL, wf_registry_at(one->registry, i));
        for (int64_t b = s->first[i]; b < s->first[i + 1]; b++)
            s->before[b + 1] = s->before[b] + ((s->whole[i] ? i : b) % PROCESSES == rank);
    }
    s->active = true;
    s->share = share;
    s->ctx = one;
}

enum { ADAM, SGD, RULE, LION, MUON, ADAFACTOR };
static void open_one(struct one *s, int which)
{
    s->registry = wf_registry_new(NULL);
    for (int i = 0; i < PARAMETERS; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", i);
        wf_parameter(wf_root(s->registry), name, &shapes[i]);
    }
    ck_ok(wf_registry_build(s->registry, 5, error));
    if (which == SGD)
        ck_ok(wf_sgd_init(&s->opt, s->registry, error, .lr = 0.1, .momentum = 0.9));
    else if (which == RULE)
        ck_ok(wf_optimizer_init(&s->opt, s->registry, &amsgrad, &amsgrad_settings, error, .weight_decay = 0.1));
    else if (which == LION)
        ck_ok(wf_lion_init(&s->opt, s->registry, error, .weight_decay = 0.1));
    else if (which == MUON)
        ck_ok(wf_muon_init(&s->opt, s->registry, error, .weight_decay = 0.1));
    else if (which == ADAFACTOR)
        ck_ok(wf_adafactor_init(&s->opt, s->registry, error, .weight_decay = 0.1));
    else
        ck_ok(wf_adamw_init(&s->opt, s->registry, error, .weight_decay = 0.1));
}

static void close_one(struct one *s)
{
    wf_optimizer_free(&s->opt);
    wf_registry_free(s->registry);
    free(s->shard.first);
    free(s->shard.before);
    free(s->shard.whole);
}

/* A clipped step with gradients that depend on the step alone. */
static void step(struct one *s, int t, double norm[STEPS])
{
    wf_grads *grads = wf_registry_grads(s->registry);
    for (int i = 0; i < PARAMETERS; i++) {
        wf_fill_normal(grads->slab + grads->place[i].offset, wf_shape_count(&shapes[i]), 0, 1, 3, (uint64_t)(t * 10 + i));
        grads->valid[i] = i != 1 || t > 0;
    }
    ck_ok(wf_clip_norm(grads, 0.7, &norm[t], error));
    if (!grads->shard)
        memcpy(s->partial + t * grads->blocks, grads->partial, (size_t)grads->blocks * sizeof *s->partial);
    ck_ok(wf_optimizer_step(&s->opt, error));
}

/* Values and moments of `part` against those of `all`; what is not owned has the value and the moment of `other`. */
static void compare(const struct one *all, const struct one *part, bool whole)
{
    for (int i = 0; i < PARAMETERS; i++)
        for (int64_t at = 0, count = wf_shape_count(&shapes[i]); at < count; at += WF_GRADS_BLOCK) {
            const size_t bytes = (size_t)(count - at < WF_GRADS_BLOCK ? count - at : WF_GRADS_BLOCK) * sizeof(wf_real);
            const wf_real *want = wf_parameter_info(wf_registry_at(all->registry, i))->value.data;
            const wf_real *has = wf_parameter_info(wf_registry_at(part->registry, i))->value.data;
            const bool owns = wf_shard_owns(&part->shard, i, at);
            ck_assert_msg((memcmp(want + at, has + at, bytes) == 0) == owns, "parameter %d at %lld", i, (long long)at);
            for (int k = 0; k < WF_RULE_SLABS && all->opt.part[0].moment[k]; k++) {
                const struct wf_optimizer_place a = {&all->opt, 0, i, k}, b = {&part->opt, 0, i, k};
                const int64_t all_of_it = wf_optimizer_moment_count(&a), left = all_of_it - at;
                const int64_t n = left < WF_GRADS_BLOCK ? left : WF_GRADS_BLOCK;
                if (n <= 0) /* the parameter has no such moment, or it is smaller than the parameter */
                    continue;
                const wf_real *want_m = wf_optimizer_moment(&a, at), *m = wf_optimizer_moment(&b, at);
                ck_assert((m != NULL) == (owns || whole));
                ck_assert(!owns || memcmp(want_m, m, (size_t)n * sizeof *m) == 0);
                for (int64_t e = 0; m && !owns && e < n; e++)
                    ck_assert(m[e] == 0);
            }
        }
}

static void shards_do_what_the_whole_does(int which)
{
    static double partial[STEPS * 16], norm[STEPS], own[STEPS];
    struct one all = {.partial = partial};
    open_one(&all, which);
    for (int t = 0; t < STEPS; t++)
        step(&all, t, norm);
    int64_t elements = 0;
    for (int r = 0; r < PROCESSES; r++) {
        struct one s = {.partial = partial};
        open_one(&s, which);
        shard_make(&s.shard, r, &s);
        /* From the beginning, or from some updates on: what a program has done before. */
        for (int t = 0; t < STEPS; t++) {
            if (t == r % 2) {
                ck_ok(wf_optimizer_shard(&s.opt, s.registry, &s.shard, error));
                wf_registry_grads(s.registry)->shard = &s.shard;
            }
            s.partial = partial + t * wf_registry_grads(s.registry)->blocks;
            if (t < r % 2) { /* as one process does it */
                static double again[STEPS * 16];
                s.partial = again;
            }
            step(&s, t, own);
            ck_assert(own[t] == norm[t]);
        }
        compare(&all, &s, false);
        for (int i = 0; i < PARAMETERS; i++)
            elements += wf_shard_elements(&s.shard, i, wf_shape_count(&shapes[i]), wf_shape_count(&shapes[i]));
        /* Its own again: what others hold is 0 here. */
        ck_ok(wf_optimizer_shard(&s.opt, s.registry, NULL, error));
        wf_registry_grads(s.registry)->shard = NULL;
        compare(&all, &s, true);
        close_one(&s);
    }
    ck_assert_int_eq(elements, 20000 + 3 + 4 * 8192 + 8193);
    close_one(&all);
}

START_TEST(of_adam)
{
    shards_do_what_the_whole_does(ADAM);
}
END_TEST

START_TEST(of_sgd)
{
    shards_do_what_the_whole_does(SGD);
}
END_TEST

START_TEST(of_lion)
{
    shards_do_what_the_whole_does(LION);
}
END_TEST

START_TEST(of_muon)
{
    shards_do_what_the_whole_does(MUON);
}
END_TEST

START_TEST(of_adafactor)
{
    shards_do_what_the_whole_does(ADAFACTOR);
}
END_TEST

START_TEST(of_a_rule)
{
    shards_do_what_the_whole_does(RULE);
}
END_TEST

/* A rule that updates whole parameters is refused with shards that have only blocks of them, in either order. */
START_TEST(blocks_of_whole_parameters_are_refused)
{
    static const char message[] = "the optimiser unit updates 'p0' as a whole, and several processes have parts of it already: initialise "
                                  "the optimiser before the training";
    struct one s = {0};
    struct wf_optimizer opt, late;
    open_one(&s, SGD);
    shard_make(&s.shard, 0, &s);
    ck_ok(wf_optimizer_init(&opt, s.registry, &unit, NULL, error));
    ck_fails(wf_optimizer_shard(&opt, s.registry, &s.shard, error), WF_ERR_ARGUMENT, message);
    wf_registry_grads(s.registry)->shard = &s.shard;
    ck_fails(wf_optimizer_init(&late, s.registry, &unit, NULL, error), WF_ERR_ARGUMENT, message);
    wf_optimizer_free(&late);
    wf_optimizer_free(&opt);
    close_one(&s);
}
END_TEST

WF_TEST_MAIN("optim/shards", of_adam, of_sgd, of_a_rule, of_lion, of_muon, of_adafactor, blocks_of_whole_parameters_are_refused)

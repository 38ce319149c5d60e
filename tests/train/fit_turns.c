/* SPDX-License-Identifier: MIT */
/* Several optimisers: turns within an update, as a GAN needs, against the same training written by hand; and one loss whose matrices have
 * one optimiser and the rest another. */
#include "stranger.h"

/* A generator of points of the plane and a discriminator, each a perceptron of one hidden layer. */
enum { NOISE = 4, HIDDEN = 16, POINTS = 32 };
struct net {
    wf_registry *registry;
    struct wf_linear up, down;
    struct wf_optimizer adam;
};
struct gan {
    struct net generator, discriminator;
    int64_t last_step, asked, cancel_at;
    double losses[2];
};

static void net_open(struct net *n, int64_t in, int64_t out, uint64_t seed, double lr)
{
    n->registry = wf_registry_new(NULL);
    wf_linear_init(wf_sub(wf_root(n->registry), "up"), &n->up, in, HIDDEN);
    wf_linear_init(wf_sub(wf_root(n->registry), "down"), &n->down, HIDDEN, out);
    ck_ok(wf_registry_build(n->registry, seed, error));
    ck_ok(wf_adamw_init(&n->adam, n->registry, error, .lr = lr, .beta1 = 0.5));
}

static void net_close(struct net *n)
{
    wf_optimizer_free(&n->adam);
    wf_registry_free(n->registry);
}

static wf_tensor *net_forward(const struct net *n, wf_tensor *x)
{
    return wf_linear_forward(&n->down, wf_dropout(wf_tanh(wf_linear_forward(&n->up, x)), 0.1));
}

static struct gan *gan_open(void)
{
    struct gan *g = calloc(1, sizeof *g);
    ck_ok(wf_init(error, .threads = 1));
    net_open(&g->generator, NOISE, 2, 1, 0.01);
    net_open(&g->discriminator, 2, 1, 2, 0.02);
    return g;
}

static void gan_close(struct gan *g)
{
    net_close(&g->generator);
    net_close(&g->discriminator);
    free(g);
}

static wf_status gan_next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    (void)ctx, (void)step, (void)error;
    *weight = POINTS;
    return WF_OK;
}

/* Least squares (Mao et al. 2017). */
static wf_tensor *squares(wf_tensor *logits, double target, double weight)
{
    wf_tensor *d = wf_affine(logits, 1, -target);
    return wf_scale(wf_sum(wf_mul(d, d)), 1 / weight);
}

static wf_tensor *gan_loss(void *ctx, struct wf_fit_part *p)
{
    struct gan *g = ctx;
    wf_real noise[POINTS][NOISE], real[POINTS][2];
    wf_fill_normal(noise[0], POINTS * NOISE, 0, 1, 7, (uint64_t)p->step);
    wf_fill_normal(real[0], POINTS * 2, 2, 0.5, 8, (uint64_t)p->step);
    int64_t first = POINTS * p->part / p->parts, rows = POINTS * (p->part + 1) / p->parts - first;
    wf_tape_first_row(p->tape, (uint64_t)first);
    wf_tensor *fake = net_forward(&g->generator, wf_input(p->tape, noise[first], &(wf_shape){2, {rows, NOISE}}, false));
    p->report[0] = wf_scale(wf_sum(wf_slice(fake, 1, 0, 1)), 1 / p->weight / 2); /* of both turns: the mean */
    if (p->turn == 1)
        return squares(net_forward(&g->discriminator, fake), 1, p->weight);
    wf_tensor *x = wf_input(p->tape, real[first], &(wf_shape){2, {rows, 2}}, false);
    return wf_add(squares(net_forward(&g->discriminator, x), 1, p->weight),
                  squares(net_forward(&g->discriminator, wf_detach(fake)), 0, p->weight));
}

static void gan_event(void *ctx, const struct wf_fit_event *e)
{
    struct gan *g = ctx;
    g->last_step = e->step;
    memcpy(g->losses, e->losses, sizeof g->losses);
}

static bool gan_cancelled(void *ctx)
{
    struct gan *g = ctx;
    return g->cancel_at > 0 && ++g->asked >= g->cancel_at;
}

static const struct wf_task gan_task = {.abi = WF_TASK_ABI,
                                        .name = "gan",
                                        .turns = (const char *const[]){"discriminator", "generator", NULL},
                                        .reports = (const char *const[]){"x", NULL},
                                        .next = gan_next,
                                        .loss = gan_loss};

static struct wf_fit_options gan_options(struct gan *g, const char *out)
{
    struct wf_fit_options o =
        options_of_two(out, g, gan_event, gan_cancelled,
                       (struct wf_fit_registry[]){{"generator", g->generator.registry}, {"discriminator", g->discriminator.registry}},
                       (struct wf_fit_optimizer[]){{"g", &g->generator.adam, .turn = 1}, {"d", &g->discriminator.adam, .turn = 0}});
    o.steps = 30;
    o.clip = 0.5;
    o.save_every = 8;
    o.log_every = 1;
    o.seed = 3;
    return o;
}

static bool same_weights(const wf_registry *a, const wf_registry *b)
{
    return memcmp(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real)) == 0;
}

START_TEST(turns_are_the_loop_by_hand)
{
    struct gan *a = gan_open(), *b = gan_open();
    struct wf_fit_options o = gan_options(a, in_folder("run"));
    ck_ok(wf_fit(&gan_task, &o, NULL, error));
    wf_tape *tape = wf_tape_new(NULL);
    wf_grads *both[2] = {wf_registry_grads(b->generator.registry), wf_registry_grads(b->discriminator.registry)};
    double losses[2];
    for (int64_t step = 0; step < 30; step++)
        for (int turn = 0; turn < 2; turn++) {
            struct net *n = turn ? &b->generator : &b->discriminator;
            struct wf_fit_part p = {.tape = tape, .step = step, .turn = turn, .parts = 1, .weight = POINTS};
            wf_grads_zero(both[0]);
            wf_grads_zero(both[1]);
            wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = (uint64_t)(2 * step + turn), .exact = true);
            wf_tensor *loss = gan_loss(b, &p);
            ck_assert_int_eq(wf_item(loss, &losses[turn]), WF_OK);
            ck_assert_int_eq(wf_backward(loss), WF_OK);
            ck_ok(wf_clip_norm(both[!turn], 0.5, NULL, error));
            ck_ok(wf_optimizer_step(&n->adam, error));
        }
    ck_assert(same_weights(a->generator.registry, b->generator.registry));
    ck_assert(same_weights(a->discriminator.registry, b->discriminator.registry));
    ck_assert(a->losses[0] == losses[0] && a->losses[1] == losses[1]);
    ASSERT_HAS(in_folder("run/metrics.jsonl"),
               "\"discriminator/train\":", "\"generator/train\":", "\"x/train\":", "\"lr/g\":0.01,\"lr/d\":0.02,",
               "\"grad_norm/discriminator\":", "\"grad_norm/generator\":", "\"rows_per_second\":");
    wf_tape_free(tape);
    gan_close(a);
    gan_close(b);
}
END_TEST

/* A cancellation amid the second turn waits for the update: the first turn's optimiser has stepped. */
START_TEST(cancelled_in_any_turn_gives_the_same_bytes)
{
    struct gan *whole = gan_open();
    struct wf_fit_options o = gan_options(whole, in_folder("straight"));
    o.accumulate = 2;
    ck_ok(wf_fit(&gan_task, &o, NULL, error));
    gan_close(whole);
    wf_status status = WF_ERR_CANCELLED;
    for (int stops = 0; status != WF_OK; stops++) {
        struct gan *g = gan_open();
        wf_error e = {0};
        o = gan_options(g, in_folder("broken"));
        o.accumulate = 2;
        o.resume = true;
        g->cancel_at = 60 + stops * 37 % 211;
        ck_assert_int_lt(stops, 200);
        status = wf_fit(&gan_task, &o, NULL, &e);
        ck_assert_msg(status == WF_OK || status == WF_ERR_CANCELLED, "%s", e.message);
        gan_close(g);
    }
    ck_assert(same_file(in_folder("straight/state.safetensors"), in_folder("broken/state.safetensors")));
    ck_assert(same_file(in_folder("straight/model.safetensors"), in_folder("broken/model.safetensors")));
}
END_TEST

START_TEST(each_turn_needs_an_optimiser)
{
    struct gan *g = gan_open();
    struct wf_fit_options o = gan_options(g, in_folder("run"));
    struct wf_fit_optimizer one = {.optimizer = &g->generator.adam, .turn = 0};
    wf_error e = {0};
    o.optimizer = &one;
    o.optimizers = 1;
    ck_assert_int_eq(wf_fit(&gan_task, &o, NULL, &e), WF_ERR_ARGUMENT);
    ck_assert_str_eq(e.message, "wf_fit: no optimiser steps in turn 1, 'generator'");
    gan_close(g);
}
END_TEST

static bool is_wanted(void *matrices, const char *name, const wf_tensor *p)
{
    (void)name;
    return (wf_ndim(p) >= 2) == *(bool *)matrices;
}

/* One registry, one loss: SGD for the matrices, AdamW for the rest; resumed, to the same bytes. */
static void train_shared(const char *out, int64_t cancel_at, bool resume)
{
    struct study *s = study_open(0.1);
    struct wf_optimizer matrices, rest;
    bool yes = true, no = false;
    ck_ok(wf_sgd_init(&matrices, s->body, error, .lr = 0.05, .momentum = 0.9));
    ck_ok(wf_optimizer_add(&matrices, s->head, "head.", error));
    ck_ok(wf_adamw_init(&rest, s->body, error));
    ck_ok(wf_optimizer_add(&rest, s->head, "head.", error));
    ck_ok(wf_optimizer_only(&matrices, is_wanted, &yes, error));
    ck_ok(wf_optimizer_only(&rest, is_wanted, &no, error));
    struct wf_fit_options o = study_options(s, out);
    const struct wf_fit_optimizer optimizer[2] = {{"matrices", &matrices},
                                                  {"rest", &rest, .schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 0.01}}};
    o.optimizer = optimizer;
    o.resume = resume;
    s->cancel_at = cancel_at;
    wf_error e = {0};
    wf_status status = wf_fit(&vit_task, &o, NULL, &e);
    ck_assert_msg(status == (cancel_at ? WF_ERR_CANCELLED : WF_OK), "%s", e.message);
    if (!cancel_at) {
        ck_assert(s->accuracy > 0.9);
        ck_assert(matrices.part[0].parameter[0].updates == 60 && rest.part[0].parameter[0].updates == 0);
    }
    wf_optimizer_free(&matrices);
    wf_optimizer_free(&rest);
    study_close(s);
}

START_TEST(optimizers_share_a_loss)
{
    train_shared(in_folder("straight"), 0, false);
    train_shared(in_folder("broken"), 2000, false);
    train_shared(in_folder("broken"), 0, true);
    assert_same_runs(in_folder("straight"), in_folder("broken"));
}
END_TEST

WF_TEST_MAIN("fit_turns", turns_are_the_loop_by_hand, cancelled_in_any_turn_gives_the_same_bytes, each_turn_needs_an_optimiser,
             optimizers_share_a_loss)

/* SPDX-License-Identifier: MIT */
/* Phases within an update, as a GAN needs, against the same training written by hand. */
#include "gan.h"

START_TEST(phases_are_the_loop_by_hand)
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
            struct wf_micro_batch p = {.tape = tape, .step = step, .phase = turn, .count = 1, .weight = POINTS};
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

START_TEST(each_phase_needs_an_optimiser)
{
    struct gan *g = gan_open();
    struct wf_fit_options o = gan_options(g, in_folder("run"));
    o.optimizer = &(struct wf_fit_optimizer){.optimizer = &g->generator.adam, .phase = 0};
    o.optimizers = 1;
    ck_fails(wf_fit(&gan_task, &o, NULL, error), WF_ERR_ARGUMENT, "wf_fit: no optimiser steps in phase 1, 'generator'");
    gan_close(g);
}
END_TEST

WF_TEST_MAIN("fit_phases", phases_are_the_loop_by_hand, each_phase_needs_an_optimiser)

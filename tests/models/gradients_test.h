/* SPDX-License-Identifier: MIT */
/* A loss and the gradients of all parameters, to compare a batch with its micro-batches. */
#ifndef TESTS_GRADIENTS_TEST_H
#define TESTS_GRADIENTS_TEST_H

#include "models_test.h"

struct result {
    double loss, *gradient;
    int64_t count;
};

/* Copies the gradients of a registry; free(gradient). */
static inline void result_take(struct result *r, wf_registry *registry)
{
    r->count = wf_registry_slab(registry);
    r->gradient = calloc((size_t)r->count, sizeof *r->gradient);
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(registry, i));
        const wf_real *g = wf_grads_at(wf_registry_grads(registry), wf_registry_at(registry, i));
        for (int64_t k = 0; g && k < wf_array_count(&info->value); k++)
            r->gradient[info->offset + k] = (double)g[k];
    }
}

/* The relative distance of the gradients. */
static inline double distance(const struct result *a, const struct result *b)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < a->count; i++) {
        difference += (a->gradient[i] - b->gradient[i]) * (a->gradient[i] - b->gradient[i]);
        norm += a->gradient[i] * a->gradient[i];
    }
    return sqrt(difference / norm);
}

/* The parts have the loss and the gradients of the whole; frees the parts. */
static inline void ck_same(const char *name, int split, const struct result *whole, struct result parts, double tolerance)
{
    ck_assert_msg(fabs(parts.loss - whole->loss) <= tolerance * whole->loss, "%s: loss %.12g, not %.12g", name, parts.loss, whole->loss);
    ck_assert_msg(distance(whole, &parts) <= tolerance, "%s, split %d: the gradients differ by %g", name, split, distance(whole, &parts));
    free(parts.gradient);
}

/* A mistake of the caller, such as another first row, gives other gradients: the comparison would see it. Frees them. */
static inline void ck_other(const struct result *whole, struct result other)
{
    ck_assert(distance(whole, &other) > 1e-2);
    free(other.gradient);
}

#endif

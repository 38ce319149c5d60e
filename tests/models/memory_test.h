/* SPDX-License-Identifier: MIT */
/* Bodies for sweep_memory. */
#ifndef TESTS_MODELS_MEMORY_TEST_H
#define TESTS_MODELS_MEMORY_TEST_H

#include "../data/data_test.h"
#include "models_test.h"

/* Makes a model of the configuration with its parameters, and frees it. */
static inline wf_status build_model(void *config, wf_error *error)
{
    wf_model *m = wf_model_new(config, error);
    wf_status status = m ? wf_registry_build(wf_model_registry(m), 1, error) : error->code;
    wf_model_free(m);
    return status;
}

/* body(model, tape, error) on a new tape. */
struct tape_sweep {
    const wf_model *model;
    wf_status (*body)(const wf_model *model, wf_tape *tape, wf_error *error);
};

static inline wf_status on_new_tape(void *ctx, wf_error *error)
{
    const struct tape_sweep *s = ctx;
    wf_tape *tape = wf_tape_new(error);
    wf_status status = tape ? s->body(s->model, tape, error) : error->code;
    wf_tape_free(tape);
    return status;
}

#endif

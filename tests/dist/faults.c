/* SPDX-License-Identifier: MIT */
/* A program that mpirun starts several times (tests/dist/faults.sh): what goes wrong on one process, or what a program does with its
 * optimiser while the processes share it.
 *
 *   faults OUT HOW
 *
 *   full     the disk is full at the second save: which line each rank's error is
 *   sample   the sample, which rank 0 makes alone, fails
 *   step     the optimiser of the last rank has a setting out of range from the third update on
 *   teacher  a listed registry has no gradients
 *   exists   a second wf_fit is refused, and leaves the optimiser whole
 *   save     event saves the optimiser, and steps with it: refused in one line
 *   norm     loss calls wf_backward and asks for a norm
 *   clean    nothing */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <weft/weft.h>

enum { WEIGHTS = 3, ROWS = 300, COLUMNS = 257, COUNT = ROWS * COLUMNS };
struct program {
    wf_registry *teacher, *model;
    wf_tensor *w[WEIGHTS];
    struct wf_optimizer adam;
    wf_real *input;
    const char *how;
    int rank, last;
};
static const wf_shape shape = {2, {ROWS, COLUMNS}};
static wf_error error;

static bool is(const struct program *s, const char *how)
{
    return strcmp(s->how, how) == 0;
}

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *why)
{
    struct program *s = ctx;
    (void)why;
    *weight = 8;
    if (is(s, "step") && step == 2 && s->rank == s->last)
        s->adam.adam.beta1 = 2;
    return WF_OK;
}

static wf_tensor *loss(void *ctx, struct wf_micro_batch *p)
{
    struct program *s = ctx;
    wf_tensor *sum = NULL;
    for (int i = 0; i < WEIGHTS; i++) {
        wf_fill_normal(s->input, COUNT, 0, 1, 5, (uint64_t)(p->step * 1000 + p->index * 10 + i));
        wf_tensor *x = wf_input(p->tape, s->input, &shape, false);
        wf_tensor *y = wf_sum(wf_add(wf_mul(s->w[i], x), wf_mul(s->w[i], s->w[i])));
        sum = sum ? wf_add(sum, y) : y;
    }
    sum = wf_scale(sum, 1 / p->weight);
    if (is(s, "norm") && (wf_backward(sum, .retain = true) != WF_OK || !(wf_grad_norm(wf_registry_grads(s->model)) > 0)))
        return NULL;
    return sum;
}

static wf_status validate(void *ctx, wf_tape *tape, double *value, wf_error *why)
{
    (void)ctx, (void)tape, (void)why;
    *value = 1;
    return WF_OK;
}

static wf_status sample(void *ctx, wf_tape *tape, const char **text, wf_error *why)
{
    (void)tape;
    *text = "a sample";
    return is(ctx, "sample") ? wf_error_set(why, WF_ERR_IO, "no sample today") : WF_OK;
}

static void event(void *ctx, const struct wf_fit_event *e)
{
    struct program *s = ctx;
    if (is(s, "full") && e->kind == WF_EVENT_SAVE) { /* the first save has all; of the second a part */
        const struct rlimit little = {500 << 10, RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &little);
    }
    if (is(s, "save") && e->kind == WF_EVENT_SAVE) {
        wf_error why = {0};
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_optimizer_save(&s->adam, w, "");
        if (wf_safetensors_commit(w, "own.safetensors", &why) != WF_OK)
            fprintf(stderr, "saved: %s\n", why.message);
        wf_error_clear(&why);
        if (wf_optimizer_step(&s->adam, &why) != WF_OK)
            fprintf(stderr, "stepped: %s\n", why.message);
    }
}

/* How many of the second moments are 0: none after an update of all. */
static int64_t zeros(const struct program *s)
{
    char name[64];
    int64_t count = 0;
    wf_error why = {0};
    snprintf(name, sizeof name, "moments-%d.safetensors", s->rank);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_optimizer_save(&s->adam, w, "");
    wf_safetensors *file = wf_safetensors_commit(w, name, &why) == WF_OK ? wf_safetensors_open(name, &why) : NULL;
    wf_real *values = malloc(COUNT * sizeof *values);
    for (int i = 0; file && values && i < WEIGHTS; i++) {
        char key[16];
        snprintf(key, sizeof key, "v.w%d", i);
        if (wf_safetensors_read(file, key, WF_REAL, values, COUNT, &why) != WF_OK)
            break;
        for (int64_t k = 0; k < COUNT; k++)
            count += values[k] == 0;
    }
    if (why.code || !file || !values)
        fprintf(stderr, "moments: %s\n", why.message);
    wf_safetensors_close(file);
    free(values);
    return why.code ? -1 : count;
}

static wf_status prepare(struct program *s)
{
    s->teacher = wf_registry_new(&error);
    s->model = wf_registry_new(&error);
    wf_parameter(wf_root(s->teacher), "teaches", WF_SHAPE(5));
    for (int i = 0; i < WEIGHTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        s->w[i] = wf_parameter(wf_root(s->model), name, &shape);
    }
    if (is(s, "teacher")) { /* loaded, so that it has no gradients */
        char name[64];
        wf_registry *made = wf_registry_new(&error);
        snprintf(name, sizeof name, "teacher-%d.safetensors", s->rank);
        wf_parameter(wf_root(made), "teaches", WF_SHAPE(5));
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        if (wf_registry_build(made, 1, &error) != WF_OK)
            return error.code;
        wf_registry_save(made, w, "");
        wf_safetensors *file = wf_safetensors_commit(w, name, &error) == WF_OK ? wf_safetensors_open(name, &error) : NULL;
        if (!file || wf_registry_load(s->teacher, file, "", &error) != WF_OK)
            return error.code;
        wf_safetensors_close(file);
        wf_registry_free(made);
    }
    if (!(s->input = malloc(COUNT * sizeof *s->input)) || wf_registry_build(s->model, 1, &error) != WF_OK)
        return WF_ERR_MEMORY;
    return wf_adamw_init(&s->adam, s->model, &error, .lr = 0.01);
}

int main(int argc, char **argv)
{
    static struct program s;
    if (argc != 3)
        return 2;
    s.how = argv[2];
    wf_dist *dist = wf_dist_world(&error);
    s.rank = wf_dist_rank(dist);
    s.last = wf_dist_size(dist) - 1;
    if (!dist || prepare(&s) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    static const struct wf_metric metric[] = {{"m"}};
    const struct wf_task task = {WF_TASK_ABI,      .name = "faults", .next = next,         .loss = loss,
                                 .metric = metric, .metrics = 1,     .validate = validate, .sample = sample};
    const struct wf_fit_registry registry[] = {{"teacher", s.teacher}, {"model", s.model}};
    const struct wf_fit_optimizer optimizer[] = {{"adam", &s.adam}};
    const bool teacher = is(&s, "teacher");
    const struct wf_fit_options options = {.out = argv[1],
                                           .registry = teacher ? registry : registry + 1,
                                           .registries = teacher ? 2 : 1,
                                           .optimizer = optimizer,
                                           .optimizers = 1,
                                           .steps = 6,
                                           .accumulate = 8,
                                           .clip = 0.5,
                                           .save_every = 2,
                                           .valid_every = 2,
                                           .log_every = 1,
                                           .seed = 3,
                                           .event = event,
                                           .ctx = &s};
    wf_status status = wf_fit(&task, &options, NULL, &error);
    if (status != WF_OK)
        fprintf(stderr, "rank %d has %s\n", s.rank, error.message);
    if (is(&s, "exists") && status == WF_OK) {
        status = wf_fit(&task, &options, NULL, &error);
        fprintf(stderr, "rank %d has %s; zeros: %lld\n", s.rank, error.message, (long long)zeros(&s));
    }
    wf_optimizer_free(&s.adam);
    wf_registry_free(s.model);
    wf_registry_free(s.teacher);
    free(s.input);
    return status == WF_OK ? 0 : 1;
}

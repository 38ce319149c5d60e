/* SPDX-License-Identifier: MIT */
/* Times whole nets, forward and backward: a ResNet on pictures of 32 x 32, the U-Net of a diffusion model, and a language model of
 * selective state-space blocks. bench/torch_nets.py runs the same nets in PyTorch, in turn with these.
 *
 *   nets [-t THREADS] [-s SECONDS] [-n NAME]      a JSON line for each net: median milliseconds, parameters and the loss
 */
#include <string.h>

#include <weft/nn.h>
#include <weft/ops.h>
#include <weft/random.h>
#include <weft/runtime.h>
#include <weft/ssm.h>

#include "measure.h"

/* --- ResNet (He et al. 2016): stem and three stages of two blocks, batch norm --------------------------------------- */

enum { STAGES = 3, BLOCKS = 2, RES_BATCH = 32, CLASSES = 10 };

struct unit {
    struct wf_convolution conv;
    struct wf_batch_norm norm;
};
static void unit_init(wf_scope s, struct unit *u, int64_t in, int64_t out, int64_t kernel, int64_t stride)
{
    wf_conv2d_init(wf_sub(s, "conv"), &u->conv, in, out, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true);
    wf_batch_norm_init(wf_sub(s, "norm"), &u->norm, out);
}
static wf_tensor *unit_forward(const struct unit *u, wf_tensor *x)
{
    return wf_batch_norm_forward(&u->norm, wf_convolution_forward(&u->conv, x));
}

struct resnet {
    struct unit stem;
    struct {
        struct unit first, second, shortcut;
        bool widens;
    } block[STAGES][BLOCKS];
    struct wf_linear head;
};
static void resnet_init(wf_scope s, struct resnet *m)
{
    int64_t width = 32;
    unit_init(wf_sub(s, "stem"), &m->stem, 3, width, 3, 1);
    for (int i = 0; i < STAGES; i++)
        for (int b = 0; b < BLOCKS; b++) {
            wf_scope at = wf_sub_at(s, "block", i * BLOCKS + b);
            const bool widens = i > 0 && b == 0;
            const int64_t out = widens ? 2 * width : width;
            unit_init(wf_sub(at, "first"), &m->block[i][b].first, width, out, 3, widens ? 2 : 1);
            unit_init(wf_sub(at, "second"), &m->block[i][b].second, out, out, 3, 1);
            if ((m->block[i][b].widens = widens))
                unit_init(wf_sub(at, "shortcut"), &m->block[i][b].shortcut, width, out, 1, 2);
            width = out;
        }
    wf_linear_init(wf_sub(s, "head"), &m->head, width, CLASSES);
}
static wf_tensor *resnet_loss(void *net, wf_tape *tape)
{
    const struct resnet *m = net;
    static wf_real pictures[RES_BATCH * 3 * 32 * 32];
    static int32_t labels[RES_BATCH];
    for (int i = 0; i < RES_BATCH; i++)
        labels[i] = i % CLASSES;
    wf_fill_normal(pictures, RES_BATCH * 3 * 32 * 32, 0, 1, 1, 1);
    wf_tensor *x = wf_relu(unit_forward(&m->stem, wf_input(tape, pictures, WF_SHAPE(RES_BATCH, 3, 32, 32), false)));
    for (int i = 0; i < STAGES; i++)
        for (int b = 0; b < BLOCKS; b++) {
            wf_tensor *y = unit_forward(&m->block[i][b].second, wf_relu(unit_forward(&m->block[i][b].first, x)));
            x = wf_relu(wf_add(y, m->block[i][b].widens ? unit_forward(&m->block[i][b].shortcut, x) : x));
        }
    x = wf_linear_forward(&m->head, wf_reshape(wf_adaptive_avg_pool(x, 1, 1), RES_BATCH, -1));
    return wf_cross_entropy(x, wf_ids_of(tape, labels, WF_SHAPE(RES_BATCH)));
}

/* --- U-Net of a diffusion model (Ho et al. 2020), without attention -------------------------------------------------- */

enum { LEVELS = 3, UNET_BATCH = 16, UNET_WIDTH = 32, TIME = 128 };

struct residual {
    struct wf_group_norm norm1, norm2;
    struct wf_convolution conv1, conv2, shortcut;
    struct wf_linear time;
    bool widens;
};
static void residual_init(wf_scope s, struct residual *r, int64_t in, int64_t out)
{
    wf_group_norm_init(wf_sub(s, "norm1"), &r->norm1, 8, in);
    wf_conv2d_init(wf_sub(s, "conv1"), &r->conv1, in, out, 3, .padding = 1);
    wf_linear_init(wf_sub(s, "time"), &r->time, TIME, out);
    wf_group_norm_init(wf_sub(s, "norm2"), &r->norm2, 8, out);
    wf_conv2d_init(wf_sub(s, "conv2"), &r->conv2, out, out, 3, .padding = 1);
    if ((r->widens = in != out))
        wf_conv2d_init(wf_sub(s, "shortcut"), &r->shortcut, in, out, 1);
}
static wf_tensor *residual_forward(const struct residual *r, wf_tensor *x, wf_tensor *time)
{
    wf_tensor *y = wf_convolution_forward(&r->conv1, wf_silu(wf_group_norm_forward(&r->norm1, x)));
    wf_tensor *t = wf_linear_forward(&r->time, time);
    y = wf_add(y, wf_reshape(t, wf_dim(t, 0), wf_dim(t, 1), 1, 1));
    y = wf_convolution_forward(&r->conv2, wf_silu(wf_group_norm_forward(&r->norm2, y)));
    return wf_add(y, r->widens ? wf_convolution_forward(&r->shortcut, x) : x);
}

struct unet {
    struct wf_convolution in, out, down[LEVELS], up[LEVELS];
    struct residual before[LEVELS], middle, after[LEVELS];
    struct wf_group_norm norm;
};
static void unet_init(wf_scope s, struct unet *m)
{
    const int64_t width[LEVELS + 1] = {UNET_WIDTH, UNET_WIDTH, 2 * UNET_WIDTH, 4 * UNET_WIDTH};
    wf_conv2d_init(wf_sub(s, "in"), &m->in, 3, width[0], 3, .padding = 1);
    for (int i = 0; i < LEVELS; i++) {
        residual_init(wf_sub_at(s, "before", i), &m->before[i], width[i], width[i + 1]);
        if (i + 1 < LEVELS) {
            wf_conv2d_init(wf_sub_at(s, "down", i), &m->down[i], width[i + 1], width[i + 1], 3, .stride = 2, .padding = 1);
            wf_conv2d_init(wf_sub_at(s, "up", i), &m->up[i], width[i + 2], width[i + 1], 3, .padding = 1);
            residual_init(wf_sub_at(s, "after", i), &m->after[i], 2 * width[i + 1], width[i + 1]);
        }
    }
    residual_init(wf_sub(s, "middle"), &m->middle, width[LEVELS], width[LEVELS]);
    wf_group_norm_init(wf_sub(s, "norm"), &m->norm, 8, width[1]);
    wf_conv2d_init(wf_sub(s, "out"), &m->out, width[1], 3, 3, .padding = 1);
}
static wf_tensor *unet_loss(void *net, wf_tape *tape)
{
    const struct unet *m = net;
    static wf_real pictures[UNET_BATCH * 3 * 32 * 32], times[UNET_BATCH * TIME];
    wf_fill_normal(pictures, UNET_BATCH * 3 * 32 * 32, 0, 1, 1, 1);
    wf_fill_normal(times, UNET_BATCH * TIME, 0, 1, 1, 2);
    wf_tensor *noise = wf_input(tape, pictures, WF_SHAPE(UNET_BATCH, 3, 32, 32), false), *skip[LEVELS];
    wf_tensor *time = wf_input(tape, times, WF_SHAPE(UNET_BATCH, TIME), false), *x = wf_convolution_forward(&m->in, noise);
    for (int i = 0; i < LEVELS; i++) {
        x = skip[i] = residual_forward(&m->before[i], x, time);
        if (i + 1 < LEVELS)
            x = wf_convolution_forward(&m->down[i], x);
    }
    x = residual_forward(&m->middle, x, time);
    for (int i = LEVELS - 2; i >= 0; i--) {
        x = wf_convolution_forward(&m->up[i], wf_resize(x, wf_dim(skip[i], 2), wf_dim(skip[i], 3), WF_RESIZE_NEAREST));
        x = residual_forward(&m->after[i], wf_concat(((wf_tensor *[]){x, skip[i]}), 2, 1), time);
    }
    return wf_mse(wf_convolution_forward(&m->out, wf_silu(wf_group_norm_forward(&m->norm, x))), noise, WF_REDUCE_MEAN);
}

/* --- a language model of selective state-space blocks (Gu and Dao 2023) ---------------------------------------------- */

enum { SSM_LAYERS = 4, SSM_BATCH = 8, SSM_STEPS = 128, SSM_WIDTH = 128, VOCABULARY = 96 };

struct ssm {
    struct wf_embedding embed;
    struct {
        struct wf_rms_norm norm;
        struct wf_ssm mixer;
    } layer[SSM_LAYERS];
    struct wf_rms_norm norm;
    struct wf_linear head;
};
static void ssm_init(wf_scope s, struct ssm *m)
{
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, VOCABULARY, SSM_WIDTH);
    for (int i = 0; i < SSM_LAYERS; i++) {
        wf_rms_norm_init(wf_sub(wf_sub_at(s, "layer", i), "norm"), &m->layer[i].norm, SSM_WIDTH);
        wf_ssm_init(wf_sub(wf_sub_at(s, "layer", i), "mixer"), &m->layer[i].mixer, SSM_WIDTH);
    }
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, SSM_WIDTH);
    wf_linear_init(wf_sub(s, "head"), &m->head, SSM_WIDTH, VOCABULARY, .no_bias = true);
}
static wf_tensor *ssm_loss(void *net, wf_tape *tape)
{
    const struct ssm *m = net;
    static int32_t ids[SSM_BATCH * SSM_STEPS], next[SSM_BATCH * SSM_STEPS];
    for (int i = 0; i < SSM_BATCH * SSM_STEPS; i++) {
        ids[i] = i * 31 % VOCABULARY;
        next[i] = (i + 1) * 31 % VOCABULARY;
    }
    wf_tensor *x = wf_embedding_forward(&m->embed, wf_ids(tape, ids, SSM_BATCH, SSM_STEPS));
    for (int i = 0; i < SSM_LAYERS; i++)
        x = wf_ssm_forward(&m->layer[i].mixer, wf_rms_norm_forward(&m->layer[i].norm, x), .residual = x);
    return wf_cross_entropy(wf_linear_forward(&m->head, wf_rms_norm_forward(&m->norm, x)), wf_ids(tape, next, SSM_BATCH, SSM_STEPS));
}

/* --- timing ------------------------------------------------------------------------------------------------------------ */

static struct resnet resnet;
static struct unet unet;
static struct ssm ssm;

enum { MOST = 1000 };

static void measure(const char *name, wf_registry *r, wf_tensor *(*loss_of)(void *net, wf_tape *tape), void *net, double most)
{
    wf_error error = {0};
    wf_tape *tape = wf_tape_new(&error);
    double time[MOST], loss = 0;
    int count = -1;
    if (!tape || wf_registry_build(r, 1, &error) != WF_OK)
        exit(fail(error.message));
    for (double begin = seconds(); count < 3 || (count < MOST && seconds() - begin < most); count++) {
        wf_registry_zero_grads(r);
        const double start = seconds();
        wf_tape_reset(tape, WF_TRAIN);
        wf_tensor *y = wf_keep(loss_of(net, tape));
        if (wf_backward(y) != WF_OK || wf_item(y, &loss) != WF_OK)
            exit(fail(wf_tape_error(tape)->message));
        if (count >= 0)
            time[count] = seconds() - start;
    }
    printf("{\"net\": \"%s\", \"ms\": %.3f, \"parameters\": %lld, \"loss\": %.4f}\n", name, 1e3 * median(time, count),
           (long long)wf_registry_parameters(r), loss);
    fflush(stdout);
    wf_tape_free(tape);
}

int main(int argc, char **argv)
{
    const char *value[128] = {0};
    wf_error error = {0};
    if (!read_options(argc, argv, "t:s:n:", value) || optind != argc)
        return fail("usage: nets [-t THREADS] [-s SECONDS] [-n NAME]");
    if (wf_init(&error, .threads = (int)number_or(value['t'], 0)) != WF_OK)
        return fail(error.message);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"resnet", "unet", "ssm"};
        wf_tensor *(*const losses[])(void *, wf_tape *) = {resnet_loss, unet_loss, ssm_loss};
        void *const nets[] = {&resnet, &unet, &ssm};
        if (value['n'] && strcmp(value['n'], names[i]) != 0)
            continue;
        wf_registry *r = wf_registry_new(&error);
        if (!r)
            return fail(error.message);
        if (i == 0)
            resnet_init(wf_root(r), &resnet);
        else if (i == 1)
            unet_init(wf_root(r), &unet);
        else
            ssm_init(wf_root(r), &ssm);
        measure(names[i], r, losses[i], nets[i], number_or(value['s'], 3));
        wf_registry_free(r);
    }
    return 0;
}

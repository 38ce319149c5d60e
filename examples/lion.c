/* SPDX-License-Identifier: MIT */
/* Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2), an optimiser that Weft does not have, in one file
 * outside Weft. The program has the whole command, with one more value of the setting `optimizer`:
 *
 *   cc lion.c $(pkg-config --cflags --libs weft) -o lion
 *   ./lion train char-rms --train FILE --out RUN --set optimizer=lion --set lr=3e-4          also --set lion.beta1=0.95, --resume
 *   ./lion generate RUN --prompt 'The '
 *
 *   c = beta1 m + (1 - beta1) g;  p -= lr (sign(c) + weight_decay p);  m = beta2 m + (1 - beta2) g
 *
 * Each step moves every weight by lr, so lr is 3 to 10 times smaller than AdamW's, and weight_decay larger by the same factor. */
#include <stdio.h>

#include <weft/weft.h>

struct lion {
    double beta1, beta2;
};

static const struct wf_key keys[] = {
    WF_NUMBER_KEY(struct lion, beta1, "0.9", 0, 1, "weight of past gradients in a step", .below = true, .resumable = true),
    WF_NUMBER_KEY(struct lion, beta2, "0.99", 0, 1, "weight of past gradients in the state", .below = true, .resumable = true),
};

/* Called by several threads for different elements. */
static void step(void *ctx, const struct wf_update *u)
{
    const struct lion *o = ctx;
    const wf_real b1 = (wf_real)o->beta1, b2 = (wf_real)o->beta2, lr = (wf_real)u->lr, keep = (wf_real)(1 - u->lr * u->weight_decay);
    wf_real *p = u->value, *m = u->slab[0];
    for (int64_t i = 0; i < u->count; i++) {
        const wf_real g = u->gradient[i], c = b1 * m[i] + (1 - b1) * g;
        p[i] = keep * p[i] - lr * (wf_real)((c > 0) - (c < 0));
        m[i] = b2 * m[i] + (1 - b2) * g;
    }
}

static const char *const slabs[] = {"m", NULL};
static const struct wf_optimizer_rule rule = {WF_OPTIMIZER_RULE_ABI, .name = "lion", .slab = slabs, .step = step};
static const struct wf_optimizer_kind lion = {WF_OPTIMIZER_KIND_ABI, .rule = &rule, .config_size = sizeof(struct lion),
                                              .keys = WF_ROWS(keys)};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_optimizer_register(&lion, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}

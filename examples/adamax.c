/* SPDX-License-Identifier: MIT */
/* Adamax (Kingma and Ba 2015, section 7.1) with decoupled weight decay, an optimiser that Weft does not have, in one file outside Weft. The
 * program has the whole command, with one more value of the setting `optimizer`:
 *
 *   cc adamax.c $(pkg-config --cflags --libs weft) -lm -o adamax
 *   ./adamax train char-rms --train FILE --out RUN --set optimizer=adamax --set lr=2e-3    also --set adamax.beta1=0.95, --resume
 *   ./adamax generate RUN --prompt 'The '
 *
 *   m = beta1 m + (1 - beta1) g;  v = max(beta2 v, |g| + 1e-8);  p -= lr weight_decay p;  p -= lr / (1 - beta1^t) m / v */
#include <math.h>
#include <stdio.h>

#include <weft/weft.h>

struct adamax {
    double beta1, beta2;
};

static const struct wf_key keys[] = {
    WF_NUMBER_KEY(struct adamax, beta1, "0.9", 0, 1, "weight of past gradients", .below = true, .resumable = true),
    WF_NUMBER_KEY(struct adamax, beta2, "0.999", 0, 1, "decay rate of the largest gradient", .below = true, .resumable = true),
};

/* Called by several threads for different elements. */
static void step(void *ctx, const struct wf_update *u)
{
    const struct adamax *o = ctx;
    const wf_real b1 = (wf_real)o->beta1, b2 = (wf_real)o->beta2, keep = (wf_real)(1 - u->lr * u->weight_decay);
    const wf_real rate = (wf_real)(u->lr / (1 - pow(o->beta1, (double)u->updates)));
    wf_real *p = u->value, *m = u->slab[0], *v = u->slab[1];
    for (int64_t i = 0; i < u->count; i++) {
        const wf_real g = u->gradient[i], size = (g < 0 ? -g : g) + (wf_real)1e-8;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] > size ? b2 * v[i] : size;
        p[i] = keep * p[i] - rate * m[i] / v[i];
    }
}

static const char *const slabs[] = {"m", "v", NULL};
static const struct wf_optimizer_rule rule = {WF_OPTIMIZER_RULE_ABI, .name = "adamax", .slab = slabs, .step = step};
static const struct wf_optimizer_kind adamax = {WF_OPTIMIZER_KIND_ABI, .rule = &rule, .config_size = sizeof(struct adamax),
                                                .keys = WF_ROWS(keys)};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_optimizer_register(&adamax, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}

/* SPDX-License-Identifier: MIT */
/* Reals kept as bf16. In the library of doubles no product is computed in bf16, so nothing is kept so. */
#include <weft/compute.h>
#include <weft/internal/bf16.h>
#include <weft/runtime.h>

#include "bf16.h"

enum { RANGE = 1 << 14 }; /* speed: elements of a task */
#define ELEMENT_NS 0.2

#ifdef WF_DOUBLE
void wf_bf16_keep(int64_t n, const wf_real *from, void *to)
{
    wf_convert(WF_BF16, to, WF_REAL, from, n);
}

void wf_bf16_widen(int64_t rows, int64_t columns, const void *from, int64_t step, wf_real *to)
{
    for (int64_t i = 0; i < rows; i++)
        wf_convert(WF_REAL, to + i * columns, WF_BF16, (const uint16_t *)from + i * step, columns);
}
#else
struct keep {
    const float *from;
    wf_bf16 *to;
};

static void keep_range(void *ctx, int64_t begin, int64_t end)
{
    const struct keep *k = ctx;
    bf16_isa()->keep(end - begin, k->from + begin, k->to + begin);
}

void wf_bf16_keep(int64_t n, const wf_real *from, void *to)
{
    wf_parallel_ranges(n, RANGE, ELEMENT_NS * (double)n, keep_range, &(struct keep){from, to});
}

struct widen {
    const wf_bf16 *from;
    float *to;
    int64_t columns, step;
};

static void widen_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct widen *w = ctx;
    for (int64_t i = begin; i < end; i++)
        bf16_isa()->widen(w->columns, w->from + i * w->step, w->to + i * w->columns);
}

void wf_bf16_widen(int64_t rows, int64_t columns, const void *from, int64_t step, wf_real *to)
{
    const int64_t grain = columns < RANGE ? RANGE / WF_MAX(columns, 1) : 1;
    wf_parallel_ranges(rows, grain, ELEMENT_NS * (double)(rows * columns), widen_rows, &(struct widen){from, to, columns, step});
}
#endif

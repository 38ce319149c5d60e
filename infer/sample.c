/* SPDX-License-Identifier: MIT */
/* Chooses a token from logits. Candidates are ordered by descending logit, and equal logits by ascending id. This order has no ties, so the
 * same logits and random number always give the same token. */
#include <math.h>
#include <string.h>

#include <weft/generate.h>
#include <weft/internal/needs.h>
#include <weft/random.h>

/* Whether candidate a comes before candidate b: it has a larger logit, or an equal logit and a smaller id. */
static bool before(const wf_real *logits, int32_t a, int32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* Moves element `at` down in a heap whose root comes first in the order. */
static void sift(const wf_real *logits, int32_t *heap, int64_t n, int64_t at)
{
    int32_t moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(logits, heap[child + 1], heap[child]))
            child++;
        if (!before(logits, heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void heap_make(const wf_real *logits, int32_t *heap, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        heap[i] = (int32_t)i;
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift(logits, heap, n, i);
}

/* Removes the root from a heap of n elements and puts it behind the heap. After several calls, each with an n that is one smaller, the
 * id that comes first in the order is the last element of the array, the second one is the element before it, and so on. */
static void heap_pop(const wf_real *logits, int32_t *heap, int64_t n)
{
    int32_t first = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = first;
    sift(logits, heap, n - 1, 0);
}

/* The probability of a token divided by that of the likeliest token. Equal logits give 1 even if both are infinite, where inf - inf would
 * give NaN. */
static double odds(const wf_real *logits, int32_t id, double most, double temperature)
{
    double x = logits[id];
    return x == most ? 1 : exp((x - most) / temperature);
}

/* As `odds`, but 0 for a token that is less than min_p times as likely as the likeliest. */
static double share(const wf_real *logits, int32_t id, double most, double temperature, double min_p)
{
    double x = odds(logits, id, most, temperature);
    return x < min_p ? 0 : x;
}

static wf_status scan(const wf_real *logits, int64_t n, int32_t *largest, wf_error *error)
{
    bool finite = false;
    int32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(logits[i]))
            return wf_error_set(error, WF_ERR_NUMERIC, "logit %lld of %lld is NaN: the weights are damaged, or the training diverged",
                                (long long)i, (long long)n);
        finite |= isfinite(logits[i]) != 0;
        if (logits[i] > logits[at])
            at = (int32_t)i;
    }
    if (!finite)
        return wf_error_set(error, WF_ERR_NUMERIC, "none of the %lld logits is finite: no token can be sampled", (long long)n);
    *largest = at;
    return WF_OK;
}

static wf_status check(const struct wf_sampler *s, int64_t n, wf_error *error)
{
    if (n < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there are no logits to sample from");
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return wf_error_set(error, WF_ERR_ARGUMENT, "temperature %g is out of range: above 0, or 0 for 1", s->temperature);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "top_p %g is out of range: above 0 and at most 1, or 0 for 1", s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "min_p %g is out of range: 0 to 1", s->min_p);
    if (s->top_k < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "top_k %lld is out of range: at least 1, or 0 for all", (long long)s->top_k);
    return WF_OK;
}

/* Returns candidate number i. If the candidates are ordered, they stand at the end of `order` in reverse; otherwise candidate i is id i. */
static int32_t candidate(const int32_t *order, int64_t n, int64_t i, bool ordered)
{
    return ordered ? order[n - 1 - i] : (int32_t)i;
}

wf_status wf_sample(const struct wf_sampler *s, const wf_real *logits, int64_t n, uint64_t position, int32_t *order, int32_t *id,
                    wf_error *error)
{
    if (wf_needs(error, "sampler, logits, order, id", s, logits, order, id))
        return WF_ERR_ARGUMENT;
    int32_t largest = 0;
    wf_status status = check(s, n, error);
    if (status == WF_OK)
        status = scan(logits, n, &largest, error);
    if (status != WF_OK)
        return status;
    *id = largest;
    if (s->greedy || s->top_k == 1)
        return WF_OK;

    double t = s->temperature > 0 ? s->temperature : 1, p = s->top_p > 0 ? s->top_p : 1, most = logits[largest], mass = 0;
    int64_t k = s->top_k > 0 && s->top_k < n ? s->top_k : n, popped = 0;
    bool ordered = k < n || p < 1;
    if (ordered)
        heap_make(logits, order, n);
    for (; k < n && popped < k; popped++)
        heap_pop(logits, order, n - popped);
    for (int64_t i = 0; i < k; i++)
        mass += odds(logits, k < n ? candidate(order, n, i, true) : (int32_t)i, most, t);
    if (p < 1) { /* `mass` is the sum of the candidates' odds; keep as few of the likeliest as together have the share p of it */
        double want = p * mass, have = 0;
        int64_t kept = 0;
        while (kept < k && have < want) {
            if (kept == popped)
                heap_pop(logits, order, n - popped++);
            have += odds(logits, candidate(order, n, kept++, true), most, t);
        }
        k = kept;
        mass = have;
    }
    if (s->min_p > 0) { /* no order is needed: the others just have no share */
        mass = 0;
        for (int64_t i = 0; i < k; i++)
            mass += share(logits, candidate(order, n, i, ordered), most, t, s->min_p);
    }

    /* each draw takes two random words of 32 bits, from a stream that nothing else uses */
    wf_rng rng = wf_rng_new(s->seed, wf_stream_of("weft.sample"));
    rng.position = 2 * position;
    double target = wf_rng_uniform(&rng) * mass, sum = 0;
    for (int64_t i = 0; i < k; i++) {
        int32_t c = candidate(order, n, i, ordered);
        double w = share(logits, c, most, t, s->min_p);
        sum += w;
        if (w > 0)
            *id = c; /* if rounding leaves `target` above the whole sum, the last possible token is drawn */
        if (target < sum)
            break;
    }
    return WF_OK;
}

wf_status wf_penalize(const struct wf_sampler *s, wf_real *logits, int64_t n, const int32_t *ids, int64_t count, int64_t prompt,
                      int32_t *times, wf_error *error)
{
    if (wf_needs(error, "sampler, logits, ids, times", s, logits, wf_some(ids, count), times))
        return WF_ERR_ARGUMENT;
    const double again = s->repetition_penalty > 0 ? s->repetition_penalty : 1;
    if (!(s->repetition_penalty >= 0) || isinf(s->repetition_penalty))
        return wf_error_set(error, WF_ERR_ARGUMENT, "repetition_penalty %g is out of range: above 0, or 0 for 1", s->repetition_penalty);
    if (!isfinite(s->presence_penalty) || !isfinite(s->frequency_penalty))
        return wf_error_set(error, WF_ERR_ARGUMENT, "presence_penalty %g or frequency_penalty %g is not a finite number",
                            s->presence_penalty, s->frequency_penalty);
    memset(times, 0, (size_t)n * sizeof *times);
    for (int64_t i = 0; i < count; i++) { /* bit 0: among all ids; the rest counts the new ids */
        if (ids[i] >= 0 && ids[i] < n)
            times[ids[i]] = (times[ids[i]] | 1) + (i >= prompt ? 2 : 0);
    }
    for (int64_t i = 0; i < n; i++) {
        if (times[i] == 0)
            continue;
        const int32_t new = times[i] / 2;
        double x = logits[i];
        x = x > 0 ? x / again : x * again;
        logits[i] = (wf_real)(x - (new > 0 ? s->presence_penalty + new * s->frequency_penalty : 0));
    }
    return WF_OK;
}

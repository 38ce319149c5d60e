/* SPDX-License-Identifier: MIT */
/* The working memory of encoding: lists of ids, texts with the origin of each byte, and lists of words. */
#include <string.h>

#include "internal.h"
#include "pattern.h"
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

bool tokens_reserve(struct wf_tokens *tokens, int64_t more)
{
    return wf_grow(&tokens->id, &tokens->capacity, tokens->count + more, sizeof *tokens->id);
}

wf_status tokens_add(struct wf_tokens *tokens, int32_t id)
{
    if (!tokens_reserve(tokens, 1))
        return WF_ERR_MEMORY;
    tokens->id[tokens->count++] = id;
    return WF_OK;
}

void wf_tokens_free(struct wf_tokens *tokens)
{
    if (!tokens)
        return;
    wf_free(tokens->id);
    *tokens = (struct wf_tokens){0};
}

int64_t flow_most(int64_t length)
{
    return (1 << 16) + (length > INT64_MAX / 2 / FLOW_GROWTH ? INT64_MAX / 2 : FLOW_GROWTH * length);
}

bool flow_go_on(struct flow *flow)
{
    flow->asked = flow->length;
    flow->stopped = flow->stopped || (flow->cancelled && flow->cancelled(flow->ctx));
    return !flow->stopped;
}

bool flow_reserve(struct flow *flow, int64_t more)
{
    if (flow->length - flow->asked >= ASK_BYTES && !flow_go_on(flow))
        return false;
    flow->over = flow->over || more > flow->most - flow->length;
    if (flow->over)
        return false;
    return wf_grow(&flow->data, &flow->capacity, flow->length + more, 1) &&
           (!flow->tracked || wf_grow(&flow->origin, &flow->origin_capacity, flow->length + more, sizeof *flow->origin));
}

bool flow_put(struct flow *flow, const char *bytes, int64_t length, int64_t origin)
{
    if (!flow_reserve(flow, length))
        return false;
    if (length > 0)
        memcpy(flow->data + flow->length, bytes, (size_t)length);
    for (int64_t i = 0; flow->tracked && i < length; i++)
        flow->origin[flow->length + i] = origin;
    flow->length += length;
    return true;
}

bool flow_put_point(struct flow *flow, uint32_t point, int64_t origin)
{
    char bytes[4];
    return flow_put(flow, bytes, wf_utf8_encode(point, bytes), origin);
}

bool flow_copy(struct flow *flow, const struct view *from, int64_t at, int64_t length)
{
    if (!flow_reserve(flow, length))
        return false;
    for (int64_t end = at + length, bytes; at < end; at += bytes) {
        bytes = WF_MIN(end - at, ASK_BYTES);
        memcpy(flow->data + flow->length, from->data + at, (size_t)bytes);
        for (int64_t i = 0; flow->tracked && i < bytes; i++)
            flow->origin[flow->length + i] = view_origin(from, at + i);
        flow->length += bytes;
        if (at + bytes < end && !flow_go_on(flow))
            return false;
    }
    return true;
}

struct view flow_view(const struct flow *flow)
{
    return (struct view){flow->data, flow->length, flow->tracked ? flow->origin : NULL, 0};
}

bool spans_add(struct spans *spans, int64_t begin, int64_t end)
{
    if (!wf_grow(&spans->span, &spans->capacity, spans->count + 1, sizeof *spans->span))
        return false;
    spans->span[spans->count++] = (struct span){begin, end};
    return true;
}

struct flow *scratch_flow(struct scratch *s, enum flow_use use)
{
    struct flow *flow = s->flow + 2 * use + s->odd[use];
    s->odd[use] = !s->odd[use];
    flow->length = flow->asked = 0;
    return flow;
}

void scratch_start(struct scratch *s, int64_t length, bool tracked)
{
    for (int i = 0; i < 4; i++) {
        s->flow[i].tracked = tracked;
        s->flow[i].most = flow_most(length);
        s->flow[i].over = s->flow[i].stopped = false;
        s->flow[i].cancelled = s->cancelled;
        s->flow[i].ctx = s->ctx;
    }
}

bool scratch_stopped(const struct scratch *s)
{
    return s->flow[0].stopped || s->flow[1].stopped || s->flow[2].stopped || s->flow[3].stopped;
}

bool scratch_over(const struct scratch *s)
{
    return s->flow[0].over || s->flow[1].over || s->flow[2].over || s->flow[3].over;
}

void scratch_free(struct scratch *s)
{
    for (int i = 0; i < 4; i++) {
        wf_free(s->flow[i].data);
        wf_free(s->flow[i].origin);
    }
    wf_free(s->words.spans.span);
    wf_free(s->spare.span);
    wf_free(s->matches.span);
    wf_free(s->point);
    wf_free(s->symbol);
    wf_free(s->heap);
    wf_free(s->first);
    wf_free(s->reach.first);
    wf_free(s->reach.rank);
    wf_free(s->reach.end);
    wf_string_free(&s->piece);
    pattern_free_match(s);
    *s = (struct scratch){0};
}

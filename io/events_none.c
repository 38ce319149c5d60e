/* SPDX-License-Identifier: MIT */
/* Replaces events.c in a library that is built without protobuf-c. */
#include <weft/events.h>
#include <weft/internal/needs.h>

static const char why[] = "this library was built without protobuf-c and cannot write TensorBoard event files (meson option tensorboard)";

bool wf_events_available(void)
{
    return false;
}

wf_events *wf_events_open(const char *folder, int64_t last, wf_error *error)
{
    if (wf_needs(error, "folder", folder))
        return NULL;
    (void)last;
    wf_error_set(error, WF_ERR_STATE, "%s: %s", folder, why);
    return NULL;
}

wf_status wf_events_scalar(wf_events *events, const char *tag, int64_t step, double wall, double value, wf_error *error)
{
    if (wf_needs(error, "events, tag", events, tag))
        return WF_ERR_ARGUMENT;
    (void)events, (void)tag, (void)step, (void)wall, (void)value;
    return wf_error_set(error, WF_ERR_STATE, "%s", why);
}

wf_status wf_events_text(wf_events *events, const char *tag, int64_t step, double wall, const char *text, wf_error *error)
{
    if (wf_needs(error, "events, tag, text", events, tag, text))
        return WF_ERR_ARGUMENT;
    (void)events, (void)tag, (void)step, (void)wall, (void)text;
    return wf_error_set(error, WF_ERR_STATE, "%s", why);
}

void wf_events_close(wf_events *events)
{
    if (!events)
        return;
    (void)events;
}

/* SPDX-License-Identifier: MIT */
/* Writes event files for TensorBoard. events.proto declares the messages in them, and protobuf-c encodes these. */
#include <weft/events.h>
#include <weft/internal/needs.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/internal/event_files.h>
#include <weft/internal/grow.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "append.h"
#include "events.pb-c.h"

enum { ROOM = 4096, DT_STRING = 7, DATA_CLASS_TENSOR = 2 };

struct wf_events {
    struct append_file file;
    unsigned char *record; /* buffer for a record; scalars fit into its first ROOM bytes */
    int64_t room;
};

bool wf_events_available(void)
{
    return true;
}

static wf_status append(wf_events *e, const Wf__Event *event, wf_error *error)
{
    uint64_t length = protobuf_c_message_get_packed_size(&event->base);
    int64_t bytes = WF_RECORD_HEAD + (int64_t)length + WF_RECORD_TAIL;
    if (!wf_grow(&e->record, &e->room, bytes, 1))
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a record of %" PRId64 " bytes", e->file.path, bytes);
    unsigned char *content = e->record + WF_RECORD_HEAD;
    protobuf_c_message_pack(&event->base, content);
    memcpy(e->record, &length, sizeof length);
    memcpy(e->record + 8, &(uint32_t){wf_record_checksum(e->record, 8)}, 4);
    memcpy(content + length, &(uint32_t){wf_record_checksum(content, (int64_t)length)}, 4);
    return append_piece(&e->file, e->record, bytes, "record", error);
}

static double wall_of(double wall)
{
    struct timespec now;
    if (wall > 0)
        return wall;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static wf_status append_version(wf_events *e, wf_error *error)
{
    Wf__EventSource source = WF__EVENT_SOURCE__INIT;
    source.writer = "weft";
    Wf__Event event = WF__EVENT__INIT;
    event.wall_time = wall_of(0);
    event.what_case = WF__EVENT__WHAT_FILE_VERSION;
    event.file_version = "brain.Event:2";
    event.source_metadata = &source;
    return append(e, &event, error);
}

static wf_status append_value(wf_events *e, int64_t step, double wall, Wf__SummaryValue *value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (wf_utf8_check(value->tag, (int64_t)strlen(value->tag)) >= 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the tag %s is not UTF-8", e->file.path, wf_text_quote(value->tag, quoted));
    Wf__Summary summary = WF__SUMMARY__INIT;
    summary.n_value = 1;
    summary.value = &value;
    Wf__Event event = WF__EVENT__INIT;
    event.wall_time = wall_of(wall);
    event.step = step;
    event.what_case = WF__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return append(e, &event, error);
}

wf_status wf_events_scalar(wf_events *e, const char *tag, int64_t step, double wall, double value, wf_error *error)
{
    if (wf_needs(error, "events, tag", e, tag))
        return WF_ERR_ARGUMENT;
    Wf__SummaryValue scalar = WF__SUMMARY_VALUE__INIT;
    scalar.tag = (char *)tag;
    scalar.value_case = WF__SUMMARY_VALUE__VALUE_SIMPLE_VALUE;
    scalar.simple_value = (float)value;
    return append_value(e, step, wall, &scalar, error);
}

wf_status wf_events_text(wf_events *e, const char *tag, int64_t step, double wall, const char *text, wf_error *error)
{
    if (wf_needs(error, "events, tag, text", e, tag, text))
        return WF_ERR_ARGUMENT;
    if (wf_utf8_check(text, (int64_t)strlen(text)) >= 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the text for %s is not UTF-8", e->file.path, tag);
    ProtobufCBinaryData bytes = {.len = strlen(text), .data = (uint8_t *)text};
    Wf__TensorShape scalar = WF__TENSOR_SHAPE__INIT;
    Wf__Tensor tensor = WF__TENSOR__INIT;
    tensor.dtype = DT_STRING;
    tensor.tensor_shape = &scalar;
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    Wf__SummaryPlugin plugin = WF__SUMMARY_PLUGIN__INIT;
    plugin.plugin_name = "text";
    Wf__SummaryMetadata metadata = WF__SUMMARY_METADATA__INIT;
    metadata.plugin_data = &plugin;
    metadata.data_class = DATA_CLASS_TENSOR;
    Wf__SummaryValue value = WF__SUMMARY_VALUE__INIT;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.value_case = WF__SUMMARY_VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    return append_value(e, step, wall, &value, error);
}

void wf_events_close(wf_events *e)
{
    if (!e)
        return;
    append_close(&e->file);
    wf_free(e->record);
    wf_free(e);
}

/* Removes the events after step `last` from all event files of the folder, and keeps the last file open. Creates a file if there is
 * none. */
static wf_status open_files(wf_events *e, const char *folder, int64_t last, wf_error *error)
{
    struct wf_names names;
    char host[256] = "", *name;
    wf_status status = wf_event_files(folder, &names, error);
    bool made = names.count == 0;
    for (int64_t i = 0; i < names.count && status == WF_OK; i++) {
        append_close(&e->file);
        status = append_open(&e->file, wf_format("%s/%s", folder, names.name[i]), wf_event_records_keep, last, error);
    }
    if (status == WF_OK && made) {
        if (gethostname(host, sizeof host - 1) != 0)
            host[0] = 0;
        name = wf_event_file_name((int64_t)time(NULL), host);
        status = append_open(&e->file, name ? wf_format("%s/%s", folder, name) : NULL, wf_event_records_keep, last, error);
        wf_free(name);
    }
    wf_names_free(&names);
    if (status != WF_OK || e->file.bytes > 0)
        return status;
    status = append_version(e, error); /* the file is new, or a process died before it had written the version */
    if (status != WF_OK && made)
        unlink(e->file.path);
    return status;
}

wf_events *wf_events_open(const char *folder, int64_t last, wf_error *error)
{
    if (wf_needs(error, "folder", folder))
        return NULL;
    wf_events *e = wf_alloc_zero(1, sizeof *e);
    if (!e || !wf_grow(&e->record, &e->room, ROOM, 1))
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for an event file", folder);
    else if (open_files(e, folder, last, error) == WF_OK)
        return e;
    wf_events_close(e);
    return NULL;
}

/* SPDX-License-Identifier: MIT */
/* The names of TensorBoard's event files (event_files.h). */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/event_files.h>
#include <weft/memory.h>

static const char BEGIN[] = "events.out.tfevents.", END[] = ".weft";

static bool is_ours(const char *name) /* `name` begins with BEGIN, so it is longer than END */
{
    return strcmp(name + strlen(name) - (sizeof END - 1), END) == 0;
}

wf_status wf_event_files(const char *folder, struct wf_names *names, wf_error *error)
{
    wf_status status = wf_folder_list(folder, BEGIN, names, error);
    int64_t kept = 0;
    for (int64_t i = 0; i < names->count; i++) {
        if (is_ours(names->name[i]))
            names->name[kept++] = names->name[i];
        else
            wf_free(names->name[i]);
    }
    names->count = kept;
    return status;
}

char *wf_event_file_name(int64_t seconds, const char *host)
{
    char clean[65];
    size_t used = 0;
    for (; host[used] && used < sizeof clean - 1; used++) {
        unsigned char c = (unsigned char)host[used];
        clean[used] = (char)((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ? c : '_');
    }
    clean[used] = 0;
    return wf_format("%s%010" PRId64 ".%s%s", BEGIN, seconds, used > 0 ? clean : "localhost", END);
}

/* SPDX-License-Identifier: MIT */
/* weft convert FROM TO: makes a Hugging Face folder of a run, or a run of such a folder, and changes dtypes. */
#include <stdio.h>

#include <weft/convert.h>
#include <weft/internal/safetensors_set.h>

#include "cli.h"

struct arguments {
    const char *folder[2]; /* FROM, TO */
    int to, dtype;
    const char *to_given, *dtype_given;
    struct wf_convert_options o;
};

static bool take_size(const char *option, const char *value, void *to)
{
    if (wf_bytes_parse(value, to))
        return true;
    fail_usage("--%s: '%s' is not a size: give bytes, or a number with KB, MB, GB, KiB, MiB or GiB", option, value);
    return false;
}

static wf_status convert(void *arguments, wf_error *error)
{
    static const wf_dtype dtypes[] = {WF_F32, WF_BF16, WF_F16};
    struct arguments *a = arguments;
    struct wf_converted done;
    char bytes[WF_NUMBER_SIZE];
    a->o.to = !a->to_given ? WF_CONVERT_OTHER : a->to == 0 ? WF_CONVERT_HF : WF_CONVERT_WEFT;
    a->o.cast = a->dtype_given != NULL;
    a->o.dtype = dtypes[a->dtype];
    watch_interrupts(WATCH_SAVE); /* the sync of a large file may take longer than WATCH_BRIEF allows, and then the folder would be left */
    wf_status status = wf_init(error);
    if (status == WF_OK)
        status = wf_run_convert(a->folder[0], a->folder[1], &a->o, &done, error);
    if (status != WF_OK)
        return status;
    fprintf(stderr, "%s: %s, %lld tensors, %s bytes%s in %s, in %d file%s\n", a->folder[1],
            done.to == WF_CONVERT_HF ? "a folder of Hugging Face" : "a run", (long long)done.tensors, wf_text_count(done.bytes, bytes),
            done.several_dtypes ? ", most of them" : "", wf_dtype_name(done.dtype), done.files, plural(done.files));
    if (done.left_out > 0)
        fprintf(stderr, "%s: without %lld tensor%s of %s that Weft does not use\n", a->folder[1], (long long)done.left_out,
                plural(done.left_out), a->folder[0]);
    return WF_OK;
}

int run_convert(int argc, char **argv)
{
    struct arguments a = {.o.cancelled = interrupted};
    const struct option_row options[] = {
        {"to", "hf|weft", "layout of TO: of Hugging Face's transformers, or a run (default: hf for a run, weft for any other folder)",
         .choice = &a.to, .given = &a.to_given},
        {"dtype", "f32|bf16|f16", "round the weights to this dtype (default: each tensor keeps its own)", .choice = &a.dtype,
         .given = &a.dtype_given},
        {"shard-size", "SIZE", "most bytes of weights in a file, such as 500MB or 2GiB (default: 5GB for hf, one file for weft)",
         .take = take_size, .to = &a.o.shard},
        {"weights", "best|ema|FILE", "weights to use instead of the latest", .text = &a.o.weights},
        {0},
    };
    return run_command(&(struct command_line){"FROM TO",
                                              "Converts a run to a folder that Hugging Face's transformers opens, or such a folder to a "
                                              "run. TO must be missing or an empty folder.",
                                              options, a.folder, .most = 2, .too_few = "$0 convert takes two folders: $0 convert FROM TO",
                                              .too_many = "$0 convert takes two folders, FROM and TO"},
                       convert, &a, argc, argv);
}

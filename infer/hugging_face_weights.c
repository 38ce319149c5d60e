/* SPDX-License-Identifier: MIT */
/* The weights of a Hugging Face folder: where they are, and what is said if they are missing. */
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/json.h>
#include <weft/memory.h>

#include <weft/internal/run_folder.h>

enum { LIMIT = 1 << 20 }; /* maximum bytes of a config.json */

char *hf_weights_path(const char *folder, wf_error *error)
{
    static const char own[] = "model.safetensors", index[] = "model.safetensors.index.json";
    return wf_run_path(folder, !wf_run_has(folder, own) && wf_run_has(folder, index) ? index : own, error);
}

/* Whether the folder has files such as model-00001-of-00003.safetensors. */
static bool has_shards(const char *folder)
{
    struct wf_names names;
    bool any = false;
    if (wf_folder_list(folder, "model-", &names, NULL) != WF_OK)
        return false;
    for (int64_t i = 0; i < names.count; i++)
        any |= strstr(names.name[i], ".safetensors") != NULL;
    wf_names_free(&names);
    return any;
}

bool hf_is_foreign(const char *folder)
{
    char *path = wf_run_path(folder, "config.json", NULL);
    wf_json_init();
    json_t *config = path ? wf_json_load(path, LIMIT, NULL) : NULL;
    const bool foreign = json_object_get(config, "model_type") && !json_object_get(config, "weft_version");
    json_decref(config);
    wf_free(path);
    return foreign;
}

wf_status hf_weights_missing(const char *folder, const char *path, wf_error *error)
{
    static const struct {
        const char *name, *what;
    } others[] = {{"pytorch_model.bin", "pytorch_model.bin is not supported: save the model as safetensors "
                                        "(save_pretrained of transformers does)"},
                  {"tf_model.h5", "tf_model.h5 is not supported: save the model as safetensors"},
                  {"flax_model.msgpack", "flax_model.msgpack is not supported: save the model as safetensors"}};
    const char *what = "the run has not been saved yet, or this is not a run folder";
    if (hf_is_foreign(folder))
        what = has_shards(folder) ? "its weights are in several files: download model.safetensors.index.json, which lists these"
                                  : "the folder has config.json but no weights: download model.safetensors, or if the model has several "
                                    "files of weights all of these and model.safetensors.index.json";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (wf_run_has(folder, others[i].name))
            what = others[i].what;
    return wf_error_set(error, WF_ERR_IO, "%s is missing: %s", path, what);
}

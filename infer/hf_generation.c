/* SPDX-License-Identifier: MIT */
/* Reads how a model of a Hugging Face folder generates: the tokens that end a text and the settings of sampling, from
 * generation_config.json, and if that file has no end, from config.json. */
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/memory.h>

#include <weft/internal/family.h>
#include <weft/internal/run_folder.h>

enum { LIMIT = 1 << 24 }; /* maximum bytes of a JSON file */

static wf_status take_end(struct wf_json_reader *r, const json_t *value, struct wf_run *run)
{
    const int64_t id = json_integer_value(value), types = wf_config_shape(&run->config).vocab_size;
    if (!json_is_integer(value) || id < 0 || id >= types)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"eos_token_id\": an id is not a number from 0 to %lld", r->where,
                            (long long)types - 1);
    if (run->ends == WF_RUN_ENDS)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"eos_token_id\": more than %d ids", r->where, WF_RUN_ENDS);
    run->end[run->ends++] = (int32_t)id;
    return WF_OK;
}

/* An id, a list of ids, or null. */
static void read_ends(struct wf_json_reader *r, struct wf_run *run)
{
    const json_t *value = json_object_get(r->object, "eos_token_id");
    if (r->status != WF_OK || !value || json_is_null(value))
        return;
    if (!json_is_array(value))
        r->status = take_end(r, value, run);
    for (size_t i = 0; r->status == WF_OK && i < json_array_size(value); i++)
        r->status = take_end(r, json_array_get(value, i), run);
}

static void read_sampling(struct wf_json_reader *r, struct wf_generation *g)
{
    wf_json_read_double(r, "temperature", WF_JSON_OPTIONAL, 0, 1000, &g->temperature);
    wf_json_read_double(r, "top_p", WF_JSON_OPTIONAL, 1e-9, 1, &g->top_p);
    wf_json_read_int(r, "top_k", WF_JSON_OPTIONAL, 0, INT32_MAX, &g->top_k);
}

static wf_status read_file(const char *folder, const char *name, bool sampling, struct wf_run *run, wf_error *error)
{
    if (!wf_run_has(folder, name))
        return WF_OK;
    char *path = wf_run_path(folder, name, error);
    json_t *object = path ? wf_json_load(path, LIMIT, error) : NULL;
    struct wf_json_reader r = {.object = object, .where = path, .error = error, .status = object ? WF_OK : error->code};
    if (object && !json_is_object(object))
        r.status = wf_error_set(error, WF_ERR_FORMAT, "%s: not a JSON object", path);
    if (r.status == WF_OK)
        read_ends(&r, run);
    if (sampling)
        read_sampling(&r, &run->config.generation);
    json_decref(object);
    wf_free(path);
    return r.status;
}

wf_status hf_generation_load(const char *folder, struct wf_run *run, wf_error *error)
{
    if (!run->config.family->model_type || wf_config_kind(&run->config) != WF_MODEL_LANGUAGE)
        return WF_OK;
    wf_error failure = {0};
    if (read_file(folder, "generation_config.json", true, run, &failure) == WF_OK && run->ends == 0)
        (void)!read_file(folder, "config.json", false, run, &failure);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}

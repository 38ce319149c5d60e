/* SPDX-License-Identifier: MIT */
/* Collects everything that the bits of a result depend on, so that processes that share work can check that they agree. */
#include <inttypes.h>

#include <weft/internal/hash.h>
#include <weft/internal/runtime.h>
#include <weft/internal/several.h>
#include <weft/internal/string.h>
#include <weft/runtime.h>

uint64_t wf_registry_hash(const wf_registry *registry, uint64_t seed)
{
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const wf_array *value = &wf_parameter_info(wf_registry_at(registry, i))->value;
        seed = wf_hash(value->data, wf_array_count(value) * (int64_t)wf_dtype_size(value->dtype), seed);
    }
    return seed;
}

void wf_config_words(const struct wf_config *config, struct wf_string *words)
{
    struct wf_config_key setting;
    wf_string_format(words, "model=%s ", config->model);
    for (int i = 0; wf_config_key_at(config, i, &setting); i++) {
        char value[96];
        if (wf_config_get(config, setting.name, value, sizeof value))
            wf_string_format(words, "%s=%s ", setting.name, value);
    }
}

void wf_program_words(const wf_dist *dist, struct wf_string *words)
{
    const char *blas = wf_gemm_blas();
    wf_string_format(words, "version=%s instruction-set=%s blas=%s gemm=%s processes=%d ", wf_version(), wf_isa(), blas ? blas : "none",
                     wf_gemm_mode(), wf_dist_size(dist));
}

void wf_run_words(const struct wf_run *run, struct wf_string *words)
{
    const uint64_t tokenizer = wf_tokenizer_hash(run->tokenizer);
    wf_config_words(wf_model_config(run->model), words); /* not run->config, since --precision may have changed the model's */
    wf_string_format(words, "#tokenizer=%016" PRIx64 " #weights=%016" PRIx64 " ",
                     tokenizer ^ (run->source_tokenizer ? 3 * wf_tokenizer_hash(run->source_tokenizer) : 0),
                     wf_registry_hash(wf_model_registry(run->model), 0));
}

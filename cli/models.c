/* SPDX-License-Identifier: MIT */
/* weft models */
#include <stdio.h>

#include "cli.h"

enum { TYPES = 65 }; /* characters of an English text: what a model without a vocabulary of its own is counted with */

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    (void)state;
    if (key == ARGP_KEY_ARG)
        return fail_usage("'%s' is one argument too many: weft models takes none", value), EINVAL;
    return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {NULL, parse_option, "", "Lists the models of the zoo.", NULL, NULL, NULL};

int run_models(int argc, char **argv)
{
    int code = parse(&argp, argc, argv, NULL);
    if (code >= 0)
        return code;
    printf("%-20s %-8s %12s  %s\n", "name", "family", "parameters", "purpose");
    for (int i = 0; i < wf_preset_count(); i++) {
        const struct wf_preset *p = wf_preset_at(i);
        struct wf_config config = p->config;
        wf_error error = {0};
        if (config.vocab_size == 0)
            config.vocab_size = TYPES;
        wf_model *model = wf_model_new(&config, &error);
        if (!model)
            return fail(&error);
        printf("%-20s %-8s %12lld  %s\n", p->name, p->family, (long long)wf_registry_parameters(wf_model_registry(model)), p->purpose);
        wf_model_free(model);
    }
    printf("Models of characters, and seq2seq-tiny, are counted with %d types; weft train takes as many as the text has.\n", TYPES);
    return EXIT_DONE;
}

/* SPDX-License-Identifier: MIT */
/* weft models [MODEL]; and the settings that models have, as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { TYPES = 65 }; /* characters of an English text: what a model without a vocabulary of its own is counted with */

/* --- settings ------------------------------------------------------------------------------------------------------ */

enum { WIDTH = 78 }; /* argp breaks what is longer */

void print_entry(FILE *to, const char *name, int indent, const char *text)
{
    int room = WIDTH - indent;
    fprintf(to, "  %-*s ", indent - 3, name);
    for (const char *rest = text; *rest;) {
        int n = (int)strlen(rest);
        if (n > room)
            for (n = room; n > 1 && rest[n] != ' ';)
                n--;
        fprintf(to, "%.*s\n", n, rest);
        rest += n + (rest[n] == ' ');
        if (*rest)
            fprintf(to, "%*s", indent, "");
    }
}

static void print_key(FILE *to, const char *name, int indent, const struct wf_config_key *key)
{
    char text[256];
    snprintf(text, sizeof text, "%s (%s)", key->meaning, key->values);
    print_entry(to, name, indent, text);
}

char *settings_help(void)
{
    static const struct {
        int users;
        const char *head;
    } group[] = {{WF_CONFIG_TRAINED, "of all models"},
                 {WF_CONFIG_LANGUAGE | WF_CONFIG_ENCODER, "of language models and encoders"},
                 {WF_CONFIG_PAIRS | WF_CONFIG_ENCODER, "of translation models and encoders"},
                 {WF_CONFIG_LANGUAGE | WF_CONFIG_PAIRS, "of language and translation models"},
                 {WF_CONFIG_LANGUAGE, "of language models"},
                 {WF_CONFIG_PAIRS, "of translation models"},
                 {WF_CONFIG_ENCODER, "of encoders"}};
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputs("Settings for --set KEY=VALUE, and in brackets what they can be. `weft models MODEL` prints what they are for one.\n", to);
    for (size_t g = 0; g < sizeof group / sizeof *group; g++) {
        struct wf_config_key key;
        fprintf(to, "\nSettings %s:\n", group[g].head);
        for (int i = 0; wf_config_key_help(i, &key); i++)
            if ((key.users & WF_CONFIG_TRAINED) == group[g].users)
                print_key(to, key.name, 21, &key);
    }
    return fclose(to) == 0 ? text : (free(text), NULL);
}

static int print_model(const char *name)
{
    struct wf_config config;
    struct wf_config_key key;
    wf_error error = {0};
    char value[64], setting[160];
    if (wf_config_preset(&config, name, &error) != WF_OK)
        return fail(&error);
    for (int i = 0; i < wf_preset_count(); i++)
        if (strcmp(wf_preset_at(i)->name, name) == 0)
            printf("%s (%s): %s\n", name, config.family, wf_preset_at(i)->purpose);
    for (int i = 0; wf_config_key_help(i, &key); i++) {
        if (!wf_config_get(&config, key.name, value, sizeof value))
            continue;
        snprintf(setting, sizeof setting, "%s=%s", key.name, value);
        print_key(stdout, setting, 27, &key);
    }
    return EXIT_DONE;
}

/* --- the zoo ------------------------------------------------------------------------------------------------------- */

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    const char **model = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (*model)
        return fail_usage("'%s' is one argument too many: weft models takes one model, or none", value), EINVAL;
    *model = value;
    return 0;
}

static const struct argp argp = {NULL, parse_option, "[MODEL]", "Lists the models of the zoo, or the settings of one.", NULL, NULL, NULL};

int run_models(int argc, char **argv)
{
    const char *name = NULL;
    int code = parse(&argp, argc, argv, &name);
    if (code >= 0)
        return code;
    if (name)
        return print_model(name);
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
    puts("Read, not trained: bert, from a folder of Hugging Face's (weft embed, weft attention).");
    return EXIT_DONE;
}

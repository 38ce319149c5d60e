/* SPDX-License-Identifier: MIT */
/* weft models [MODEL]; and the settings that models have, as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { TYPES = 65 }; /* characters of an English text: the vocabulary that a model without a size is counted with */

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

/* " [language models, encoders]"; nothing for all. */
static void add_kinds(char *text, size_t size, int kinds)
{
    static const char *const names[] = {"language models", "translation", "encoders"};
    const char *before = " [";
    for (int i = 0; kinds && i < 3; i++)
        if (kinds >> i & 1) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", before, names[i]);
            before = ", ";
        }
    if (kinds)
        snprintf(text + strlen(text), size - strlen(text), "]");
}

char *settings_help(void)
{
    char *text = NULL;
    const char *section;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputs("Settings for --set KEY=VALUE, with their values. `weft models MODEL` prints those of a model.\n", to);
    for (int s = 0; (section = wf_config_section_at(s)); s++) {
        struct wf_config family;
        struct wf_config_key key;
        bool of_family = wf_config_defaults(&family, section, NULL) == WF_OK;
        if (of_family && wf_config_read_only(&family))
            continue;
        fprintf(to, of_family ? "\nKeys of the family %s:\n" : "\nKeys of %s:\n", section);
        for (int i = 0; wf_config_section_key(section, i, &key); i++) {
            char about[320];
            snprintf(about, sizeof about, "%s (%s)", key.meaning, key.values);
            add_kinds(about, sizeof about, key.kinds);
            print_entry(to, key.name, 21, about);
        }
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
            printf("%s (%s): %s\n", name, wf_config_family(&config), wf_preset_at(i)->purpose);
    const char *section = "";
    for (int i = 0; wf_config_key_at(&config, i, &key); i++) {
        if (strcmp(section, key.section) != 0)
            printf("%s:\n", section = key.section);
        wf_config_get(&config, key.name, value, sizeof value);
        snprintf(setting, sizeof setting, "%s=%s", key.name, value);
        print_key(stdout, setting, 27, &key);
    }
    return EXIT_DONE;
}

/* --- the zoo ------------------------------------------------------------------------------------------------------- */

int run_models(int argc, char **argv)
{
    const char *name = NULL;
    const struct command_line line = {.usage = "[MODEL]",
                                      .help = "Lists the models of the zoo, or the settings of one.",
                                      .argument = &name,
                                      .most = 1,
                                      .too_many = "weft models takes one model, or none"};
    int code = parse(&line, argc, argv);
    if (code >= 0)
        return code;
    if (name)
        return print_model(name);
    printf("%-20s %-8s %12s  %s\n", "name", "family", "parameters", "purpose");
    for (int i = 0; i < wf_preset_count(); i++) {
        const struct wf_preset *p = wf_preset_at(i);
        struct wf_config config;
        wf_error error = {0};
        if (wf_config_preset(&config, p->name, &error) != WF_OK)
            return fail(&error);
        if (wf_config_shape(&config).vocab_size == 0)
            wf_config_set_vocab(&config, TYPES, 0);
        wf_model *model = wf_model_new(&config, &error);
        if (!model)
            return fail(&error);
        printf("%-20s %-8s %12lld  %s\n", p->name, wf_config_family(&config), (long long)wf_registry_parameters(wf_model_registry(model)),
               p->purpose);
        wf_model_free(model);
    }
    printf("Where the training text determines the vocabulary size, parameters are counted for %d tokens.\n", TYPES);
    const char *section;
    for (int s = 0; (section = wf_config_section_at(s)); s++) {
        struct wf_config config;
        if (wf_config_defaults(&config, section, NULL) == WF_OK && wf_config_read_only(&config))
            printf("Not trained, but read from Hugging Face folders: %s (weft embed, weft attention).\n", section);
    }
    return EXIT_DONE;
}

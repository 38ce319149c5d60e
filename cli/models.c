/* SPDX-License-Identifier: MIT */
/* weft models [MODEL], and the list of all settings for `weft train --help`. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/string.h>

#include "cli.h"

enum { TYPES = 65 }; /* vocabulary size that is assumed if a model sets none: an English text has about 65 different characters */

static void print_key(const char *name, int indent, const struct wf_config_key *key, int kinds)
{
    static const char *const names[] = {"language models", "translation", "encoders"};
    struct wf_string text = {0};
    wf_string_format(&text, "%s (%s)", key->meaning, key->values);
    const char *before = " [";
    for (int i = 0; i < 3; i++)
        if (kinds >> i & 1) {
            wf_string_format(&text, "%s%s", before, names[i]);
            before = ", ";
        }
    wf_string_text(&text, kinds ? "]" : "");
    print_entry(name, indent, text.failed ? key->meaning : text.data);
    wf_string_free(&text);
}

void print_settings(void)
{
    const char *section;
    printf("\nKeys for --set KEY=VALUE, with their ranges; `%s models MODEL` prints the\nvalues of a model.\n", program());
    for (int s = 0; (section = wf_config_section_at(s)); s++) {
        struct wf_config family;
        struct wf_config_key key;
        bool of_family = wf_config_defaults(&family, section, NULL) == WF_OK;
        if (of_family && wf_config_read_only(&family))
            continue;
        printf(of_family ? "\nKeys of the family %s:\n" : "\nKeys of %s:\n", section);
        for (int i = 0; wf_config_section_key(section, i, &key); i++)
            print_key(key.name, 21, &key, key.kinds);
    }
}

/* Prints the keys of all optimisers except the model's own, with their default values. */
static void print_other_optimizers(const struct wf_config *config)
{
    struct wf_config_key key;
    char value[64], setting[160], owner[64] = "";
    for (int i = 0; wf_config_section_key("optimizer", i, &key); i++) {
        const int length = (int)strcspn(key.name, ".");
        if (wf_config_get(config, key.name, value, sizeof value))
            continue;
        if ((int)strlen(owner) != length || strncmp(owner, key.name, (size_t)length) != 0) {
            snprintf(owner, sizeof owner, "%.*s", length, key.name);
            printf("with optimizer=%s:\n", owner);
        }
        snprintf(setting, sizeof setting, "%s=%s", key.name, key.value);
        print_key(setting, 27, &key, 0);
    }
}

static wf_status print_model(const char *name, wf_error *error)
{
    struct wf_config config;
    struct wf_config_key key;
    char value[64], setting[160];
    if (wf_config_preset(&config, name, error) != WF_OK)
        return error->code;
    const struct wf_preset *p;
    for (int i = 0; (p = wf_preset_at(i)); i++)
        if (strcmp(p->name, name) == 0)
            printf("%s (%s): %s\n", name, wf_config_family(&config), p->purpose);
    const char *section = "";
    for (int i = 0; wf_config_key_at(&config, i, &key); i++) {
        if (strcmp(section, key.section) != 0)
            printf("%s:\n", section = key.section);
        wf_config_get(&config, key.name, value, sizeof value);
        snprintf(setting, sizeof setting, "%s=%s", key.name, value);
        print_key(setting, 27, &key, 0);
    }
    print_other_optimizers(&config);
    return WF_OK;
}

static wf_status models(void *arguments, wf_error *error)
{
    const char *name = *(const char **)arguments, *section;
    if (name)
        return print_model(name, error);
    printf("%-20s %-8s %12s  %s\n", "name", "family", "parameters", "purpose");
    const struct wf_preset *p;
    for (int i = 0; (p = wf_preset_at(i)); i++) {
        struct wf_config config;
        if (wf_config_preset(&config, p->name, error) != WF_OK)
            return error->code;
        if (wf_config_shape(&config).vocab_size == 0)
            wf_config_set_vocab(&config, TYPES, 0);
        wf_model *model = wf_model_new(&config, error);
        if (!model)
            return error->code;
        printf("%-20s %-8s %12lld  %s\n", p->name, wf_config_family(&config), (long long)wf_registry_parameters(wf_model_registry(model)),
               p->purpose);
        wf_model_free(model);
    }
    printf("Where the training text determines the vocabulary size, parameters are counted for %d tokens.\n", TYPES);
    for (int s = 0; (section = wf_config_section_at(s)); s++) {
        struct wf_config config;
        if (wf_config_defaults(&config, section, NULL) == WF_OK && wf_config_read_only(&config))
            printf("Read from Hugging Face folders, not trained: %s (%s embed, %s attention).\n", section, program(), program());
    }
    return WF_OK;
}

int run_models(int argc, char **argv)
{
    const char *name = NULL;
    return run_command(&(struct command_line){"[MODEL]", "Lists the models of the zoo, or the settings of one model.", NULL, &name,
                                              .too_many = "$0 models takes one model, or none"},
                       models, &name, argc, argv);
}

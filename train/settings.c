/* SPDX-License-Identifier: MIT */
/* The options .settings and .fixed of a program, such as "width=64 data=digits.bin": finds out what a resume changes. */
#include <string.h>

#include "loop.h"

static const char blanks[] = " \t\r\n";

/* A setting KEY=VALUE in a text. Key and value do not end with a 0 byte. */
struct setting {
    const char *key;
    const char *value; /* NULL: there is no '=' */
    int key_length;
    int value_length;
};
/* Reads the next setting of *text and advances *text past it. Returns false at the end of the text. */
static bool next_setting(const char **text, struct setting *out)
{
    const char *at = *text + strspn(*text, blanks);
    int length = (int)strcspn(at, blanks);
    const char *equals = memchr(at, '=', (size_t)length);
    *text = at + length;
    *out = (struct setting){.key = at, .key_length = equals ? (int)(equals - at) : length};
    if (equals) {
        out->value = equals + 1;
        out->value_length = length - out->key_length - 1;
    }
    return length > 0;
}

/* Finds the setting of `text` with the key of `like`. If there is none, returns false, and *out has the value "nothing" for messages. */
static bool find_setting(const char *text, const struct setting *like, struct setting *out)
{
    while (next_setting(&text, out))
        if (out->key_length == like->key_length && memcmp(out->key, like->key, (size_t)like->key_length) == 0)
            return true;
    *out = (struct setting){.value = "nothing", .value_length = 7};
    return false;
}

/* Handles a setting that differs from the state: an error if `path` is given, else an addition to f->change. */
static wf_status differs(struct fit *f, const struct setting *name, const struct setting *was, const struct setting *now, const char *path)
{
    const char *old = was->value ? was->value : "", *new = now->value ? now->value : "";
    if (path)
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%s was trained with %.*s = %.*s: a resume cannot change it to %.*s; choose another folder", path,
                            name->key_length, name->key, was->value_length, old, now->value_length, new);
    wf_string_format(&f->change, "%s %.*s %.*s instead of %.*s", f->change.length ? "," : "resuming with", name->key_length, name->key,
                     now->value_length, new, was->value_length, old);
    return WF_OK;
}

/* Compares all settings of `was` and `now`. path: the state's path, if differences are errors; NULL: they are only reported. */
static wf_status compare(struct fit *f, const char *was, const char *now, const char *path)
{
    struct setting a, b;
    was = was ? was : "";
    now = now ? now : "";
    for (const char *text = now; next_setting(&text, &b);) {
        find_setting(was, &b, &a);
        if ((a.value_length != b.value_length || (b.value && memcmp(a.value, b.value, (size_t)b.value_length) != 0)) &&
            differs(f, &b, &a, &b, path))
            return f->error->code;
    }
    for (const char *text = was; next_setting(&text, &a);)
        if (!find_setting(now, &a, &b) && differs(f, &a, &a, &b, path))
            return f->error->code;
    return WF_OK;
}

wf_status settings_compare(struct fit *f, const wf_safetensors *file, const char *path)
{
    if (compare(f, wf_safetensors_metadata(file, "fixed"), f->o.fixed, path) ||
        compare(f, wf_safetensors_metadata(file, "settings"), f->o.settings, NULL))
        return f->error->code;
    return f->change.failed ? wf_error_set(f->error, WF_ERR_MEMORY, "no memory for a message") : WF_OK;
}

void settings_words(const char *settings, struct wf_string *words)
{
    struct setting one;
    for (const char *text = settings ? settings : ""; next_setting(&text, &one);)
        wf_string_format(words, "%.*s=%.*s ", one.key_length, one.key, one.value_length, one.value ? one.value : "");
}

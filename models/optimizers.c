/* SPDX-License-Identifier: MIT */
/* The optimisers that a configuration can name, with their keys: the built-in ones, and those that a program registers. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/fork.h>
#include <weft/internal/needs.h>
#include <weft/internal/optimizer.h>
#include <weft/internal/text.h>
#include <weft/optimizer_rule.h>

#include "keys.h"

enum { BUILT_IN = WF_OPTIMIZER_MUON + 1, MOST = BUILT_IN + WF_OPTIMIZERS_MOST, KEY_NAME = 64 };

static wf_status check_sgd(const void *config, wf_error *error)
{
    const struct wf_sgd_settings *o = config;
    return o->nesterov && o->momentum == 0 ? wf_error_set(error, WF_ERR_ARGUMENT, "sgd.nesterov needs sgd.momentum above 0") : WF_OK;
}

/* clang-format off */
#define AT(owner, field, ...) .name = #owner "." #field, .offset = offsetof(struct wf_##owner##_settings, field), .resumable = true, \
    .kind = _Generic(((struct wf_##owner##_settings *)0)->field, __VA_ARGS__)
#define NUMBER(owner, field, text, least, most, about, ...) \
    {AT(owner, field, int64_t: WF_KEY_INT, double: WF_KEY_REAL), .value = text, .low = least, .high = most, .meaning = about, __VA_ARGS__}
#define FLAG(owner, field, text, about) {AT(owner, field, bool: WF_KEY_BOOL), .value = text, .meaning = about}
#define WORD(owner, field, text, list, about, ...) {AT(owner, field, int: WF_KEY_WORD), .value = text, .words = list, .meaning = about, __VA_ARGS__}
#define BELOW .below = true
static const struct wf_key sgd_keys[] = {
    NUMBER(sgd, momentum, "0", 0, 1, "weight of past gradients in a step; 0: none, and no state", BELOW),
    FLAG(sgd, nesterov, "false", "Nesterov's momentum"),
};
static const struct wf_key lion_keys[] = {
    NUMBER(lion, beta1, "0.9", 0, 1, "weight of past gradients in a step", BELOW),
    NUMBER(lion, beta2, "0.99", 0, 1, "weight of past gradients in the state", BELOW),
};
static const struct wf_key adafactor_keys[] = {
    NUMBER(adafactor, beta2_decay, "-0.8", -10, 0, "update t has the weight t^beta2_decay in the means of squared gradients"),
    NUMBER(adafactor, eps1, "0", 0, 1, "smallest root of a mean of squared gradients; 0: the machine epsilon"),
    NUMBER(adafactor, eps2, "0.001", 0, 1, "smallest root mean square of a parameter, by which lr is multiplied"),
    NUMBER(adafactor, threshold, "1", 1, WF_KEY_MANY, "largest root mean square of an update before lr"),
};
static const char *const adjusts[] = {"match_rms_adamw", "original", "none", NULL}; /* in the order of enum wf_muon_adjust */
static const struct wf_key muon_keys[] = {
    NUMBER(muon, momentum, "0.95", 0, 1, "weight of past gradients of a matrix", BELOW),
    FLAG(muon, nesterov, "true", "Nesterov's momentum"),
    NUMBER(muon, iterations, "5", 0, 99, "Newton-Schulz iterations"),
    WORD(muon, adjust, "match_rms_adamw", adjusts, "factor of a matrix's lr: for updates of AdamW's size, of Jordan (lr about 0.02), or 1", .also = "adjust_lr_fn"),
    NUMBER(muon, beta1, "0.9", 0, 1, "beta1 of AdamW, which updates all but hidden matrices", BELOW),
    NUMBER(muon, beta2, "0.999", 0, 1, "beta2 of this AdamW", BELOW),
    NUMBER(muon, eps, "1e-08", 0, 1, "epsilon of this AdamW", .above = true),
    NUMBER(muon, adam_lr_scale, "1", 0, WF_KEY_MANY, "factor of lr for this AdamW"),
};
/* clang-format on */

/* The name of optimiser i is optimizer_names[i], and the rest of its description is entries[i]. add() writes the name last, because other
 * functions regard an entry as present when it has a name. */
const char *optimizer_names[MOST + 1] = {"adamw", "sgd", "lion", "adafactor", "muon"};
static struct entry {
    const struct wf_optimizer_kind *kind; /* NULL: the optimiser is built in */
    struct wf_keys keys;                  /* their names are NAME.KEY */
    wf_status (*check)(const void *config, wf_error *error);
} entries[MOST] = {[WF_OPTIMIZER_SGD] = {.keys = WF_ROWS(sgd_keys), .check = check_sgd},
                   [WF_OPTIMIZER_LION] = {.keys = WF_ROWS(lion_keys)},
                   [WF_OPTIMIZER_ADAFACTOR] = {.keys = WF_ROWS(adafactor_keys)},
                   [WF_OPTIMIZER_MUON] = {.keys = WF_ROWS(muon_keys)}};
/* Copies of the keys of registered optimisers, with the names NAME.KEY, and the memory for these names. */
static struct wf_key rows[WF_OPTIMIZERS_MOST][WF_OPTIMIZER_KEYS];
static char row_names[WF_OPTIMIZERS_MOST][WF_OPTIMIZER_KEYS][KEY_NAME];
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
WF_FREE_AFTER_FORK(registering)

const char *wf_optimizer_name_at(int index)
{
    int count = 0;
    while (count < index && optimizer_names[count])
        count++;
    return index < 0 ? NULL : optimizer_names[count];
}

/* The entry of the configuration's optimiser. A program can write any number to config->optimizer.kind, so an unknown number gives an empty
 * entry. */
static const struct entry *entry_of(const struct wf_config *config)
{
    static const struct entry none = {0};
    return wf_optimizer_name_at(config->optimizer.kind) ? &entries[config->optimizer.kind] : &none;
}

const struct wf_optimizer_kind *wf_config_optimizer(const struct wf_config *config)
{
    return entry_of(config)->kind;
}

const struct wf_optimizer_rule *wf_config_optimizer_rule(struct wf_config *config, void **ctx)
{
    static const struct wf_optimizer_rule *const built_in[BUILT_IN] = {&wf_adam_rule, &wf_sgd_rule, &wf_lion_rule, &wf_adafactor_rule,
                                                                       &wf_muon_rule};
    const struct wf_optimizer_kind *own = wf_config_optimizer(config);
    *ctx = own ? config->optimizer.values : NULL;
    return own ? own->rule : built_in[config->optimizer.kind];
}

static wf_status init_muon(const struct wf_training *o, const struct wf_muon_settings *s, wf_registry *registry,
                           struct wf_optimizer *optimizer, wf_error *error)
{
    return wf_muon_init(optimizer, registry, error, .lr = o->lr, .weight_decay = o->weight_decay, .momentum = s->momentum,
                        .nesterov = s->nesterov, .iterations = s->iterations, .adjust = (enum wf_muon_adjust)s->adjust, .beta1 = s->beta1,
                        .beta2 = s->beta2, .adam_eps = s->eps, .adam_lr_scale = s->adam_lr_scale);
}

wf_status wf_config_optimizer_init(struct wf_config *config, wf_registry *registry, struct wf_optimizer *optimizer, wf_error *error)
{
    const struct wf_training *o = &config->training;
    const struct wf_optimizer_kind *own = wf_config_optimizer(config);
    const void *values = config->optimizer.values;
    const struct wf_sgd_settings *sgd = values;
    const struct wf_lion_settings *lion = values;
    const struct wf_adafactor_settings *adafactor = values;
    if (own)
        return wf_optimizer_init(optimizer, registry, own->rule, config->optimizer.values, error, .lr = o->lr,
                                 .weight_decay = o->weight_decay);
    switch ((enum wf_optimizer_number)config->optimizer.kind) {
    case WF_OPTIMIZER_SGD:
        return wf_sgd_init(optimizer, registry, error, .lr = o->lr, .momentum = sgd->momentum, .nesterov = sgd->nesterov,
                           .weight_decay = o->weight_decay);
    case WF_OPTIMIZER_LION:
        return wf_lion_init(optimizer, registry, error, .lr = o->lr, .beta1 = lion->beta1, .beta2 = lion->beta2,
                            .weight_decay = o->weight_decay);
    case WF_OPTIMIZER_ADAFACTOR:
        return wf_adafactor_init(optimizer, registry, error, .lr = o->lr, .beta2_decay = adafactor->beta2_decay, .eps1 = adafactor->eps1,
                                 .eps2 = adafactor->eps2, .threshold = adafactor->threshold, .weight_decay = o->weight_decay);
    case WF_OPTIMIZER_MUON:
        return init_muon(o, values, registry, optimizer, error);
    case WF_OPTIMIZER_ELSEWHERE:
    case WF_OPTIMIZER_ADAMW:
        break;
    }
    return wf_adamw_init(optimizer, registry, error, .lr = o->lr, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps,
                         .weight_decay = o->weight_decay);
}

const struct wf_keys *optimizer_keys(const struct wf_config *config)
{
    return &entry_of(config)->keys;
}

const struct wf_key *optimizer_key_at(int index)
{
    for (int i = 0; index >= 0 && optimizer_names[i]; index -= entries[i++].keys.count)
        if (index < entries[i].keys.count)
            return &entries[i].keys.key[index];
    return NULL;
}

static wf_status unknown(const char *name, wf_error *error)
{
    char text[WF_QUOTE_SIZE], all[256];
    key_range(&(struct wf_key){.kind = WF_KEY_WORD, .words = optimizer_names}, all, sizeof all);
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "optimizer: %s is not one of %s: choose one of them, or use the program that registers it "
                        "(wf_optimizer_register)",
                        wf_text_quote(name, text), all);
}

wf_status optimizer_check(const struct wf_config *config, wf_error *error)
{
    const struct entry *e = entry_of(config);
    if (optimizer_kept(&config->optimizer))
        return unknown(optimizer_kept(&config->optimizer), error);
    return e->check ? e->check(config->optimizer.values, error) : WF_OK;
}

bool optimizer_keep(struct wf_config *config, const char *name)
{
    const size_t length = strlen(name);
    if (length == 0 || length >= KEY_NAME || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != length)
        return false;
    memset(&config->optimizer, 0, sizeof config->optimizer);
    config->optimizer.kind = WF_OPTIMIZER_ELSEWHERE;
    memcpy(config->optimizer.values, name, length);
    return true;
}

const char *optimizer_kept(const struct wf_optimizer_settings *optimizer)
{
    return optimizer->kind == WF_OPTIMIZER_ELSEWHERE ? (const char *)optimizer->values : NULL;
}

bool optimizer_kept_key(const struct wf_config *config, const char *name)
{
    const char *kept = optimizer_kept(&config->optimizer);
    const size_t length = kept ? strlen(kept) : 0;
    return kept && strncmp(name, kept, length) == 0 && name[length] == '.';
}

wf_status optimizer_choose(struct wf_config *config, const char *name, wf_error *error)
{
    int found = 0;
    while (optimizer_names[found] && strcmp(optimizer_names[found], name) != 0)
        found++;
    if (!optimizer_names[found])
        return unknown(name, error);
    if (found == config->optimizer.kind)
        return WF_OK;
    struct wf_optimizer_settings chosen;
    memset(&chosen, 0, sizeof chosen); /* clears padding bytes too, because configurations are compared byte by byte */
    chosen.kind = found;
    wf_status status = WF_OK;
    for (int i = 0; status == WF_OK && i < entries[found].keys.count; i++)
        status = key_parse(&entries[found].keys.key[i], chosen.values, entries[found].keys.key[i].value, true, error);
    if (status == WF_OK)
        config->optimizer = chosen;
    return status;
}

/* The name of the optimiser that has this key: "lion" for "lion.beta1". NULL: no optimiser has the key. */
static const char *owner_of(const char *name)
{
    for (int i = 0; optimizer_names[i]; i++)
        for (int k = 0; k < entries[i].keys.count; k++)
            if (strcmp(entries[i].keys.key[k].name, name) == 0)
                return optimizer_names[i];
    return NULL;
}

wf_status optimizer_refuse(const struct wf_config *config, const char *name, wf_error *error)
{
    static const char *const of_adam[] = {"beta1", "beta2", "eps"};
    const char *now = wf_optimizer_name_at(config->optimizer.kind), *owner = owner_of(name);
    char own[KEY_NAME];
    if (optimizer_kept_key(config, name))
        return unknown(optimizer_kept(&config->optimizer), error);
    if (!now || (owner && strcmp(owner, now) == 0))
        return WF_OK;
    if (owner)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a key of optimizer=%s, and optimizer is %s: set optimizer=%s first", name, owner,
                            now, owner);
    for (size_t i = 0; config->optimizer.kind != WF_OPTIMIZER_ADAMW && i < sizeof of_adam / sizeof *of_adam; i++)
        if (strcmp(of_adam[i], name) == 0) {
            snprintf(own, sizeof own, "%s.%s", now, name);
            owner = owner_of(own);
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s is AdamW's, and optimizer is %s: %s%s", name, now,
                                owner ? "set " : "leave it out", owner ? own : "");
        }
    return WF_OK;
}

/* --- registration -------------------------------------------------------------------------------------------------- */

static wf_status check_key(const struct wf_optimizer_kind *kind, int index, wf_error *error)
{
    const char *owner = kind->rule->name;
    const struct wf_key *key = &kind->keys.key[index];
    if (!key->name || !key->name[0] || !key->meaning || !key->value || strlen(owner) + strlen(key->name) + 2 > KEY_NAME)
        return wf_error_set(error, WF_ERR_ARGUMENT, "optimizer %s: key %d lacks a name, meaning or default, or its name is too long", owner,
                            index);
    return key_describes("optimizer", owner, &kind->keys, index, kind->config_size, error);
}

static wf_status check_kind(const struct wf_optimizer_kind *kind, wf_error *error)
{
    static const char *const taken[] = {"adam", "model", "task", "optimizer"}; /* names that the state of a run uses for other things */
    if (kind->abi != WF_OPTIMIZER_KIND_ABI)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "the optimizer was compiled for another version of Weft: struct wf_optimizer_kind has %zu bytes, not %zu: set "
                            ".abi = WF_OPTIMIZER_KIND_ABI and compile it again",
                            kind->abi, WF_OPTIMIZER_KIND_ABI);
    if (!kind->rule)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the optimizer has no rule");
    if (wf_optimizer_rule_check(kind->rule, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    const char *name = kind->rule->name;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(taken[i], name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "optimizer %s: the state of a run has this name for other things: choose another",
                                name);
    if (kind->config_size > WF_OPTIMIZER_SPACE || kind->keys.count < 0 || kind->keys.count > WF_OPTIMIZER_KEYS)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "optimizer %s: its struct has %zu bytes and %d keys, more than the maximum of %d and %d", name,
                            kind->config_size, kind->keys.count, WF_OPTIMIZER_SPACE, WF_OPTIMIZER_KEYS);
    for (int i = 0; i < kind->keys.count; i++)
        if (check_key(kind, i, error) != WF_OK)
            return WF_ERR_ARGUMENT;
    return WF_OK;
}

static wf_status add(const struct wf_optimizer_kind *kind, wf_error *error)
{
    const char *name = kind->rule->name;
    int count = 0;
    for (; optimizer_names[count]; count++) {
        if (entries[count].kind == kind)
            return WF_OK;
        if (strcmp(optimizer_names[count], name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "optimizer %s: another optimizer has this name: choose another", name);
    }
    if (count == MOST)
        return wf_error_set(error, WF_ERR_ARGUMENT, "optimizer %s: %d optimizers are registered already, the most there can be", name,
                            WF_OPTIMIZERS_MOST);
    struct wf_key *row = rows[count - BUILT_IN];
    for (int i = 0; i < kind->keys.count; i++) {
        char *full = row_names[count - BUILT_IN][i];
        snprintf(full, KEY_NAME, "%s.%s", name, kind->keys.key[i].name);
        row[i] = kind->keys.key[i];
        row[i].name = full;
    }
    entries[count] = (struct entry){.kind = kind, .keys = {row, kind->keys.count}, .check = kind->check};
    optimizer_names[count] = name;
    return WF_OK;
}

wf_status wf_optimizer_register(const struct wf_optimizer_kind *kind, wf_error *error)
{
    if (wf_needs(error, "kind", kind))
        return WF_ERR_ARGUMENT;
    if (check_kind(kind, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    pthread_mutex_lock(&registering);
    wf_status status = add(kind, error);
    pthread_mutex_unlock(&registering);
    return status;
}

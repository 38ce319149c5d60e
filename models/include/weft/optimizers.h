/* SPDX-License-Identifier: MIT */
/* Optimisers by name. The setting `optimizer` of a training is "adamw", "sgd", "lion", "adafactor", "muon", or the name of an optimiser
 * that the program has registered. To register one, give its update rule (weft/optimizer_rule.h) and the keys of its hyperparameters.
 * wf_train and the command wf_main then accept the rule's name as `optimizer`, and its keys as NAME.KEY:
 *
 *   struct adamax { double beta1, beta2; };              what the rule's functions get as ctx
 *   static const struct wf_key keys[] = {
 *       WF_NUMBER_KEY(struct adamax, beta1, "0.9", 0, 1, "weight of past gradients", .below = true, .resumable = true), ...};
 *   static const struct wf_optimizer_kind kind = {
 *       WF_OPTIMIZER_KIND_ABI, .rule = &adamax, .config_size = sizeof(struct adamax), .keys = WF_ROWS(keys)};
 *
 *   int main(int argc, char **argv)
 *   {
 *       wf_error error = {0};
 *       if (wf_optimizer_register(&kind, &error) != WF_OK) ...
 *       return wf_main(argc, argv);                      train MODEL ... --set optimizer=adamax --set adamax.beta1=0.95
 *   }
 *
 * examples/adamax.c is the whole program. The config.json and the state of a run hold the optimiser's name and the values of its keys. */
#ifndef WEFT_OPTIMIZERS_H
#define WEFT_OPTIMIZERS_H

#include <weft/family.h>

WF_BEGIN_DECLS

struct wf_optimizer_rule; /* weft/optimizer_rule.h */

/* An optimiser with its hyperparameters. The learning rate and the weight decay are not among these hyperparameters, because a training
 * sets them from its own keys `lr` and `weight_decay`; the decay applies to matrices only. */
struct wf_optimizer_kind {
    size_t abi;                           /* WF_OPTIMIZER_KIND_ABI: the size of this struct in the program that made it */
    const struct wf_optimizer_rule *rule; /* the rule's name is the value of `optimizer` and the prefix of its tensors in the state */
    /* The hyperparameters: a plain struct of config_size bytes, at most WF_OPTIMIZER_SPACE, whose members are set by the keys. Set
     * .resumable of a key whose value may be changed when a training is resumed; the rule's slabs must not depend on such a key. */
    size_t config_size;
    struct wf_keys keys;
    /* Checks conditions between keys, after the range of each key was checked. NULL: there are no conditions. */
    wf_status (*check)(const void *config, wf_error *error);
};
#define WF_OPTIMIZER_KIND_ABI sizeof(struct wf_optimizer_kind)

enum {
    WF_OPTIMIZERS_MOST = 16, /* maximum number of optimisers that a program can register */
    WF_OPTIMIZER_KEYS = 16   /* maximum number of keys of an optimiser */
};

/* Makes an optimiser known by its rule's name, until the program ends: *kind and everything that it points to must stay valid that long.
 * Register it before the program calls functions that read configurations, such as wf_main, wf_config_preset or wf_config_load, and while
 * no other thread calls them. The same kind may be registered again. WF_ERR_ARGUMENT, with the reason in the message:
 * wf_optimizer_rule_check refuses the rule, another optimiser has the name, a key lacks a name, meaning or default, a key's member lies
 * outside the struct, or two keys have the same name. */
WF_API wf_status wf_optimizer_register(const struct wf_optimizer_kind *kind, wf_error *error) WF_CHECKED;
/* Entry `index` in the list of the names that `optimizer` can have: "adamw", "sgd", "lion", "adafactor", "muon", then the registered
 * optimisers in order. NULL past the last entry. */
WF_API const char *wf_optimizer_name_at(int index);

WF_END_DECLS

#endif

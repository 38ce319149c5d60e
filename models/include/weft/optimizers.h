/* SPDX-License-Identifier: MIT */
/* Optimisers for the models of the zoo by name: the setting `optimizer` of a training, "adamw" or "sgd". A program registers its own, a
 * rule (weft/optimizer_rule.h) with the keys of its hyperparameters; wf_train and the command wf_main then know it by the rule's name, and
 * its keys by NAME.KEY:
 *
 *   struct lion { double beta1, beta2; };                what the rule's functions get as ctx
 *   static const struct wf_key keys[] = {
 *       WF_NUMBER_KEY(struct lion, beta1, "0.9", 0, 1, "weight of past gradients in a step", .below = true, .resumable = true), ...};
 *   static const struct wf_optimizer_kind kind = {
 *       WF_OPTIMIZER_KIND_ABI, .rule = &lion, .config_size = sizeof(struct lion), .keys = WF_ROWS(keys)};
 *
 *   int main(int argc, char **argv)
 *   {
 *       wf_error error = {0};
 *       if (wf_optimizer_register(&kind, &error) != WF_OK) ...
 *       return wf_main(argc, argv);                      train MODEL ... --set optimizer=lion --set lion.beta1=0.95
 *   }
 *
 * examples/lion.c is the whole program. config.json and the state of a run hold the name and the keys. */
#ifndef WEFT_OPTIMIZERS_H
#define WEFT_OPTIMIZERS_H

#include <weft/family.h>

WF_BEGIN_DECLS

struct wf_optimizer_rule; /* weft/optimizer_rule.h */

/* The trainings set lr (by the schedule) and weight_decay, which is that of matrices. */
struct wf_optimizer_kind {
    size_t abi;                           /* WF_OPTIMIZER_KIND_ABI: the size of this struct in the program that made it */
    const struct wf_optimizer_rule *rule; /* its name is the value of `optimizer`, and that of its tensors in the state */
    /* The hyperparameters: a plain struct of config_size bytes, at most WF_OPTIMIZER_SPACE, filled from the keys. A key is `.resumable` if
     * the resume of a training may change it: no slab depends on it. */
    size_t config_size;
    struct wf_keys keys;
    /* Conditions between keys; ranges were checked. NULL: none. */
    wf_status (*check)(const void *config, wf_error *error);
};
#define WF_OPTIMIZER_KIND_ABI sizeof(struct wf_optimizer_kind)

enum { WF_OPTIMIZERS_MOST = 16, WF_OPTIMIZER_KEYS = 16 }; /* kinds that a program can register; keys of one */

/* Makes an optimiser known by its rule's name, for the rest of the program: *kind and everything that it points to must stay. Call it
 * before the functions that read configurations, such as wf_main, wf_config_preset and wf_config_load, and not beside them in other
 * threads. The same kind may be registered again. WF_ERR_ARGUMENT, with what is wrong: a rule that wf_optimizer_rule_check refuses, a name
 * that is taken, keys without a name, meaning or default, outside the struct, or of one name. */
WF_API wf_status wf_optimizer_register(const struct wf_optimizer_kind *kind, wf_error *error) WF_CHECKED;
/* The names that `optimizer` can have: "adamw", "sgd", then those registered; NULL past the last. */
WF_API const char *wf_optimizer_name_at(int index);

WF_END_DECLS

#endif

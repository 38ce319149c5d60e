/* SPDX-License-Identifier: MIT */
/* Finds the key for the name that a setting has in nanoGPT, transformers (config.json and TrainingArguments), PyTorch, fairseq or
 * llama.cpp, so that the message about an unknown key can suggest Weft's. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/setting_names.h>
#include <weft/internal/text.h>

#include "keys.h"

#define LAYERS "n_layer n_layers num_layers num_hidden_layers block_count depth"

/* The names of each role in other programs. Families need not list these names in the `also` of their keys. */
static const char *const of_role[WF_KEY_ROLES] = {
    [WF_KEY_VOCAB] = "n_vocab vocabulary_size tgt_vocab_size target_vocab_size decoder_vocab_size nwordstgt",
    [WF_KEY_SOURCE_VOCAB] = "src_vocab_size encoder_vocab_size nwordssrc",
    [WF_KEY_CONTEXT] = "block_size n_ctx n_positions max_position_embeddings context_length context_size ctx_size context_window seq_len "
                       "sequence_length seq_length max_seq_len max_seq_length max_sequence_length max_len tokens_per_sample "
                       "max_source_positions max_target_positions max_positions model_max_length",
    [WF_KEY_LAYERS] = LAYERS " num_decoder_layers",
    [WF_KEY_ENCODER_LAYERS] = LAYERS " num_encoder_layers",
    [WF_KEY_WIDTH] = "n_embd n_embed hidden_size embed_dim embedding_size embedding_length emb_size emb_dim dim model_dim d_embed width "
                     "encoder_embed_dim decoder_embed_dim",
    [WF_KEY_HEADS] = "n_head n_heads nhead num_heads num_attention_heads attention_heads head_count encoder_attention_heads "
                     "decoder_attention_heads",
    [WF_KEY_KV_HEADS] = "n_head_kv n_kv_head n_kv_heads num_kv_heads num_key_value_heads head_count_kv num_query_groups",
    [WF_KEY_FFN_WIDTH] = "n_inner n_ff d_inner intermediate_size ffn_dim ffn_hidden_size feed_forward_length dim_feedforward hidden_dim "
                         "encoder_ffn_dim decoder_ffn_dim encoder_ffn_embed_dim decoder_ffn_embed_dim",
    [WF_KEY_ACTIVATION] = "hidden_act hidden_activation activation_function activation_fn feed_forward_proj",
    [WF_KEY_SEGMENTS] = "type_vocab_size n_segments",
    [WF_KEY_SHARED] = "share_all_embeddings joined_dictionary",
};

/* True if the name equals the first `length` bytes of `word`. The characters - and _ are equivalent. */
static bool is_word(const char *name, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] != word[i] && !((name[i] == '-' || name[i] == '_') && (word[i] == '-' || word[i] == '_')))
            return false;
    return name[length] == 0;
}

bool wf_name_in(const char *list, const char *name)
{
    for (size_t n; list && *list; list += n + (list[n] == ' ')) {
        n = strcspn(list, " ");
        if (n > 0 && is_word(name, list, n))
            return true;
    }
    return false;
}

static bool is_called(const struct wf_key *key, const char *name)
{
    return wf_name_in(key->also, name) || wf_name_in(of_role[key->role], name);
}

/* The keys of section number `section`: the common sections, then the families. NULL past the last. */
static const struct wf_keys *keys_at(int section)
{
    if (section < SECTIONS)
        return &sections[section].keys;
    const struct wf_family *family = wf_family_at(section - SECTIONS);
    return family ? &family->keys : NULL;
}

const char *wf_setting_called(const char *name)
{
    const struct wf_keys *keys;
    for (int own = 1; own >= 0; own--) /* compare with the keys' own names first, then with their names in other programs */
        for (int s = 0; (keys = keys_at(s)); s++)
            for (int i = 0; i < keys->count; i++)
                if (own ? wf_name_in(keys->key[i].name, name) : is_called(&keys->key[i], name))
                    return keys->key[i].name;
    return NULL;
}

static bool is_key(const char *name)
{
    const struct wf_keys *keys;
    for (int s = 0; (keys = keys_at(s)); s++)
        for (int i = 0; i < keys->count; i++)
            if (strcmp(keys->key[i].name, name) == 0)
                return true;
    return false;
}

wf_status key_unknown(const struct wf_config *config, const char *name, wf_error *error)
{
    static const char *const kinds[] = {"a language model", "an encoder-decoder", "an encoder"};
    char quoted[WF_QUOTE_SIZE], same[128] = "";
    const char *names[MOST_KEYS], *near = NULL;
    struct slot slot;
    int count = 0;
    for (; count < MOST_KEYS && slot_at(config, count, &slot); count++) {
        names[count] = slot.key->name;
        if (wf_name_in(slot.key->name, name)) /* equal, where - and _ count as the same */
            near = slot.key->name;
        const char *dot = strchr(slot.key->name, '.'); /* a key OPTIMIZER.KEY, which a user may call KEY */
        if (dot && !near && wf_name_in(dot + 1, name))
            near = slot.key->name;
        size_t used = strlen(same);
        if (is_called(slot.key, name))
            snprintf(same + used, sizeof same - used, "%s%s", used ? " and " : "", slot.key->name);
    }
    if (optimizer_refuse(config, name, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (near && strchr(near, '.'))
        return wf_error_set(error, WF_ERR_ARGUMENT, "unknown key %s: did you mean %s?", wf_text_quote(name, quoted), near);
    if (is_key(name))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s, %s, does not use it%s%s", name, config->model, kinds[wf_config_kind(config)],
                            same[0] ? ": set " : "", same);
    if (same[0])
        return wf_error_set(error, WF_ERR_ARGUMENT, "no setting %s; use %s", name, same);
    const char *of_others = near ? NULL : wf_setting_called(name);
    if (of_others) /* another family has a key with this meaning: report that the model does not use that key */
        return key_unknown(config, of_others, error);
    if (!near)
        near = wf_nearest(name, names, count);
    if (near)
        return wf_error_set(error, WF_ERR_ARGUMENT, "unknown key %s: did you mean %s?", wf_text_quote(name, quoted), near);
    return wf_error_set(error, WF_ERR_ARGUMENT, "unknown key %s: the command `models %s` lists the keys", wf_text_quote(name, quoted),
                        config->model);
}

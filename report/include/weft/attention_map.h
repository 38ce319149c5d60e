/* SPDX-License-Identifier: MIT */
/* Attention maps: the attention weights of a text in every layer and head of a trained model, without dropout; as pictures (SVG, PNG,
 * drawn by gnuplot), as JSON, and as one interactive HTML page.
 *
 *   struct wf_attention_maps maps;
 *   if (wf_attention_of(&run, &(struct wf_attention_request){.text = "The cat sat on the mat"}, &maps, &error) != WF_OK) ...
 *   status = wf_attention_save_html(&maps, NULL, "cat.html", &error);
 *   wf_attention_free(&maps);                                                                                            */
#ifndef WEFT_ATTENTION_MAP_H
#define WEFT_ATTENTION_MAP_H

#include <weft/run.h>

WF_BEGIN_DECLS

enum wf_map_kind {
    WF_MAP_ENCODER, /* encoder self-attention */
    WF_MAP_DECODER, /* decoder self-attention, causal: weights of keys after the query, which are 0, are shown as masked. Of more keys than
                       queries the first belong to earlier tokens */
    WF_MAP_CROSS    /* from the decoder to the source */
};
WF_API const char *wf_map_kind_name(enum wf_map_kind kind); /* "encoder", "decoder", "cross" */

/* The maps of one kind. Rows are queries; each sums to 1. For a model without a run fill this struct directly; all four token lists are
 * required and may be the same list (example: docs/encoders.md). The functions below only read it; wf_attention_free is for the results of
 * wf_attention_of. */
struct wf_attention_map {
    enum wf_map_kind kind;
    int64_t layers, heads, queries, keys;
    char **query, **key;             /* the tokens as in the vocabulary */
    char **query_label, **key_label; /* for display: valid UTF-8 without invisible characters; byte-level tokens
                                        decoded, incomplete characters as <E4>; a space is U+2581 */
    float *weights;                  /* [layers][heads][queries][keys] */
};
/* All kinds of a model: one for a language model or an encoder; encoder, decoder and cross, in this order, for a translation model. */
struct wf_attention_maps {
    struct wf_attention_map map[3];
    int count;
    char model[64];          /* the preset's name, for titles */
    int64_t unknown, tokens; /* unknown tokens and all tokens of the given texts */
};
struct wf_attention_request {
    const char *text;   /* for a language model or an encoder */
    const char *source; /* for a translation model */
    const char *target; /* the decoder's input; NULL: the model's translation of the source */
};
/* Runs the model once. The tokens are the model's input, special tokens included; the target is <s> and the words. WF_ERR_ARGUMENT: a
 * text for a translation model or a source for another one, an empty text, a text longer than the context (with both numbers), several
 * lines for a translation model, a target for a model without a decoder. Unknown words are handled as by wf_tokenizer_encode. *maps
 * is empty after an error. Free it with wf_attention_free. */
WF_API wf_status wf_attention_of(const struct wf_run *run, const struct wf_attention_request *request, struct wf_attention_maps *maps,
                                 wf_error *error) WF_CHECKED;
WF_API void wf_attention_free(struct wf_attention_maps *maps); /* leaves it empty */
/* The map of a kind, or NULL. */
WF_API const struct wf_attention_map *wf_attention_find(const struct wf_attention_maps *maps, enum wf_map_kind kind);

/* A layer and a head, both counted from 1. */
struct wf_head {
    int64_t layer, head;
};
/* WF_ERR_ARGUMENT for a layer or head out of range (with the numbers of both). The functions below check this too, and refuse an empty map
 * or a missing token (WF_ERR_ARGUMENT) and a weight that is not finite (WF_ERR_NUMERIC). */
WF_API wf_status wf_attention_check_head(const struct wf_attention_maps *maps, const struct wf_attention_map *map, struct wf_head head,
                                         wf_error *error) WF_CHECKED;
/* Heat maps, drawn by gnuplot: `count` heads side by side, with titles, tokens on both axes and a colour bar; count 0: a grid of all heads,
 * one row for each layer, with token labels if they are legible. All maps share one scale, which leaves out the first row of causal maps:
 * it is 1 at its only key. The extension of `path` is the format, .svg or
 * .png. The file is written atomically. WF_ERR_ARGUMENT: another format, or more heads and tokens than fit into a PNG; WF_ERR_STATE:
 * gnuplot is not installed (names the package). */
WF_API wf_status wf_attention_draw(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *heads,
                                   int64_t count, const char *path, wf_error *error) WF_CHECKED;
/* {"kind": "cross", "query": [...], "key": [...], "weights": [layer][head][query][key]}; tokens as in the vocabulary. With a head
 * (NULL: all) only that one: "weights" is [1][1][query][key], and "layer" and "head" stand before it. */
WF_API wf_status wf_attention_save_json(const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                                        const struct wf_head *head, const char *path, wf_error *error) WF_CHECKED;

/* The initial selection of the page; its address overrides it. */
struct wf_attention_opening {
    const struct wf_attention_map *map; /* one of the maps; NULL: the last one (cross for a translation model) */
    struct wf_head head;                /* {0}: layer 1, head 1 */
};
/* One page with all kinds and heads, without references to the network or other files. opening NULL: the defaults. Two maps of one kind
 * are WF_ERR_ARGUMENT. */
WF_API wf_status wf_attention_save_html(const struct wf_attention_maps *maps, const struct wf_attention_opening *opening, const char *path,
                                        wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

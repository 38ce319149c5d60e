/* SPDX-License-Identifier: MIT */
/* Attention maps: what each token of a sentence looks at, in every layer and head, of a trained model in evaluation mode; as pictures
 * (SVG, PNG, drawn by gnuplot), as JSON, and as one HTML page to look around in.
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
    WF_MAP_ENCODER, /* an encoder's tokens at each other */
    WF_MAP_DECODER, /* a decoder's tokens at themselves and earlier ones */
    WF_MAP_CROSS    /* a decoder's tokens at the source's */
};
WF_API const char *wf_map_kind_name(enum wf_map_kind kind); /* "encoder", "decoder", "cross" */
WF_API bool wf_map_kind_parse(const char *name, enum wf_map_kind *out);

/* The maps of one kind. Rows are queries: each sums to 1. A model of your own needs no run: fill this by hand, all four lists of tokens
 * too, which may be the same one (docs/encoders.md does); what follows only reads it, and wf_attention_free is for what
 * wf_attention_of made. */
struct wf_attention_map {
    enum wf_map_kind kind;
    int64_t layers, heads, queries, keys;
    char **query, **key;             /* the tokens as the vocabulary spells them */
    char **query_label, **key_label; /* for people: valid UTF-8, nothing that is invisible; bytes of byte-level pieces as text, or as <E4>
                                        where they are no whole character; a space is U+2581 */
    float *weights;                  /* [layers][heads][queries][keys] */
};
/* All kinds that a model has: one for a language model or an encoder; encoder, decoder and cross, in this order, of a translation model. */
struct wf_attention_maps {
    struct wf_attention_map map[3];
    int count;
    char model[64]; /* the preset's name, for titles */
};
struct wf_attention_request {
    const char *text;   /* of a language model or an encoder */
    const char *source; /* of a translation model */
    const char *target; /* what the decoder is given; NULL: the model's own translation of the source */
};
/* Runs the model once. The tokens are those that it sees: with the marks of sentences, and of the target what the decoder is given, <s> and
 * the words. WF_ERR_ARGUMENT: a text where a source is wanted, or the other way round (says which option is meant), an empty text, one
 * that is longer than the model takes (both numbers), several lines for a translation model, a target for a model without a decoder.
 * What the vocabulary lacks is as in wf_tokenizer_encode. *maps is empty after an error. Freed with wf_attention_free. */
WF_API wf_status wf_attention_of(const struct wf_run *run, const struct wf_attention_request *request, struct wf_attention_maps *maps,
                                 wf_error *error) WF_CHECKED;
WF_API void wf_attention_free(struct wf_attention_maps *maps);
/* The map of a kind, NULL where the model has none. */
WF_API const struct wf_attention_map *wf_attention_find(const struct wf_attention_maps *maps, enum wf_map_kind kind);

/* A layer and a head, from 1, as the command counts them. */
struct wf_head {
    int64_t layer, head;
};
/* WF_ERR_ARGUMENT where the map lacks the layer or the head (says how many there are). What follows checks that itself, and refuses a map
 * that is empty or lacks a token (WF_ERR_ARGUMENT) or has a weight that is not finite (WF_ERR_NUMERIC). */
WF_API wf_status wf_attention_check_head(const struct wf_attention_maps *maps, const struct wf_attention_map *map, struct wf_head head,
                                         wf_error *error) WF_CHECKED;
/* Heat maps through gnuplot, which must be installed: one of `count` heads side by side, each with its title and the tokens on both
 * axes, and a colour bar; count 0: a grid of all, a row for each layer, whose tokens are named where they stay legible. One scale for all.
 * The path's end says the format: .svg or .png. The file is written whole or not at all. WF_ERR_ARGUMENT: another format, or more
 * heads and tokens than a PNG can show; WF_ERR_STATE: no gnuplot (says the package). */
WF_API wf_status wf_attention_draw(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *heads,
                                   int64_t count, const char *path, wf_error *error) WF_CHECKED;
/* {"kind": "cross", "query": [...], "key": [...], "weights": [layer][head][query][key]}; tokens as the vocabulary spells them. With a head
 * (NULL: all) that one alone: "weights" is [1][1][query][key], and "layer" and "head" stand before it. */
WF_API wf_status wf_attention_save_json(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *head,
                                        const char *path, wf_error *error) WF_CHECKED;

/* What the page shows first, unless its address says otherwise. */
struct wf_attention_opening {
    const struct wf_attention_map *map; /* one of the maps; NULL: the last, of a translation model cross */
    struct wf_head head;                /* {0}: the first of the first layer */
};
/* One page with all kinds and heads, which needs no network and no other file. opening NULL: all as its zero says. Two maps of one kind
 * are WF_ERR_ARGUMENT: they are two pages. */
WF_API wf_status wf_attention_save_html(const struct wf_attention_maps *maps, const struct wf_attention_opening *opening, const char *path,
                                        wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

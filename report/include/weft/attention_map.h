/* SPDX-License-Identifier: MIT */
/* Attention maps: the attention weights of a text in every layer and head of a trained model, without dropout. They can be saved as
 * pictures (SVG or PNG, drawn by gnuplot), as JSON, and as an interactive HTML page.
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
    WF_MAP_ENCODER, /* self-attention of an encoder */
    WF_MAP_DECODER, /* causal self-attention of a decoder. Keys after the query have the weight 0 and are shown as masked. If there are more
                       keys than queries, the first keys belong to tokens before the first query */
    WF_MAP_CROSS    /* attention from the decoder to the source */
};
WF_API const char *wf_map_kind_name(enum wf_map_kind kind); /* "encoder", "decoder", "cross" */

/* The maps of one kind of attention. In a map each row is a query, and the weights of a row sum to 1. A program can fill this struct
 * itself, for a model that is not a run (example: docs/encoders.md). All four lists of tokens are required, but they may be the same list.
 * The functions below only read the struct. Call wf_attention_free only for results of wf_attention_of. */
struct wf_attention_map {
    enum wf_map_kind kind;
    int64_t layers, heads, queries, keys;
    char **query;       /* [queries]: the tokens of the rows, as in the vocabulary */
    char **key;         /* [keys]: the tokens of the columns, as in the vocabulary */
    char **query_label; /* [queries]: the tokens of the rows for display, as valid UTF-8 without invisible characters. Byte-level tokens are
                           decoded; a byte of an incomplete character is shown in hexadecimal, such as <E4>. A space is U+2581 */
    char **key_label;   /* [keys]: the tokens of the columns for display, in the same form */
    float *weights;     /* [layers][heads][queries][keys] */
};
/* The maps of all kinds of attention that a model has. A language model or an encoder has one kind. A translation model has the kinds
 * encoder, decoder and cross, in this order. */
struct wf_attention_maps {
    struct wf_attention_map map[3];
    int count;
    char model[64];  /* name of the preset, for titles */
    int64_t unknown; /* number of unknown tokens in the given texts */
    int64_t tokens;  /* number of all tokens in the given texts */
};
struct wf_attention_request {
    const char *text;   /* the text for a language model or an encoder */
    const char *source; /* the source sentence for a translation model */
    const char *target; /* the sentence for the decoder of a translation model; NULL: the model's translation of the source */
};
/* Runs the model once and makes its maps. The tokens are the model's input, with special tokens; the input of a decoder of a translation
 * model is <s> and the target's tokens. Unknown words are handled as by wf_tokenizer_encode. WF_ERR_ARGUMENT: the request has a text for a
 * translation model, a source or target for another model, an empty text, a text longer than the context (the message gives both lengths),
 * or several lines for a translation model. After an error *maps is empty. Free *maps with wf_attention_free. */
WF_API wf_status wf_attention_of(const struct wf_run *run, const struct wf_attention_request *request, struct wf_attention_maps *maps,
                                 wf_error *error) WF_CHECKED;
WF_API void wf_attention_free(struct wf_attention_maps *maps); /* leaves *maps empty */
/* Returns the maps of a kind, or NULL if the model has no such attention. */
WF_API const struct wf_attention_map *wf_attention_find(const struct wf_attention_maps *maps, enum wf_map_kind kind);

/* A layer and a head, both counted from 1. */
struct wf_head {
    int64_t layer, head;
};
/* Checks that `map` has this layer and head. WF_ERR_ARGUMENT: it does not; the message gives the number of layers and heads. The functions
 * below check this too, with two more errors. WF_ERR_ARGUMENT: the map is empty or lacks a token. WF_ERR_NUMERIC: a weight is not
 * finite. */
WF_API wf_status wf_attention_check_head(const struct wf_attention_maps *maps, const struct wf_attention_map *map, struct wf_head head,
                                         wf_error *error) WF_CHECKED;
/* Draws heat maps with gnuplot. If `count` is above 0, the picture shows the given heads side by side, with titles, tokens on both axes and
 * a colour bar. If `count` is 0, it shows a grid of all heads with a row for each layer, and with labels of tokens if they are legible. All
 * heads share one colour scale. The scale ends at the largest weight, or if few rows come near that, at a smaller weight, since most rows
 * would look white otherwise. The first row of a causal map, which has weight 1 at its only key, does not count for this. The extension of
 * `path`, .svg or .png, determines the format. The file is written atomically. WF_ERR_ARGUMENT: another extension, or more heads and tokens
 * than fit into a PNG. WF_ERR_STATE: gnuplot failed or is not installed (the message names the package). */
WF_API wf_status wf_attention_draw(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *heads,
                                   int64_t count, const char *path, wf_error *error) WF_CHECKED;
/* Writes {"kind": "cross", "query": [...], "key": [...], "weights": [layer][head][query][key]}, with the tokens as in the vocabulary.
 * `head` is NULL for all heads. Otherwise only the weights of that head are written, as [1][1][query][key], and before them its numbers
 * "layer" and "head". */
WF_API wf_status wf_attention_save_json(const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                                        const struct wf_head *head, const char *path, wf_error *error) WF_CHECKED;

/* What the HTML page shows when it is opened. This does not apply if the page's address (URL) contains a selection, which the page writes
 * there whenever the user selects a map or a head. */
struct wf_attention_opening {
    const struct wf_attention_map *map; /* one of the maps; NULL: the last map (cross for a translation model) */
    struct wf_head head;                /* {0}: layer 1, head 1 */
};
/* Writes an HTML page with all kinds and heads. The page refers to no other file and to no network address. `opening` may be NULL for the
 * defaults. WF_ERR_ARGUMENT: two maps have the same kind, or one of the errors above. */
WF_API wf_status wf_attention_save_html(const struct wf_attention_maps *maps, const struct wf_attention_opening *opening, const char *path,
                                        wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif

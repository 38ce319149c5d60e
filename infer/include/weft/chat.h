/* SPDX-License-Identifier: MIT */
/* Conversations with a language model that was trained on the turns of a chat template.
 *
 *     struct wf_run run;
 *     if (wf_run_open(&run, folder, NULL, &error) == WF_OK) {
 *         wf_chat_template *form = wf_chat_template_load(folder, NULL, &error);
 *         wf_chat *chat = form ? wf_chat_new(&run, form, NULL, &error) : NULL;
 *         if (chat && wf_chat_answer(chat, "Hello!", 6, print, NULL, NULL, &error) == WF_OK)    print gets each piece of the answer
 *             ... */
#ifndef WEFT_CHAT_H
#define WEFT_CHAT_H

#include <weft/generate.h>
#include <weft/run.h>

WF_BEGIN_DECLS

/* --- chat templates ------------------------------------------------------------------------------------------------ */
/* A chat template puts the messages of a conversation between the special tokens and words that a model was trained with. In a Hugging Face
 * folder it is a program in Jinja. Weft runs no Jinja: it recognises the templates of the models below by their text, and renders them
 * itself, to the text and the ids that apply_chat_template(messages, add_generation_prompt=True) of transformers gives.
 *
 *     chatml                            SmolLM2, Qwen and many others, with the template's default system message
 *     llama2                            system message in <<SYS>> in the first user message
 *     llama3, llama3.1                  3.1 (also 3.2, 3.3): dates before the system message
 *     mistral-v0.1, mistral-v0, mistral-v1, mistral-v3, mistral-tekken      they differ in spaces and in the place of the system message
 *     gemma, gemma3                     system message in the first user message
 *     zephyr                            Zephyr, TinyLlama-Chat
 *     phi3, phi3-small, phi4, phi4-mini */
typedef struct wf_chat_template wf_chat_template;

enum wf_chat_role { WF_CHAT_SYSTEM, WF_CHAT_USER, WF_CHAT_ASSISTANT };
struct wf_chat_message {
    enum wf_chat_role role;
    const char *text; /* UTF-8; may be NULL if length is 0 */
    int64_t length;   /* in bytes */
};

/* The name of known template number `index`, from 0; NULL past the last one. */
WF_API const char *wf_chat_template_at(int index);
/* The template of this name. `bos` and `eos` are the tokens that begin and end a text; NULL stands for those of the models that the
 * template is from. The caller frees the result with wf_chat_template_free. Returns NULL on an error; WF_ERR_ARGUMENT: the name is not
 * known; the message lists the names. */
WF_API wf_chat_template *wf_chat_template_named(const char *name, const char *bos, const char *eos, wf_error *error) WF_CHECKED;
/* The template with the Jinja text jinja[length]. `bos` and `eos` are bos_token and eos_token of the tokenizer; NULL: it has none, and they
 * are rendered as nothing. `where` is the name of the file in messages. Returns NULL on an error; WF_ERR_FORMAT: the template is not one of
 * the known ones; the message says which one it is, if that is known. */
WF_API wf_chat_template *wf_chat_template_parse(const char *jinja, int64_t length, const char *bos, const char *eos, const char *where,
                                                wf_error *error) WF_CHECKED;
/* The template of a Hugging Face folder: chat_template.jinja, or "chat_template" in tokenizer_config.json (in a list the one named
 * "default"), or the known template `name` if that is not NULL, with the folder's tokens. WF_ERR_FORMAT: the folder has no template, or an
 * unknown one; WF_ERR_ARGUMENT: `name` is not known. WF_ERR_IO. */
WF_API wf_chat_template *wf_chat_template_load(const char *folder, const char *name, wf_error *error) WF_CHECKED;
WF_API void wf_chat_template_free(wf_chat_template *form); /* NULL is allowed */
WF_API const char *wf_chat_template_name(const wf_chat_template *form);
/* The system message that the template writes if the conversation has none, with a NUL at its end; NULL: it writes none. */
WF_API const char *wf_chat_template_system(const wf_chat_template *form);
/* The text of the token that ends an answer, such as "<|im_end|>"; empty if the folder does not name it. */
WF_API const char *wf_chat_template_end(const wf_chat_template *form);

/* Sets end[] to the ids that end an answer, each once, and returns their number: the run's end tokens, the template's, and the tokenizer's
 * end-of-text token. */
enum { WF_CHAT_ENDS = WF_RUN_ENDS + 2 };
WF_API int wf_chat_ends(const wf_chat_template *form, const struct wf_run *run, int32_t end[WF_CHAT_ENDS]);

/* Appends the text of a conversation to *out, with the words before the answer at its end. The messages are at most one system message, at
 * the beginning, and then those of user and assistant in turn, beginning and ending with the user's. WF_ERR_ARGUMENT: they are in another
 * order, or the template has no place for a system message. WF_ERR_FORMAT: a message is not UTF-8. */
WF_API wf_status wf_chat_render(const wf_chat_template *form, const struct wf_chat_message *messages, int64_t count, struct wf_string *out,
                                wf_error *error) WF_CHECKED;
/* Appends the ids of this text to *out. The special tokens of the template become their ids. In the messages the spelling of a special
 * token is plain text, so no message can end a turn or begin one. */
WF_API wf_status wf_chat_encode(const wf_chat_template *form, const wf_tokenizer *tokenizer, const struct wf_chat_message *messages,
                                int64_t count, struct wf_tokens *out, wf_error *error) WF_CHECKED;

/* --- conversations ------------------------------------------------------------------------------------------------- */
typedef struct wf_chat wf_chat;
struct wf_chat_options {
    const char *system; /* the system message; NULL: that of the template, if it has one */
    /* Sampling, the maximum number of tokens of an answer (max_tokens; 0 stands for 500) and no_cache. All other members are ignored. */
    struct wf_generate_options generate;
};
struct wf_chat_result {
    int64_t prompt;  /* number of ids before the answer */
    int64_t tokens;  /* number of ids of the answer */
    int64_t dropped; /* turns that were dropped before this answer, because the context has no room for them */
    /* WF_GENERATE_MAX_TOKENS also if the context is full */
    enum wf_generate_end end;
    bool full; /* the answer ended because the context is full */
};
/* Makes an empty conversation with the run's model. Run and template must outlive it. `options` may be NULL. The caller frees the
 * result with wf_chat_free. Returns NULL on an error: WF_ERR_MEMORY, or WF_ERR_ARGUMENT: the model is no language model, the vocabulary
 * lacks a token of the template, or the template has no place for a system message. */
WF_API wf_chat *wf_chat_new(const struct wf_run *run, const wf_chat_template *form, const struct wf_chat_options *options,
                            wf_error *error) WF_CHECKED;
WF_API void wf_chat_free(wf_chat *chat); /* NULL is allowed */

/* Adds the user's message text[length] and generates the answer, which ends at the template's end token, at an end token of the run, after
 * max_tokens ids, or when the context is full. `piece` is called with each piece of the answer (UTF-8, NUL-terminated, perhaps empty); if
 * it returns false, the answer ends. Message and answer, as far as it came, are then the newest turn of the conversation.
 *
 * If the conversation has no room in the context for an answer of max_tokens ids, or of a quarter of the context if that is less, whole
 * turns (a message with its answer) are dropped from its beginning; the system message stays. The last message is never dropped: its
 * answer takes the room that is left. WF_ERR_ARGUMENT: the message does not fit into the context even so. After an error the conversation
 * has the turns that it had before. *result may be NULL. */
WF_API wf_status wf_chat_answer(wf_chat *chat, const char *text, int64_t length, bool (*piece)(void *ctx, const char *text, int64_t length),
                                void *ctx, struct wf_chat_result *result, wf_error *error) WF_CHECKED;
/* Removes all turns. The system message stays. */
WF_API void wf_chat_reset(wf_chat *chat);
/* Replaces the system message from the next answer on; NULL: that of the template. WF_ERR_ARGUMENT: the template has no place for it. */
WF_API wf_status wf_chat_set_system(wf_chat *chat, const char *system, wf_error *error) WF_CHECKED;
/* The number of turns, and message number `index` of them, from 0: even ones are the user's. The text is valid until the conversation
 * changes. An index out of range gives an empty message. */
WF_API int64_t wf_chat_turns(const wf_chat *chat);
WF_API struct wf_chat_message wf_chat_message_at(const wf_chat *chat, int64_t index);

WF_END_DECLS

#endif

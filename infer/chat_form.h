/* SPDX-License-Identifier: MIT */
/* The known chat templates, and how one is recognised in a text in Jinja. */
#ifndef WEFT_INFER_CHAT_FORM_H
#define WEFT_INFER_CHAT_FORM_H

#include <weft/chat.h>
#include <weft/strings.h>

/* In the pieces below: the tokens that begin and end a text. */
#define BOS "\1"
#define EOS "\2"

enum { FORM_MARKS = 5 };
/* A known template. */
struct chat_form {
    const char *name;
    /* How it is recognised: all of these texts are in the template's canonical text (chat_jinja.c). The character ~ stands for "|trim" or
     * for nothing. `user` and `answer` are what the template writes for a message of the user and of the model. */
    const char *user, *answer, *marks[FORM_MARKS];
    const char *lacks[2]; /* texts that are not in it */
    /* What is written. The place of a system message: */
    enum chat_place {
        ALONE, /* it is a message like the others */
        FIRST, /* before the text of the first user message */
        LAST,  /* before the text of the last user message */
        NONE
    } place;
    const char *before[3], *after[3]; /* what stands before and after the text of a message, by enum wf_chat_role */
    const char *prompt;               /* what stands before the answer that is wanted */
    bool begins;                      /* BOS is the first token; in a template from a file, this follows from its text */
    bool trim[3];                     /* white space around the text is removed; from a file: the character ~ in `user` and `answer` */
    bool joint;                       /* system message and first user message are trimmed as one text */
    const char *header;               /* text that always precedes the system message, with a date after it; NULL: none */
    const char *end;                  /* the token that ends an answer */
    const char *tokens[3];            /* tokens that the vocabulary must have, apart from BOS and EOS */
    const char *bos, *eos;            /* defaults */
};
extern const struct chat_form chat_forms[];

/* A template: a form with what differs from template to template. */
struct wf_chat_template {
    const struct chat_form *form;
    char *bos, *eos;
    char *end;     /* the token that ends an answer, with BOS and EOS replaced */
    char *system;  /* the default system message; NULL: none */
    char *header;  /* form->header with the date; NULL: none */
    bool begins;   /* BOS is the first token */
    bool trim[3];  /* by role */
    bool last;     /* the system message is in the last user message, not in the first */
    bool thoughts; /* of an earlier answer only the text after the last </think> is kept */
    bool no_empty; /* an empty system message is left out */
};

/* chat_jinja.c: sets *out to the canonical form of a template in Jinja. Free it with wf_string_free. */
void chat_canonical(const char *jinja, int64_t length, struct wf_string *out);
/* Recognises a template: sets form, begins, trim, system, header, last, thoughts and no_empty of *out. WF_ERR_FORMAT: it is not known. */
wf_status chat_recognise(const char *jinja, int64_t length, const char *where, struct wf_chat_template *out, wf_error *error) WF_CHECKED;

#endif

/* SPDX-License-Identifier: MIT */
/* Reads an SVG as gnuplot writes it: the texts with their places. */
#ifndef TESTS_SVG_TEST_H
#define TESTS_SVG_TEST_H

#include "../io/io_test.h"

enum { MOST_TEXTS = 2000 };
/* A text of an SVG as gnuplot writes it, its place in pixels. */
struct text {
    double x, y, size;
    bool turned;
    char anchor[8], words[300];
};
static struct text texts[MOST_TEXTS];
static int text_count;
static double width, height;
static char *svg;

/* The five entities of XML. */
static inline void unescape(char *text)
{
    static const char *const from[] = {"&lt;", "&gt;", "&quot;", "&apos;", "&amp;"};
    char *out = text;
    for (char *at = text; *at; out++) {
        int i = 0;
        while (i < 5 && strncmp(at, from[i], strlen(from[i])) != 0)
            i++;
        *out = i < 5 ? "<>\"'&"[i] : *at;
        at += i < 5 ? strlen(from[i]) : 1;
    }
    *out = 0;
}

static inline void read_svg(const char *path)
{
    wf_free(svg);
    svg = load_file(path, NULL);
    text_count = 0;
    const char *size = strstr(svg, "<svg");
    ck_assert(size && (size = strstr(size, "width=")));
    ck_assert_int_eq(sscanf(size, "width=\"%lf\" height=\"%lf\"", &width, &height), 2);
    static const char opening[] = "<g transform=\"translate(";
    for (const char *at = svg; (at = strstr(at, opening)); at++) {
        struct text *t = &texts[text_count];
        ck_assert_int_lt(text_count, MOST_TEXTS);
        ck_assert_int_eq(sscanf(at + strlen(opening), "%lf,%lf", &t->x, &t->y), 2);
        const char *end = strstr(at, "</g>"), *begin = strstr(at, "<text>"), *stop = strstr(at, "</text>");
        ck_assert(end && begin && stop && stop < end);
        const char *turn = strstr(at, "rotate("), *font = strstr(at, "font-size=\""), *anchor = strstr(at, "text-anchor=\"");
        t->turned = turn && turn < begin && strncmp(turn, "rotate(-90", 10) == 0;
        ck_assert(font && anchor && anchor < begin && sscanf(font, "font-size=\"%lf", &t->size) == 1 &&
                  sscanf(anchor, "text-anchor=\"%7[a-z]", t->anchor) == 1);
        snprintf(t->words, sizeof t->words, "%.*s", (int)(stop - begin - 6), begin + 6);
        unescape(t->words);
        text_count++;
    }
}

static inline int count_of(const char *words)
{
    int count = 0;
    for (int i = 0; i < text_count; i++)
        count += strcmp(texts[i].words, words) == 0;
    return count;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The page of attention maps in a browser: opening it, and comparing what it shows with the maps. */
#ifndef TESTS_BROWSER_TEST_H
#define TESTS_BROWSER_TEST_H

#include "page_test.h"
#include "webdriver.h"

static inline void pause_page(int ms)
{
    char *script = wf_format("return new Promise(done => setTimeout(done, %d))", ms);
    json_decref(js(script));
    wf_free(script);
}

/* Loads a page anew, of a window of this size. */
static inline void open_page(const char *path, const char *hash, int width, int height)
{
    json_decref(wd("POST", "/se/log", json_pack("{s:s}", "type", "performance"))); /* what came before */
    resize(width, height);
    wd_do("/url", json_pack("{s:s}", "url", "about:blank"));
    point(0, 0, false);
    wd_do("/url", json_pack("{s:o}", "url", json_sprintf("file://%s%s", path, hash)));
}

static inline const char *save(const struct wf_attention_maps *maps, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", browser.folder, name); /* which the keeper removes */
    ck_ok(wf_attention_save_html(maps, NULL, path, error));
    return path;
}

/* Nothing complained, and nothing but the page itself was asked for. */
static inline void check_quiet(void)
{
    json_t *log = wd("POST", "/se/log", json_pack("{s:s}", "type", "browser")), *entry;
    size_t i;
    json_array_foreach(log, i, entry) ck_abort_msg("console: %s", json_string_value(json_object_get(entry, "message")));
    json_decref(log);
    int requests = 0;
    log = wd("POST", "/se/log", json_pack("{s:s}", "type", "performance"));
    json_array_foreach(log, i, entry)
    {
        json_t *event = json_loads(json_string_value(json_object_get(entry, "message")), 0, NULL);
        json_t *message = json_object_get(event, "message");
        if (!strcmp(json_string_value(json_object_get(message, "method")), "Network.requestWillBeSent")) {
            const char *url = json_string_value(json_object_get(json_object_get(json_object_get(message, "params"), "request"), "url"));
            ck_assert_msg(!strncmp(url, "file:///", 8) || !strncmp(url, "data:", 5) || !strncmp(url, "about:", 6), "the page asked for %s",
                          url);
            requests += !strncmp(url, "file:///", 8);
        }
        json_decref(event);
    }
    json_decref(log);
    ck_assert_int_ge(requests, 1);
}

/* Keeps a picture of the whole page, or of what the window shows. */
static inline void picture(const char *name)
{
    const char *folder = getenv("WEFT_SCREENSHOTS");
    if (!folder)
        return;
    json_t *answer =
        wd("POST", "/goog/cdp/execute", json_pack("{s:s, s:{s:b}}", "cmd", "Page.captureScreenshot", "params", "captureBeyondViewport", 1));
    char *path = wf_format("%s/%s.png", folder, name), *base64 = wf_format("%s.base64", path);
    const char *data = json_string_value(json_object_get(answer, "data"));
    ck_ok(wf_file_save(base64, data, (int64_t)strlen(data), error));
    char *command = wf_format("base64 -d '%s' > '%s' && rm '%s'", base64, path, base64);
    ck_assert_int_eq(system(command), 0);
    wf_free(command);
    wf_free(base64);
    wf_free(path);
    json_decref(answer);
}

/* The controls, the titles and the map of the page show this layer and head (both from 1). */
static inline void check_chosen(const struct wf_attention_map *m, int layer, int head)
{
    ck_assert_int_eq((int)js_number("return +document.getElementById('layer').value + 1"), layer);
    ck_assert_int_eq((int)js_number("return +document.getElementById('head').value + 1"), head);
    char *title = wf_format("layer %d, head %d", layer, head);
    ck_assert_msg(strstr(js_text("return document.getElementById('map-title').textContent"), title), "%s", title);
    ck_assert_msg(strstr(js_text("return document.title"), title), "%s", title);
    js_is("return document.querySelector('#thumbs [aria-checked=true]').getAttribute('aria-label')", title);
    ck_assert_int_eq(elements("#thumbs [aria-checked=true]"), 1);
    wf_free(title);
    /* the colour of the largest weight is the ramp's last, that of a small one is not */
    int64_t most = 0, size = m->queries * m->keys;
    const float *w = m->weights + ((layer - 1) * m->heads + head - 1) * size;
    for (int64_t i = 1; i < size; i++)
        most = w[i] > w[most] ? i : most;
    char *script = wf_format("const c = document.getElementById('canvas'); return c.width === %d && c.height === %d && "
                             "String(c.getContext('2d').getImageData(%d, %d, 1, 1).data.slice(0, 3)) === String(RAMPS[state.theme][255])",
                             (int)m->keys, (int)m->queries, (int)(most % m->keys), (int)(most / m->keys));
    ck_assert_msg(js_true(script), "the map of layer %d, head %d is not what is shown", layer, head);
    wf_free(script);
}

/* The panel's rows are the weights of a token to others (or of others to it), all that are not masked, in order. */
static inline void check_panel(const struct wf_attention_map *m, int layer, int head, bool of_query, int token, bool sorted)
{
    json_t *rows = js("return [...document.querySelectorAll('#list li')].filter(r => !r.hidden).map(r => [+r.children[0].textContent - 1, "
                      "r.children[1].textContent, +r.children[3].textContent, parseFloat(r.children[2].firstChild.style.width)])");
    int64_t all = of_query ? m->keys : m->queries, first = 0, end = all;
    if (m->kind == WF_MAP_DECODER && of_query)
        end = token + 1;
    if (m->kind == WF_MAP_DECODER && !of_query)
        first = token;
    ck_assert_int_eq((int64_t)json_array_size(rows), end - first);
    double most = 0, before = 2;
    for (int64_t i = first; i < end; i++)
        most = fmax(most, of_query ? weight_at(m, layer - 1, head - 1, token, i) : weight_at(m, layer - 1, head - 1, i, token));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        int64_t at = json_integer_value(json_array_get(row, 0));
        double weight = of_query ? weight_at(m, layer - 1, head - 1, token, at) : weight_at(m, layer - 1, head - 1, at, token);
        ck_assert_str_eq(json_string_value(json_array_get(row, 1)), of_query ? m->key_label[at] : m->query_label[at]);
        ck_assert_double_eq_tol(json_number_value(json_array_get(row, 2)), weight, 0.00051);
        ck_assert_double_eq_tol(json_number_value(json_array_get(row, 3)), 100 * weight / most, 0.05);
        if (sorted)
            ck_assert_double_le(weight, before + 1e-5);
        else
            ck_assert_int_eq(at, first + (int64_t)i);
        before = weight;
    }
    json_decref(rows);
}

/* The middle of a cell of the map. */
static inline void point_at_cell(int query, int key, bool click)
{
    char *script = wf_format(
        "const b = document.getElementById('cells').getBoundingClientRect(); return [b.x + %d.5 * cell, b.y + %d.5 * cell]", key, query);
    json_t *at = js(script);
    point(json_number_value(json_array_get(at, 0)), json_number_value(json_array_get(at, 1)), click);
    json_decref(at);
    wf_free(script);
}

#define panel_is(text) js_is("return document.getElementById('panel-title').textContent", text)

/* The least contrast between a text and its background (WCAG wants 4.5), over all elements with a text. */
static const char contrast[] =
    "const rgb = s => s.match(/[\\d.]+/g).map(Number), lum = c => { const [r, g, b] = c.map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + "
    "0.055) / 1.055) ** 2.4);"
    " return 0.2126 * r + 0.7152 * g + 0.0722 * b; };"
    "let least = 21;"
    "for (const e of document.body.querySelectorAll('*')) {"
    "  if (!e.checkVisibility({visibilityProperty: true}) || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || "
    "e.closest('script, noscript')) continue;"
    "  let on = e; while (rgb(getComputedStyle(on).backgroundColor)[3] === 0) on = on.parentElement;"
    "  const [a, b] = [getComputedStyle(e).color, getComputedStyle(on).backgroundColor].map(c => lum(rgb(c).slice(0, 3)));"
    "  least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));"
    "} return least;";

/* The number of visible labels of the axes that overlap (those of columns are slanted: their distance counts). */
static const char overlaps[] = "let n = 0; for (const id of ['rows', 'columns']) {"
                               "  const at = [...document.getElementById(id).children].filter(e => !e.matches('.on') && "
                               "getComputedStyle(e).visibility === 'visible').map(e => "
                               "parseFloat(id === 'rows' ? e.style.top : e.style.left));"
                               "  for (let i = 1; i < at.length; i++) n += at[i] - at[i - 1] < (id === 'rows' ? 14 : 17);"
                               "} return n;";

/* Labels that are cut although there is room, or that lie outside of the scrolled area of the map; each in bold, as when it is pointed at.
 * */
static const char cut_labels[] =
    "const scroll = document.getElementById('scroll'), left = scroll.getBoundingClientRect().left - scroll.scrollLeft, found = [];"
    "for (const label of document.querySelectorAll('.axis bdi')) {"
    "  const on = label.classList.contains('on'); label.classList.add('on');"
    "  const box = label.getBoundingClientRect(), most = label.dataset.key ? (innerWidth < 640 ? 80 : 130) : (innerWidth < 640 ? 88 : 150);"
    "  if ((label.scrollWidth > label.clientWidth && label.scrollWidth <= most) || box.right - left > scroll.scrollWidth + 0.01 || "
    "box.left < "
    "left - 0.01)"
    "    found.push(`${label.textContent} ${label.scrollWidth} in ${label.clientWidth}, ends at ${box.right - left} of "
    "${scroll.scrollWidth}`);"
    "  label.classList.toggle('on', on);"
    "} return found.join('; ');";

/* The page follows the system's scheme when it hears of it. */
static inline void check_theme(const char *theme)
{
    for (int i = 0; i < 100 && strcmp(js_text("return document.documentElement.dataset.theme"), theme) != 0; i++)
        pause_page(50);
    js_is("return document.documentElement.dataset.theme", theme);
}

/* The address follows a moment later. */
static inline void check_hash(const char *hash)
{
    for (int i = 0; i < 40 && strcmp(js_text("return location.hash"), hash) != 0; i++)
        pause_page(50);
    js_is("return location.hash", hash);
}

/* Seconds that the page's thread has worked. */
static inline double thread_time(void)
{
    json_t *answer = wd("POST", "/goog/cdp/execute", json_pack("{s:s, s:{}}", "cmd", "Performance.getMetrics", "params")), *one;
    double seconds = -1;
    size_t i;
    json_array_foreach(json_object_get(answer, "metrics"), i,
                       one) if (!strcmp(json_string_value(json_object_get(one, "name")), "ThreadTime")) seconds =
        json_number_value(json_object_get(one, "value"));
    json_decref(answer);
    ck_assert_double_ge(seconds, 0);
    return seconds;
}

/* Pictures of pages that others made, FILE.html:..., to look at. */
static inline void take_pictures(const char *list)
{
    static const char *const kinds[] = {"encoder", "decoder", "cross"}, *const schemes[] = {"light", "dark"};
    for (int page = 0; list && *list; page++) {
        char path[512];
        int length = (int)strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", length, list);
        list += length + (list[length] == ':');
        for (int i = 0; i < 6; i++) {
            char *hash = wf_format("#kind=%s&layer=1&head=2&query=5", kinds[i / 2]),
                 *name = wf_format("page%d-%s-%s", page, kinds[i / 2], schemes[i % 2]);
            emulate("", schemes[i % 2]);
            open_page(path, hash, 1440, 1000);
            if (!strcmp(js_text("return mapNow().kind"), kinds[i / 2]))
                picture(name);
            wf_free(hash);
            wf_free(name);
        }
        emulate("", "light");
    }
}

#endif

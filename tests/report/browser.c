/* SPDX-License-Identifier: MIT */
/* The page of attention maps in a real browser: pointer, keys, address, light and dark, 200 tokens, a narrow window. It is skipped where
 * there is none. WEFT_SCREENSHOTS=FOLDER keeps pictures; WEFT_PAGES=FILE.html:... takes pictures of further pages. */
#include "browser_test.h"

START_TEST(points)
{
    struct wf_attention_maps maps = small_maps();
    const struct wf_attention_map *m = &maps.map[0];
    open_page(save(&maps, "small.html"), "", 1280, 900);
    js_is("return document.title", "encoder-attention: Encoder self-attention, layer 1, head 1");
    check_chosen(m, 1, 1);
    ck_assert_int_eq(elements("#thumbs button"), 8);
    ck_assert_int_eq(elements("#rows .thin, #columns .thin"), 0);
    panel_is("Weights");
    /* a token of the rows */
    point_at("document.querySelectorAll('#rows bdi')[2]", false);
    panel_is("cat attends to");
    check_panel(m, 1, 1, true, 2, true);
    /* of the columns */
    point_at("document.querySelectorAll('#columns bdi')[6]", false);
    panel_is("mat is attended to by");
    check_panel(m, 1, 1, false, 6, true);
    /* a cell: its row, the other end marked, its weight in words */
    point_at_cell(3, 4, false);
    panel_is("sat attends to");
    js_is("return document.querySelector('#list li.on bdi').textContent", "on");
    char *words = wf_format("sat (4) attends to on (5): %.3f", weight_at(m, 0, 0, 3, 4));
    js_is("return document.getElementById('readout').textContent", words);
    wf_free(words);
    picture("small-hover-light");
    /* the text: what is looked at more is darker */
    point_at("document.querySelectorAll('#sentences bdi')[5]", false);
    panel_is("the attends to");
    ck_assert(
        js_true("const c = [...document.querySelectorAll('#sentences bdi')].map(b => b.style.background.match(/\\d+/g).reduce((a, x) => a "
                "+ +x, 0));"
                "return c.length === 12 && c[5] < c[4] && c[4] < c[2] && document.querySelector('#sentences .on').textContent === 'the'"));
    /* away from all of it */
    point(2, 2, false);
    panel_is("Weights");
    /* another head by its small map, another layer from the list, and the other order */
    point_at("document.querySelector('#thumbs [aria-label=\"layer 2, head 3\"]')", true);
    check_chosen(m, 2, 3);
    js_true("const s = document.getElementById('layer'); s.value = 0; s.dispatchEvent(new Event('change'))");
    check_chosen(m, 1, 3);
    /* a click holds a token */
    point_at("document.querySelectorAll('#rows bdi')[7]", true);
    point_at_cell(1, 2, false);
    panel_is(", attends to");
    check_panel(m, 1, 3, true, 7, true);
    point_at("document.getElementById('sort')", true);
    check_panel(m, 1, 3, true, 7, false);
    ck_assert(js_true("return document.getElementById('sort').getAttribute('aria-pressed') === 'false'"));
    point_at("document.querySelectorAll('#rows bdi')[7]", true);
    point(2, 2, false);
    panel_is("Weights");
    /* the scale of colours */
    js_true("const s = document.getElementById('scale'); s.value = 'one'; s.dispatchEvent(new Event('change'))");
    js_is("return document.getElementById('high').textContent", "1.000");
    js_true("const s = document.getElementById('scale'); s.value = 'root'; s.dispatchEvent(new Event('change'))");
    ck_assert(js_true("const w = weightsNow(), at = 3 * 12 + 4, most = largest(w), c = document.getElementById('canvas').getContext('2d');"
                      "return w[at] < 0.8 * most && String(c.getImageData(4, 3, 1, 1).data.slice(0, 3)) === "
                      "String(RAMPS.light[Math.round(255 * Math.sqrt(w[at] / most))])"));
    check_quiet();
    wf_attention_free(&maps);
}
END_TEST

START_TEST(shows_three_kinds)
{
    struct wf_attention_maps maps = translation_maps();
    open_page(save(&maps, "kinds.html"), "", 1280, 900);
    check_chosen(&maps.map[2], 1, 1); /* where nothing is said */
    ck_assert_int_eq(elements("#kinds button"), 3);
    static const char *const button[] = {"Encoder", "Decoder", "Cross"};
    for (int kind = 0; kind < 3; kind++) {
        const struct wf_attention_map *m = &maps.map[kind];
        char *find = wf_format("document.querySelectorAll('#kinds button')[%d]", kind), *text = wf_format("return %s.textContent", find);
        js_is(text, button[kind]);
        point_at(find, true);
        ck_assert_int_eq(elements("#kinds [aria-pressed=true]"), 1);
        ck_assert_int_eq(elements("#thumbs button"), 24);
        point_at("document.querySelector('#thumbs [aria-label=\"layer 3, head 2\"]')", true);
        check_chosen(m, 3, 2);
        point_at("document.querySelectorAll('#rows bdi')[4]", false);
        check_panel(m, 3, 2, true, 4, true);
        point_at("document.querySelectorAll('#columns bdi')[3]", false);
        check_panel(m, 3, 2, false, 3, true);
        ck_assert_int_eq(elements("#sentences bdi"), kind < 2 ? (int)m->queries : 19);
        ck_assert(js_true("return document.getElementById('hatch-name').hidden") == (kind != 1));
        wf_free(find);
        wf_free(text);
    }
    /* cells of later tokens are empty, not a small weight */
    point_at("document.querySelectorAll('#kinds button')[1]", true);
    ck_assert(js_true("const p = (x, y) => document.getElementById('canvas').getContext('2d').getImageData(x, y, 1, 1).data[3];"
                      "return p(5, 4) === 0 && p(4, 4) === 255 && p(0, 8) === 255"));
    /* the scale ends at the largest weight of the rows after the first, which is 1 at its only cell */
    ck_assert(js_true("const w = weightsNow(), most = largest(w.subarray(9)), c = document.getElementById('canvas').getContext('2d');"
                      "const of = (row, column) => String(c.getImageData(column, row, 1, 1).data.slice(0, 3));"
                      "return most < data.one && document.getElementById('high').textContent === '\\u2265 ' + number(most) && "
                      "of(0, 0) === String(RAMPS.light[255]) && of(5, 3) === String(RAMPS.light[Math.round(255 * w[48] / most)])"));
    point_at_cell(2, 6, false);
    js_is("return document.getElementById('readout').textContent", "▁man (3) attends to ▁stares (7): later, masked");
    js_is("return document.getElementById('panel-note').textContent", "Token 3 of 9; 6 later masked");
    /* of two sentences the text shades the other one */
    point_at("document.querySelectorAll('#kinds button')[2]", true);
    point_at("document.querySelectorAll('#sentences bdi')[12]", false);
    check_panel(&maps.map[2], 3, 2, false, 3, true);
    ck_assert_int_eq((int)js_number("return [...document.querySelectorAll('#sentences bdi')].filter(b => b.style.background).length"), 9);
    picture("kinds-cross-light");
    check_quiet();
    wf_attention_free(&maps);
}
END_TEST

START_TEST(takes_keys)
{
    struct wf_attention_maps maps = translation_maps();
    const struct wf_attention_map *m = &maps.map[0];
    char *path = wf_strdup(save(&maps, "keys.html"));
    open_page(path, "#kind=encoder", 1280, 900);
    /* with Tab one comes to everything, and sees where one is */
    char seen[2000] = "";
    for (int i = 0; i < 14; i++) {
        press(KEY_TAB);
        ck_assert(js_true("return getComputedStyle(document.activeElement).outlineStyle === 'solid'"));
        strcat(
            strcat(seen,
                   js_text("return document.activeElement.id || document.activeElement.textContent || document.activeElement.ariaLabel")),
            " ");
        if (!strcmp(js_text("return document.activeElement.id"), "list"))
            break;
    }
    ck_assert_str_eq(seen, "theme help-open Encoder Decoder Cross layer head scale layer 1, head 1 zoom-out zoom-in scroll sort list ");
    js_true("document.getElementById('scroll').focus()");
    press(KEY_DOWN, KEY_DOWN, KEY_DOWN);
    check_panel(m, 1, 1, true, 2, true);
    check_hash("#kind=encoder&layer=1&head=1&query=3");
    ck_assert_msg(strstr(js_text("return document.getElementById('live').textContent"), "▁mit (3) attends to: ▁mit "), "%s",
                  js_text("return document.getElementById('live').textContent"));
    press(KEY_UP, KEY_RIGHT, KEY_RIGHT, KEY_LEFT, "]", "]", "[");
    check_chosen(m, 2, 2);
    check_panel(m, 2, 2, true, 1, true);
    press(KEY_PAGE_DOWN);
    press(KEY_PAGE_DOWN); /* there are but three */
    press("7");
    check_chosen(m, 3, 7);
    press("9"); /* there is none */
    check_chosen(m, 3, 7);
    press(KEY_END, "s");
    check_panel(m, 3, 7, true, 9, false);
    press(KEY_HOME, "x");
    check_panel(m, 3, 7, false, 0, false);
    check_hash("#kind=encoder&layer=3&head=7&key=1");
    press(KEY_ESCAPE);
    panel_is("Weights");
    check_hash("#kind=encoder&layer=3&head=7");
    press(KEY_DOWN);
    press("k"); /* the token that was held is of the other text */
    check_chosen(&maps.map[1], 3, 7);
    panel_is("Weights");
    /* larger cells */
    double before = js_number("return cell");
    press("+");
    ck_assert_double_gt(js_number("return cell"), before);
    press("-");
    ck_assert_double_eq(js_number("return cell"), before);
    /* in the grid of heads the arrows move, and the focus with them */
    js_true("document.querySelector('#thumbs [tabindex=\"0\"]').focus()");
    press(KEY_UP, KEY_LEFT);
    check_chosen(&maps.map[1], 2, 6);
    js_is("return document.activeElement.ariaLabel", "layer 2, head 6");
    /* the list of keys */
    press("?");
    ck_assert(js_true("return document.getElementById('help').open"));
    press(KEY_RIGHT); /* goes nowhere now */
    press(KEY_ESCAPE);
    ck_assert(!js_true("return document.getElementById('help').open"));
    check_chosen(&maps.map[1], 2, 6);
    /* so are those of the browser, and of a page that scrolls */
    js_true("document.activeElement.blur(); document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 's', ctrlKey: true, bubbles: "
            "true}))");
    press(KEY_END);
    panel_is("Weights");
    ck_assert(js_true("return document.getElementById('sort').getAttribute('aria-pressed') === 'false'"));
    /* a list's keys are its own */
    js_true("document.getElementById('head').focus()");
    press("]");
    check_chosen(&maps.map[1], 2, 6);
    /* the address opens the same again, and a wrong one what is nearest */
    open_page(path, "#kind=cross&layer=3&head=4&query=6", 1280, 900);
    check_chosen(&maps.map[2], 3, 4);
    check_panel(&maps.map[2], 3, 4, true, 5, true);
    js_true("location.hash = '#kind=decoder&layer=99&head=-3&key=four'");
    for (int i = 0; i < 40 && js_true("return mapNow().kind !== 'decoder'"); i++)
        pause_page(50);
    check_chosen(&maps.map[1], 3, 1);
    check_panel(&maps.map[1], 3, 1, false, 0, true);
    check_quiet();
    wf_free(path);
    wf_attention_free(&maps);
}
END_TEST

START_TEST(opens_where_it_was_made_to)
{
    struct wf_attention_maps maps = translation_maps();
    const struct wf_attention_opening at = {.map = &maps.map[1], .head = {2, 5}};
    char *path = wf_format("%s/opening.html", browser.folder);
    ck_ok(wf_attention_save_html(&maps, &at, path, error));
    open_page(path, "", 1280, 900);
    js_is("return mapNow().kind", "decoder");
    check_chosen(&maps.map[1], 2, 5);
    /* the address wins; what it leaves out is as the page was made */
    open_page(path, "#kind=cross&layer=3&head=1", 1280, 900);
    js_is("return mapNow().kind", "cross");
    check_chosen(&maps.map[2], 3, 1);
    open_page(path, "#head=7&query=3", 1280, 900);
    js_is("return mapNow().kind", "decoder");
    check_chosen(&maps.map[1], 2, 7);
    check_panel(&maps.map[1], 2, 7, true, 2, true);
    check_quiet();
    wf_free(path);
    wf_attention_free(&maps);
}
END_TEST

START_TEST(is_light_and_dark)
{
    struct wf_attention_maps maps = small_maps();
    emulate("", "dark");
    open_page(save(&maps, "dark.html"), "#kind=encoder&layer=2&head=4&query=5", 1280, 900);
    check_chosen(&maps.map[0], 2, 4);
    check_theme("dark");
    ck_assert_double_lt(js_number("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, x) => a + +x, 0)"),
                        100);
    ck_assert_double_ge(js_number(contrast), 4.5);
    picture("small-dark");
    emulate("", "light"); /* the system changes its mind */
    check_theme("light");
    check_chosen(&maps.map[0], 2, 4);
    ck_assert_double_gt(js_number("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, x) => a + +x, 0)"),
                        650);
    ck_assert_double_ge(js_number(contrast), 4.5);
    picture("small-light");
    point_at("document.getElementById('theme')", true);
    check_theme("dark");
    check_chosen(&maps.map[0], 2, 4);
    js_true("dispatchEvent(new Event('beforeprint'))"); /* on paper it is light */
    check_theme("light");
    js_true("dispatchEvent(new Event('afterprint'))");
    check_theme("dark");
    check_quiet();
    wf_attention_free(&maps);
}
END_TEST

START_TEST(holds_200_tokens)
{
    struct wf_attention_maps maps = large_maps();
    const struct wf_attention_map *m = &maps.map[0];
    open_page(save(&maps, "large.html"), "#kind=encoder&layer=2&head=3&query=120", 1280, 900);
    check_chosen(m, 2, 3);
    ck_assert_int_eq(elements("#rows bdi"), 200);
    ck_assert_double_eq(js_number(overlaps), 0);
    ck_assert(js_true("return document.documentElement.scrollWidth <= innerWidth"));
    /* small maps lose no line: each has its largest weight */
    ck_assert(
        js_true("return [...document.querySelectorAll('#thumbs canvas')].every(c => { const d = c.getContext('2d').getImageData(0, 0, "
                "64, 64).data; for (let i = 0; i < d.length; i += 4) if (String(d.slice(i, i + 3)) === String(RAMPS.light[255])) "
                "return true; })"));
    /* tokens are text: no element in them, and what cannot be seen by its code */
    ck_assert_int_eq((int)js_number("return document.querySelectorAll('bdi *').length + document.images.length"), 0);
    ck_assert_int_eq((int)js_number("return document.scripts.length"), 3);
    js_is("return document.querySelectorAll('#rows bdi')[0].textContent", nasty_token[0]);
    js_is("return document.querySelectorAll('#rows bdi')[9].textContent", "U+2028");
    js_is("return document.querySelectorAll('#rows bdi')[11].textContent", "U+202Eevil");
    js_is("return document.querySelectorAll('#rows bdi')[12].textContent", "\u25CC\u0301");
    js_is("return document.querySelectorAll('#rows bdi')[16].textContent", "\u2205");
    js_is("return document.title", "scripts & <b>more</b>: Encoder self-attention, layer 2, head 3");
    picture("large-light");
    /* a cell of few pixels is found; its label is shown though there is no room for all */
    press(KEY_ESCAPE);
    point_at_cell(61, 100, false);
    char *words = wf_format("%.3f", weight_at(m, 1, 2, 61, 100));
    js_is("return document.querySelector('#readout b').textContent", words);
    wf_free(words);
    ck_assert(js_true("return getComputedStyle(document.querySelectorAll('#rows bdi')[61]).visibility === 'visible'"));
    ck_assert(js_true("return document.querySelectorAll('#rows .thin').length > 50"));
    js_is(cut_labels, "");
    /* it stays quick: 30 tokens and 10 heads on, each with its layout (of one thread's own time, whatever else the machine does) */
    double before = thread_time();
    js_true("const key = k => document.getElementById('scroll').dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true}));"
            "for (let i = 0; i < 30; i++) { key('ArrowDown'); document.body.offsetHeight; }"
            "for (let i = 0; i < 10; i++) { key(i % 8 === 7 ? ']' : 'ArrowRight'); document.body.offsetHeight; }");
    double ms = (thread_time() - before) * 1000 / 40;
    ck_assert_msg(ms > 0 && ms < 50, "a step takes %.1f ms", ms);
    /* the held token is scrolled into sight when the cells are large */
    js_true("document.getElementById('scroll').focus({preventScroll: true})");
    for (int i = 0; i < 4; i++)
        press("+", KEY_END);
    ck_assert(js_true(
        "const b = document.querySelector('#mark').getBoundingClientRect(), s = document.getElementById('scroll').getBoundingClientRect();"
        "return b.top >= s.top && b.bottom <= s.bottom + 1"));
    ck_assert_double_eq(js_number(overlaps), 0);
    emulate("", "dark");
    check_theme("dark");
    picture("large-zoomed-dark");
    emulate("", "light");
    check_quiet();
    wf_attention_free(&maps);
}
END_TEST

/* The text's lines begin where most of their letters are read from. */
START_TEST(reads_from_both_sides)
{
    static const char *const english[] = {"The", "word", "ש", "##ל", "##ו", "##ם", "greets"},
                             *const hebrew[] = {"שלום", "עולם", "ok", "<s>", ".", "12", ","}, *const none[] = {".", "12"};
    struct wf_attention_maps maps = {.model = "m"};
    add_map(&maps, WF_MAP_ENCODER, 1, 1, none, 2, none, 2);
    add_map(&maps, WF_MAP_CROSS, 1, 1, english, 7, hebrew, 7);
    open_page(save(&maps, "sides.html"), "", 1280, 900);
    js_is("return [...document.querySelectorAll('#sentences p[dir]')].map(p => p.dir).join()", "ltr,rtl");
    press("k");
    js_is("return [...document.querySelectorAll('#sentences p[dir]')].map(p => p.dir).join()", "ltr");
    check_quiet();
    wf_attention_free(&maps);
}
END_TEST

START_TEST(fits_narrow_windows)
{
    struct wf_attention_maps maps = translation_maps();
    char *path = wf_strdup(save(&maps, "narrow.html"));
    static const int widths[] = {360, 400, 760, 1000, 1900};
    for (int i = 0; i < 5; i++) {
        open_page(path, "#kind=cross&layer=2&head=3&query=4", widths[i], 800);
        ck_assert_msg(js_true("return document.documentElement.scrollWidth <= innerWidth"), "at %d the page scrolls sideways", widths[i]);
        ck_assert_double_eq(js_number(overlaps), 0);
        ck_assert_double_eq(js_number("return document.querySelectorAll('.axis .thin').length"), 0);
        js_is(cut_labels, "");
        js_is("const s = document.getElementById('scroll'); return s.scrollWidth <= s.clientWidth || cell === 18 ? '' : "
              "`${s.scrollWidth} of ${s.clientWidth}, cells of ${cell}`",
              "");
        ck_assert_msg(js_true("const all = [...document.querySelectorAll('.card, header')].map(c => c.getBoundingClientRect());"
                              "return all.every((a, i) => all.every((b, k) => i >= k || a.right <= b.left || b.right <= a.left || a.bottom "
                              "<= b.top || b.bottom <= a.top))"),
                      "at %d parts lie over each other", widths[i]);
        char *name = wf_format("width-%d", widths[i]);
        if (getenv("WEFT_SCREENSHOTS"))
            resize(widths[i], (int)js_number("return Math.max(document.documentElement.scrollHeight, 800)"));
        picture(name);
        wf_free(name);
    }
    check_quiet();
    wf_free(path);
    wf_attention_free(&maps);
}
END_TEST

START_TEST(takes_pictures)
{
    take_pictures(getenv("WEFT_PAGES"));
}
END_TEST

int main(void)
{
    if (!browser_start())
        return 77; /* Meson: skipped */
    if (getenv("WEFT_SCREENSHOTS"))
        cdp("Emulation.setScrollbarsHidden", json_pack("{s:b}", "hidden", 1));
    cdp("Network.enable", json_object());
    cdp("Performance.enable", json_pack("{s:s}", "timeDomain", "threadTicks"));
    cdp("Network.emulateNetworkConditions",
        json_pack("{s:b, s:i, s:i, s:i}", "offline", 1, "latency", 0, "downloadThroughput", -1, "uploadThroughput", -1));
    const TTest *const tests[] = {points,
                                  takes_keys, /* these two are the sample */
                                  shows_three_kinds,
                                  opens_where_it_was_made_to,
                                  is_light_and_dark,
                                  holds_200_tokens,
                                  fits_narrow_windows,
                                  reads_from_both_sides,
                                  takes_pictures};
    const bool pictures = getenv("WEFT_SCREENSHOTS") || getenv("WEFT_PAGES");
    int status = run_tests("browser", tests, sampled() && !pictures ? 2 : (int)(sizeof tests / sizeof *tests));
    browser_stop();
    return status;
}

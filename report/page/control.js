// SPDX-License-Identifier: MIT
// What a pointer, a key or the address chooses.
function say(text) {
    $('live').textContent = text;
}

// For a screen reader: the held token and what it looks at most.
function sayToken() {
    const focus = focusNow(), map = mapNow();
    if (!focus)
        return;
    const top = byWeight(weightsAt(focus.axis, focus.token)).slice(0, 3)
        .map(one => `${visible(map[otherAxis(focus.axis)][one.at])} ${number(one.weight)}`);
    const verb = focus.axis === 'query' ? 'looks at' : 'is looked at by';
    say(`${visible(map[focus.axis][focus.token])} (${focus.token + 1}) ${verb}: ${top.join(', ')}`);
}

// A moment later, for browsers allow some hundred changes in ten seconds, and a key that is held down makes more.
let addressTimer = 0;
function writeAddress() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
        const parts = new URLSearchParams({kind: mapNow().kind, layer: state.layer + 1, head: state.head + 1});
        if (state.pin)
            parts.set(state.pin.axis, state.pin.token + 1);
        history.replaceState(null, '', '#' + parts);
    }, 150);
}

// From 1; what the page lacks is read as the nearest that it has, and what is not said as the page was made to open.
function readAddress() {
    clearTimeout(addressTimer);
    const parts = new URLSearchParams(location.hash.slice(1)), find = kind => data.maps.findIndex(one => one.kind === kind);
    const count = (name, most) => Math.min(Math.max(parseInt(parts.get(name) ?? data.opening[name], 10) || 1, 1), most) - 1;
    state.map = find(parts.get('kind'));
    if (state.map < 0)
        state.map = find(data.opening.kind);
    state.layer = count('layer', mapNow().layers);
    state.head = count('head', mapNow().heads);
    state.pin = null;
    for (const axis of ['query', 'key'])
        if (parts.has(axis))
            state.pin = {axis, token: count(axis, mapNow()[axis].length)};
}

function drawAll() {
    buildKind();
    layout();
    drawHead();
    drawFocus();
}

function chooseKind(at) {
    state.map = at;
    state.layer = Math.min(state.layer, mapNow().layers - 1);
    state.head = Math.min(state.head, mapNow().heads - 1);
    state.pin = state.hover = null;
    drawAll();
    writeAddress();
    say($('map-title').textContent);
}

function chooseHead(layer, head) {
    const map = mapNow();
    state.layer = Math.min(Math.max(layer, 0), map.layers - 1);
    state.head = Math.min(Math.max(head, 0), map.heads - 1);
    drawHead();
    drawFocus();
    writeAddress();
    say($('map-title').textContent);
}

function choosePin(pin) {
    state.pin = pin;
    drawFocus();
    writeAddress();
    if (pin)
        reveal(pin);
    if (pin)
        sayToken();
    else
        say('No token is held');
}

// Scrolls the held token's row or column into what is seen of the map.
function reveal({axis, token}) {
    const scroll = $('scroll'), cells = $('cells'), down = axis === 'query', side = down ? 'scrollTop' : 'scrollLeft';
    const room = down ? scroll.clientHeight - cells.offsetTop : scroll.clientWidth - cells.offsetLeft;
    scroll[side] = Math.min(Math.max(scroll[side], (token + 1) * cell + 3 - room), token * cell);
}

function chooseHover(hover) {
    if (hover?.query !== state.hover?.query || hover?.key !== state.hover?.key) {
        state.hover = hover;
        drawFocus();
    }
}

function chooseTheme(theme) {
    state.theme = document.documentElement.dataset.theme = theme;
    $('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
    $('theme').title = `Change to ${theme === 'dark' ? 'light' : 'dark'} colours`;
}

function repaint() {
    paintThumbs();
    drawHead();
    drawFocus();
}

function chooseSort(sorted) {
    state.sorted = sorted;
    $('sort').setAttribute('aria-pressed', sorted);
    drawFocus();
}

function chooseZoom(factor) {
    state.zoom = Math.min(Math.max(state.zoom * factor, 1), 8);
    layout();
    drawFocus();
    if (state.pin)
        reveal(state.pin);
}

// The token or the cell at an event, of the map, its axes or the text.
function placeOf(event) {
    const token = event.target.closest('.axis bdi, #sentences bdi');
    if (token)
        return {query: +(token.dataset.query ?? -1), key: +(token.dataset.key ?? -1)};
    if (!event.target.closest('#cells'))
        return null;
    const box = $('cells').getBoundingClientRect(), map = mapNow();
    const at = (offset, count) => Math.min(Math.max(Math.floor(offset / cell), 0), count - 1);
    return {query: at(event.clientY - box.top, map.query.length), key: at(event.clientX - box.left, map.key.length)};
}

function hold(event) {
    const place = placeOf(event);
    if (!place)
        return;
    const pin = place.query >= 0 ? {axis: 'query', token: place.query} : {axis: 'key', token: place.key};
    choosePin(state.pin?.axis === pin.axis && state.pin.token === pin.token ? null : pin);
}

// Holds the token whose place is `at(held place, last place)`; -1 stands for none held.
function step(at) {
    const axis = state.pin?.axis ?? 'query', last = mapNow()[axis].length - 1;
    state.hover = null;
    choosePin({axis, token: Math.min(Math.max(at(state.pin?.token ?? -1, last), 0), last)});
}

function turn() {
    const map = mapNow(), axis = otherAxis(state.pin?.axis ?? 'key');
    choosePin({axis, token: Math.min(state.pin?.token ?? 0, map[axis].length - 1)});
}

const KEYS = {
    ArrowUp: () => step((held, last) => (held < 0 ? last : held - 1)),
    ArrowDown: () => step(held => held + 1),
    ArrowLeft: () => chooseHead(state.layer, state.head - 1),
    ArrowRight: () => chooseHead(state.layer, state.head + 1),
    '[': () => chooseHead(state.layer - 1, state.head),
    ']': () => chooseHead(state.layer + 1, state.head),
    PageUp: () => chooseHead(state.layer - 1, state.head),
    PageDown: () => chooseHead(state.layer + 1, state.head),
    Home: () => step(() => 0),
    End: () => step((held, last) => last),
    Escape: () => choosePin(null),
    k: () => chooseKind((state.map + 1) % data.maps.length),
    x: turn,
    s: () => chooseSort(!state.sorted),
    '+': () => chooseZoom(1.5),
    '-': () => chooseZoom(1 / 1.5),
    '?': () => $('help').showModal(),
};
const HEAD_KEYS = {
    ArrowUp: KEYS['['], ArrowDown: KEYS[']'], Home: () => chooseHead(state.layer, 0), End: () => chooseHead(state.layer, Infinity),
};

function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $('help').open)
        return;
    const node = event.target, heads = node.closest('#thumbs'), free = node === document.body;
    if (!heads && !free && !node.closest('#scroll') && event.key !== 'Escape' && event.key !== '?')
        return; // a list, a button or the panel has the focus: its keys are its own
    if (free && ['Home', 'End', 'PageUp', 'PageDown'].includes(event.key))
        return; // they scroll the page
    let action = (heads && HEAD_KEYS[event.key]) || KEYS[event.key];
    if (/^[1-9]$/.test(event.key) && event.key <= mapNow().heads)
        action = () => chooseHead(state.layer, event.key - 1);
    if (!action)
        return;
    event.preventDefault();
    action();
    if (heads)
        heads.querySelector('[aria-checked="true"]').focus();
}

function start() {
    const dark = matchMedia('(prefers-color-scheme: dark)'), kinds = $('kinds');
    data.maps.forEach((map, at) => {
        const button = make('button', kinds, BUTTONS[map.kind]);
        button.type = 'button';
        button.addEventListener('click', () => chooseKind(at));
    });
    $('layer').addEventListener('change', event => chooseHead(+event.target.value, state.head));
    $('head').addEventListener('change', event => chooseHead(state.layer, +event.target.value));
    $('scale').addEventListener('change', event => {
        state.scale = event.target.value;
        repaint();
    });
    $('controls').addEventListener('submit', event => event.preventDefault());
    $('thumbs').addEventListener('click', event => {
        const button = event.target.closest('button');
        if (button)
            chooseHead(+button.dataset.layer, +button.dataset.head);
    });
    for (const box of [$('scroll'), $('sentences')]) {
        box.addEventListener('pointermove', event => chooseHover(placeOf(event)));
        box.addEventListener('pointerleave', () => chooseHover(null));
        box.addEventListener('click', hold);
    }
    $('sort').addEventListener('click', () => chooseSort(!state.sorted));
    $('zoom-in').addEventListener('click', () => chooseZoom(1.5));
    $('zoom-out').addEventListener('click', () => chooseZoom(1 / 1.5));
    $('help-open').addEventListener('click', () => $('help').showModal());
    $('theme').addEventListener('click', () => {
        chooseTheme(state.theme === 'dark' ? 'light' : 'dark');
        repaint();
    });
    const follow = theme => {
        chooseTheme(theme);
        repaint();
    };
    dark.addEventListener('change', () => follow(dark.matches ? 'dark' : 'light'));
    let before = 'light'; // paper is light
    addEventListener('beforeprint', () => {
        before = state.theme;
        follow('light');
    });
    addEventListener('afterprint', () => follow(before));
    addEventListener('keydown', onKey);
    addEventListener('hashchange', () => {
        readAddress();
        drawAll();
    });
    addEventListener('resize', () => {
        layout();
        drawFocus();
    });
    chooseTheme(dark.matches ? 'dark' : 'light');
    readAddress();
    drawAll();
}
start();

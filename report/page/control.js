// SPDX-License-Identifier: MIT
// Changes the selection when the user moves the pointer, presses a key or changes the address.
function say(text) {
    $('live').textContent = text;
}

// Tells a screen reader the pinned token and the three tokens with the largest weights.
function sayToken() {
    const focus = focusNow(), map = mapNow();
    if (!focus)
        return;
    const top = byWeight(weightsAt(focus.axis, focus.token)).slice(0, 3)
        .map(one => `${visible(map[otherAxis(focus.axis)][one.at])} ${number(one.weight)}`);
    const verb = focus.axis === 'query' ? 'attends to' : 'is attended to by';
    say(`${visible(map[focus.axis][focus.token])} (${focus.token + 1}) ${verb}: ${top.join(', ')}`);
}

// Writes the selection into the address after a delay. Browsers allow only some hundred changes in ten seconds, and a key that is held down
// would cause more.
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

// Reads the selection from the address, where numbers count from 1. A number out of range becomes the nearest valid one. A missing part
// takes the initial selection of the page.
function readAddress() {
    clearTimeout(addressTimer);
    const parts = new URLSearchParams(location.hash.slice(1)), find = kind => data.maps.findIndex(one => one.kind === kind);
    const count = (name, most) => clamp(parseInt(parts.get(name) ?? data.opening[name], 10) || 1, 1, most) - 1;
    state.map = find(find(parts.get('kind')) < 0 ? data.opening.kind : parts.get('kind'));
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
    repaint();
}

function chooseHead(layer, head) {
    state.layer = clamp(layer, 0, mapNow().layers - 1);
    state.head = clamp(head, 0, mapNow().heads - 1);
    drawHead();
    drawFocus();
    writeAddress();
    say($('map-title').textContent);
}

function chooseKind(at) {
    state.map = at;
    state.pin = state.hover = null;
    buildKind();
    layout();
    paintThumbs();
    chooseHead(state.layer, state.head);
}

function choosePin(pin) {
    state.pin = pin;
    drawFocus();
    writeAddress();
    if (!pin)
        return say('No token is pinned');
    reveal(pin);
    sayToken();
}

// Scrolls the map so that the row or column of the pinned token is visible.
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
    repaint();
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
    state.zoom = clamp(state.zoom * factor, 1, 8);
    layout();
    drawFocus();
    if (state.pin)
        reveal(state.pin);
}

// The token or the cell of the map, its axes or the text where an event happened; null: none.
function placeOf(event) {
    const token = event.target.closest('.axis bdi, #sentences bdi');
    if (token)
        return {query: +(token.dataset.query ?? -1), key: +(token.dataset.key ?? -1)};
    if (!event.target.closest('#cells'))
        return null;
    const box = $('cells').getBoundingClientRect(), map = mapNow();
    const at = (offset, count) => clamp(Math.floor(offset / cell), 0, count - 1);
    return {query: at(event.clientY - box.top, map.query.length), key: at(event.clientX - box.left, map.key.length)};
}

function hold(event) {
    const place = placeOf(event);
    if (!place)
        return;
    const pin = place.query >= 0 ? {axis: 'query', token: place.query} : {axis: 'key', token: place.key};
    choosePin(state.pin?.axis === pin.axis && state.pin.token === pin.token ? null : pin);
}

// Pins the token with the index at(index of the pinned token, last index). The first argument is -1 if no token is pinned.
function step(at) {
    const axis = state.pin?.axis ?? 'query', last = mapNow()[axis].length - 1;
    state.hover = null;
    choosePin({axis, token: clamp(at(state.pin?.token ?? -1, last), 0, last)});
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
        return; // a list, a button or the panel has the focus and handles the key itself
    if (free && ['Home', 'End', 'PageUp', 'PageDown'].includes(event.key))
        return; // the browser scrolls the page with these keys
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
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const on = (node, event, action) => node.addEventListener(event, action);
    data.maps.forEach((map, at) => {
        const button = make('button', $('kinds'), BUTTONS[map.kind]);
        button.type = 'button';
        on(button, 'click', () => chooseKind(at));
    });
    on($('layer'), 'change', event => chooseHead(+event.target.value, state.head));
    on($('head'), 'change', event => chooseHead(state.layer, +event.target.value));
    on($('scale'), 'change', event => {
        state.scale = event.target.value;
        repaint();
    });
    on($('controls'), 'submit', event => event.preventDefault());
    on($('thumbs'), 'click', event => {
        const button = event.target.closest('button');
        if (button)
            chooseHead(+button.dataset.layer, +button.dataset.head);
    });
    for (const box of [$('scroll'), $('sentences')]) {
        on(box, 'pointermove', event => chooseHover(placeOf(event)));
        on(box, 'pointerleave', () => chooseHover(null));
        on(box, 'click', hold);
    }
    on($('sort'), 'click', () => chooseSort(!state.sorted));
    on($('zoom-in'), 'click', KEYS['+']);
    on($('zoom-out'), 'click', KEYS['-']);
    on($('help-open'), 'click', KEYS['?']);
    on($('theme'), 'click', () => chooseTheme(state.theme === 'dark' ? 'light' : 'dark'));
    on(dark, 'change', () => chooseTheme(dark.matches ? 'dark' : 'light'));
    let before = 'light'; // the theme before printing, which is always light
    on(window, 'beforeprint', () => {
        before = state.theme;
        chooseTheme('light');
    });
    on(window, 'afterprint', () => chooseTheme(before));
    on(window, 'keydown', onKey);
    on(window, 'hashchange', () => {
        readAddress();
        drawAll();
    });
    on(window, 'resize', () => {
        layout();
        drawFocus();
    });
    readAddress();
    buildKind();
    layout();
    chooseTheme(dark.matches ? 'dark' : 'light');
}
start();

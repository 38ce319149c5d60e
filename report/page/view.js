// SPDX-License-Identifier: MIT
// Draws the selected map. Tokens go into the page as text only, never as markup.
const state = {
    map: 0, layer: 0, head: 0,
    pin: null,   // {axis: 'query' or 'key', token}: the token that is pinned
    hover: null, // {query, key}: indices of the tokens under the pointer. Over an axis or the text one of them is -1
    sorted: true, scale: 'largest', zoom: 1, theme: 'light',
};
const mapNow = () => data.maps[state.map];
const weightsNow = () => headWeights(mapNow(), state.layer, state.head);
const isSelf = map => map.kind !== 'cross';
const SLANT = 55; // angle of the columns' labels in degrees
let cell = 20;    // side of a cell in pixels

function make(tag, parent, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined)
        node.textContent = text;
    if (className)
        node.className = className;
    parent?.append(node);
    return node;
}

// The token whose weights are shown, on `axis`, and the token `other` of the other axis under the pointer (-1: none).
function focusNow() {
    const {pin, hover} = state;
    if (pin) {
        let other = hover ? (pin.axis === 'query' ? hover.key : hover.query) : -1;
        if (hover && other < 0 && isSelf(mapNow()))
            other = Math.max(hover.query, hover.key);
        return {axis: pin.axis, token: pin.token, other};
    }
    if (!hover)
        return null;
    return hover.query >= 0 ? {axis: 'query', token: hover.query, other: hover.key} : {axis: 'key', token: hover.key, other: -1};
}

// The weights between a token and the tokens of the other axis that are not masked: [{at, weight}], in the order of the text.
function weightsAt(axis, token) {
    const map = mapNow(), weights = weightsNow(), columns = map.key.length, found = [];
    const count = axis === 'query' ? columns : map.query.length;
    for (let at = 0; at < count; at++) {
        const query = axis === 'query' ? token : at, key = axis === 'query' ? at : token;
        if (!masked(map, query, key))
            found.push({at, weight: weights[query * columns + key]});
    }
    return found;
}
const byWeight = list => [...list].sort((a, b) => b.weight - a.weight || a.at - b.at);
const otherAxis = axis => (axis === 'query' ? 'key' : 'query');

// Makes the elements for the tokens of the selected kind: labels, text, rows of the panel, and small maps.
function buildKind() {
    const map = mapNow();
    for (const [axis, box] of [['query', $('rows')], ['key', $('columns')]]) {
        box.replaceChildren();
        map[axis].forEach((token, at) => {
            const label = make('bdi', box, visible(token));
            label.dataset[axis] = at;
            label.title = `${at + 1}: ${visible(map[axis + '_token'][at])} in the vocabulary`;
        });
    }
    const sentences = $('sentences');
    sentences.replaceChildren();
    for (const axis of isSelf(map) ? ['query'] : ['query', 'key']) {
        if (!isSelf(map))
            make('p', sentences, axis === 'query' ? 'Target (queries)' : 'Source (keys)', 'whose');
        const line = make('p', sentences);
        line.dir = rightToLeft(map[axis]) ? 'rtl' : 'ltr';
        map[axis].forEach((token, at) => {
            make('bdi', line, visible(token)).dataset[axis] = at;
            line.append(' ');
        });
    }
    $('list').replaceChildren();
    for (let at = 0; at < Math.max(map.query.length, map.key.length); at++) {
        const row = make('li', $('list'));
        make('span', row, '', 'at');
        make('bdi', row);
        make('span', make('span', row, '', 'track'));
        make('span', row, '', 'value');
    }
    for (const [select, count] of [[$('layer'), map.layers], [$('head'), map.heads]])
        select.replaceChildren(...Array.from({length: count}, (_, i) => new Option(`${i + 1} of ${count}`, i)));
    $('hatch-name').hidden = map.kind !== 'decoder';
    $('scroll').setAttribute('aria-label',
        `${NAMES[map.kind]}: ${map.query.length} tokens that look, ${map.key.length} that are looked at`);
    [...$('kinds').querySelectorAll('button')].forEach((button, at) => button.setAttribute('aria-pressed', at === state.map));
    const box = $('thumbs');
    box.replaceChildren();
    make('span', box, 'layer');
    for (let head = 0; head < map.heads; head++)
        make('span', box, head + 1);
    for (let layer = 0; layer < map.layers; layer++) {
        make('span', box, layer + 1);
        for (let head = 0; head < map.heads; head++) {
            const button = make('button', box);
            button.type = 'button';
            button.dataset.layer = layer;
            button.dataset.head = head;
            button.title = `layer ${layer + 1}, head ${head + 1}`;
            button.setAttribute('role', 'radio');
            button.setAttribute('aria-label', button.title);
            make('canvas', button);
        }
    }
}

function paintThumbs() {
    for (const button of $('thumbs').querySelectorAll('button')) {
        const weights = headWeights(mapNow(), +button.dataset.layer, +button.dataset.head);
        paint(button.firstChild, mapNow(), weights, RAMPS[state.theme], state.scale, 64);
    }
}

// Computes the sizes. Cells are as large as the window allows; if labels would overlap, some of them are hidden.
function layout() {
    const map = mapNow(), rows = map.query.length, columns = map.key.length, narrow = innerWidth < 640;
    const longest = (box, most) => {
        box.classList.add('bold'); // a label under the pointer is bold, and so wider
        const width = Math.max(...[...box.children].map(label => label.scrollWidth));
        box.classList.remove('bold');
        return Math.min(most, width + 2);
    };
    for (const label of document.querySelectorAll('.axis bdi'))
        label.style.maxWidth = 'none';
    // All small maps of a layer are in one line. Each of them is at least 18 pixels wide.
    const thumb = clamp(Math.floor(($('thumbs').clientWidth - 52) / map.heads) - 4, 18, 64);
    $('thumbs').style.grid = `auto / max-content repeat(${map.heads}, ${thumb}px)`;
    $('thumbs').style.gridAutoRows = `minmax(${thumb}px, auto)`;
    const left = Math.max(longest($('rows'), narrow ? 88 : 150), 56), slant = longest($('columns'), narrow ? 80 : 130);
    const rise = Math.sin(SLANT * Math.PI / 180), run = Math.cos(SLANT * Math.PI / 180);
    const top = Math.ceil(slant * rise + 16), right = Math.ceil(slant * run + 8 * rise);
    const wide = bar => ($('scroll').offsetWidth - bar - left - right - 4) / columns, high = Math.max((innerHeight * 0.8 - top) / rows, 15);
    const least = Math.max(rows, columns) <= 40 ? 18 : 3; // with up to 40 tokens, a scroll bar is better than hidden labels
    const fitting = bar => Math.max(Math.floor(Math.min(wide(bar), high, 52)), least);
    cell = fitting(0);
    if (top + rows * cell > innerHeight * 0.84 - 20)
        cell = fitting(16); // a vertical scroll bar takes some of the width
    cell = Math.min(cell * state.zoom, 64);
    $('map').style.rowGap = cell < 16 ? '7px' : '3px'; // the labels are higher than such small cells
    Object.assign($('corner').style, {width: `${left}px`, height: `${top}px`});
    Object.assign($('columns').style, {width: `${columns * cell + right}px`, height: `${top}px`});
    Object.assign($('rows').style, {width: `${left}px`, height: `${rows * cell}px`});
    Object.assign($('cells').style, {width: `${columns * cell}px`, height: `${rows * cell}px`});
    const every = [Math.ceil(15 / cell), Math.ceil(18 / cell)];
    [...$('rows').children].forEach((label, at) => {
        Object.assign(label.style, {top: `${(at + 0.5) * cell - 8}px`, maxWidth: `${left}px`});
        label.classList.toggle('thin', at % every[0] !== 0);
    });
    [...$('columns').children].forEach((label, at) => {
        Object.assign(label.style, {left: `${(at + 0.5) * cell}px`, maxWidth: `${slant}px`, transform: `rotate(-${SLANT}deg)`});
        label.classList.toggle('thin', at % every[1] !== 0);
    });
    const line = `var(--grid) 0 1px, transparent 1px ${cell}px`;
    $('lines').style.background = cell < 12 ? 'none' : `repeating-linear-gradient(90deg, ${line}), repeating-linear-gradient(${line})`;
}

function drawHead() {
    const map = mapNow(), most = largest(scaled(map, weightsNow())), ramp = RAMPS[state.theme];
    paint($('canvas'), map, weightsNow(), ramp, state.scale, Infinity);
    $('layer').value = state.layer;
    $('head').value = state.head;
    const title = `${NAMES[map.kind]}, layer ${state.layer + 1}, head ${state.head + 1}`;
    $('map-title').textContent = title;
    document.title = (data.model ? data.model + ': ' : '') + title;
    for (const button of $('thumbs').querySelectorAll('button')) {
        const chosen = +button.dataset.layer === state.layer && +button.dataset.head === state.head;
        button.setAttribute('aria-checked', chosen);
        button.tabIndex = chosen ? 0 : -1;
    }
    // The colour bar is in equal steps of colour, so with the square-root scale its middle stands for a quarter of the largest weight.
    const top = state.scale === 'one' ? data.one : most;
    $('ramp').style.background = `linear-gradient(90deg, ${[0, 51, 102, 153, 204, 255].map(i => css(ramp[i])).join(', ')})`;
    $('ramp').setAttribute('aria-label', `colours from 0 to ${number(top)}` + (largest(weightsNow()) > top ? ' and above' : ''));
    $('high').textContent = (largest(weightsNow()) > top ? '≥ ' : '') + number(top) + (state.scale === 'root' ? ' (square root)' : '');
}

function drawFocus() {
    const map = mapNow(), focus = focusNow();
    for (const axis of ['query', 'key'])
        for (const label of $(axis === 'query' ? 'rows' : 'columns').children)
            label.classList.toggle('on', !!focus && +label.dataset[axis] === (focus.axis === axis ? focus.token : focus.other));
    const box = (node, row, rows, column, columns) => Object.assign(node.style,
        {left: `${column * cell}px`, top: `${row * cell}px`, width: `${columns * cell}px`, height: `${rows * cell}px`});
    $('mark').hidden = !focus;
    $('cross').hidden = !focus || focus.other < 0;
    if (focus) {
        const query = focus.axis === 'query', row = query ? focus.token : focus.other, column = query ? focus.other : focus.token;
        box($('mark'), query ? row : 0, query ? 1 : map.query.length, query ? 0 : column, query ? map.key.length : 1);
        box($('cross'), row, 1, column, 1);
    }
    drawReadout(focus);
    drawText(focus);
    drawPanel(focus);
}

function drawReadout(focus) {
    const map = mapNow(), line = $('readout');
    line.textContent = focus ? '' : 'Point at a token or a cell; a click pins the token.';
    if (!focus)
        return;
    // If no token of the other axis is under the pointer, take the one with the largest weight.
    const other = focus.other >= 0 ? focus.other : byWeight(weightsAt(focus.axis, focus.token))[0].at;
    const [query, key] = focus.axis === 'query' ? [focus.token, other] : [other, focus.token];
    const add = (axis, at) => { // the number is outside of the bdi element, so that it also follows a token written from right to left
        make('bdi', line, visible(map[axis][at]));
        line.append(` (${at + 1})`);
    };
    add('query', query);
    line.append(focus.other >= 0 ? ' attends to ' : focus.axis === 'query' ? ' attends most to ' : ' attends more than any other to ');
    add('key', key);
    line.append(masked(map, query, key) ? ': later, masked' : ': ');
    if (!masked(map, query, key))
        make('b', line, number(weightsNow()[query * map.key.length + key]));
    if (state.pin)
        line.append(' (pinned)');
}

// Draws the text with each token shaded by its weight.
function drawText(focus) {
    const map = mapNow(), most = largest(scaled(map, weightsNow()));
    const weight = new Map(focus ? weightsAt(focus.axis, focus.token).map(found => [found.at, found.weight]) : []);
    for (const chip of $('sentences').querySelectorAll('bdi')) {
        const axis = 'query' in chip.dataset ? 'query' : 'key', at = +chip.dataset[axis];
        const shown = focus && (isSelf(map) || axis !== focus.axis), colour = shown && weight.has(at)
            ? RAMPS[state.theme][shade(weight.get(at), most, state.scale)] : null;
        chip.style.background = colour ? css(colour) : '';
        chip.style.color = colour ? inkOn(colour) : '';
        chip.classList.toggle('off', !!shown && !colour);
        chip.classList.toggle('on', !!focus && at === focus.token && (isSelf(map) || axis === focus.axis));
    }
}

function drawPanel(focus) {
    const map = mapNow(), found = focus ? weightsAt(focus.axis, focus.token) : [], list = state.sorted ? byWeight(found) : found;
    const most = found.reduce((high, one) => Math.max(high, one.weight), 1), end = focus && otherAxis(focus.axis);
    const title = $('panel-title');
    title.textContent = focus ? '' : 'Weights';
    if (focus) {
        make('bdi', title, visible(map[focus.axis][focus.token]));
        title.append(focus.axis === 'query' ? ' attends to' : ' is attended to by');
    }
    const hidden = focus ? map[end].length - found.length : 0;
    $('panel-note').textContent = !focus ? 'Point at a token in the map or in the text.'
        : `Token ${focus.token + 1} of ${map[focus.axis].length}`
            + (hidden ? `; ${hidden} ${focus.axis === 'query' ? 'later' : 'earlier'} masked` : '');
    [...$('list').children].forEach((row, i) => { // the rows are reused, because new elements at each move of the pointer would be slow
        row.hidden = i >= list.length;
        if (row.hidden)
            return;
        const [at, token, track, value] = row.children;
        at.textContent = list[i].at + 1;
        token.textContent = visible(map[end][list[i].at]);
        track.firstChild.style.width = `${100 * list[i].weight / most}%`;
        value.textContent = number(list[i].weight);
        row.classList.toggle('on', list[i].at === focus.other);
    });
}

// SPDX-License-Identifier: MIT
// The data that Weft has written into the page, functions that make tokens visible, and colours. Nothing here depends on the selection.
'use strict';

const $ = id => document.getElementById(id);
const data = JSON.parse($('data').textContent);
const NAMES = {encoder: 'Encoder self-attention', decoder: 'Decoder self-attention', cross: 'Cross-attention'};
const BUTTONS = {encoder: 'Encoder', decoder: 'Decoder', cross: 'Cross'};

// The weights of a kind: [layer][head][query][key], as integers in which data.one stands for 1. The page has them as 16-bit little-endian
// integers in Base64, which are decoded at the first call.
function weightsOf(map) {
    if (!map.weights) {
        const bytes = atob($('weights-' + map.kind).textContent);
        map.weights = new Uint16Array(bytes.length / 2);
        for (let i = 0; i < map.weights.length; i++)
            map.weights[i] = bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8;
    }
    return map.weights;
}

// The weights of one head: [query][key].
function headWeights(map, layer, head) {
    const size = map.query.length * map.key.length, at = (layer * map.heads + head) * size;
    return weightsOf(map).subarray(at, at + size);
}

// In a decoder a token cannot attend to later tokens, so those cells are drawn as masked, not as a weight of 0.
const masked = (map, query, key) => map.kind === 'decoder' && key > query + Math.max(map.key.length - map.query.length, 0);

// The weights whose maximum ends the colour scale. The first row of a decoder is left out, because its token attends to itself alone, with
// weight 1.
const scaled = (map, weights) => (map.kind === 'decoder' && map.query.length > 1 && map.query.length === map.key.length ? weights.subarray(map.key.length) : weights);

function largest(weights) {
    let most = 1;
    for (const weight of weights)
        most = Math.max(most, weight);
    return most;
}

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const number = weight => (weight / data.one).toFixed(3);

// Shows characters that are invisible, or that reverse the direction of the text around them, by their codes. A combining mark at the start
// of a token gets a dotted circle to combine with.
function visible(token) {
    const text = token.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu,
        c => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0'));
    return /^\p{M}/u.test(text) ? '\u25CC' + text : text || '\u2205';
}

// Whether most letters are of scripts that are written from right to left. It counts letters, not tokens, because a word of a rare script
// has more tokens.
function rightToLeft(tokens) {
    const letters = tokens.join('').match(/\p{L}/gu) ?? [];
    const right = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
    return letters.filter(letter => right.test(letter)).length > letters.length / 2;
}

// The colours from weight 0 (nearly the background) to the largest weight. The lightness changes in one direction only, so that the order
// is visible without hues, too.
const STOPS = {
    light: ['f5f8fc', 'd8e6f4', 'a8cae8', '649fd3', '2c71b6', '134a8b', '08224d'],
    dark: ['1d232b', '1d3852', '1f5b77', '2b858c', '55b089', 'aad477', 'fdf4a3'],
};

// 256 colours as [r, g, b].
function rampOf(theme) {
    const stops = STOPS[theme].map(hex => [0, 2, 4].map(at => parseInt(hex.slice(at, at + 2), 16)));
    return Array.from({length: 256}, (_, i) => {
        const x = i / 255 * (stops.length - 1), at = Math.min(Math.floor(x), stops.length - 2);
        return stops[at].map((from, c) => Math.round(from + (stops[at + 1][c] - from) * (x - at)));
    });
}
const RAMPS = {light: rampOf('light'), dark: rampOf('dark')};
const css = colour => `rgb(${colour.join(' ')})`;

// Black or white, whichever has more contrast on a colour (by the relative luminance of WCAG).
function inkOn(colour) {
    const [r, g, b] = colour.map(c => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
}

// The index into a ramp of 256 colours for a weight, with the selected scale.
function shade(weight, most, scale) {
    const share = Math.min(weight / (scale === 'one' ? data.one : most), 1);
    return Math.round(255 * (scale === 'root' ? Math.sqrt(share) : share));
}

// Paints a head with a pixel for each cell. With more than `limit` rows or columns a pixel shows the largest of several cells, so that a
// single row or column of large weights stays visible.
function paint(canvas, map, weights, ramp, scale, limit) {
    const rows = map.query.length, columns = map.key.length;
    const height = Math.min(rows, limit), width = Math.min(columns, limit), most = largest(scaled(map, weights));
    const cells = new Int32Array(width * height).fill(-1);
    for (let i = 0; i < rows; i++) {
        const line = Math.floor(i * height / rows) * width;
        for (let j = 0; j < columns; j++) {
            const at = line + Math.floor(j * width / columns);
            if (!masked(map, i, j))
                cells[at] = Math.max(cells[at], weights[i * columns + j]);
        }
    }
    canvas.width = width;
    canvas.height = height;
    const image = new ImageData(width, height);
    cells.forEach((weight, at) => {
        if (weight >= 0)
            image.data.set([...ramp[shade(weight, most, scale)], 255], 4 * at);
    });
    canvas.getContext('2d', {willReadFrequently: true}).putImageData(image, 0, 0);
}

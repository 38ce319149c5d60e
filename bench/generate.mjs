// SPDX-License-Identifier: MIT
// Tokens per second of llama.cpp, through node-llama-cpp: `node generate.mjs PLACE FILE.gguf THREADS`. Called by generate.py.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import path from 'node:path';
const [place, file, threads] = process.argv.slice(2);
const at = createRequire(path.join(path.resolve(place), 'package.json')).resolve('node-llama-cpp');
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(at));
const llama = await getLlama({gpu: false, build: 'never', maxThreads: Number(threads), logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: path.resolve(file), gpuLayers: 0});
const context = await model.createContext({contextSize: 1024, batchSize: 512, threads: Number(threads), sequences: 1});
const sequence = context.getSequence();
const ids = (n) => Array.from({length: n}, (_, i) => (i * 7919 + 13) % 49000 + 3);
const seconds = () => performance.now() / 1000;
async function prompt(n) {
    await sequence.clearHistory();
    const begin = seconds();
    await sequence.evaluateWithoutGeneratingNewTokens(ids(n));
    return n / (seconds() - begin);
}
async function one(tokens) {
    await sequence.clearHistory();
    let count = 0, begin = 0;
    for await (const token of sequence.evaluate(ids(32), {temperature: 0})) {
        if (count++ === 0) begin = seconds();
        if (count === tokens) break;
    }
    return (count - 1) / (seconds() - begin);
}
await prompt(64);
const middle = (x) => x.sort((a, b) => a - b)[Math.floor(x.length / 2)];
const p = [], o = [];
for (let i = 0; i < 3; i++) {
    p.push(await prompt(512));
    o.push(await one(64));
}
console.log(JSON.stringify({prompt: middle(p), one: middle(o)}));
process.exit(0);

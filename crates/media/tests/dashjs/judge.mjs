// Replays sessions to the real dash.js and writes down what its rules decide.
//
//   node judge.mjs FOLDER INPUT OUTPUT
//
// FOLDER holds node_modules. Each line of INPUT is one session, { release, ladder, ..., steps }, as tests/dashjs.rs writes
// it; OUTPUT gets one line for each: the list of answers to its decisions (D) and progress reports (P). A fake clock takes the
// place of Date and setTimeout, so a session takes as long as its arithmetic.

import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { Clock } from './clock.mjs';
import { load22, Player22 } from './player-2.2.mjs';
import { load29, Player29 } from './player-2.9.mjs';
import { load5, Player5 } from './player-5.mjs';

const [folder, input, output] = process.argv.slice(2);
const clock = new Clock();
clock.install();

// What the bundles want from a browser when they are loaded. They never use it.
globalThis.window = globalThis;
globalThis.self = globalThis;
globalThis.document = { documentElement: {}, createElement: () => ({}), addEventListener: () => {} };
globalThis.navigator ??= { userAgent: 'node' };
globalThis.location = { href: '' };
globalThis.getComputedStyle = () => ({});
globalThis.addEventListener = () => {};

const modules = path.join(folder, 'node_modules');
const releases = {
    '2.2.0': { load: load22, Player: Player22, file: 'dashjs-2.2.0/dist/dash.all.debug.js' },
    '2.9.3': { load: load29, Player: Player29, file: 'dashjs-2.9.3/dist/dash.all.debug.js' },
    '5.2.1': { load: load5, Player: Player5, file: 'dashjs-5.2.1/dist/modern/esm/dash.all.debug.js' },
};
const loaded = {};

async function player(session) {
    const { load, Player, file } = releases[session.release];
    loaded[session.release] ??= await load(path.join(modules, file));
    return new Player(loaded[session.release], session, clock);
}

const out = fs.openSync(output, 'w');
for await (const line of readline.createInterface({ input: fs.createReadStream(input) })) {
    const session = JSON.parse(line);
    clock.reset();
    const judged = await player(session);
    const answers = [];
    for (const [kind, at, ...values] of session.steps) {
        clock.advance(at);
        const answer = judged[kind](...values);
        if (answer !== undefined) {
            answers.push(answer);
        }
    }
    judged.close();
    fs.writeSync(out, JSON.stringify(answers) + '\n');
}
fs.closeSync(out);

// Splits doppler_core.wasm, with its names, in two: node tools/split_module.mjs MODULE.wasm [--wasm-split PROGRAM
// --sources FILE --objects FOLDER --texts FOLDER --nm PROGRAM -- FEATURES]. The functions of the sources that FILE
// lists go to MODULE_later.wasm, and so do the texts of the WGSL files that it lists. The folder of --texts has these
// as tools/embed_wgsl wrote them. A function that several sources define goes there if all these sources are
// listed. Without wasm-split the module stays whole and the second one is empty. src/web/CMakeLists.txt runs it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { moveTexts } from './module_texts.mjs';

const kEmpty = Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const kBuild = 'doppler.build'; // the section by which web/core_module.mjs knows two modules of one build
const kNames = 1; // the part of the section `name` that names functions
const kMostOutput = 1 << 28;

/** Names of the functions of a module, from its section `name`. @param {string} path @returns {string[]} */
function functionNames(path) {
  const bytes = readFileSync(path);
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0, byte = 0x80; byte & 0x80; shift += 7) {
      byte = bytes[at++];
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  };
  const text = () => {
    const length = number();
    return bytes.toString('utf8', at, (at += length));
  };
  /** @type {string[]} */ const names = [];
  const readNames = (end) => {
    while (at < end) {
      const kind = bytes[at++];
      const next = number() + at;
      for (let left = kind === kNames ? number() : 0; left > 0; left--) {
        number();
        names.push(text());
      }
      at = next;
    }
  };
  while (at < bytes.length) {
    const section = bytes[at++];
    const end = number() + at;
    if (section === 0 && text() === 'name') readNames(end);
    at = end;
  }
  return names;
}

/** A section that WebAssembly ignores, of less than 128 bytes. @param {string} name @param {Buffer} bytes */
const section = (name, bytes) =>
  Buffer.concat([Buffer.from([0, 1 + name.length + bytes.length, name.length]), Buffer.from(name), bytes]);

/** The sources of an object below `folder`: one, or those of a batch. @param {string} folder @param {string} object */
function sourcesOf(folder, object) {
  const source = object.replace(/\.obj$/, '');
  const isBatch = /\/Unity\/unity_\w+\.cxx$/.test(source);
  if (!isBatch) return [source.replace(/CMakeFiles\/[^/]+\.dir\//, '').replace(/^src\//, '')];
  const included = readFileSync(join(folder, source), 'utf8').matchAll(/^#include "(?:.*\/)?src\/([^"]+)"$/gm);
  return Array.from(included, ([, path]) => path);
}

/** symbol -> the objects that define it. @param {string} nm @param {string} folder */
function definitions(nm, folder) {
  const objects = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.obj'));
  const lines = execFileSync(nm, ['-A', '--defined-only', ...objects],
    { cwd: folder, encoding: 'utf8', maxBuffer: kMostOutput });
  /** @type {Map<string, Set<string>>} */ const found = new Map();
  for (const [, object, symbol] of lines.matchAll(/^(.*\.obj): [0-9a-f]+ [TtWw] (\S+)$/gm)) {
    if (!found.has(symbol)) found.set(symbol, new Set());
    found.get(symbol)?.add(object);
  }
  return found;
}

const { values, positionals: [module, ...features] } = parseArgs({ allowPositionals: true, options: {
  sources: { type: 'string' }, objects: { type: 'string' }, texts: { type: 'string' }, nm: { type: 'string' }, 'wasm-split': { type: 'string' } } });
const later = module.replace(/\.wasm$/, '_later.wasm');

/** The text of a WGSL file as it lies in the module. @param {string} path */
function textOf(path) {
  const header = readFileSync(join(values.texts, `${path}.h`), 'utf8');
  const text = /R"wgsl\(([^]*)\)wgsl"/.exec(header)?.[1];
  if (!text) throw new Error(`${path}.h has no text.`);
  return Buffer.from(text);
}

function split() {
  // A line: the source, and the functions of it that stay.
  const lines = readFileSync(values.sources, 'utf8').trim().split('\n').map((line) => line.split(' '));
  const rows = lines.filter(([source]) => !source.endsWith('.wgsl'));
  const texts = lines.map(([source]) => source).filter((source) => source.endsWith('.wgsl')).map(textOf);
  const staying = new Map(rows.map(([source, ...names]) => [source, names.map((name) => `${name.length}${name}`)]));
  const defined = definitions(values.nm, values.objects);
  const objects = new Set([...defined.values()].flatMap((some) => [...some]));
  const sources = new Map([...objects].map((object) => [object, sourcesOf(values.objects, object)]));
  const isLater = (object, symbol) => sources.get(object)?.every((source) =>
    staying.has(source) && !staying.get(source)?.some((name) => symbol.includes(name)));
  const isMoved = (name) => {
    const symbol = defined.has(name) ? name : name.replace(/_\d+$/, ''); // Binaryen numbers equal names
    return defined.has(symbol) && [...defined.get(symbol)].every((object) => isLater(object, symbol));
  };
  const moved = functionNames(module).filter(isMoved).join('\n');
  const list = `${module}.later_functions`;
  writeFileSync(list, moved);
  const build = createHash('sha256').update(readFileSync(module)).update(moved).digest();
  const [first, second] = [`${module}.first`, `${module}.second`];
  // The names are those of web/core_module.mjs.
  const names = ['--import-namespace=primary', '--placeholder-namespace=placeholder'];
  const outputs = ['-o1', first, '-o2', second];
  const flags = [module, `--split-funcs=@${list}`, ...names, ...outputs, ...features];
  execFileSync(values['wasm-split'], flags, { stdio: 'inherit' });
  const parts = moveTexts(readFileSync(first), readFileSync(second), texts);
  [module, later].forEach((to, i) => writeFileSync(to, Buffer.concat([parts[i], section(kBuild, build)])));
  [first, second].forEach((from) => rmSync(from));
}

if (values['wasm-split']) split();
else writeFileSync(later, kEmpty);

// The two modules as a web server sends them, with gzip, stay below what docs/design/web.md promises, and each part of
// both together below its row of module_parts.json. A row is the larger of two builds, since a library's share differs
// by up to 6 % between them: CI compiles sources in batches, and other builds do not. ctest runs this with
// DOPPLER_WASM; the linker map lies next to the module.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { gzipSync } from 'node:zlib';

import { partsOf } from './module_parts.mjs';

const kMostBytes = { 'doppler_core.wasm': 650_000, 'doppler_core_later.wasm': 266_000 };
const kAllowedGrowth = 1.02;
const module = process.env.DOPPLER_WASM ?? '';

for (const [name, most] of Object.entries(kMostBytes)) {
  test(`${name} with gzip`, () => {
    const bytes = gzipSync(readFileSync(join(dirname(module), name)), { level: 9 }).length;
    console.log(`${bytes} bytes`);
    assert.ok(bytes <= most, `${name} has ${bytes} bytes with gzip; at most ${most} are allowed.`);
  });
}

test('no part has grown by more than 2 % since its row of module_parts.json was written', () => {
  const rows = JSON.parse(readFileSync('tests/web/module_parts.json', 'utf8'));
  const parts = partsOf(`${module}.map`);
  for (const [part, bytes] of Object.entries(parts)) console.log(`${String(bytes).padStart(8)} ${part}`);
  const grown = Object.entries(parts).filter(([part, bytes]) => bytes > (rows[part] ?? 0) * kAllowedGrowth)
    .map(([part, bytes]) => `${part} has ${bytes} bytes, ${rows[part] ?? 0} in the table`);
  assert.deepEqual(grown, []);
  assert.deepEqual(Object.keys(rows).filter((part) => !(part in parts)), [], 'rows of parts that are gone');
});

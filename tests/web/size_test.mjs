// The module as a web server sends it, with gzip, stays below what docs/design/web.md promises. By ctest, with
// DOPPLER_WASM.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { gzipSync } from 'node:zlib';

const kMostBytes = 750_000;

test('doppler_core.wasm with gzip', () => {
  const bytes = gzipSync(readFileSync(process.env.DOPPLER_WASM ?? ''), { level: 9 }).length;
  console.log(`${bytes} bytes`);
  assert.ok(bytes <= kMostBytes, `The module has ${bytes} bytes with gzip; at most ${kMostBytes} are allowed.`);
});

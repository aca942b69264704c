// The bytes that each part of the core contributes to doppler_core.wasm: its linker map by library, code and data
// together, before Binaryen optimises the whole. The linker joins equal texts, so that WGSL and messages are a part of
// their own.
import { readFileSync } from 'node:fs';

const kRow = /^\s*\S+\s+[0-9a-f]+\s+([0-9a-f]+)\s+(\S.*)$/;

function partOf(from) {
  if (from === '<internal>') return 'texts: WGSL and messages';
  if (from.startsWith('src/web/')) return 'web';
  return /libdoppler_(\w+)\.a\(/.exec(from)?.[1] ?? 'the C and C++ libraries';
}

// { part: bytes }, largest first.
export function partsOf(mapFile) {
  const parts = new Map();
  let section = '';
  for (const line of readFileSync(mapFile, 'utf8').split('\n')) {
    const [, size, what] = kRow.exec(line) ?? [];
    if (!what) continue;
    if (/^[A-Z]+$/.test(what)) section = what;
    const from = /^(\S+\.o(?:bj)?\)?|<internal>):\(.*\)$/.exec(what)?.[1];
    if (!from || !['CODE', 'DATA'].includes(section)) continue;
    parts.set(partOf(from), (parts.get(partOf(from)) ?? 0) + parseInt(size, 16));
  }
  return Object.fromEntries([...parts].sort(([, a], [, b]) => b - a));
}

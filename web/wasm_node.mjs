// Where Node finds doppler_core.wasm.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DopplerError } from './errors.mjs';

/** $DOPPLER_WASM, or where a package has the module, or where the build leaves it. @returns {string} */
export function wasmPath() {
  const places = ['./doppler_core.wasm', '../build/wasm/src/web/doppler_core.wasm']
    .map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = process.env.DOPPLER_WASM ?? places.find((place) => existsSync(place));
  if (found) return found;
  throw new DopplerError('io', 'doppler_core.wasm was not built: cmake --preset wasm && cmake --build --preset wasm.');
}

// Doppler in Node: the class of doppler.mjs with WebGPU from the npm package `webgpu` (Dawn), models also from disk, and no
// worker.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { callsOnThisThread } from './calls.mjs';
import { Doppler as BrowserDoppler, DopplerError } from './doppler.mjs';
import { nodeFiles } from './files_node.mjs';

export { DopplerError };

// As natively: kernels are tested, so they run without Dawn's bounds checks.
const kDawnOptions = ['enable-dawn-features=disable_robustness,disable_polyfills_on_integer_div_and_mod'];

/** Dawn ends the process badly when it is collected before it: kept. @type {any} */
let keptGpu = null;

/** @type {import('./engine.mjs').Platform} */
const node = {
  provider: 'node',
  async gpu() {
    let package_;
    try {
      package_ = await import('webgpu');
    } catch {
      throw new DopplerError('device', 'The npm package webgpu is missing: npm install webgpu.');
    }
    return (keptGpu ??= package_.create(kDawnOptions));
  },
  compile: async (address) => WebAssembly.compile(await readFile(wasmPath(address))),
  openPath: async (path) => (existsSync(path) ? nodeFiles(path) : null),
};

/** Where a package has the module, or where the build leaves it. @param {string} [address] */
function wasmPath(address) {
  if (address) return address.startsWith('file:') ? fileURLToPath(address) : address;
  const places = ['./doppler_core.wasm', '../build/wasm/src/web/doppler_core.wasm']
    .map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = process.env.DOPPLER_WASM ?? places.find((place) => existsSync(place));
  if (found) return found;
  throw new DopplerError('io', 'doppler_core.wasm was not built: cmake --preset wasm && cmake --build --preset wasm.');
}

export class Doppler extends BrowserDoppler {
  static async connect(options, emit) {
    return callsOnThisThread(node, emit);
  }
  static gpu = node.gpu;
}

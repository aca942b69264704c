// Doppler in Node: WebGPU from the npm package `webgpu` (Dawn), models from disk.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Doppler } from './doppler.mjs';
import { httpFiles } from './files_http.mjs';
import { nodeFiles } from './files_node.mjs';

export { Doppler, DopplerError } from './doppler.mjs';

// As natively: kernels are tested, so they run without Dawn's bounds checks.
const kDawnOptions = ['enable-dawn-features=disable_robustness,disable_polyfills_on_integer_div_and_mod'];

/** Where the build leaves the module, or where a package has it. */
function wasmPath() {
  const places = ['./doppler_core.wasm', '../build/wasm/src/web/doppler_core.wasm']
    .map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = process.env.DOPPLER_WASM ?? places.find((place) => existsSync(place));
  if (!found) throw new Error('doppler_core.wasm was not built: cmake --preset wasm && cmake --build --preset wasm.');
  return found;
}

/** Dawn ends the process badly when it is collected before it: kept. @type {any} */
let keptGpu = null;

async function nodeGpu() {
  let package_;
  try {
    package_ = await import('webgpu');
  } catch {
    throw new Error('The npm package webgpu is missing: npm install in the folder web.');
  }
  return (keptGpu ??= package_.create(kDawnOptions));
}

/**
 * @param {string} model path or address of a .gguf file or a Hugging Face folder
 * @param {import('./doppler.mjs').LoadOptions & {onProgress?: import('./doppler.mjs').OnProgress}} [options]
 */
export async function load(model, options = {}) {
  const wasm = await WebAssembly.compile(await readFile(wasmPath()));
  const files = /^https?:/.test(model) ? httpFiles(model) : await nodeFiles(model);
  return Doppler.load(files, { ...options, wasm, gpu: await nodeGpu(), provider: 'node' });
}

// Doppler in Node: the class of doppler.mjs with WebGPU from the npm package `webgpu` (Dawn), models also from disk,
// and no worker.
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { callsOnThisThread } from './calls.mjs';
import { CoreModule, kLaterName } from './core_module.mjs';
import { Doppler as BrowserDoppler, DopplerError } from './doppler.mjs';
import { nodeFiles } from './files_node.mjs';
import { wasmPath } from './wasm_node.mjs';

export { DopplerError };

// As natively (kDawnEnabledToggles): kernels are tested, so they run without Dawn's bounds checks, may have the matrix
// units, which are still an experiment of Dawn's, and f16 on NVIDIA, where Dawn is careful about old drivers.
const kDawnOptions = ['enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia,disable_workgroup_init,disable_robustness,'
  + 'disable_polyfills_on_integer_div_and_mod'];

/** Dawn ends the process badly when it is collected before it: kept. @type {any} */
let keptGpu = null;

/** @type {import('./engine.mjs').Platform} */
const node = {
  provider: 'node',
  async gpu() {
    let package_;
    try {
      // Never part of a bundle.
      package_ = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ 'webgpu');
    } catch (error) {
      throw new DopplerError('device', isMissing(error) ? 'The npm package webgpu is missing, which Node needs for a GPU: npm install webgpu.'
        : `The npm package webgpu cannot be used: ${/** @type {Error} */ (error).message}.`);
    }
    return (keptGpu ??= package_.create(kDawnOptions));
  },
  async compile(address) {
    const path = address ? pathOf(address) : wasmPath();
    return new CoreModule(await WebAssembly.compile(await readFile(path)), () => readFileSync(join(dirname(path), kLaterName)));
  },
  async loadGrammars(address) {
    if (typeof address === 'object') return address;
    const require = createRequire(import.meta.url);
    let file;
    try {
      file = address === true ? require.resolve('@mlc-ai/web-xgrammar') : pathOf(address);
    } catch {
      throw new DopplerError('unsupported', 'The npm package @mlc-ai/web-xgrammar is missing: npm install @mlc-ai/web-xgrammar.');
    }
    // It says of itself to be an ES module, and is none.
    const module = { exports: /** @type {any} */ ({}) };
    const run = new Function('exports', 'module', 'require', '__filename', '__dirname', await readFile(file, 'utf8'));
    run(module.exports, module, require, file, dirname(file));
    return module.exports;
  },
  openPath: async (path) => (existsSync(path) ? nodeFiles(path) : null),
};

/** @param {any} error */
const isMissing = ({ code }) => code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';

/** @param {string} address a path, or the URL of a file */
const pathOf = (address) => (address.startsWith('file:') ? fileURLToPath(address) : address);

export class Doppler extends BrowserDoppler {
  static async connect(options, emit) {
    return callsOnThisThread(node, emit);
  }
  static gpu = node.gpu;
  static provider = node.provider;
  static openPath = node.openPath;
}

// The parts of a browser that the engine needs: its GPU, and the modules next to these files.
import { CoreModule, kLaterName } from './core_module.mjs';
import { DopplerError } from './errors.mjs';

const kOk = 200;

/** @param {string | URL} address */
async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new DopplerError('io', `${answer.url} could not be loaded: the server answered ${answer.status}.`);
  return answer.arrayBuffer();
}

/**
 * The bytes of a file, read by a worker without giving up its turn.
 * @param {string | URL} address
 * @returns {ArrayBuffer}
 */
function readNow(address) {
  const request = new XMLHttpRequest();
  request.open('GET', address, false);
  request.responseType = 'arraybuffer';
  request.send();
  if (request.status !== kOk) throw new Error(`the server answered ${request.status} for ${address}`);
  return request.response;
}

/** The second module, beside the first one or where a build tool puts it. @param {string} [address] of the first */
function laterAddress(address) {
  if (!address) return new URL('./doppler_core_later.wasm', import.meta.url);
  return URL.canParse(kLaterName, address) ? new URL(kLaterName + new URL(address).search, address) : kLaterName;
}

// A page's own thread may make synchronous requests of text only, and a service worker none.
const canReadNow = () => 'XMLHttpRequest' in globalThis && 'WorkerGlobalScope' in globalThis;

/** @type {import('./engine.mjs').Platform} */
export const browser = {
  provider: 'browser',
  async gpu() {
    const { gpu } = globalThis.navigator ?? {};
    if (gpu) return gpu;
    throw new DopplerError('device', globalThis.isSecureContext === false
      ? 'This page has no WebGPU, since it came neither by https nor from localhost.'
      : 'This browser has no WebGPU: Chrome from 113, Safari from 26 and Firefox from 141 have it; Firefox on Linux where ' +
        'dom.webgpu.enabled is set to true in about:config.');
  },
  async compile(address) {
    // A server that does not know the type application/wasm would make compileStreaming refuse.
    const first = await WebAssembly.compile(await fetched(address ?? new URL('./doppler_core.wasm', import.meta.url)));
    const later = laterAddress(address);
    if (!CoreModule.isSplit(first) || canReadNow()) return new CoreModule(first, () => readNow(later));
    const bytes = await fetched(later);
    return new CoreModule(first, () => bytes);
  },
  async loadGrammars(address, opens) {
    if (typeof address === 'object') return address;
    if (address === true) {
      throw new DopplerError('invalid-input', 'Option grammars is true; a browser needs the address of lib/index.js of the npm package @mlc-ai/web-xgrammar, or where no worker is used its module.');
    }
    const module = await import(/* @vite-ignore */ /* webpackIgnore: true */ `${address}#${opens}`);
    // A module of the older kind leaves its exports there.
    return module.GrammarCompiler ? module : (module.default ?? globalThis.xgrammar);
  },
};

// The parts of a browser that the engine needs: its GPU, and the module next to these files.
import { DopplerError } from './errors.mjs';

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
    const answer = await fetch(address ?? new URL('./doppler_core.wasm', import.meta.url));
    if (!answer.ok) throw new DopplerError('io', `${answer.url} could not be loaded: the server answered ${answer.status}.`);
    // A server that does not know the type application/wasm would make compileStreaming refuse.
    return WebAssembly.compile(await answer.arrayBuffer());
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

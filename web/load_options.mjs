// The options of load(), as the core and the engine have them. An option that is not known is refused by name.
import { DopplerError } from './errors.mjs';

// Our names of the core's options (src/web/web_options.h).
const kCore = {
  ctx: 'ctxLen', lane: 'lane', kv: 'kv', draft: 'draft', chunk: 'chunk', chatTemplate: 'chatTemplate', expertBytes: 'expertBytes',
  images: 'images', kernels: 'kernels', panAndScan: 'panAndScan', poolTokens: 'poolTokens', sequences: 'sequences',
};
const kOthers = new Set([
  'adapters', 'adapterSlots', 'adapterRank', 'progress', 'signal', 'device', 'grammars', 'cache', 'integrity', 'selfTest', 'wasmUrl', 'workerUrl', 'hubUrl', 'headers',
]);

/** @param {Record<string, any>} options @returns {{core: any, others: any}} */
export function coreOptions(options) {
  /** @type {Record<string, any>} */ const core = {};
  /** @type {Record<string, any>} */ const others = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (name === 'images' && typeof value === 'string') Object.assign(core, { images: true, mmproj: value });
    else if (name in kCore) core[kCore[name]] = value;
    else if (kOthers.has(name)) others[name] = value;
    else {
      throw new DopplerError('unsupported',
        `The load option "${name}" is not known; known are: ${[...Object.keys(kCore), ...kOthers].sort().join(', ')}.`);
    }
  }
  return { core, others };
}

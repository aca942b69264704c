// Doppler in Node: the package that was copied beside this file into doppler/.
import { generate, open } from './doppler_web.mjs';
import { serve } from './protocol.mjs';

/** @type {any} */ let doppler;
await serve({
  load: async (/** @type {any} */ values) => {
    const { Doppler } = await import(new URL('./doppler/node.mjs', import.meta.url).href);
    const opened = await open(Doppler, values.model, values);
    doppler = opened.doppler;
    return opened.loaded;
  },
  generate: (/** @type {number[][]} */ prompts, /** @type {number} */ count) => generate(doppler, prompts, count),
  quit: () => doppler?.unload(),
});

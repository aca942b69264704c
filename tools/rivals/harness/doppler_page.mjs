// Doppler in a page: what browser.mjs asks for by its name. The package lies beside this file in doppler/.
import * as shared from './doppler_web.mjs';
import { Doppler } from './doppler/doppler.mjs';

/** @type {any} */ let doppler;

/** @param {any} values */
export async function load(values) {
  const opened = await shared.open(Doppler, new URL('/model.gguf', location.href), values);
  doppler = opened.doppler;
  return opened.loaded;
}

/** @param {number[][]} prompts @param {number} count */
export const generate = (prompts, count) => shared.generate(doppler, prompts, count);

// Reads the adapters (LoRA) that callers name: files to load, and the adapters of an answer. Read next: lora.mjs.
import { DopplerError } from './errors.mjs';
import { absolute } from './sources.mjs';

const kMostSlots = 256; // src/model/adapter_arena.h
const kMostRank = 1024; // src/formats/adapters/adapter.h
const kFileFields = new Set(['source', 'name', 'scale', 'headers']);

/** @typedef {{source: any, name: string, scale: number, headers?: Record<string, string>}} AdapterFile */

/** @param {string} message */
const wrong = (message) => new DopplerError('invalid-input', message);
/** @param {any} value */
const shown = (value) => JSON.stringify(value) ?? String(value);

/**
 * Reads one entry of LoadOptions.adapters, or what loadAdapter() is given.
 * @param {any} given @returns {AdapterFile}
 */
export function readAdapter(given) {
  const { source, name = '', scale = 1, headers } = given ?? {};
  const unknown = Object.keys(given ?? {}).find((field) => !kFileFields.has(field));
  if (unknown) throw new DopplerError('unsupported', `An adapter has "${unknown}", which is not known; known are: ${[...kFileFields].join(', ')}.`);
  if (source === undefined || source === null || source === '') {
    throw wrong(`An adapter has the source ${shown(source)}; allowed are an address, a Hugging Face name, a File, Files of one folder or a handle of one.`);
  }
  if (typeof name !== 'string') throw wrong(`An adapter has the name ${shown(name)}; a name is a text.`);
  if (typeof scale !== 'number' || !Number.isFinite(Math.fround(scale))) throw wrong(`An adapter has the scale ${shown(scale)}; a scale is a number.`);
  return { source: absolute(source), name, scale, headers };
}

/** Reads the options of loading. @param {any} options @returns {any} */
export function readAdapterOptions({ adapters, adapterSlots, adapterRank }) {
  if (adapters !== undefined && !Array.isArray(adapters)) throw wrong(`Option adapters is ${shown(adapters)}; allowed is a list of {source, name, scale, headers}.`);
  const isCount = (value, most) => value === undefined || (Number.isInteger(value) && value >= 0 && value <= most);
  if (!isCount(adapterSlots, kMostSlots)) throw wrong(`Option adapterSlots is ${shown(adapterSlots)}; allowed is 0 to ${kMostSlots}.`);
  if (!isCount(adapterRank, kMostRank)) throw wrong(`Option adapterRank is ${shown(adapterRank)}; allowed is 0 to ${kMostRank}.`);
  return { adapters: adapters?.map(readAdapter), adapterSlots, adapterRank };
}

/** Reads the adapters of a request. @param {any} list @returns {{name: string, scale: number}[]} */
export function readAdapterUses(list) {
  if (!Array.isArray(list)) throw wrong(`A request has "adapters": ${shown(list)}; allowed is a list of {name, scale}.`);
  return list.map((use) => {
    const { name, scale = 1, ...others } = use ?? {};
    if (typeof name !== 'string' || name === '' || !Number.isFinite(scale) || Object.keys(others).length > 0) {
      throw wrong(`A request has the adapter ${shown(use)}; allowed is {name, scale}: the name that it was loaded with, and a number.`);
    }
    return { name, scale };
  });
}

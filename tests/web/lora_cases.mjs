// The cases of tests/data/adapters: a base model, its adapters, and the tokens that transformers with peft gives.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFloats, readIntegers } from './references.mjs';

/** Adapters of each base, of different kinds. */
export const kMixes = ['qv_r4', 'dora', 'rslora'];

export class Lora {
  /** @param {string} model the folder of a base model */
  constructor(model) {
    this.model = model;
    this.references = join(model, 'adapter_refs.safetensors');
    this.names = readdirSync(join(model, 'adapters')).sort();
    const [qv, all] = readFloats(this.references, 'two.weights');
    /** The two adapters of the reference "two", as a request has them. */
    this.two = [{ name: 'qv_r4', scale: qv }, { name: this.names.includes('all_r8') ? 'all_r8' : 'attn_r8', scale: all }];
    this.request = { prompt: readIntegers(this.references, 'prompt'), temperature: 0, max_tokens: 16, batch: 4, ignore_eos: true };
  }

  /** @param {string} name */
  pathOf(name) {
    return join(this.model, 'adapters', name);
  }

  /** @param {string} name of an adapter, "two" or "base" @returns {number[]} the reference */
  tokens(name) {
    return readIntegers(this.references, `${name}.greedy_tokens`);
  }

  /**
   * Whether a model must be loaded with the adapter: it changes the embedding or the head, or replaces whole tensors.
   * @param {string} name
   */
  isOfLoad(name) {
    const { modules_to_save: whole, target_modules: matrices, bias = 'none' } = JSON.parse(readFileSync(join(this.pathOf(name), 'adapter_config.json'), 'utf8'));
    return Boolean(whole?.length) || bias !== 'none' || (Array.isArray(matrices) && matrices.some((matrix) => /embed_tokens|lm_head/.test(matrix)));
  }
}

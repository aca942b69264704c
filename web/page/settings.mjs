// The reader's choices: theme, sampler, how models are loaded, models added by hand. Kept in localStorage, because the
// theme is wanted before the first paint. Each change is written into what other tabs wrote. No DOM; tests give a
// Map-like storage of their own.
import { keptTexts } from './kept.mjs';

const kKey = 'doppler-settings';
const kGrammars = 'vendor/xgrammar.js'; // build.mjs; fetched for the first answer that must keep to a form

/** Sampler fields as the panel shows them: OpenAI's and the engine's names (doppler.d.ts, SamplingOptions). */
export const kSamplerFields = [
  { name: 'temperature', label: 'Temperature', usual: 0.8, least: 0, most: 2, step: 0.05, hint: '0: always the likeliest token' },
  { name: 'top_p', label: 'Top-p', usual: 0.95, least: 0, most: 1, step: 0.01, hint: 'only the likeliest tokens, up to this share' },
  { name: 'top_k', label: 'Top-k', usual: 40, least: 0, most: 200, step: 1, hint: 'so many likeliest tokens; 0: all' },
  { name: 'min_p', label: 'Min-p', usual: 0.05, least: 0, most: 1, step: 0.01, hint: 'least share of the likeliest probability' },
  { name: 'repeat_penalty', label: 'Repeat penalty', usual: 1, least: 1, most: 2, step: 0.01, hint: '1: none' },
  { name: 'max_tokens', label: 'Most tokens', usual: 1024, least: 1, most: 8192, step: 1, hint: 'of one answer' },
];

export const kUsualSettings = {
  theme: 'auto', // "auto", "light" or "dark"
  system: '', // the system prompt of a new conversation
  sampler: Object.fromEntries(kSamplerFields.map((field) => [field.name, field.usual])),
  seed: '', // empty: another one each time
  stop: '', // texts that end an answer, one a line
  tools: '', // a list of functions in OpenAI's shape, as JSON; empty: none
  form: 'text', // of answers: "text", or "json"
  schema: '', // of JSON, as its text; empty: any object
  lane: 'fast',
  ctx: 0, // 0: the model's own, at most 4096
  kv: 'f16',
  lastModel: '', // the source that was loaded last
  added: /** @type {any[]} */ ([]), // models added by hand: catalogue.mjs, Entry
};

export class Settings extends EventTarget {
  #storage;
  /** @type {typeof kUsualSettings} */ values;

  /** @param {Pick<import('./kept.mjs').KeptTexts, 'getItem' | 'setItem'>} [storage] */
  constructor(storage = keptTexts()) {
    super();
    this.#storage = storage;
    this.values = this.#read();
    globalThis.addEventListener?.('storage', (event) => {
      if (event.key !== kKey) return;
      this.values = this.#read();
      this.dispatchEvent(new Event('change'));
    });
  }

  #read() {
    let kept = {};
    try {
      kept = JSON.parse(this.#storage.getItem(kKey) ?? '{}');
    } catch {
      // An unreadable text is as good as none.
    }
    return { ...kUsualSettings, ...kept, sampler: { ...kUsualSettings.sampler, ...kept?.sampler } };
  }

  /** @param {Partial<typeof kUsualSettings>} changes */
  set(changes) {
    this.#write({ ...this.#read(), ...changes });
  }

  /** @param {string} name @param {number} value */
  setSampler(name, value) {
    const values = this.#read();
    this.#write({ ...values, sampler: { ...values.sampler, [name]: value } });
  }

  /** Puts a model that was loaded by hand on the list. @param {any} entry catalogue.mjs, Entry */
  addModel(entry) {
    const values = this.#read();
    this.#write({ ...values, added: [...values.added.filter(({ source }) => source !== entry.source), entry] });
  }

  /** @param {string} source */
  removeModel(source) {
    const values = this.#read();
    this.#write({ ...values, added: values.added.filter((entry) => entry.source !== source) });
  }

  /** @param {any} values */
  #write(values) {
    this.values = values;
    this.#storage.setItem(kKey, JSON.stringify(values));
    this.dispatchEvent(new Event('change'));
  }

  /** The settings that a request to the engine takes. */
  sampling() {
    const { sampler, seed, stop } = this.values;
    const stops = stop.split('\n').filter((line) => line !== '');
    return {
      ...sampler,
      ...(seed === '' ? {} : { seed: Number(seed) }),
      ...(stops.length === 0 ? {} : { stop: stops }),
    };
  }

  /** The tools of a chat; null: none. Throws a sentence. */
  tools() {
    if (this.values.tools.trim() === '') return null;
    let given;
    try {
      given = JSON.parse(this.values.tools);
    } catch {
      throw new Error('The tools are no JSON.');
    }
    const list = (Array.isArray(given) ? given : [given]).map((tool) => (tool?.function ? tool : { type: 'function', function: tool }));
    if (list.some((tool) => typeof tool.function?.name !== 'string')) throw new Error('A tool has no name.');
    return list;
  }

  /** The settings of the form of answers that a request takes. Throws a sentence. */
  form() {
    const { form, schema } = this.values;
    if (form !== 'json') return {};
    if (schema.trim() === '') return { response_format: { type: 'json_object' } };
    try {
      return { response_format: { type: 'json_schema', json_schema: { schema: JSON.parse(schema) } } };
    } catch {
      throw new Error('The schema is no JSON.');
    }
  }

  /** The settings that loading takes. */
  loading() {
    const { lane, ctx, kv } = this.values;
    return { lane, kv, ...(ctx > 0 ? { ctx } : {}), grammars: kGrammars };
  }
}

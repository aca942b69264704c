// The package's shape (doppler.d.ts) without a GPU: what the tests of the page run on. Answers are written, not
// computed; words of the question choose one ("code", "table", "maths", "think", "long", "fail"). Served as
// /doppler.mjs.

const kStepMs = 4;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const kAnswers = {
  code: 'A function that greets:\n\n```python\ndef greet(name):\n    """Says hello."""\n    return f"Hello, {name}!"  # a comment\n```\n\nCall it with `greet("Ada")`.',
  table: '| Animal | Legs | Says |\n|---|---:|---|\n| fox | 4 | little |\n| crow | 2 | **caw** |\n\nThat is all.',
  maths: 'The roots of $ax^2+bx+c$:\n\n$$x = \\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}$$\n\nIt costs $5 or $6.',
  think: '<think> The reader asks something hard.\n\nI weigh it. </think> It is **so**.',
  long: Array.from({ length: 120 }, (_, i) => `Sentence number ${i + 1} of a long answer.`).join(' '),
  evil: 'Look: <img src=x onerror="window.wasHurt=1"> [click](javascript:window.wasHurt=1) ![p](https://example.org/p.png)',
};
const kUsual = '# The fox\n\nOnce there was a **fox**, who\n\n- looked up,\n- saw the crow,\n- and said: "What a fine voice you must have!"\n\n> Vanity is easily fed.';
const kFeatures = ['shader-f16', 'subgroups', 'timestamp-query'];
const kLimits = { maxBufferSize: 1 << 30, maxStorageBufferBindingSize: 1 << 27, maxComputeInvocationsPerWorkgroup: 256, maxStorageBuffersPerShaderStage: 10 };

export class DopplerError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = 'DopplerError';
    this.kind = kind;
  }
}

const kept = new Map([['https://huggingface.co/someone/Kept-1B-GGUF/resolve/main/kept.gguf', 700 << 20]]);

class ModelCache {
  async list() {
    return [...kept].map(([id, bytes]) => ({ id, bytes, cachedBytes: bytes, complete: true, lastUsed: 0, files: [{ url: id, bytes, cachedBytes: bytes }] }));
  }
  async delete(id) {
    kept.delete(id);
  }
  async clear() {
    kept.clear();
  }
  async persist() {
    return true;
  }
  async estimate() {
    return { usageBytes: [...kept.values()].reduce((sum, bytes) => sum + bytes, 0), quotaBytes: 20 * 2 ** 30, persisted: false };
  }
}

function answerTo(question) {
  for (const [word, answer] of Object.entries(kAnswers)) if (question.includes(word)) return answer;
  return kUsual;
}

/**
 * @param {string} question
 * @param {any} request
 * @param {(text: string, reason: string | null) => any} chunkOf
 * @param {number} promptTokens
 */
function streamed(question, request, chunkOf, promptTokens) {
  let isCancelled = false;
  async function* chunks() {
    if (question.includes('fail')) throw new DopplerError('out-of-memory', 'The GPU has no room for 3 GiB more.');
    const [adapter] = request.adapters ?? [];
    const words = (adapter ? `Ahoy from ${adapter.name}!` : answerTo(question)).match(/\s*\S+/g).slice(0, request.max_tokens ?? 1024);
    let count = 0;
    for (const word of words) {
      if (isCancelled || request.signal?.aborted) break;
      await pause(kStepMs);
      count++;
      yield chunkOf(word, null);
    }
    yield {
      ...chunkOf('', isCancelled ? 'cancelled' : 'stop'),
      usage: { prompt_tokens: promptTokens, completion_tokens: count, total_tokens: promptTokens + count, prompt_tokens_details: { cached_tokens: 0 } },
      timings: timingsOf(promptTokens, count),
    };
  }
  return { [Symbol.asyncIterator]: chunks, cancel: () => (isCancelled = true) };
}

/** @param {any} request */
function calling(request) {
  const { name } = request.tools[0].function;
  async function* chunks() {
    const chunkOf = (delta, finish_reason = null) => ({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] });
    yield chunkOf({ tool_calls: [{ index: 0, id: 'c00000001', type: 'function', function: { name, arguments: '' } }] });
    yield chunkOf({ tool_calls: [{ index: 0, function: { arguments: '{"city": "Rome"}' } }] });
    yield { ...chunkOf({}, 'tool_calls'), timings: timingsOf(9, 8),
      usage: { prompt_tokens: 9, completion_tokens: 8, total_tokens: 17, prompt_tokens_details: { cached_tokens: 0 } } };
  }
  return { [Symbol.asyncIterator]: chunks, cancel() {} };
}

const kNoCounters = { submits: 0, dispatches: 0, readback_bytes: 0, objects_created_after_load: 0 };

function timingsOf(prompt, count, depth = 0) {
  return {
    ttft_seconds: 0.047 + prompt / 2000, evaluated_tokens: prompt, prefill_tokens_per_second: 2000 / (1 + depth / 2000),
    decode_seconds: count / 88, decode_tokens_per_second: 88 / (1 + depth / 1000) + (count % 3),
  };
}

export class Doppler extends EventTarget {
  static cache = new ModelCache();
  /** Requests as they came, for the tests. */
  static requests = [];
  static loads = 0;

  static async probe() {
    return {
      available: true, reason: '', adapter: 'Fake Graphics 3000', vendor: 'fake', architecture: 'pretend-2', cpu: false, features: kFeatures,
      limits: kLimits, languageFeatures: ['packed_4x8_integer_dot_product'],
    };
  }

  static async inspect(source) {
    const name = typeof source === 'string' ? source : (source.name ?? source[0]?.name);
    if (String(name).includes('missing')) throw new DopplerError('io', `There is no model at ${name}: the server answered 404.`);
    return { bytes: String(name).includes('huge') ? 40 * 2 ** 30 : 15548928 };
  }

  static async load(source, { progress = () => {}, signal, lane = 'fast', ctx = 1024, grammars = '', images = false, adapters = [], adapterRank = 0 } = {}) {
    const name = typeof source === 'string' ? source : (source.name ?? source[0]?.name);
    if (String(name).includes('missing')) throw new DopplerError('io', `There is no model at ${name}: the server answered 404.`);
    if (String(name).includes('broken')) throw new DopplerError('unsupported', 'Architecture "nonsense" is not known.');
    Doppler.loads++;
    const total = 15548928;
    const kSteps = String(name).includes('slow') ? 400 : 8;
    for (const [phase, most, rate] of [['download', total, 9e6], ['upload', total, 9e8], ['compile', 56, 200]]) {
      for (let step = 1; step <= kSteps; ++step) {
        if (signal?.aborted) throw new DopplerError('cancelled', 'Loading was cancelled.');
        await pause(kStepMs);
        const bytes = Math.round((most * step) / kSteps);
        progress({ phase, bytes, total: most, rate, secondsLeft: (most - bytes) / rate });
      }
    }
    if (typeof source === 'string') kept.set(new URL(source.replace(/^(?=[\w.-]+\/[\w.-]+:)/, 'https://huggingface.co/'), globalThis.location?.href ?? 'http://localhost/').href, total);
    const model = new Doppler();
    model.info = {
      name: '', architecture: 'llama', synthetic: false, adapter: 'Fake Graphics 3000', provider: 'browser', lane, vocabSize: 8192, ctxLen: ctx, trainedCtxLen: 1024,
      weightBytes: total, cacheBytes: 4 << 20, scratchBytes: 8 << 20, loadSeconds: 0.8, hasTokenizer: true, hasChatTemplate: !String(name).includes('base'),
      variants: ['matvec.q4_k.subgroup'], selfTest: null, grammars: grammars !== '', readsImages: images,
      adapterSlots: adapters.length > 0 ? 8 : 0, adapterRank: adapters.some((adapter) => adapter.name === 'large') ? 32 : adapterRank,
    };
    for (const adapter of adapters) await model.loadAdapter(adapter.name, adapter.source);
    return model;
  }

  #adapters = new Set();

  /** @param {string} name "bad": it is none; "large": of a larger rank @param {any} source */
  async loadAdapter(name, source) {
    const file = typeof source === 'string' ? source : (source.name ?? source[0].name);
    if (name === 'bad') throw new DopplerError('invalid-input', `${file} is no adapter.`);
    if (name === 'large' && this.info.adapterRank < 32) throw new DopplerError('unsupported', 'Adapters of rank 32 together do not fit a slot of rank 16; load the model with more (adapterRank).');
    this.#adapters.add(name);
  }
  async unloadAdapter(name) {
    this.#adapters.delete(name);
  }

  chat = {
    completions: {
      create: async (request) => {
        Doppler.requests.push(request);
        const [lacked] = request.adapters?.filter(({ name }) => !this.#adapters.has(name)) ?? [];
        if (lacked) throw new DopplerError('invalid-input', `There is no adapter "${lacked.name}".`);
        if (this.isUnloaded) throw new DopplerError('invalid-input', 'The model was unloaded.');
        const { content } = request.messages.at(-1);
        const question = Array.isArray(content) ? content.map(({ text = '' }) => text).join('') : content;
        if (question.includes('call') && request.tools) return calling(request);
        let isThought = false;
        const chunkOf = (word, finish_reason) => {
          const mark = word.trim();
          if (mark === '<think>' || mark === '</think>') {
            isThought = mark === '<think>';
            word = '';
          }
          const delta = isThought ? { reasoning_content: word } : { content: word };
          return { object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] };
        };
        return streamed(question, request, chunkOf, request.messages.map((message) => message.content).join(' ').split(' ').length);
      },
    },
  };

  async complete(request) {
    Doppler.requests.push(request);
    const chunkOf = (text, finish_reason) => ({ object: 'text_completion', choices: [{ index: 0, text, finish_reason }] });
    return streamed(request.prompt, request, chunkOf, request.prompt.length);
  }

  newSession() {
    let depth = 0;
    return {
      complete: async ({ prompt, max_tokens }) => {
        await pause(kStepMs);
        const timings = timingsOf(prompt.length, max_tokens, depth || (max_tokens > 1 ? prompt.length : 0));
        depth += prompt.length;
        return { choices: [{ index: 0, text: '', finish_reason: 'length' }], timings, counters: kNoCounters };
      },
    };
  }

  async memory() {
    return { weightBytes: 15548928, cacheBytes: 4 << 20, scratchBytes: 8 << 20, gpuBytes: 15548928 + (12 << 20), wasmBytes: 4 << 20 };
  }

  async kernels() {
    return [
      { operation: 'matvec', shape: '512 x 1280', variant: 'matvec.q4_k.subgroup', refused: [], others: ['matvec.q4_k.portable'] },
      { operation: 'attention', shape: '8 heads of 64', variant: 'attention.decode.portable', others: [], refused: [{ variant: 'attention.decode.subgroup32', reason: 'the subgroup size is 8; 32 is needed.' }] },
    ];
  }

  async selfTest() {
    await pause(kStepMs);
    return {
      passed: false, lane: 'fast', replaced: { matvec: 'matvec.q4_k.portable' }, text: 'q4_k: wrong, by matvec.q4_k.subgroup',
      formats: [{ format: 'q4_k', passed: false, wrong: 'matvec.q4_k.subgroup' }, { format: 'q6_k', passed: true, wrong: null }],
    };
  }

  async unload() {
    this.isUnloaded = true;
  }
}

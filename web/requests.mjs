// Requests in OpenAI's shapes, and what the core takes (src/web/web_options.h). A member that would change the answer
// and is not known is refused by name. Read next: shapes.mjs, for the answers.
import { readAdapterUses } from './adapter_fields.mjs';
import { DopplerError } from './errors.mjs';

// Our names of a generation's options -> the core's.
const kOptions = {
  max_tokens: 'maxTokens', max_completion_tokens: 'maxTokens', temperature: 'temperature', top_p: 'topP', top_k: 'topK',
  min_p: 'minP', repeat_penalty: 'repeatPenalty', presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty', logit_bias: 'logitBias', seed: 'seed', stop: 'stop', ignore_eos: 'ignoreEos',
  when_full: 'whenFull', batch: 'batch', add_special: 'addSpecial', min_tokens: 'minTokens', top_n_sigma: 'topNSigma',
  typical_p: 'typicalP', xtc_probability: 'xtcProbability', xtc_threshold: 'xtcThreshold',
  dynatemp_range: 'dynatempRange', dynatemp_exponent: 'dynatempExponent', mirostat_tau: 'mirostatTau',
  mirostat_eta: 'mirostatEta', dry_multiplier: 'dryMultiplier', dry_base: 'dryBase',
  dry_allowed_length: 'dryAllowedLength', dry_range: 'dryRange', dry_breakers: 'dryBreakers',
  draft: 'draft', draft_rows: 'draftRows',
};
// Fields of a chat, for the core to read (src/web/web_chat.h).
const kChat = new Set(['messages', 'documents', 'tools', 'tool_choice', 'parallel_tool_calls', 'chat_template_kwargs',
  'reasoning_effort', 'continue_final_message', 'add_generation_prompt']);
// Fields of grammars, for the core to read (src/openai/grammar_fields.h).
const kGrammar = new Set(['response_format', 'grammar', 'json_schema', 'guided_json', 'guided_regex', 'guided_grammar', 'guided_choice',
  'structured_outputs']);
// Read elsewhere, or without effect on the answer.
const kOthers = new Set(['prompt', 'stream', 'stream_options', 'model', 'signal', 'session', 'user', 'metadata',
  'logprobs', 'top_logprobs', 'n', 'prediction', 'adapters']);
const kMostAnswers = 128; // n, as OpenAI allows

/** Makes the request of Engine.generate(). @param {any} request @param {boolean} isChat @param {number} [session] */
export function readRequest(request, isChat, session) {
  /** @type {Record<string, any>} */ const options = {};
  /** @type {Record<string, any>} */ const chat = {};
  /** @type {Record<string, any>} */ const fields = {};
  for (const [name, value] of Object.entries(request)) {
    if (value === undefined || value === null || kOthers.has(name)) continue;
    if (isChat && kChat.has(name)) {
      chat[name] = value;
      continue;
    }
    if (kGrammar.has(name)) {
      fields[name] = value;
      continue;
    }
    const known = kOptions[name];
    if (!known) throw new DopplerError('unsupported', `A request has "${name}", which this version does not know.`);
    options[known] = value;
  }
  options.seed ??= Math.floor(Math.random() * 2 ** 32);
  Object.assign(options, logprobOptions(request, isChat), predictionOption(request));
  if (request.adapters) options.adapters = readAdapterUses(request.adapters);
  const { messages, prompt } = request;
  if (isChat) {
    if (!Array.isArray(messages)) throw new DopplerError('invalid-input', 'A chat request needs messages, a list.');
    return { chat: { ...chat, ...fields }, options, session };
  }
  if (Array.isArray(prompt)) return { tokens: prompt, fields, options, session };
  if (typeof prompt === 'string') return { text: prompt, fields, options, session };
  throw new DopplerError('invalid-input', 'A completion needs a prompt: text, or a list of token ids.');
}

/** OpenAI's chats have a flag and a number, its completions a number. @param {any} request @param {boolean} isChat */
function logprobOptions({ logprobs, top_logprobs: top }, isChat) {
  if (!isChat) return typeof logprobs === 'number' ? { logprobs: true, topLogprobs: logprobs } : {};
  if (top && !logprobs) throw new DopplerError('invalid-input', 'A request has "top_logprobs" without "logprobs".');
  return logprobs ? { logprobs: true, topLogprobs: top ?? 0 } : {};
}

/** OpenAI's text that the answer may repeat. @param {any} request */
function predictionOption({ prediction }) {
  if (prediction === undefined || prediction === null) return {};
  const { content } = prediction;
  const parts = Array.isArray(content) ? content.map((part) => part?.text) : [content];
  if (!parts.every((part) => typeof part === 'string')) {
    throw new DopplerError('invalid-input', 'A request has a "prediction" whose content is neither text nor a list of texts.');
  }
  return { prediction: parts.join('') };
}

/** The number of answers that a request wants. @param {any} request @param {number} [session] @returns {number} */
export function answersOf({ n = 1 }, session) {
  if (!Number.isInteger(n) || n < 1 || n > kMostAnswers) {
    throw new DopplerError('invalid-input', `A request has "n": ${JSON.stringify(n)}; allowed is 1 to ${kMostAnswers}.`);
  }
  if (n > 1 && session) throw new DopplerError('invalid-input', `A request of a session has "n": ${n}; a text goes on in one way, and fork() makes others.`);
  return n;
}

/**
 * Pushed chunks, for `for await`. Leaving the loop early calls `cancel`.
 * @template T
 */
export class Chunks {
  /** @type {T[]} */ #waiting = [];
  /** @type {Error | null} */ #error = null;
  #isEnded = false;
  #wake = () => {};

  /** @param {() => void} cancel */
  constructor(cancel) {
    this.cancel = cancel;
  }

  /** @param {T} chunk */
  push(chunk) {
    this.#waiting.push(chunk);
    this.#wake();
  }

  /** @param {Error | null} [error] */
  end(error = null) {
    this.#isEnded = true;
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    try {
      while (true) {
        const chunk = this.#waiting.shift();
        if (chunk !== undefined) yield chunk;
        else if (this.#error) throw this.#error;
        else if (this.#isEnded) return;
        else await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
      }
    } finally {
      if (!this.#isEnded) this.cancel();
    }
  }
}

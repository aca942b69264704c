// Requests and answers in OpenAI's shapes, and what the core takes and gives (src/web/web_options.h). A member that
// would change the answer and is not known is refused by name.
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
};
// Fields of a chat, for the core to read (src/web/web_chat.h).
const kChat = new Set(['messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'chat_template_kwargs', 'reasoning_effort']);
// Fields of grammars, for the core to read (src/openai/grammar_fields.h).
const kGrammar = new Set(['response_format', 'grammar', 'json_schema', 'guided_json', 'guided_regex', 'guided_grammar', 'guided_choice',
  'structured_outputs']);
// Read elsewhere, or without effect on the answer.
const kOthers = new Set(['prompt', 'stream', 'stream_options', 'model', 'signal', 'session', 'user', 'metadata']);
const kFinishReasons = { 'end-of-text': 'stop', 'stop-string': 'stop', 'token-limit': 'length', 'context-full': 'length',
  cancelled: 'cancelled' };

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
  if (request.seed === undefined) options.seed = Math.floor(Math.random() * 2 ** 32);
  const { messages, prompt } = request;
  if (isChat) {
    if (!Array.isArray(messages)) throw new DopplerError('invalid-input', 'A chat request needs messages, a list.');
    return { chat: { ...chat, ...fields }, options, session };
  }
  if (Array.isArray(prompt)) return { tokens: prompt, fields, options, session };
  if (typeof prompt === 'string') return { text: prompt, fields, options, session };
  throw new DopplerError('invalid-input', 'A completion needs a prompt: text, or a list of token ids.');
}

/** The shapes of one answer, which takes its pieces as they come. */
export class Shape {
  #calls = 0;
  #isFirst = true;
  /** @type {any} */ #message = { role: 'assistant', content: '' };

  /** @param {boolean} isChat @param {string} model */
  constructor(isChat, model) {
    this.isChat = isChat;
    const id = `${isChat ? 'chatcmpl' : 'cmpl'}-${crypto.randomUUID()}`;
    this.head = { id, created: Math.floor(Date.now() / 1000), model };
  }

  /** The chunks of a piece. @param {{tokens: number[], text?: string, events?: [string, string][]}} piece */
  chunks({ tokens, text, events }) {
    const contents = this.isChat ? this.#deltas(events ?? []) : [{ text }];
    return contents.map((content, i) => this.#chunk(content, i === 0 ? tokens : [], null));
  }

  /** @param {any} answer */
  last(answer) {
    return { ...this.#chunk(this.isChat ? { delta: {} } : { text: '' }, [], this.#reason(answer)), ...figures(answer) };
  }

  /** After all pieces went through chunks(). @param {any} answer */
  whole(answer) {
    const content = this.isChat ? { message: this.#message } : { text: answer.text };
    const object = this.isChat ? 'chat.completion' : 'text_completion';
    const choices = [{ index: 0, ...content, finish_reason: this.#reason(answer) }];
    return { ...this.head, object, choices, tokens: answer.tokens, ...figures(answer) };
  }

  /** @param {[string, string][]} events */
  #deltas(events) {
    const deltas = events.map((event) => ({ delta: this.#delta(event) }));
    if (deltas.length === 0) deltas.push({ delta: { content: '' } }); // tokens whose text is not certain yet
    if (this.#isFirst) deltas[0].delta = { role: 'assistant', ...deltas[0].delta };
    this.#isFirst = false;
    return deltas;
  }

  /** @param {[string, string]} event @returns {any} */
  #delta([kind, text]) {
    const message = this.#message;
    if (kind === 'text') {
      message.content += text;
      return { content: text };
    }
    if (kind === 'reasoning') {
      message.reasoning_content = (message.reasoning_content ?? '') + text;
      return { reasoning_content: text };
    }
    message.tool_calls ??= [];
    if (kind === 'call') {
      const call = { id: callId(), type: 'function', function: { name: text, arguments: '' } };
      this.#calls = message.tool_calls.push(call);
      return { tool_calls: [{ index: this.#calls - 1, ...call, function: { ...call.function } }] };
    }
    message.tool_calls.at(-1).function.arguments += text;
    return { tool_calls: [{ index: this.#calls - 1, function: { arguments: text } }] };
  }

  /** @param {any} answer */
  #reason({ stop }) {
    const reason = kFinishReasons[stop];
    return reason === 'stop' && this.#calls > 0 ? 'tool_calls' : reason;
  }

  #chunk(content, tokens, finish_reason) {
    const object = this.isChat ? 'chat.completion.chunk' : 'text_completion';
    return { ...this.head, object, choices: [{ index: 0, ...content, finish_reason }], tokens };
  }
}

// As the server makes them: some templates take only nine letters and digits.
const kCallIdLength = 9;
function callId() {
  return crypto.randomUUID().replaceAll('-', '').slice(0, kCallIdLength);
}

/** @param {any} answer */
function figures({ timings: t, counters }) {
  return {
    usage: {
      prompt_tokens: t.prompt_tokens,
      completion_tokens: t.generated_tokens,
      total_tokens: t.prompt_tokens + t.generated_tokens,
      prompt_tokens_details: { cached_tokens: t.prompt_tokens - t.evaluated_tokens },
    },
    timings: {
      ttft_seconds: t.ttft_seconds,
      evaluated_tokens: t.evaluated_tokens,
      prefill_tokens_per_second: t.prefill_tokens_per_second,
      decode_seconds: t.decode_seconds,
      decode_tokens_per_second: t.decode_tokens_per_second,
      drafted_tokens: t.drafted_tokens ?? 0,
      accepted_tokens: t.accepted_tokens ?? 0,
      preemptions: t.preemptions ?? 0,
    },
    counters,
  };
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

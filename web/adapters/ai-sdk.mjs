// A loaded model as a language model of Vercel's AI SDK (@ai-sdk/provider, LanguageModelV3 and V4, which are alike
// here): text, reasoning and calls of tools. ai 6 takes v3, ai 7 both. Requests that the core cannot carry out (files,
// tools that run at a provider) become an error, by name.
import { asDopplerError, DopplerError } from '../errors.mjs';

/** @typedef {import('@ai-sdk/provider').LanguageModelV3} LanguageModelV3 */
/** @typedef {import('@ai-sdk/provider').LanguageModelV3CallOptions} CallOptions */
/** @typedef {import('@ai-sdk/provider').LanguageModelV3StreamPart} StreamPart */

const kVersions = ['v3', 'v4'];

const kBlockIds = { text: 'text', reasoning: 'reasoning' }; // one block of each in an answer

/**
 * @param {import('../doppler.d.ts').Doppler} doppler @param {{specificationVersion?: any}} [options]
 * @returns {LanguageModelV3}
 */
export function aiSdkModel(doppler, { specificationVersion = 'v3' } = {}) {
  if (!kVersions.includes(specificationVersion)) {
    throw new DopplerError('invalid-input', `specificationVersion is "${specificationVersion}"; allowed are ${kVersions.join(' and ')}.`);
  }
  return {
    specificationVersion,
    provider: 'doppler',
    modelId: doppler.info.name,
    supportedUrls: {},

    async doGenerate(options) {
      const request = readOptions(options);
      const answer = await asTheirs(doppler.chat.completions.create({ ...request, stream: false }));
      const [{ message, finish_reason }] = answer.choices;
      const calls = message.tool_calls ?? [];
      return {
        content: [
          ...(message.reasoning_content ? [{ type: /** @type {const} */ ('reasoning'), text: message.reasoning_content }] : []),
          ...(message.content || calls.length === 0 ? [{ type: /** @type {const} */ ('text'), text: message.content }] : []),
          ...calls.map(toolCall),
        ],
        ...ending(answer, finish_reason),
        warnings: [],
        request: { body: request.messages },
        response: metadata(answer),
      };
    },

    async doStream(options) {
      const request = readOptions(options);
      const chunks = await asTheirs(doppler.chat.completions.create({ ...request, stream: true }));
      return { stream: readable(parts(chunks), () => chunks.cancel()), request: { body: request.messages } };
    },
  };
}

/**
 * @param {AsyncIterable<import('../doppler.d.ts').ChatChunk>} chunks
 * @returns {AsyncGenerator<StreamPart>}
 */
async function* parts(chunks) {
  yield { type: 'stream-start', warnings: [] };
  const blocks = new Blocks();
  let isFirst = true;
  try {
    for await (const chunk of chunks) {
      if (isFirst) yield { type: 'response-metadata', ...metadata(chunk) };
      isFirst = false;
      const [{ delta, finish_reason }] = chunk.choices;
      if (delta.reasoning_content) yield* blocks.add('reasoning', delta.reasoning_content);
      if (delta.content) yield* blocks.add('text', delta.content);
      for (const call of delta.tool_calls ?? []) yield* blocks.addCall(call);
      if (finish_reason === null) continue;
      yield* blocks.end();
      yield { type: 'finish', ...ending(chunk, finish_reason) };
    }
  } catch (error) {
    yield { type: 'error', error: theirs(error) };
  }
}

/** The open part of a stream: a text, a reasoning, or a call of a tool. */
class Blocks {
  /** @type {'text' | 'reasoning' | null} */ #open = null;
  /** @type {import('../doppler.d.ts').ToolCall | null} */ #call = null;

  /** @param {'text' | 'reasoning'} kind @param {string} text @returns {Generator<StreamPart>} */
  *add(kind, text) {
    if (this.#open !== kind) {
      yield* this.end();
      this.#open = kind;
      yield { type: `${kind}-start`, id: kBlockIds[kind] };
    }
    yield { type: `${kind}-delta`, id: kBlockIds[kind], delta: text };
  }

  /** @param {import('../doppler.d.ts').ToolCallDelta} delta @returns {Generator<StreamPart>} */
  *addCall({ id, function: { name = '', arguments: text } }) {
    if (id) {
      yield* this.end();
      this.#call = { id, type: 'function', function: { name, arguments: '' } };
      yield { type: 'tool-input-start', id, toolName: name };
    }
    if (!this.#call || !text) return;
    this.#call.function.arguments += text;
    yield { type: 'tool-input-delta', id: this.#call.id, delta: text };
  }

  /** @returns {Generator<StreamPart>} */
  *end() {
    if (this.#open) yield { type: `${this.#open}-end`, id: kBlockIds[this.#open] };
    if (this.#call) {
      yield { type: 'tool-input-end', id: this.#call.id };
      yield toolCall(this.#call);
    }
    this.#open = this.#call = null;
  }
}

/** @param {import('../doppler.d.ts').ToolCall} call */
function toolCall({ id, function: { name, arguments: text } }) {
  return { type: /** @type {const} */ ('tool-call'), toolCallId: id, toolName: name, input: text };
}

/** @param {CallOptions} options */
function readOptions(options) {
  const { responseFormat: format, toolChoice: choice } = options;
  return {
    messages: options.prompt.flatMap(messages),
    tools: options.tools?.length ? options.tools.map(tool) : undefined,
    tool_choice: choice?.type === 'tool' ? { type: /** @type {const} */ ('function'), function: { name: choice.toolName } } : choice?.type,
    response_format: format?.type === 'json' ? responseFormat(format) : undefined,
    max_tokens: options.maxOutputTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    stop: options.stopSequences,
    seed: options.seed,
    signal: options.abortSignal,
  };
}

/** @param {{schema?: object, name?: string}} format @returns {import('../doppler.d.ts').ResponseFormat} */
function responseFormat({ schema, name }) {
  return schema ? { type: 'json_schema', json_schema: { name, schema } } : { type: 'json_object' };
}

/** @param {any} given @returns {import('../doppler.d.ts').Tool} */
function tool(given) {
  if (given.type !== 'function') throw new DopplerError('unsupported', `The tool "${given.name}" would run at a provider; there is none.`);
  const { name, description, inputSchema } = given;
  return { type: 'function', function: { name, description, parameters: inputSchema } };
}

/**
 * @param {import('@ai-sdk/provider').LanguageModelV3Message} given @returns {import('../doppler.d.ts').ChatMessage[]}
 */
function messages({ role, content }) {
  if (typeof content === 'string') return [{ role, content }];
  /** @type {import('../doppler.d.ts').ToolCall[]} */ const calls = [];
  /** @type {import('../doppler.d.ts').ChatMessage[]} */ const results = [];
  let text = '';
  for (const part of content) {
    if (part.type === 'text') text += part.text;
    else if (part.type === 'tool-call') {
      calls.push({ id: part.toolCallId, type: 'function', function: { name: part.toolName, arguments: JSON.stringify(part.input) } });
    } else if (part.type === 'tool-result') {
      results.push({ role: 'tool', tool_call_id: part.toolCallId, name: part.toolName, content: resultText(part.output) });
    } else if (part.type !== 'reasoning') { // of earlier answers: models do not read it again
      throw new DopplerError('unsupported', `A message has a part of type "${part.type}"; text, reasoning and calls of tools are known.`);
    }
  }
  if (role === 'tool') return results;
  return [{ role, content: text, ...(calls.length > 0 && { tool_calls: calls }) }, ...results];
}

/** @param {any} output */
function resultText({ type, value, reason }) {
  if (type === 'execution-denied') return reason ?? 'The call was not allowed.';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The SDK's names of the reasons of an end. */
const kFinish = /** @type {const} */ ({ stop: 'stop', length: 'length', tool_calls: 'tool-calls', cancelled: 'other' });

/** @param {any} answer @param {import('../doppler.d.ts').FinishReason} reason */
function ending({ usage }, reason) {
  const cached = usage.prompt_tokens_details.cached_tokens;
  const outputTokens = { total: usage.completion_tokens, text: usage.completion_tokens, reasoning: 0 };
  return {
    finishReason: { unified: kFinish[reason], raw: reason },
    usage: {
      inputTokens: { total: usage.prompt_tokens, noCache: usage.prompt_tokens - cached, cacheRead: cached, cacheWrite: undefined },
      outputTokens,
    },
  };
}

/** @param {{id: string, model: string, created: number}} answer */
function metadata({ id, model, created }) {
  return { id, modelId: model, timestamp: new Date(created * 1000) };
}

/** @template T @param {Promise<T>} promise @returns {Promise<T>} */
function asTheirs(promise) {
  return promise.catch((error) => {
    throw theirs(error);
  });
}

// The SDK knows an abort by its name. @param {unknown} error
function theirs(error) {
  const ours = asDopplerError(error);
  return ours.kind === 'cancelled' ? new DOMException(ours.message, 'AbortError') : ours;
}

/** @template T @param {AsyncGenerator<T>} generator @param {() => void} cancel @returns {ReadableStream<T>} */
function readable(generator, cancel) {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await generator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel,
  });
}

// A loaded model as a language model of Vercel's AI SDK (@ai-sdk/provider, LanguageModelV4): text in, text out. What the
// core does not do (tools, files, a response format) becomes a warning or an error, by name.
import { asDopplerError, DopplerError } from '../errors.mjs';

/** @typedef {import('@ai-sdk/provider').LanguageModelV4} LanguageModelV4 */
/** @typedef {import('@ai-sdk/provider').LanguageModelV4CallOptions} CallOptions */
/** @typedef {import('@ai-sdk/provider').SharedV4Warning} Warning */

const kTextId = '0'; // of the one text block of an answer

/** @param {import('../doppler.d.ts').Doppler} doppler @returns {LanguageModelV4} */
export function aiSdkModel(doppler) {
  return {
    specificationVersion: 'v4',
    provider: 'doppler',
    modelId: doppler.info.name,
    supportedUrls: {},

    async doGenerate(options) {
      const { request, warnings } = readOptions(options);
      const answer = await asTheirs(doppler.chat.completions.create({ ...request, stream: false }));
      const [{ message, finish_reason }] = answer.choices;
      return {
        content: [{ type: 'text', text: message.content }],
        ...ending(answer, finish_reason),
        warnings,
        request: { body: request.messages },
        response: metadata(answer),
      };
    },

    async doStream(options) {
      const { request, warnings } = readOptions(options);
      const chunks = await asTheirs(doppler.chat.completions.create({ ...request, stream: true }));
      return { stream: readable(parts(chunks, warnings), () => chunks.cancel()), request: { body: request.messages } };
    },
  };
}

/**
 * @param {AsyncIterable<import('../doppler.d.ts').ChatChunk>} chunks @param {Warning[]} warnings
 * @returns {AsyncGenerator<import('@ai-sdk/provider').LanguageModelV4StreamPart>}
 */
async function* parts(chunks, warnings) {
  yield { type: 'stream-start', warnings };
  let isFirst = true;
  try {
    for await (const chunk of chunks) {
      if (isFirst) {
        yield { type: 'response-metadata', ...metadata(chunk) };
        yield { type: 'text-start', id: kTextId };
        isFirst = false;
      }
      const [{ delta, finish_reason }] = chunk.choices;
      if (delta.content) yield { type: 'text-delta', id: kTextId, delta: delta.content };
      if (finish_reason === null) continue;
      yield { type: 'text-end', id: kTextId };
      yield { type: 'finish', ...ending(chunk, finish_reason) };
    }
  } catch (error) {
    yield { type: 'error', error: theirs(error) };
  }
}

/** @param {CallOptions} options */
function readOptions(options) {
  /** @type {Warning[]} */ const warnings = [];
  if (options.tools?.length) throw new DopplerError('unsupported', 'Tools are asked for, which this version does not know.');
  if (options.responseFormat?.type === 'json') warnings.push({ type: 'unsupported', feature: 'responseFormat' });
  const request = {
    messages: options.prompt.map(message),
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
  return { request, warnings };
}

/** @param {import('@ai-sdk/provider').LanguageModelV4Message} given */
function message({ role, content }) {
  if (typeof content === 'string') return { role, content };
  const texts = content.map((part) => {
    if (part.type === 'text') return part.text;
    if (part.type === 'reasoning') return ''; // of earlier answers: models do not read it again
    throw new DopplerError('unsupported', `A message has a part of type "${part.type}"; only text is known.`);
  });
  return { role, content: texts.join('') };
}

/** @param {any} answer @param {import('../doppler.d.ts').FinishReason} reason */
function ending({ usage }, reason) {
  const cached = usage.prompt_tokens_details.cached_tokens;
  const outputTokens = { total: usage.completion_tokens, text: usage.completion_tokens, reasoning: 0 };
  return {
    finishReason: { unified: reason === 'cancelled' ? /** @type {const} */ ('other') : reason, raw: reason },
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

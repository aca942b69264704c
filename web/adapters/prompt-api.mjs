// A loaded model in the shape of Chrome's Prompt API (webmachinelearning.github.io/prompt-api): an object like the
// global LanguageModel, so that a page written for that runs on any model. Text only.
import { asDopplerError, DopplerError } from '../errors.mjs';

const kDefaultTopK = 40;
const kDefaultTemperature = 0.8;
const kMaxTemperature = 2;
const kMaxTopK = 128;
const kMostTurns = 32; // of calls before an answer: some models call for ever

const kCreateOptions = ['initialPrompts', 'topK', 'temperature', 'tools', 'signal', 'expectedInputs', 'expectedOutputs', 'monitor'];
const kPromptOptions = ['signal', 'responseConstraint', 'omitResponseConstraintInput'];
const kInputTypes = ['text', 'tool-response'];
const kOutputTypes = ['text', 'tool-call'];

/** @param {import('../doppler.d.ts').Doppler} doppler @returns {import('./prompt-api.d.ts').LanguageModelFactory} */
export function promptApiModel(doppler) {
  let isUsable = true;
  doppler.addEventListener('failed', () => (isUsable = false));
  return {
    // The model is loaded: it is available for what it can do, and nothing will be downloaded for the rest.
    availability: async (options = {}) => {
      checkMembers(options, kCreateOptions, 'availability()');
      return isUsable && !(await isUnloaded(doppler)) && whatIsMissing(doppler, options) === '' ? 'available' : 'unavailable';
    },
    params: async () => ({ defaultTopK: kDefaultTopK, maxTopK: kMaxTopK, defaultTemperature: kDefaultTemperature,
      maxTemperature: kMaxTemperature }),
    async create(options = {}) {
      checkMembers(options, kCreateOptions, 'create()');
      const { initialPrompts = [], topK = kDefaultTopK, temperature = kDefaultTemperature, tools, signal, monitor } = options;
      signal?.throwIfAborted();
      const missing = whatIsMissing(doppler, options);
      if (missing) throw new DOMException(missing, 'NotSupportedError');
      if (!(Number.isFinite(topK) && topK >= 1 && topK <= kMaxTopK)) throw new RangeError(`topK is ${topK}; allowed is 1 to ${kMaxTopK}.`);
      if (!(temperature >= 0 && temperature <= kMaxTemperature)) throw new RangeError(`temperature is ${temperature}; allowed is 0 to ${kMaxTemperature}.`);
      monitor?.(new EventTarget()); // there is no download to tell of
      const model = new PromptModel(doppler, initialPrompts.map(message), { topK, temperature, tools: tools ?? [] });
      signal?.addEventListener('abort', () => model.destroy());
      await model.measure();
      return model;
    },
  };
}

/** @param {import('../doppler.d.ts').Doppler} doppler */
async function isUnloaded(doppler) {
  return doppler.tokenize('').then(() => false, () => true);
}

/**
 * Names the first wish that this model cannot fulfil, in a sentence; or empty.
 * @param {import('../doppler.d.ts').Doppler} doppler @param {any} options
 */
function whatIsMissing(doppler, { expectedInputs = [], expectedOutputs = [], tools }) {
  for (const { type } of expectedInputs) if (!kInputTypes.includes(type)) return `Inputs of type "${type}" are not known; only text is.`;
  for (const { type } of expectedOutputs) if (!kOutputTypes.includes(type)) return `Outputs of type "${type}" are not known; only text is.`;
  if (!doppler.info.hasChatTemplate) return `The model ${doppler.info.name} has no chat template.`;
  for (const tool of tools ?? []) if (typeof tool?.execute !== 'function') return `The tool "${tool?.name}" has no function execute.`;
  return '';
}

/** @param {object} options @param {string[]} known @param {string} where */
function checkMembers(options, known, where) {
  const foreign = Object.keys(options).find((name) => !known.includes(name));
  if (foreign) throw unsupported(`${where} was given "${foreign}"; known are: ${known.join(', ')}.`);
}

class PromptModel extends EventTarget {
  #doppler;
  #messages;
  #tools;
  #life = new AbortController();
  contextUsage = 0;
  /** @type {((event: Event) => any) | null} */ oncontextoverflow = null;

  /**
   * @param {import('../doppler.d.ts').Doppler} doppler @param {any[]} messages
   * @param {{topK: number, temperature: number, tools: import('./prompt-api.d.ts').PromptTool[]}} options
   */
  constructor(doppler, messages, { topK, temperature, tools }) {
    super();
    this.#tools = tools;
    this.#doppler = doppler;
    this.#messages = messages;
    this.topK = topK;
    this.temperature = temperature;
  }

  get contextWindow() {
    return this.#doppler.info.ctxLen;
  }

  /** @param {any} input @param {any} [options] */
  async prompt(input, options) {
    let text = '';
    for await (const piece of /** @type {any} */ (this.promptStreaming(input, options))) text += piece;
    return text;
  }

  /** @param {any} input @param {any} [options] @returns {ReadableStream<string>} */
  promptStreaming(input, options = {}) {
    checkMembers(options, kPromptOptions, 'A prompt');
    if (options.omitResponseConstraintInput === false && options.responseConstraint) {
      throw unsupported('omitResponseConstraintInput is false; the constraint is never part of the prompt here.');
    }
    const pieces = this.#pieces(input, options);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: async () => void (await pieces.return(undefined)),
    });
  }

  /** @param {any} input @param {any} [options] */
  async append(input, options = {}) {
    checkMembers(options, ['signal'], 'append()');
    options.signal?.throwIfAborted();
    this.#messages = [...this.#messages, ...messagesOf(input)];
    await this.measure();
  }

  /** Tokens that the input would add. @param {any} input */
  async measureContextUsage(input) {
    return (await this.#count([...this.#messages, ...messagesOf(input)])) - this.contextUsage;
  }

  async clone() {
    const { topK, temperature } = this;
    const copy = new PromptModel(this.#doppler, [...this.#messages], { topK, temperature, tools: this.#tools });
    await copy.measure();
    return copy;
  }

  destroy() {
    this.#life.abort();
  }

  async measure() {
    this.contextUsage = await this.#count(this.#messages);
  }

  /** @param {any[]} messages */
  async #count(messages) {
    if (messages.length === 0) return 0;
    const text = await this.#doppler.applyChatTemplate(messages, { addGenerationPrompt: false });
    return (await this.#doppler.tokenize(text, { addSpecial: false })).length;
  }

  // Messages that do not fit leave from the front, except the system's words.
  /** @param {any[]} messages */
  async #fitting(messages) {
    const [system, rest] = messages[0]?.role === 'system' ? [messages.slice(0, 1), messages.slice(1)] : [[], messages];
    let isTooLong = false;
    while (rest.length > 1 && (await this.#count([...system, ...rest])) >= this.contextWindow) {
      rest.splice(0, rest[1]?.role === 'assistant' ? 2 : 1);
      isTooLong = true;
    }
    if (isTooLong) {
      const event = new Event('contextoverflow');
      this.dispatchEvent(event);
      this.oncontextoverflow?.(event);
    }
    return [...system, ...rest];
  }

  /** @param {any} input @param {any} options */
  async *#pieces(input, { signal, responseConstraint }) {
    const signals = signal ? [signal, this.#life.signal] : [this.#life.signal];
    const messages = await this.#fitting([...this.#messages, ...messagesOf(input)]);
    try {
      for (let turn = 0; turn < kMostTurns; turn++) {
        /** @type {{text: string, calls: any[]}} */ const said = { text: '', calls: [] };
        yield* this.#turn(messages, said, { signal: AbortSignal.any(signals), ...constraint(responseConstraint) });
        const { text, calls } = said;
        messages.push({ role: 'assistant', content: text, ...(calls.length > 0 && { tool_calls: calls }) });
        if (calls.length === 0) {
          this.#messages = messages;
          return await this.measure();
        }
        for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: await this.#result(call.function) });
      }
    } catch (error) {
      const ours = asDopplerError(error);
      throw ours.kind === 'cancelled' ? new DOMException(ours.message, 'AbortError') : ours;
    }
    throw unsupported(`The model called tools ${kMostTurns} times without an answer.`);
  }

  /**
   * One answer of the model.
   * @param {any[]} messages
   * @param {{text: string, calls: any[]}} said is filled
   * @param {any} options
   */
  async *#turn(messages, said, options) {
    const tools = this.#tools.map(({ name, description, inputSchema: parameters }) =>
      ({ type: /** @type {const} */ ('function'), function: { name, description, parameters } }));
    const chunks = await this.#doppler.chat.completions.create({ messages: [...messages], stream: true, top_k: this.topK,
      temperature: this.temperature, ...(tools.length > 0 && { tools }), ...options });
    for await (const { choices: [{ delta }] } of chunks) {
      for (const { index, id, function: { name, arguments: text } } of delta.tool_calls ?? []) {
        said.calls[index] ??= { id, type: 'function', function: { name, arguments: '' } };
        said.calls[index].function.arguments += text;
      }
      if (!delta.content) continue;
      said.text += delta.content;
      yield delta.content;
    }
  }

  /**
   * The answer of the page's own function to a call.
   * @param {{name: string, arguments: string}} call
   * @returns {Promise<string>}
   */
  async #result({ name, arguments: text }) {
    const tool = this.#tools.find((one) => one.name === name);
    if (!tool) return `There is no tool "${name}".`;
    let given;
    try {
      given = JSON.parse(text || '{}');
    } catch {
      return 'The arguments are no JSON.';
    }
    const result = await tool.execute(given);
    return typeof result === 'string' ? result : JSON.stringify(result);
  }
}

/** A regular expression or a JSON schema, as our requests have them. @param {any} given */
function constraint(given) {
  if (!given) return {};
  if (given instanceof RegExp && given.flags !== '') throw unsupported(`The regular expression has the flags "${given.flags}"; none are known.`);
  return given instanceof RegExp ? { guided_regex: given.source } : { response_format: { type: 'json_schema', json_schema: { schema: given } } };
}

/** @param {any} input */
function messagesOf(input) {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : input.map(message);
}

/** @param {any} given */
function message({ role, content, prefix, ...rest }) {
  const [foreign] = Object.keys(rest);
  if (foreign) throw unsupported(`A message has "${foreign}", which this version does not know.`);
  if (prefix) throw unsupported('A message is the beginning of an answer ("prefix"), which this version does not know.');
  if (typeof content === 'string') return { role, content };
  const texts = content.map(({ type, value }) => {
    if (type === 'text') return value;
    throw unsupported(`A message has content of type "${type}"; only text is known.`);
  });
  return { role, content: texts.join('') };
}

/** @param {string} sentence */
const unsupported = (sentence) => new DopplerError('unsupported', sentence);

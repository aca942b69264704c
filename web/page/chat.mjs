// The events of a conversation: asking, answering, stopping, editing, answering again. Changes the tree, keeps it in
// the store, and tells the views: "change" (messages came or went), "text" (the growing answer), "list" (another title
// or conversation). No DOM. Read next: tree.mjs.
import { sentence } from './model_host.mjs';
import { append, choose, find, newConversation, path, prompt, remove, wayTo } from './tree.mjs';
import { titleText } from './format.mjs';

// A closed tab loses at most so much of an answer.
const kSaveEveryMs = 2000;
// Text comes this often, as far as the steps of one submit allow: more steps are faster, fewer are smoother.
const kTextEverySeconds = 0.1;
const kMostSteps = 16; // the engine's own number
const kFirstSteps = 4; // while no speed is known

/** @typedef {import('./tree.mjs').Message} Message */

export class Chat extends EventTarget {
  /** @type {import('./tree.mjs').Conversation} */ conversation;
  /** The answer that grows now. @type {Message | null} */ growing = null;
  isThinking = false;
  #store;
  #host;
  #settings;
  #ready;
  /** @type {AbortController | null} */ #abort = null;
  /** @type {Promise<void>} */ #answering = Promise.resolve();
  /** Tokens a second of the last answer. @type {{model: any, value: number} | null} */ #speed = null;

  /**
   * @param {import('./store.mjs').ConversationStore} store @param {import('./model_host.mjs').ModelHost} host
   * @param {import('./settings.mjs').Settings} settings
   * @param {() => Promise<void>} ready loads the model that the reader chose, or waits for it; throws a sentence
   */
  constructor(store, host, settings, ready) {
    super();
    this.#store = store;
    this.#host = host;
    this.#settings = settings;
    this.#ready = ready;
    this.conversation = newConversation(Date.now(), settings.values.system);
  }

  get isAnswering() {
    return this.growing !== null;
  }
  /** @returns {Message[]} */
  get shown() {
    return path(this.conversation);
  }

  /** Begins another conversation; the old one is in the store. */
  async startNew() {
    await this.#end();
    this.conversation = newConversation(Date.now(), this.#settings.values.system);
    this.#tell('list', 'change');
  }

  /** @param {string} id @returns {Promise<boolean>} whether there is one of that id */
  async open(id) {
    if (id === this.conversation.id) return true;
    const kept = await this.#store.get(id);
    if (!kept) return false;
    await this.#end();
    this.conversation = kept;
    this.#tell('list', 'change');
    return true;
  }

  /** @param {string} text */
  async send(text) {
    if (this.isAnswering || text.trim() === '') return;
    const leaf = this.shown.at(-1)?.id ?? null;
    await this.#ask(leaf, text);
  }

  /**
   * Asks another way: a sibling of the question, and what followed the old one stays.
   * @param {string} id
   * @param {string} text
   */
  async edit(id, text) {
    if (this.isAnswering || text.trim() === '') return;
    await this.#ask(find(this.conversation, id)?.parent ?? null, text);
  }

  /** Answers once more beside the answer `id`. @param {string} id */
  async regenerate(id) {
    const old = find(this.conversation, id);
    if (this.isAnswering || !old) return;
    if (old.error && old.content === '') remove(this.conversation, id, Date.now());
    await this.#answer(old.parent);
  }

  /**
   * Results of the calls of the answer `id`, in their order; the model goes on with them.
   * @param {string} id
   * @param {string[]} results
   */
  async giveResults(id, results) {
    const calls = find(this.conversation, id)?.calls;
    if (this.isAnswering || !calls) return;
    let parent = id;
    calls.forEach((call, i) => {
      parent = append(this.conversation, parent, { role: 'tool', content: results[i], call: call.id }, Date.now()).id;
    });
    await this.#answer(parent);
  }

  stop() {
    this.#abort?.abort();
  }

  /** Shows another sibling. @param {string} id */
  async choose(id) {
    if (this.isAnswering) return;
    choose(this.conversation, id);
    await this.#save();
    this.#tell('change');
  }

  /** @param {string} id */
  async remove(id) {
    if (this.isAnswering) return;
    remove(this.conversation, id, Date.now());
    await this.#save();
    this.#tell('change');
  }

  /** @param {string} system */
  async setSystem(system) {
    this.conversation.system = system;
    if (this.conversation.messages.length > 0) await this.#save();
  }

  /** @param {string} title */
  async rename(title) {
    this.conversation.title = title;
    await this.#save();
    this.#tell('list');
  }

  /** @param {string | null} parent @param {string} text */
  async #ask(parent, text) {
    const question = append(this.conversation, parent, { role: 'user', content: text }, Date.now());
    if (this.conversation.title === '') this.conversation.title = titleText(text);
    await this.#answer(question.id);
  }

  /** Stops the answer under way and waits until it is kept. */
  async #end() {
    this.stop();
    await this.#answering;
  }

  /** @param {string | null} parent the question */
  #answer(parent) {
    this.#answering = this.#answerNow(parent);
    return this.#answering;
  }

  /** @param {string | null} parent */
  async #answerNow(parent) {
    const conversation = this.conversation;
    const abort = new AbortController();
    this.#abort = abort;
    const answer = append(conversation, parent, { role: 'assistant', content: '' }, Date.now());
    this.growing = answer;
    this.#tell('change');
    try {
      await this.#save(conversation);
      this.#tell('list');
      await this.#ready();
      if (abort.signal.aborted) answer.stop = 'cancelled';
      else await this.#stream(conversation, answer, abort.signal);
    } catch (error) {
      if (abort.signal.aborted) answer.stop = 'cancelled';
      else answer.error = sentence(error);
    }
    this.growing = null;
    this.isThinking = false;
    this.#abort = null;
    conversation.updated = Date.now();
    await this.#save(conversation);
    this.#tell('list', 'change', 'end');
  }

  /** @param {import('./tree.mjs').Conversation} conversation @param {Message} answer @param {AbortSignal} signal */
  async #stream(conversation, answer, signal) {
    const model = this.#host.model;
    if (!model) throw new Error('No model is loaded.');
    answer.model = this.#host.name;
    const options = { ...this.#settings.sampling(), ...this.#settings.form(), batch: this.#steps(model), stream: true };
    // A model without a chat template goes on with the text instead of answering it.
    const isChat = model.info.hasChatTemplate;
    const tools = isChat ? this.#settings.tools() : null;
    const chunks = isChat
      ? await model.chat.completions.create({ ...options, ...(tools && { tools }), messages: prompt(conversation, answer.parent) })
      : await model.complete({ ...options, prompt: wayTo(conversation, answer.parent).map((message) => message.content).join('') });
    const cancel = () => chunks.cancel();
    signal.addEventListener('abort', cancel);
    if (signal.aborted) cancel();
    let saved = Date.now();
    try {
      for await (const chunk of chunks) {
        const [choice] = chunk.choices;
        this.#add(answer, choice?.delta ?? { content: choice?.text });
        if (choice?.finish_reason) answer.stop = choice.finish_reason;
        if (chunk.timings) {
          answer.figures = await this.#figures(chunk, model);
          this.#speed = { model, value: chunk.timings.decode_tokens_per_second };
        }
        this.#tell('text');
        if (Date.now() - saved > kSaveEveryMs) {
          saved = Date.now();
          await this.#save(conversation);
        }
      }
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  /** Decode steps of one submit. @param {any} model */
  #steps(model) {
    if (this.#speed?.model !== model) return kFirstSteps;
    return Math.min(kMostSteps, Math.max(1, Math.round(this.#speed.value * kTextEverySeconds)));
  }

  /** @param {Message} answer @param {{content?: string, reasoning_content?: string, tool_calls?: any[]}} delta */
  #add(answer, { content = '', reasoning_content: thought = '', tool_calls: called = [] }) {
    if (thought) answer.reasoning = (answer.reasoning ?? '') + thought;
    answer.content += content;
    for (const { index, id, function: { name, arguments: text } } of called) {
      answer.calls ??= [];
      if (id) answer.calls.push({ id, name, arguments: '' });
      answer.calls[index].arguments += text;
    }
    this.isThinking = Boolean(answer.reasoning) && answer.content === '';
  }

  /** The figures under an answer. @param {any} chunk @param {any} model */
  async #figures({ timings, usage }, model) {
    await this.#host.measure();
    return {
      ttft_seconds: timings.ttft_seconds,
      evaluated_tokens: timings.evaluated_tokens,
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      prefill_tokens_per_second: timings.prefill_tokens_per_second,
      decode_tokens_per_second: timings.decode_tokens_per_second,
      memory_bytes: this.#host.memory?.gpuBytes ?? null,
      lane: model.info.lane,
      adapter: model.info.adapter,
    };
  }

  async #save(conversation = this.conversation) {
    await this.#store.put(conversation);
  }

  /** @param {...string} names */
  #tell(...names) {
    for (const name of names) this.dispatchEvent(new Event(name));
  }
}

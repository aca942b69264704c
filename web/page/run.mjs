// One answer that is being written: asks the model, adds what comes to the message, ends it with its figures. Goes on
// while another conversation is shown. No DOM. Read next: chat.mjs.
import { sentence } from './model_host.mjs';
import { prompt, wayTo } from './tree.mjs';

/** @typedef {import('./tree.mjs').Message} Message */
/** @typedef {import('./tree.mjs').Conversation} Conversation */

export class Run {
  isThinking = false;
  #abort = new AbortController();
  #host;
  #settings;

  /**
   * @param {Conversation} conversation @param {Message} answer an empty one, which is filled
   * @param {import('./model_host.mjs').ModelHost} host @param {import('./settings.mjs').Settings} settings
   */
  constructor(conversation, answer, host, settings) {
    this.conversation = conversation;
    this.answer = answer;
    this.#host = host;
    this.#settings = settings;
  }

  stop() {
    this.#abort.abort();
  }

  /** Does not throw: the message says how it ended.
   * @param {() => Promise<void>} ready loads the model, or waits for it @param {() => void} onText */
  async finish(ready, onText) {
    const { answer } = this;
    const { signal } = this.#abort;
    const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    try {
      await Promise.race([ready(), stopped]);
      if (signal.aborted) answer.stop = 'cancelled';
      else await this.#stream(signal, onText);
    } catch (error) {
      if (signal.aborted) answer.stop = 'cancelled';
      else answer.error = sentence(error);
    }
    this.isThinking = false;
    answer.changed = Date.now();
  }

  /** @param {AbortSignal} signal @param {() => void} onText */
  async #stream(signal, onText) {
    const { conversation, answer } = this;
    const messages = prompt(conversation, answer.parent);
    const hasPictures = messages.some(({ content }) => Array.isArray(content));
    if (hasPictures && this.#host.model?.info.readsImages === false) await this.#host.loadPictures();
    const model = this.#host.model;
    if (!model) throw new Error('No model is loaded.');
    if (hasPictures && !model.info.readsImages) throw new Error(`${this.#host.name} reads no pictures. Load a model that sees, or take the pictures out of the conversation.`);
    const release = this.#host.hold(model);
    try {
      const { name, adapter } = this.#host;
      answer.model = adapter ? `${name} + ${adapter}` : name;
      const options = { ...this.#settings.sampling(), ...this.#settings.form(), ...(adapter && { adapters: [{ name: adapter }] }), stream: true };
      // A model without a chat template goes on with the text instead of answering it.
      const isChat = model.info.hasChatTemplate;
      const tools = isChat ? this.#settings.tools() : null;
      const chunks = isChat
        ? await model.chat.completions.create({ ...options, ...(tools && { tools }), messages })
        : await model.complete({ ...options, prompt: wayTo(conversation, answer.parent).map((message) => message.content).join('') });
      const cancel = () => chunks.cancel();
      signal.addEventListener('abort', cancel);
      if (signal.aborted) cancel();
      for await (const chunk of chunks) {
        const [choice] = chunk.choices;
        this.#add(choice?.delta ?? { content: choice?.text });
        if (choice?.finish_reason) answer.stop = choice.finish_reason;
        if (chunk.timings) answer.figures = await this.#figures(chunk, model);
        onText();
      }
    } finally {
      release();
    }
  }

  /** @param {{content?: string, reasoning_content?: string, tool_calls?: any[]}} delta */
  #add({ content = '', reasoning_content: thought = '', tool_calls: called = [] }) {
    const { answer } = this;
    if (thought) answer.reasoning = (answer.reasoning ?? '') + thought;
    answer.content += content;
    for (const { index, id, function: { name, arguments: text } } of called) {
      answer.calls ??= [];
      if (id) answer.calls.push({ id, name, arguments: '' });
      answer.calls[index].arguments += text;
    }
    answer.changed = Date.now();
    this.isThinking = Boolean(answer.reasoning) && answer.content === '';
  }

  /** Makes the line under an answer. @param {any} chunk @param {any} model */
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
}

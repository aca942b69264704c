// The events of conversations: asking, answering, stopping, editing, answering again. One conversation is shown;
// answers of others go on. Changes the tree, keeps it in the store, takes in what other tabs wrote, and tells the
// views: "change" (messages of the shown conversation came or went), "merged" (the same, by another tab), "text" (its
// answer grew), "end" (it ended), "list" (another title or conversation). No DOM. Read next: tree.mjs, run.mjs.
import { Run } from './run.mjs';
import { absorb } from './merge.mjs';
import { append, choose, find, newConversation, path, remove, restore } from './tree.mjs';
import { titleText } from './format.mjs';

// A closed tab loses at most so much of an answer.
const kSaveEveryMs = 2000;

/** @typedef {import('./tree.mjs').Message} Message */
/** @typedef {import('./tree.mjs').Conversation} Conversation */

export class Chat extends EventTarget {
  /** @type {Conversation} */ conversation;
  #store;
  #host;
  #settings;
  #ready;
  /** Answers being written, by conversation. @type {Map<string, {run: Run, done: Promise<void>}>} */ #runs = new Map();

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
    store.addEventListener('change', (event) => this.#hear(/** @type {any} */ (event).detail));
  }

  get #run() {
    return this.#runs.get(this.conversation.id)?.run;
  }
  /** The answer of the shown conversation that grows now. @returns {Message | null} */
  get growing() {
    return this.#run?.answer ?? null;
  }
  get isThinking() {
    return this.#run?.isThinking ?? false;
  }
  get isAnswering() {
    return this.growing !== null;
  }
  /** Whether any conversation is being answered. */
  get isBusy() {
    return this.#runs.size > 0;
  }
  /** @param {string} id */
  isRunning(id) {
    return this.#runs.has(id);
  }
  /** @returns {Message[]} */
  get shown() {
    return path(this.conversation);
  }

  /** Begins another conversation; the old one is in the store, and its answer goes on. */
  startNew() {
    this.conversation = newConversation(Date.now(), this.#settings.values.system);
    this.#tell('list', 'change');
  }

  /** @param {string} id @returns {Promise<boolean>} whether there is one of that id */
  async open(id) {
    if (id === this.conversation.id) return true;
    const kept = this.#runs.get(id)?.run.conversation ?? (await this.#store.get(id));
    if (!kept) return false;
    this.conversation = kept;
    this.#tell('list', 'change');
    return true;
  }

  /** @param {string} text @param {string[]} [pictures] data URLs */
  async send(text, pictures = []) {
    if (this.isAnswering || (text.trim() === '' && pictures.length === 0)) return;
    const leaf = this.shown.at(-1)?.id ?? null;
    await this.#ask(leaf, text, pictures);
  }

  /**
   * Asks another way: a sibling of the question, and what followed the old one stays.
   * @param {string} id
   * @param {string} text
   */
  async edit(id, text) {
    if (this.isAnswering || text.trim() === '') return;
    const old = find(this.conversation, id);
    await this.#ask(old?.parent ?? null, text, old?.pictures ?? []);
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

  /** Stops the answer of the shown conversation. */
  stop() {
    this.#run?.stop();
  }

  /** Shows another sibling. @param {string} id */
  async choose(id) {
    if (this.isAnswering) return;
    choose(this.conversation, id);
    this.#tell('change');
    await this.#save();
  }

  /**
   * @param {string} id @returns {(() => Promise<void>) | null} how to take it back; null: an answer is being written
   */
  remove(id) {
    if (this.isAnswering) return null;
    const { conversation } = this;
    const gone = remove(conversation, id, Date.now());
    const show = () => {
      if (conversation.id === this.conversation.id) this.#tell('change');
      return this.#save(conversation);
    };
    void show();
    return () => {
      restore(conversation, gone, Date.now());
      return show();
    };
  }

  /** Removes a whole conversation. @param {string} id @returns {Promise<() => Promise<void>>} how to take it back */
  async drop(id) {
    const running = this.#runs.get(id);
    running?.run.stop();
    await running?.done;
    const kept = id === this.conversation.id ? this.conversation : await this.#store.get(id);
    if (id === this.conversation.id) this.startNew();
    await this.#store.remove(id);
    return async () => {
      if (kept) await this.#store.put(kept);
    };
  }

  /** @param {string} system */
  async setSystem(system) {
    this.#write({ system });
    if (this.conversation.messages.length > 0) await this.#save();
  }

  /** @param {string} id @param {string} title */
  async rename(id, title) {
    const conversation = id === this.conversation.id ? this.conversation
      : this.#runs.get(id)?.run.conversation ?? (await this.#store.get(id));
    if (!conversation) return;
    this.#write({ title }, conversation);
    this.#tell('list');
    await this.#save(conversation);
  }

  /** @param {{title?: string, system?: string}} texts */
  #write(texts, conversation = this.conversation) {
    Object.assign(conversation, texts);
    conversation.edited = { ...conversation.edited, ...Object.fromEntries(Object.keys(texts).map((name) => [name, Date.now()])) };
  }

  /** @param {string | null} parent @param {string} text @param {string[]} pictures */
  async #ask(parent, text, pictures) {
    const what = { role: /** @type {const} */ ('user'), content: text, ...(pictures.length > 0 && { pictures }) };
    const question = append(this.conversation, parent, what, Date.now());
    if (this.conversation.title === '') this.#write({ title: titleText(text) || 'A picture' });
    await this.#answer(question.id);
  }

  /** @param {string | null} parent the question */
  async #answer(parent) {
    const { conversation } = this;
    const answer = append(conversation, parent, { role: 'assistant', content: '' }, Date.now());
    const run = new Run(conversation, answer, this.#host, this.#settings);
    const done = this.#finish(run);
    this.#runs.set(conversation.id, { run, done });
    this.#tell('change', 'list');
    void this.#save(conversation);
    await done;
    await this.#save(conversation);
  }

  /** @param {Run} run */
  async #finish(run) {
    const { conversation } = run;
    await Promise.resolve(); // the views hear of the answer first
    const isShown = () => conversation.id === this.conversation.id;
    let saved = Date.now();
    await run.finish(this.#ready, () => {
      if (isShown()) this.#tell('text');
      if (Date.now() - saved < kSaveEveryMs) return;
      saved = Date.now();
      void this.#save(conversation);
    });
    this.#runs.delete(conversation.id);
    conversation.updated = Date.now();
    this.#tell('list');
    if (isShown()) this.#tell('change', 'end');
  }

  /**
   * Takes in the text that another tab wrote into a conversation that is shown or being answered here.
   * @param {{id: string, isForeign: boolean}} news
   */
  async #hear({ id, isForeign }) {
    const conversation = this.#runs.get(id)?.run.conversation ?? (id === this.conversation.id ? this.conversation : null);
    if (!conversation || !isForeign) return;
    const kept = await this.#store.get(id);
    if (!kept || kept === conversation || !absorb(conversation, kept)) return;
    if (id === this.conversation.id) this.#tell('merged', 'list');
  }

  async #save(conversation = this.conversation) {
    await this.#store.put(conversation);
  }

  /** @param {...string} names */
  #tell(...names) {
    for (const name of names) this.dispatchEvent(new Event(name));
  }
}

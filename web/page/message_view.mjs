// One message: its text, its thoughts, its figures and what can be done with it. Knows nothing of the other messages.
import { copyText, h, icon, iconButton } from './dom.mjs';
import { figureParts } from './figures.mjs';
import { MarkdownView } from './markdown.mjs';
import { notice } from './notices.mjs';

const kStops = { length: 'The answer reached its most tokens.', cancelled: 'Stopped.' };

export class MessageView {
  #chat;
  /** @type {import('./tree.mjs').Message} */ message;
  #body = h('div', { class: 'body' });
  #foot = h('div', { class: 'foot' });
  /** @type {MarkdownView | null} */ #markdown = null;
  #thoughts = /** @type {any} */ (null);
  #calls = h('div', { class: 'calls' });
  element;

  /**
   * @param {import('./chat.mjs').Chat} chat
   * @param {import('./tree.mjs').Message} message
   * @param {import('./tree.mjs').Message[]} siblings
   */
  constructor(chat, message, siblings) {
    this.#chat = chat;
    this.message = message;
    const who = { user: 'You', tool: 'Result' }[message.role] ?? (message.model || 'Answer');
    this.element = h('article', { class: `message ${message.role === 'tool' ? 'user' : message.role}`, 'aria-label': who }, this.#body, this.#foot);
    this.update();
    this.#fillFoot(siblings);
  }

  /** Shows the present state of the message. */
  update() {
    if (this.message.role !== 'assistant') this.#body.replaceChildren(...this.#pictures(), h('div', { class: 'said', dir: 'auto' }, this.message.content));
    else this.#updateAnswer();
  }

  #pictures() {
    const { pictures } = this.message;
    if (!pictures) return [];
    return [h('div', { class: 'pictures' }, pictures.map((url, i) => h('img', { src: url, alt: `Picture ${i + 1} of the message` })))];
  }

  #updateAnswer() {
    const { message } = this;
    const isGrowing = this.#chat.growing === message;
    if (message.reasoning) this.#showThoughts(isGrowing);
    if (!this.#markdown) {
      this.#markdown = new MarkdownView();
      this.#body.append(this.#markdown.element);
    }
    this.#markdown.update(message.content, !isGrowing);
    if (message.calls) this.#showCalls(isGrowing);
    this.element.classList.toggle('growing', isGrowing);
    this.element.classList.toggle('waiting', isGrowing && message.content === '');
    this.element.setAttribute('aria-busy', String(isGrowing));
  }

  /** The calls of the model, and fields for results that are missing. @param {boolean} isGrowing */
  #showCalls(isGrowing) {
    const { calls = [], id } = this.message;
    const isOpen = !isGrowing && this.#chat.shown.at(-1) === this.message;
    const fields = calls.map((call) => h('textarea', { rows: 2, 'aria-label': `Result of ${call.name}`, placeholder: `Result of ${call.name}` }));
    const give = () => this.#chat.giveResults(id, fields.map((field) => field.value));
    this.#calls.replaceChildren(
      ...calls.flatMap((call, i) => [h('pre', {}, h('code', {}, `${call.name}(${call.arguments})`)), ...(isOpen ? [fields[i]] : [])]),
      ...(isOpen ? [h('button', { type: 'button', class: 'plain', onclick: give }, calls.length === 1 ? 'Give the result' : 'Give the results')] : []));
    if (!this.#calls.isConnected) this.#body.append(this.#calls);
  }

  /** @param {boolean} isGrowing */
  #showThoughts(isGrowing) {
    if (!this.#thoughts) {
      const view = new MarkdownView();
      const label = h('summary', {});
      this.#thoughts = { view, label };
      this.#body.prepend(h('details', { class: 'thoughts' }, label, view.element));
    }
    const isThinking = isGrowing && this.#chat.isThinking;
    this.#thoughts.label.textContent = isThinking ? 'Thinking…' : 'Thoughts';
    this.#thoughts.view.update(this.message.reasoning ?? '', !isThinking);
  }

  /** @param {import('./tree.mjs').Message[]} siblings */
  #fillFoot(siblings) {
    const { message } = this;
    if (this.#chat.growing === message) return;
    const chat = this.#chat;
    if (message.error) {
      this.#foot.append(h('p', { class: 'error', role: 'alert' }, message.error,
        h('button', { type: 'button', class: 'plain', onclick: () => chat.regenerate(message.id) }, 'Try again')));
    }
    if (message.stop && kStops[message.stop]) this.#foot.append(h('p', { class: 'stop-note' }, kStops[message.stop]));
    if (message.model) this.#foot.append(h('span', { class: 'by' }, message.model));
    if (message.figures) this.#foot.append(figuresView(message.figures));
    const copy = iconButton('copy', 'Copy', () => copyText(copy, message.content));
    const actions = h('div', { class: 'actions' }, this.#branches(siblings), copy);
    if (message.role === 'tool') actions.replaceChildren(copy);
    else if (message.role === 'user') actions.append(iconButton('edit', 'Edit', () => this.#edit()));
    else actions.append(iconButton('again', 'Answer again', () => chat.regenerate(message.id)));
    actions.append(iconButton('trash', 'Delete from here', () => this.#remove()));
    this.#foot.append(actions);
  }

  #remove() {
    const undo = this.#chat.remove(this.message.id);
    if (!undo) return;
    document.getElementById('composer-text')?.focus();
    notice('The message and what followed it were deleted.', { action: { name: 'Undo', run: undo } });
  }

  /** "2 of 3" with ways to the others. @param {import('./tree.mjs').Message[]} siblings */
  #branches(siblings) {
    if (siblings.length < 2) return null;
    const at = siblings.indexOf(this.message);
    const to = (index) => () => this.#chat.choose(siblings[index].id);
    return h('span', { class: 'branches' },
      iconButton('left', 'Earlier version', to(at - 1), { disabled: at === 0 }),
      h('span', {}, `${at + 1} of ${siblings.length}`),
      iconButton('right', 'Later version', to(at + 1), { disabled: at === siblings.length - 1 }));
  }

  #edit() {
    const text = h('textarea', { 'aria-label': 'Edit the message', rows: 3, dir: 'auto', value: this.message.content });
    const send = () => this.#chat.edit(this.message.id, text.value);
    const cancel = () => {
      this.#foot.hidden = false;
      this.update();
      this.#foot.querySelector('[aria-label="Edit"]')?.focus();
    };
    text.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      } else if (event.key === 'Escape') {
        event.preventDefault();
        cancel();
      }
    });
    this.#foot.hidden = true;
    this.#body.replaceChildren(h('div', { class: 'editor' }, text, h('div', { class: 'editor-buttons' },
      h('button', { type: 'button', class: 'plain', onclick: cancel }, 'Cancel'),
      h('button', { type: 'button', class: 'primary', onclick: send }, icon('send'), 'Send'))));
    text.focus();
  }
}

/** Speed and the rest for those who want it. @param {any} figures */
function figuresView(figures) {
  const details = h('details', { class: 'figures', ontoggle: () => details.open && details.scrollIntoView({ block: 'nearest' }) }, h('summary', {}, 'Details'),
    h('dl', { class: 'pairs' }, figureParts(figures).map(({ name, text }) => [h('dt', {}, name), h('dd', {}, text)])));
  return details;
}

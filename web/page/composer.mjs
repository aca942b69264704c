// The field to write in, with its buttons; keeps what was not sent.
import { h, icon } from './dom.mjs';
import { Drafts } from './drafts.mjs';
import { picturesField, picturesOf } from './pictures_field.mjs';

/** @param {any} app */
export function composerView({ chat, host, texts }) {
  const drafts = new Drafts(texts);
  const text = h('textarea', { id: 'composer-text', rows: 1, dir: 'auto', 'aria-label': 'Message', placeholder: 'Write a message', enterkeyhint: 'send' });
  let shown = chat.conversation;
  const send = () => {
    if (chat.isAnswering || isEmpty()) return;
    const written = text.value;
    const shownPictures = pictures.value;
    write('');
    pictures.clear();
    drafts.keep(chat.conversation, '');
    chat.send(written, shownPictures);
  };
  const write = (value) => {
    text.value = value;
    grow();
  };
  const isEmpty = () => text.value.trim() === '' && pictures.value.length === 0;
  const button = h('button', { type: 'button', class: 'send', onclick: () => (chat.isAnswering ? chat.stop() : send()) });
  const tools = h('div', { class: 'composer-tools' });
  const grow = () => {
    text.style.height = 'auto';
    text.style.height = `${text.scrollHeight}px`;
    refresh();
  };
  const refresh = () => {
    const name = chat.isAnswering ? 'Stop' : 'Send';
    if (button.getAttribute('aria-label') !== name) {
      button.setAttribute('aria-label', name);
      button.title = chat.isAnswering ? 'Stop (Esc)' : 'Send (Enter)';
      button.replaceChildren(icon(chat.isAnswering ? 'stop' : 'send'));
    }
    button.disabled = !chat.isAnswering && isEmpty();
  };
  const pictures = picturesField(() => refresh());
  text.addEventListener('input', () => {
    grow();
    drafts.keep(chat.conversation, text.value);
  });
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  text.addEventListener('paste', (event) => {
    const files = picturesOf(event.clipboardData);
    if (files.length === 0) return;
    event.preventDefault();
    void pictures.take(files);
  });
  chat.addEventListener('list', () => {
    if (chat.conversation === shown) return;
    shown = chat.conversation;
    write(drafts.of(shown));
  });
  chat.addEventListener('change', refresh);
  host.addEventListener('change', refresh);
  write(drafts.of(shown));
  tools.append(...pictures.button);
  const element = h('div', { class: 'composer' }, pictures.shown, text, h('div', { class: 'composer-row' }, tools, h('span', { class: 'hint' }, 'Enter sends, Shift+Enter breaks the line'), button));
  return { element, tools, refresh, focus: () => text.focus(), takePictures: pictures.take };
}

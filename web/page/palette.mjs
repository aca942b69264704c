// Ctrl-K: a field that finds commands and conversations, only by keys.
import { h } from './dom.mjs';
import { matches } from './store.mjs';

const kMostConversations = 12;

/** @typedef {{name: string, run: () => void, hint?: string}} Command */

/**
 * @param {import('./store.mjs').ConversationStore} store
 * @param {Command[]} commands
 * @param {(id: string) => void} open
 */
export function palette(store, commands, open) {
  const field = h('input', { type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-autocomplete': 'list',
    'aria-label': 'Find a command or a conversation', placeholder: 'Find a command or a conversation', spellcheck: 'false' });
  const list = h('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Found' });
  const dialog = h('dialog', { class: 'palette', 'aria-label': 'Commands' }, field, list);
  document.body.append(dialog);
  /** @type {Command[]} */ let found = [];
  let at = 0;
  let kept = [];

  const show = () => {
    const query = field.value.trim();
    const asCommands = commands.filter(({ name }) => name.toLowerCase().includes(query.toLowerCase()));
    const asConversations = kept.filter((conversation) => query === '' || matches(conversation, query)).slice(0, kMostConversations)
      .map((conversation) => ({ name: conversation.title || 'Untitled', hint: 'conversation', run: () => open(conversation.id) }));
    found = [...asCommands, ...asConversations];
    at = Math.min(at, Math.max(0, found.length - 1));
    list.replaceChildren(...found.map(({ name, hint }, i) =>
      h('li', { role: 'option', id: `found-${i}`, 'aria-selected': String(i === at), onclick: () => take(i), onpointermove: () => mark(i) },
        h('span', {}, name), hint ? h('small', {}, hint) : null)));
    if (found.length === 0) list.append(h('li', { class: 'none' }, 'Nothing was found.'));
    mark(at);
  };
  const mark = (index) => {
    at = index;
    [...list.children].forEach((row, i) => row.setAttribute('aria-selected', String(i === at)));
    field.setAttribute('aria-activedescendant', found.length ? `found-${at}` : '');
    list.children[at]?.scrollIntoView({ block: 'nearest' });
  };
  const take = (index) => {
    const command = found[index];
    dialog.close();
    command?.run();
  };
  field.addEventListener('input', () => {
    at = 0;
    show();
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      if (found.length) mark((at + step + found.length) % found.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      take(at);
    }
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  return {
    toggle: async () => {
      if (dialog.open) return dialog.close();
      field.value = '';
      at = 0;
      show();
      dialog.showModal(); // at once: the next key belongs to its field
      kept = await store.all();
      show();
    },
  };
}

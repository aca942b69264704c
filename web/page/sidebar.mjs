// The list of conversations: new, search, open, rename, delete, export, import. A drawer on narrow screens.
import { h, icon, iconButton, saveFile } from './dom.mjs';
import { dayText } from './format.mjs';
import { sentence } from './model_host.mjs';
import { notice } from './notices.mjs';
import { matches } from './store.mjs';

/**
 * @param {{chat: import('./chat.mjs').Chat, store: import('./store.mjs').ConversationStore,
 *   go: (where: string) => void}} app
 */
export function sidebarView({ chat, store, go }) {
  const list = h('nav', { class: 'conversations', 'aria-label': 'Conversations' });
  const search = h('input', { type: 'search', placeholder: 'Search', dir: 'auto', 'aria-label': 'Search conversations', oninput: () => refresh() });
  /** The conversation whose title is being written. @type {string | null} */ let renamed = null;

  /** The entry that gets the focus when the list is there again. @type {string | null} */ let wanted = null;

  let asked = 0;
  const refresh = async () => {
    const turn = ++asked;
    const query = search.value.trim();
    const kept = await store.all();
    if (turn !== asked || list.querySelector('input')) return; // a later one is under way, or a title is being written
    const found = kept.filter((conversation) => query === '' || matches(conversation, query));
    const focused = wanted ?? (list.contains(document.activeElement) ? /** @type {any} */ (document.activeElement).dataset.focus : null);
    wanted = null;
    list.replaceChildren(...entries(found));
    if (found.length === 0) list.append(h('p', { class: 'facts' }, query === '' ? 'No conversations yet.' : 'Nothing was found.'));
    list.querySelector('input')?.select();
    if (focused) list.querySelector(`[data-focus="${focused}"]`)?.focus();
  };
  /** @param {import('./tree.mjs').Conversation[]} found */
  const entries = (found) => {
    const rows = [];
    let day = '';
    for (const conversation of found) {
      const on = dayText(conversation.updated, Date.now());
      if (on !== day) rows.push(h('h2', {}, on));
      day = on;
      rows.push(conversation.id === renamed ? titleField(conversation) : entry(conversation));
    }
    return rows;
  };
  /** @param {import('./tree.mjs').Conversation} conversation */
  const entry = (conversation) => {
    const { id } = conversation;
    const isOpen = id === chat.conversation.id;
    const title = conversation.title || 'Untitled';
    return h('div', { class: 'conversation' },
      h('a', { href: `#/chat/${id}`, 'aria-current': isOpen ? 'true' : false, title, dir: 'auto', 'data-focus': id, ondblclick: () => rename(id) }, title),
      chat.isRunning(id) ? h('span', { class: 'running', role: 'img', 'aria-label': 'is being answered' }) : null,
      iconButton('edit', `Rename ${title}`, () => rename(id), { 'data-focus': `rename-${id}` }),
      iconButton('trash', `Delete ${title}`, () => remove(conversation, title, isOpen)));
  };
  /** @param {import('./tree.mjs').Conversation} conversation */
  const titleField = (conversation) => {
    const field = h('input', { class: 'title-field', type: 'text', dir: 'auto', 'aria-label': 'Title of the conversation', value: conversation.title });
    const end = async (isKept) => {
      if (renamed !== conversation.id) return;
      renamed = null;
      const title = field.value.trim();
      field.remove();
      wanted = `rename-${conversation.id}`;
      if (isKept && title) await chat.rename(conversation.id, title);
      await refresh();
    };
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== 'Escape') return;
      event.preventDefault();
      end(event.key === 'Enter');
    });
    field.addEventListener('blur', () => end(true));
    return h('div', { class: 'conversation' }, field);
  };
  const rename = (id) => {
    renamed = id;
    refresh();
  };
  /** @param {import('./tree.mjs').Conversation} conversation @param {string} title @param {boolean} isOpen */
  const remove = async (conversation, title, isOpen) => {
    const undo = await chat.drop(conversation.id);
    if (isOpen) go('#/chat');
    await refresh();
    (list.querySelector('a') ?? begin).focus();
    notice(`"${title}" was deleted.`, { action: { name: 'Undo', run: async () => {
      await undo();
      if (isOpen) go(`#/chat/${conversation.id}`);
    } } });
  };
  const startNew = () => {
    chat.startNew();
    go('#/chat');
    document.getElementById('composer-text')?.focus();
  };
  const exportAll = async () => saveFile('doppler-conversations.json', await store.exportText());
  /** @param {File} file */
  const importFile = async (file) => {
    try {
      const { added, merged, kept } = await store.importText(await file.text());
      notice(`${added} conversations were added, ${merged} took what they lacked, ${kept} were here already.`);
    } catch (error) {
      notice(sentence(error), { kind: 'error' });
    }
  };
  const picker = h('input', { type: 'file', accept: '.json,application/json', class: 'only-read', 'aria-label': 'Conversations file', tabindex: '-1',
    onchange: async () => {
      if (picker.files[0]) await importFile(picker.files[0]);
      picker.value = '';
    } });
  addEventListener('drop', (event) => {
    const file = event.dataTransfer?.files[0];
    if (file?.name.endsWith('.json') && event.dataTransfer?.files.length === 1) importFile(file);
  });
  store.addEventListener('change', refresh);
  chat.addEventListener('list', refresh);
  const begin = h('button', { type: 'button', class: 'new-chat', onclick: startNew }, icon('plus'), 'New chat');
  document.getElementById('sidebar')?.replaceChildren(
    h('div', { class: 'brand' }, h('img', { src: 'page/icon.svg', alt: '', width: 26, height: 26 }), h('span', {}, 'Doppler')),
    begin, search, list,
    h('div', { class: 'sidebar-foot' },
      h('button', { type: 'button', class: 'plain', onclick: exportAll }, icon('download'), 'Export'),
      h('button', { type: 'button', class: 'plain', onclick: () => picker.click() }, icon('upload'), 'Import'), picker));
  refresh();
  return { startNew, exportAll, rename, pickImport: () => picker.click() };
}

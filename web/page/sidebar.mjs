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
  const search = h('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search conversations', oninput: () => refresh() });

  let asked = 0;
  const refresh = async () => {
    const turn = ++asked;
    const query = search.value.trim();
    const kept = await store.all();
    if (turn !== asked) return; // a later one is under way
    const found = kept.filter((conversation) => query === '' || matches(conversation, query));
    list.replaceChildren(...entries(found));
    if (found.length === 0) list.append(h('p', { class: 'facts' }, query === '' ? 'No conversations yet.' : 'Nothing was found.'));
  };
  /** @param {import('./tree.mjs').Conversation[]} found */
  const entries = (found) => {
    const rows = [];
    let day = '';
    for (const conversation of found) {
      const on = dayText(conversation.updated, Date.now());
      if (on !== day) rows.push(h('h2', {}, on));
      day = on;
      rows.push(entry(conversation));
    }
    return rows;
  };
  /** @param {import('./tree.mjs').Conversation} conversation */
  const entry = (conversation) => {
    const isOpen = conversation.id === chat.conversation.id;
    const title = conversation.title || 'Untitled';
    return h('div', { class: 'conversation' },
      h('a', { href: `#/chat/${conversation.id}`, 'aria-current': isOpen ? 'true' : false, title }, title),
      iconButton('trash', `Delete ${title}`, async () => {
        if (isOpen) {
          await chat.startNew();
          go('#/chat');
        }
        await store.remove(conversation.id);
        notice(`"${title}" was deleted.`);
      }));
  };
  const startNew = async () => {
    await chat.startNew();
    go('#/chat');
    document.getElementById('composer-text')?.focus();
  };
  const exportAll = async () => saveFile('doppler-conversations.json', await store.exportText());
  /** @param {File} file */
  const importFile = async (file) => {
    try {
      const { added, replaced, kept } = await store.importText(await file.text());
      notice(`${added} conversations were added, ${replaced} replaced by newer ones, ${kept} were here already.`);
    } catch (error) {
      notice(sentence(error), 'error');
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
  document.getElementById('sidebar')?.append(
    h('div', { class: 'brand' }, h('img', { src: 'page/icon.svg', alt: '', width: 26, height: 26 }), h('span', {}, 'Doppler')),
    h('button', { type: 'button', class: 'new-chat', onclick: startNew }, icon('plus'), 'New chat'),
    search, list,
    h('div', { class: 'sidebar-foot' },
      h('button', { type: 'button', class: 'plain', onclick: exportAll }, icon('download'), 'Export'),
      h('button', { type: 'button', class: 'plain', onclick: () => picker.click() }, icon('upload'), 'Import'), picker));
  refresh();
  return { startNew, exportAll, pickImport: () => picker.click() };
}

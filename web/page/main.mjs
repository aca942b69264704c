// Puts the page together: one store, one model, one chat, four tabs that the address names (#/chat/ID, #/models,
// #/bench, #/device), the keys that work everywhere. Read next: chat.mjs and model_host.mjs (what happens),
// chat_view.mjs (how it looks).
import { benchView } from './bench_view.mjs';
import { Chat } from './chat.mjs';
import { chatView } from './chat_view.mjs';
import { nameOf } from './catalogue.mjs';
import { deviceView } from './device_view.mjs';
import { h, icon, iconButton } from './dom.mjs';
import { ModelHost } from './model_host.mjs';
import { modelsView, takeDrops } from './models_view.mjs';
import { notice } from './notices.mjs';
import { palette } from './palette.mjs';
import { Settings } from './settings.mjs';
import { sidebarView } from './sidebar.mjs';
import { ConversationStore } from './store.mjs';

const kTabs = [
  { name: 'chat', label: 'Chat', icon: 'chat' },
  { name: 'models', label: 'Models', icon: 'model' },
  { name: 'bench', label: 'Bench', icon: 'gauge' },
  { name: 'device', label: 'Device', icon: 'chip' },
];
const kThemes = ['auto', 'light', 'dark'];

const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const settings = new Settings();
const host = new ModelHost(() => import('../doppler.mjs'));
const store = await ConversationStore.open();
const offered = await (await fetch('models.json')).json();

/** The model to run when the page has loaded none: that of last time if the list has it, else the first of the list. */
function usualModel() {
  const known = [...offered, ...settings.values.added];
  return known.find((entry) => entry.source === settings.values.lastModel) ?? offered[0];
}

/** @param {import('./catalogue.mjs').Entry} entry */
async function load(entry) {
  await host.load(entry.source, entry.name, settings.loading());
  if (host.state === 'ready') settings.set({ lastModel: entry.source });
}

/** Loads the usual model, or waits for the one that is loading; throws a sentence. */
async function ready() {
  if (host.state === 'none' || host.state === 'failed') await load(usualModel());
  else if (host.state === 'ready' && settings.loading().grammars && !host.model?.info.grammars) await host.reload(settings.loading());
  while (host.state === 'loading') await new Promise((resolve) => host.addEventListener('change', resolve, { once: true }));
  if (host.state === 'failed') throw new Error(`${host.name} did not load: ${host.error}`);
  if (host.state !== 'ready') throw new Error('Loading was cancelled.');
}

const go = (where) => {
  location.hash = where;
};
const chat = new Chat(store, host, settings, ready);
const app = { chat, host, settings, store, offered, load, ready, go };
const views = { chat: chatView(app), models: modelsView(app), bench: benchView(app), device: deviceView(app) };
const sidebar = sidebarView(app);
byId('content').replaceChildren(...kTabs.map(({ name }) => views[name].element));

// ---- Head and tabs.
const modelChip = h('a', { class: 'model-chip', href: '#/models' }, h('span', { class: 'dot' }), h('span', { class: 'model-chip-name' }));
const showChip = () => {
  modelChip.dataset.state = host.state;
  const words = { none: 'No model', loading: `Loading ${host.name}`, ready: host.name, failed: 'Not loaded' };
  modelChip.querySelector('.model-chip-name').textContent = words[host.state];
  modelChip.setAttribute('aria-label', `Model: ${words[host.state]}`);
};
const setTheme = (theme) => {
  settings.set({ theme });
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
};
const nextTheme = () => {
  const theme = kThemes[(kThemes.indexOf(settings.values.theme) + 1) % kThemes.length];
  setTheme(theme);
  notice(`Theme: ${theme === 'auto' ? "the system's" : theme}.`);
};
const drawer = iconButton('menu', 'Conversations', () => toggleDrawer(), { class: 'icon-button menu', 'aria-expanded': 'false', 'aria-controls': 'sidebar' });
function toggleDrawer(isOpen = !document.body.classList.contains('drawer')) {
  document.body.classList.toggle('drawer', isOpen);
  drawer.setAttribute('aria-expanded', String(isOpen));
  byId('veil').hidden = !isOpen;
}
byId('veil').addEventListener('click', () => toggleDrawer(false));
byId('top').append(drawer, modelChip, h('span', { class: 'gap' }),
  iconButton('search', 'Find (Ctrl+K)', () => finder.toggle()), iconButton('theme', 'Change the theme', nextTheme));
byId('tabs').append(...kTabs.map((tab) => h('a', { href: `#/${tab.name}`, 'data-tab': tab.name }, icon(/** @type {any} */ (tab.icon)), h('span', {}, tab.label))));
host.addEventListener('change', showChip);
host.addEventListener('notice', (event) => notice(/** @type {any} */ (event).detail));
showChip();

// ---- What the address names is shown.
async function route() {
  const [, tab = 'chat', id] = location.hash.split('/');
  const name = kTabs.some((known) => known.name === tab) ? tab : 'chat';
  toggleDrawer(false);
  for (const known of kTabs) {
    views[known.name].element.hidden = known.name !== name;
    const link = byId('tabs').querySelector(`[data-tab="${known.name}"]`);
    if (known.name === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (name === 'chat' && id && !(await chat.open(id))) notice('That conversation is not in this browser.', 'error');
  if (name === 'chat') document.title = chat.conversation.title ? `${chat.conversation.title} · Doppler` : 'Doppler';
  await views[name].refresh?.();
}
addEventListener('hashchange', route);
host.addEventListener('change', () => {
  if (host.state === 'ready' && location.hash.startsWith('#/device')) views.device.refresh();
});
// The address follows the conversation, so that a reload shows it again.
chat.addEventListener('list', () => {
  const where = chat.conversation.messages.length > 0 ? `#/chat/${chat.conversation.id}` : '#/chat';
  if (/^(#\/chat.*)?$/.test(location.hash) && location.hash !== where) history.replaceState(null, '', where);
});

// ---- Keys.
const finder = palette(store, [
  { name: 'New chat', hint: 'Ctrl+Shift+O', run: sidebar.startNew },
  ...kTabs.map(({ name, label }) => ({ name: `Go to ${label}`, run: () => go(`#/${name}`) })),
  { name: 'Sampler and system prompt', run: () => { go('#/chat'); views.chat.panel.toggle(); } },
  ...kThemes.map((theme) => ({ name: `Theme: ${theme}`, run: () => setTheme(theme) })),
  { name: 'Export conversations', run: sidebar.exportAll },
  { name: 'Import conversations', run: sidebar.pickImport },
  { name: 'Unload the model', run: () => host.unload() },
], (id) => go(`#/chat/${id}`));
addEventListener('keydown', (event) => {
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && !event.shiftKey && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    finder.toggle();
  } else if (isCommand && event.shiftKey && event.key.toLowerCase() === 'o') {
    event.preventDefault();
    sidebar.startNew();
  } else if (event.key === 'Escape') {
    if (document.querySelector('dialog[open]')) return;
    if (document.body.classList.contains('drawer')) toggleDrawer(false);
    else if (chat.isAnswering) chat.stop();
  }
});
takeDrops(app, () => go('#/models'));
await route();
// On a phone the focus would bring up the keyboard.
if (matchMedia('(hover: hover)').matches) views.chat.focus();

// A model that costs no download, because it lies beside the page or is stored, is there before the first question.
const usual = usualModel();
if (usual.shipped) load(usual);
else {
  const cached = await (await host.engine()).cache.list().catch(() => []);
  if (cached.some((model) => model.complete && nameOf(model.id) === nameOf(usual.source))) load(usual);
}

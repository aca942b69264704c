// Puts the page together: one store, one model, one chat, four tabs that the address names (#/chat/ID, #/models,
// #/bench, #/device), the keys that work everywhere. Read next: chat.mjs and model_host.mjs (what happens),
// chat_view.mjs (how it looks).
import { benchView } from './bench_view.mjs';
import { Chat } from './chat.mjs';
import { chatView } from './chat_view.mjs';
import { memoryEstimate, nameOf } from './catalogue.mjs';
import { agrees } from './consent.mjs';
import { deviceView } from './device_view.mjs';
import { headView, kTabs, kThemes } from './head.mjs';
import { keptTexts } from './kept.mjs';
import { takeUncaught } from './last_resort.mjs';
import { ModelHost, sentence } from './model_host.mjs';
import { modelsView } from './models_view.mjs';
import { notice } from './notices.mjs';
import { fetchOffered } from './offered.mjs';
import { palette } from './palette.mjs';
import { pickerView } from './picker.mjs';
import { Settings } from './settings.mjs';
import { takeDrops } from './source_form.mjs';
import { sidebarView } from './sidebar.mjs';
import { ConversationStore } from './store.mjs';

const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const texts = keptTexts();
const settings = new Settings(texts);
const host = new ModelHost(() => import('../doppler.mjs'));
const [store, { offered, problem }] = await Promise.all([ConversationStore.open(), fetchOffered()]);

/** The model to run when the page has loaded none: that of last time if the list has it, else the first of the list. */
function usualModel() {
  const known = [...offered, ...settings.values.added];
  return known.find((entry) => entry.source === settings.values.lastModel) ?? known[0];
}

/**
 * @param {import('./catalogue.mjs').Entry} entry
 * @returns {Promise<string>} why it failed; empty if it did not, or was cancelled
 */
async function load(entry) {
  try {
    if (!(await agrees(entry, await host.engine()))) return '';
  } catch (error) { // the package could not be loaded
    return sentence(error);
  }
  const error = await host.load(entry.source, entry.name, settings.loading(), memoryEstimate(entry, settings.values) ?? 0);
  if (!error && host.source === entry.source && host.model) {
    settings.set({ lastModel: entry.source });
    if (entry.added) settings.addModel(entry);
  }
  return error;
}

/** @type {Promise<void> | null} */ let readying = null; // several conversations may ask
const ready = () => (readying ??= makeReady().finally(() => (readying = null)));

/** Loads the usual model, or waits for it; throws a sentence. */
async function makeReady() {
  if (host.model) return;
  while (host.loading) await new Promise((resolve) => host.addEventListener('change', resolve, { once: true }));
  if (host.model) return;
  const usual = usualModel(); // once more, if it failed before
  if (!usual) throw new Error('No model is known. Load one by its address, its name or from a file, on the tab Models.');
  const error = await load(usual);
  if (error) throw new Error(`${usual.name} did not load: ${error}`);
  if (!host.model) throw new Error('Loading was cancelled.');
}

const go = (where) => {
  location.hash = where;
};
const chat = new Chat(store, host, settings, ready);
const app = { chat, host, settings, store, texts, offered, usual: usualModel, load, ready, go };
const views = { chat: chatView(app), models: modelsView(app), bench: benchView(app), device: deviceView(app) };
const sidebar = sidebarView(app);
const picker = pickerView(app);
byId('content').replaceChildren(...kTabs.map(({ name }) => views[name].element));
const head = headView(app, { toggleFinder: () => finder.toggle(), pickModel: () => picker.open() });
takeUncaught();

// ---- What the address names is shown.
async function route() {
  const [, tab = 'chat', id] = location.hash.split('/');
  const name = kTabs.some((known) => known.name === tab) ? tab : 'chat';
  head.toggleDrawer(false);
  for (const known of kTabs) views[known.name].element.hidden = known.name !== name;
  head.mark(name);
  if (name === 'chat' && id && !(await chat.open(id))) notice('That conversation is not in this browser.', { kind: 'error' });
  showTitle();
  await views[name].refresh?.();
}
function showTitle() {
  const isChat = !views.chat.element.hidden;
  document.title = isChat && chat.conversation.title ? `${chat.conversation.title} · Doppler` : 'Doppler';
}
addEventListener('hashchange', route);
host.addEventListener('change', () => {
  if (host.state === 'ready' && location.hash.startsWith('#/device')) views.device.refresh();
});
host.addEventListener('notice', (event) => notice(/** @type {any} */ (event).detail));
// The address follows the conversation, so that a reload shows it again.
chat.addEventListener('list', () => {
  const where = chat.conversation.messages.length > 0 ? `#/chat/${chat.conversation.id}` : '#/chat';
  if (/^(#\/chat.*)?$/.test(location.hash) && location.hash !== where) history.replaceState(null, '', where);
  showTitle();
});

// ---- What cannot be kept is said.
if (!store.isKept || !texts.isKept) {
  notice('This browser keeps nothing for this page, since site data is blocked: conversations and settings last until it is closed. Export saves them.',
    { stays: true });
}
if (problem) notice(problem, { kind: 'error', stays: true });
let takeProblem = () => {};
store.addEventListener('problem', (event) => {
  takeProblem();
  const { detail } = /** @type {any} */ (event);
  takeProblem = detail ? notice(`The browser could not keep the conversation: ${detail} It lasts until the page is closed; Export saves it.`,
    { kind: 'error', stays: true, action: { name: 'Export', run: sidebar.exportAll } }) : () => {};
});

// ---- Keys.
const finder = palette(store, [
  { name: 'New chat', hint: 'Ctrl+Shift+O', run: sidebar.startNew },
  { name: 'Choose a model', run: () => picker.open() },
  ...kTabs.map(({ name, label }) => ({ name: `Go to ${label}`, run: () => go(`#/${name}`) })),
  { name: 'Settings: sampler and system prompt', run: () => { go('#/chat'); views.chat.panel.toggle(true); } },
  { name: 'Rename this conversation', run: () => { if (chat.conversation.messages.length > 0) sidebar.rename(chat.conversation.id); } },
  ...kThemes.map((theme) => ({ name: `Theme: ${theme}`, run: () => head.setTheme(theme) })),
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
  } else if (event.key === 'Escape' && !event.defaultPrevented) {
    if (document.querySelector('dialog[open]')) return;
    if (views.chat.panel.isOpen() && !views.chat.element.hidden) views.chat.panel.toggle(false);
    else if (head.isDrawerOpen()) head.toggleDrawer(false);
    else chat.stop();
  }
});
takeDrops(app, () => go('#/models'), (files) => {
  go('#/chat');
  void views.chat.takePictures(files);
});
await route();
// On a phone the focus would bring up the keyboard.
if (matchMedia('(hover: hover)').matches) views.chat.focus();
navigator.serviceWorker?.register('service_worker.js').catch(() => {}); // without it the page works, but not offline

// A model that costs no download, because it lies beside the page or is stored, is there before the first question.
const usual = usualModel();
if (usual?.shipped) await load(usual);
else if (usual) {
  const cached = await (await host.engine()).cache.list().catch(() => []);
  if (cached.some((model) => model.complete && nameOf(model.id) === nameOf(usual.source))) await load(usual);
}

// The list of models: what each takes, whether it is stored, loading and unloading; loading by search, address, name or
// file.
import { memoryEstimate, merged } from './catalogue.mjs';
import { h, icon, iconButton } from './dom.mjs';
import { fit } from './fits.mjs';
import { bytesText } from './format.mjs';
import { hubView } from './hub_view.mjs';
import { loadOptionsView } from './load_options_view.mjs';
import { sentence } from './model_host.mjs';
import { notice } from './notices.mjs';
import { progressView } from './progress_view.mjs';
import { sourceForm } from './source_form.mjs';

/** @param {any} app */
export function modelsView(app) {
  const { host, settings } = app;
  const list = h('ul', { class: 'models' });
  const storage = h('div', { class: 'storage' });
  /** Why a row's load failed, by its source. @type {Map<string, string>} */ const errors = new Map();

  let asked = 0;
  const refresh = async () => {
    if (element.hidden) return; // shown later, it is made anew
    const turn = ++asked;
    const kept = await stored(host);
    if (turn !== asked) return;
    const entries = merged(app.offered, settings.values.added, kept.models, location.href);
    const focused = list.contains(document.activeElement) ? document.activeElement?.getAttribute('aria-label') : null;
    list.replaceChildren(...entries.map((entry) => row(entry, app, errors, refresh)));
    if (focused) [...list.querySelectorAll('button')].find((button) => button.getAttribute('aria-label') === focused)?.focus();
    storage.replaceChildren(...storageLines(kept, host, refresh));
  };
  let last = '';
  host.addEventListener('change', () => {
    const now = [host.state, host.source, host.name, host.loading?.source, host.memory?.gpuBytes].join(' ');
    if (now !== last) refresh();
    last = now;
  });
  settings.addEventListener('change', refresh);
  const element = h('section', { class: 'page-part', 'aria-label': 'Models' },
    h('h1', {}, 'Models'), progressView(host), list, hubView(app), sourceForm(app), loadOptionsView(settings, refresh), storage);
  return { element, refresh };
}

/**
 * The models that the browser keeps; none if the package or the storage is missing.
 * @param {import('./model_host.mjs').ModelHost} host
 * @returns {Promise<{models: import('../doppler.d.ts').CachedModel[], isPersisted: boolean}>}
 */
export async function stored(host) {
  try {
    const { cache } = await host.engine();
    return { models: await cache.list(), isPersisted: (await cache.estimate()).persisted };
  } catch {
    return { models: [], isPersisted: false };
  }
}

/**
 * @param {import('./catalogue.mjs').Entry} entry @param {any} app @param {Map<string, string>} errors
 * @param {() => Promise<void>} refresh
 */
function row(entry, app, errors, refresh) {
  const { host, settings } = app;
  const isIt = (source) => source !== '' && (source === entry.source || source === entry.cached?.id);
  const isLoaded = host.model !== null && isIt(host.source);
  const isLoading = host.loading !== null && isIt(host.loading.source);
  const memory = isLoaded && host.memory ? host.memory.gpuBytes : memoryEstimate(entry, settings.values);
  const facts = [
    entry.bytes ? `${bytesText(entry.bytes)} file` : '',
    memory ? `${isLoaded ? '' : '≈ '}${bytesText(memory)} on the GPU` : '',
  ].filter((text) => text !== '');
  const load = async () => {
    errors.delete(entry.source);
    const error = await app.load(entry);
    if (error) errors.set(entry.source, error);
    await refresh();
  };
  const buttons = h('div', { class: 'model-buttons' });
  if (isLoaded) {
    buttons.append(h('button', { type: 'button', 'aria-label': `Unload ${entry.name}`, onclick: () => host.unload() }, 'Unload'));
  } else {
    buttons.append(h('button', { type: 'button', class: 'primary', disabled: isLoading, 'aria-label': `Load ${entry.name}`, onclick: load },
      isLoading ? 'Loading…' : 'Load'));
  }
  if (entry.cached && !isLoaded) {
    buttons.append(iconButton('trash', `Remove ${entry.name} from the browser's storage`, async () => {
      try {
        await (await host.engine()).cache.delete(entry.cached.id);
      } catch (error) {
        notice(sentence(error), { kind: 'error' });
      }
      await refresh();
    }));
  } else if (entry.added && !isLoaded) {
    buttons.append(iconButton('close', `Take ${entry.name} off the list`, () => settings.removeModel(entry.source)));
  }
  const error = errors.get(entry.source);
  return h('li', { class: `model${isLoaded ? ' loaded' : ''}` },
    h('div', { class: 'model-text' },
      h('div', { class: 'model-name' }, entry.name, marks(entry, isLoaded, memory)),
      entry.about ? h('p', {}, entry.about) : h('p', { class: 'source' }, entry.source),
      h('p', { class: 'facts' }, facts.join(' · ') || 'size known when it is loaded'),
      error ? h('p', { class: 'error', role: 'alert' }, error) : null),
    buttons);
}

/** @param {import('./catalogue.mjs').Entry} entry @param {boolean} isLoaded @param {number | null} memory */
export function marks(entry, isLoaded, memory) {
  const list = [];
  if (isLoaded) list.push(h('span', { class: 'mark good' }, icon('check'), 'loaded'));
  if (entry.shipped) list.push(h('span', { class: 'mark' }, 'shipped'));
  if (entry.cached?.complete) list.push(h('span', { class: 'mark' }, 'stored'));
  else if (entry.cached) list.push(h('span', { class: 'mark' }, `${partOf(entry.cached)} % stored`));
  const { mark, text } = fit(memory);
  if (!isLoaded && text) list.push(h('span', { class: `mark ${mark}` }, text));
  return list;
}

/** Never 100 of what was not loaded once. @param {{cachedBytes: number, bytes: number}} cached */
const partOf = ({ cachedBytes, bytes }) => Math.min(99, Math.floor((100 * cachedBytes) / Math.max(bytes, 1)));

/**
 * @param {{models: import('../doppler.d.ts').CachedModel[], isPersisted: boolean}} kept @param {any} host
 * @param {() => Promise<void>} refresh
 */
function storageLines({ models, isPersisted }, host, refresh) {
  if (models.length === 0) return [];
  const bytes = models.reduce((sum, model) => sum + model.cachedBytes, 0);
  const text = `${bytesText(bytes)} of models are stored in this browser. `;
  if (isPersisted) return [h('p', {}, text, 'The browser keeps them until you remove them.')];
  const keep = h('button', { type: 'button', class: 'plain', onclick: async () => {
    const isKept = await (await host.engine()).cache.persist();
    notice(isKept ? 'Stored models stay until you remove them.' : 'The browser did not agree; it may remove stored models when space is short.');
    await refresh();
  } }, 'Ask the browser to keep them');
  return [h('p', {}, text, keep)];
}

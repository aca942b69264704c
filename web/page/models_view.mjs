// The list of models: what each takes, whether it is stored, loading and unloading; loading by address, name or file.
import { memoryEstimate, merged, nameOf, parseSource } from './catalogue.mjs';
import { h, icon, iconButton } from './dom.mjs';
import { bytesText } from './format.mjs';
import { sentence } from './model_host.mjs';
import { notice } from './notices.mjs';
import { progressView } from './progress_view.mjs';

const kLanes = ['fast', 'exact', 'portable', 'subgroups', 'dp4a'];

/**
 * @param {{host: import('./model_host.mjs').ModelHost, settings: import('./settings.mjs').Settings, offered: any[],
 *   load: Function}} app
 */
export function modelsView(app) {
  const { host, settings } = app;
  const list = h('ul', { class: 'models' });
  const storage = h('p', { class: 'storage' });
  const failed = h('p', { class: 'error', role: 'alert', hidden: true });

  const refresh = async () => {
    const { cached, estimate } = await stored(host);
    const entries = merged(app.offered, settings.values.added, cached, location.href);
    list.replaceChildren(...entries.map((entry) => row(entry, app, refresh)));
    storage.replaceChildren(...storageLine(estimate, host, refresh));
  };
  let last = '';
  host.addEventListener('change', () => {
    failed.hidden = host.state !== 'failed';
    failed.textContent = host.state === 'failed' ? `${host.name} did not load: ${host.error}` : '';
    const now = `${host.state} ${host.source} ${host.name}`;
    if (now !== last) refresh();
    last = now;
  });
  const element = h('section', { class: 'page-part', 'aria-label': 'Models' },
    h('h1', {}, 'Models'), progressView(host), failed, list, sourceForm(app), loadOptions(settings, refresh), storage);
  return { element, refresh };
}

/**
 * The models that the browser keeps; empty without the package or the storage.
 * @param {import('./model_host.mjs').ModelHost} host
 */
async function stored(host) {
  try {
    const { cache } = await host.engine();
    return { cached: await cache.list(), estimate: await cache.estimate() };
  } catch {
    return { cached: [], estimate: null };
  }
}

/** @param {import('./catalogue.mjs').Entry} entry @param {any} app @param {() => Promise<void>} refresh */
function row(entry, app, refresh) {
  const { host, settings } = app;
  const isCurrent = host.source === entry.source || (host.source !== '' && host.source === entry.cached?.id);
  const isLoaded = host.state === 'ready' && isCurrent;
  const memory = isLoaded && host.memory ? host.memory.gpuBytes : memoryEstimate(entry, settings.values);
  const facts = [
    entry.bytes ? `${bytesText(entry.bytes)} file` : '',
    memory ? `${isLoaded ? '' : '≈ '}${bytesText(memory)} on the GPU` : '',
  ].filter((text) => text !== '');
  const buttons = h('div', { class: 'model-buttons' });
  if (isLoaded) {
    buttons.append(h('button', { type: 'button', onclick: () => host.unload() }, 'Unload'));
  } else {
    buttons.append(h('button', { type: 'button', class: 'primary', disabled: host.state === 'loading', 'aria-label': `Load ${entry.name}`,
      onclick: () => app.load(entry) }, isCurrent && host.state === 'loading' ? 'Loading…' : 'Load'));
  }
  if (entry.cached && !isLoaded) {
    buttons.append(iconButton('trash', `Remove ${entry.name} from the browser's storage`, async () => {
      try {
        await (await host.engine()).cache.delete(entry.cached.id);
      } catch (error) {
        notice(sentence(error), 'error');
      }
      await refresh();
    }));
  } else if (entry.added && !isLoaded) {
    buttons.append(iconButton('close', `Take ${entry.name} off the list`, async () => {
      settings.set({ added: settings.values.added.filter((other) => other.source !== entry.source) });
      await refresh();
    }));
  }
  return h('li', { class: `model${isLoaded ? ' loaded' : ''}` },
    h('div', { class: 'model-text' },
      h('div', { class: 'model-name' }, entry.name, marks(entry, isLoaded)),
      entry.about ? h('p', {}, entry.about) : h('p', { class: 'source' }, entry.source),
      h('p', { class: 'facts' }, facts.join(' · ') || 'size known when it is loaded')),
    buttons);
}

/** @param {import('./catalogue.mjs').Entry} entry @param {boolean} isLoaded */
function marks(entry, isLoaded) {
  const list = [];
  if (isLoaded) list.push(h('span', { class: 'mark good' }, icon('check'), 'loaded'));
  if (entry.shipped) list.push(h('span', { class: 'mark' }, 'shipped'));
  if (entry.cached?.complete) list.push(h('span', { class: 'mark' }, 'stored'));
  else if (entry.cached) list.push(h('span', { class: 'mark' }, `${Math.floor((100 * entry.cached.cachedBytes) / Math.max(entry.cached.bytes, 1))} % stored`));
  return list;
}

/** Address or name, and files by picker or drop. @param {any} app */
function sourceForm(app) {
  const { host, settings } = app;
  const wrong = h('p', { class: 'error', id: 'source-error', role: 'alert', hidden: true });
  const field = h('input', { id: 'source', type: 'text', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off',
    placeholder: 'https://…/model.gguf or owner/name:Q4_K_M', 'aria-describedby': 'source-error' });
  const submit = (event) => {
    event.preventDefault();
    try {
      const source = parseSource(field.value);
      const entry = { source, name: nameOf(source), added: true };
      wrong.hidden = true;
      if (![...app.offered, ...settings.values.added].some((other) => other.source === source)) {
        settings.set({ added: [...settings.values.added, entry] });
      }
      field.value = '';
      app.load(entry);
    } catch (error) {
      wrong.textContent = sentence(error);
      wrong.hidden = false;
    }
  };
  const picker = h('input', { type: 'file', multiple: true, class: 'only-read', 'aria-label': 'Model files', tabindex: '-1',
    onchange: () => loadFiles([...picker.files], host, settings) });
  const pick = h('button', { type: 'button', onclick: () => picker.click() }, icon('upload'), 'Choose a file');
  return h('div', { class: 'sources' },
    h('h2', {}, 'Load another model'),
    h('form', { class: 'source-form', onsubmit: submit },
      h('label', { class: 'field', for: 'source' }, 'Address or Hugging Face name'),
      h('div', { class: 'source-line' }, field, h('button', { class: 'primary' }, 'Load')), wrong),
    h('div', { class: 'drop-hint' }, pick, picker, h('span', {}, 'or drop a .gguf file, or the files of a model folder, anywhere on the page. It is read where it lies.')));
}

/**
 * @param {File[]} files
 * @param {import('./model_host.mjs').ModelHost} host
 * @param {import('./settings.mjs').Settings} settings
 */
function loadFiles(files, host, settings) {
  if (files.length === 0) return;
  const isOne = files.length === 1;
  host.load(isOne ? files[0] : files, nameOf(isOne ? files[0].name : 'model folder'), settings.loading());
}

/** Files dropped anywhere are loaded. @param {any} app @param {() => void} shown called when a load begins */
export function takeDrops({ host, settings }, shown) {
  const mark = (isOver) => document.body.classList.toggle('dropping', isOver);
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) mark(false);
  });
  addEventListener('drop', (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.some((file) => file.name.endsWith('.json')) && files.length === 1) return; // an export: sidebar.mjs
    shown();
    loadFiles(files, host, settings);
  });
}

/** @param {import('./settings.mjs').Settings} settings @param {() => void} changed */
function loadOptions(settings, changed) {
  const set = (changes) => {
    settings.set(changes);
    changed();
  };
  const choice = (id, label, values, value, onchoose) => {
    const select = h('select', { id, onchange: () => onchoose(select.value) },
      values.map(([name, text]) => h('option', { value: name, selected: name === value }, text)));
    return h('div', { class: 'option' }, h('label', { for: id }, label), select);
  };
  const ctx = h('input', { id: 'ctx', type: 'number', min: 0, step: 256, placeholder: 'as trained, at most 4096',
    value: settings.values.ctx || '', onchange: () => set({ ctx: Math.max(0, Math.floor(Number(ctx.value) || 0)) }) });
  return h('details', { class: 'load-options' }, h('summary', {}, 'How models are loaded'),
    h('div', { class: 'options' },
      h('div', { class: 'option' }, h('label', { for: 'ctx' }, 'Context (tokens)'), ctx),
      choice('lane', 'Kernel lane', kLanes.map((lane) => [lane, lane]), settings.values.lane, (lane) => set({ lane })),
      choice('kv', 'Keys and values', [['f16', '16 bits'], ['f32', '32 bits']], settings.values.kv, (kv) => set({ kv }))),
    h('p', { class: 'facts' }, 'These hold from the next load on.'));
}

/**
 * @param {{usageBytes: number, quotaBytes: number, persisted: boolean} | null} estimate
 * @param {any} host
 * @param {() => Promise<void>} refresh
 */
function storageLine(estimate, host, refresh) {
  if (!estimate) return [];
  const text = `Browser storage: ${bytesText(estimate.usageBytes)} of ${bytesText(estimate.quotaBytes)} used. `;
  if (estimate.persisted) return [text, 'The browser keeps it until you remove it.'];
  const keep = h('button', { type: 'button', class: 'plain', onclick: async () => {
    const isKept = await (await host.engine()).cache.persist();
    notice(isKept ? 'Stored models stay until you remove them.' : 'The browser did not agree; it may remove stored models when space is short.');
    await refresh();
  } }, 'Ask the browser to keep it');
  return [text, keep];
}

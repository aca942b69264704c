// The panel beside the chat: system prompt of this conversation, the model's adapter, sampler, seed, stop texts, the
// form of answers, tools.
import { adapterField } from './adapter_field.mjs';
import { h, iconButton } from './dom.mjs';
import { kSamplerFields, kUsualSettings } from './settings.mjs';

const kMostSeed = 2 ** 32 - 1;

/**
 * @param {{chat: import('./chat.mjs').Chat, settings: import('./settings.mjs').Settings,
 *   host: import('./model_host.mjs').ModelHost}} app
 */
export function samplerView({ chat, settings, host }) {
  const system = h('textarea', { id: 'system', rows: 4, dir: 'auto', placeholder: 'You are a helpful assistant.',
    oninput: () => chat.setSystem(system.value) });
  const usual = h('button', { type: 'button', class: 'plain', onclick: () => settings.set({ system: system.value }) }, 'Use for new conversations');
  const fields = kSamplerFields.map((field) => fieldView(field, settings));
  const seedNote = h('small', { id: 'seed-note', class: 'error', role: 'alert' });
  const seed = h('input', { id: 'seed', type: 'text', inputmode: 'numeric', placeholder: 'another each time', 'aria-describedby': 'seed-note', onchange: () => {
    const text = seed.value.trim();
    const isSeed = text === '' || (/^\d+$/.test(text) && Number(text) <= kMostSeed);
    seedNote.textContent = isSeed ? '' : `"${text}" is no seed: a whole number from 0 to ${kMostSeed}, or nothing.`;
    if (isSeed) settings.set({ seed: text });
    else seed.value = settings.values.seed;
  } });
  const stop = h('textarea', { id: 'stop', rows: 2, placeholder: 'one a line', onchange: () => settings.set({ stop: stop.value }) });
  const toolsNote = h('small', { id: 'tools-note', class: 'error', role: 'alert' });
  const tools = h('textarea', { id: 'tools', rows: 4, spellcheck: false, 'aria-describedby': 'tools-note',
    placeholder: '[{"name": "weather", "parameters": {"type": "object"}}]', onchange: () => {
      settings.set({ tools: tools.value });
      checkTools();
    } });
  const checkTools = () => {
    try {
      settings.tools();
      toolsNote.textContent = '';
    } catch (error) {
      toolsNote.textContent = /** @type {Error} */ (error).message;
    }
  };
  const schemaNote = h('small', { id: 'schema-note', class: 'error', role: 'alert' });
  const schema = h('textarea', { id: 'schema', 'aria-label': 'JSON schema', rows: 4, spellcheck: false, 'aria-describedby': 'schema-note',
    placeholder: 'any object, or after a schema: {"type": "object"}', onchange: () => setForm({ schema: schema.value }) });
  const json = h('input', { id: 'json', type: 'checkbox', onchange: () => setForm({ form: json.checked ? 'json' : 'text' }) });
  const setForm = (changes) => {
    settings.set(changes);
    showForm();
  };
  const showForm = () => {
    json.checked = settings.values.form === 'json';
    schema.value = settings.values.schema;
    schema.hidden = !json.checked;
    try {
      settings.form();
      schemaNote.textContent = '';
    } catch (error) {
      schemaNote.textContent = /** @type {Error} */ (error).message;
    }
  };
  const reset = h('button', { type: 'button', class: 'plain', onclick: () => {
    const { sampler, seed: noSeed, stop: noStop } = kUsualSettings;
    settings.set({ sampler: { ...sampler }, seed: noSeed, stop: noStop });
    show();
  } }, 'Back to the usual values');

  const show = () => {
    system.value = chat.conversation.system;
    for (const field of fields) field.show();
    seed.value = settings.values.seed;
    stop.value = settings.values.stop;
    tools.value = settings.values.tools;
    checkTools();
    showForm();
  };
  const element = h('aside', { id: 'sampler', class: 'panel', 'aria-label': 'Sampler and system prompt', hidden: true },
    h('div', { class: 'panel-head' }, h('h2', {}, 'Settings'), iconButton('close', 'Close settings', () => toggle())),
    h('label', { class: 'field', for: 'system' }, 'System prompt'), system, usual,
    h('h3', {}, 'Adapter'), adapterField(host),
    h('h3', {}, 'Sampler'), fields.map((field) => field.element),
    h('label', { class: 'field', for: 'seed' }, 'Seed'), seed, seedNote,
    h('label', { class: 'field', for: 'stop' }, 'Stop at these texts'), stop, reset,
    h('h3', {}, 'Form of answers'), h('label', { class: 'check' }, json, 'JSON'), schema, schemaNote,
    h('h3', {}, 'Tools'), h('label', { class: 'field', for: 'tools' }, 'What the model may call (JSON); you give the results'), tools, toolsNote);
  const isOpen = () => !element.hidden;
  const toggle = (open = !isOpen()) => {
    if (open === isOpen()) return;
    element.hidden = !open;
    if (open) {
      show();
      element.querySelector('button')?.focus();
    }
    element.dispatchEvent(new Event('toggle-panel'));
  };
  settings.addEventListener('change', () => {
    if (isOpen() && !element.contains(document.activeElement)) show(); // of another tab
  });
  chat.addEventListener('list', show);
  show();
  return { element, toggle, isOpen };
}

/**
 * A slider with the number beside it.
 * @param {typeof kSamplerFields[number]} field
 * @param {import('./settings.mjs').Settings} settings
 */
function fieldView({ name, label, least, most, step, hint }, settings) {
  const id = `sampler-${name}`;
  const range = { min: least, max: most, step };
  const note = h('small', { class: 'error', role: 'alert' });
  const set = (text) => {
    const value = text.trim() === '' ? NaN : Number(text);
    const isAllowed = value >= least && value <= most && (step < 1 || Number.isInteger(value));
    note.textContent = isAllowed ? '' : `${label} is ${step < 1 ? 'a number' : 'a whole number'} from ${least} to ${most}; it stays ${settings.values.sampler[name]}.`;
    if (isAllowed) settings.setSampler(name, value);
    show();
  };
  const slider = h('input', { type: 'range', ...range, 'aria-label': label, oninput: () => set(slider.value) });
  const number = h('input', { id, type: 'text', inputmode: 'decimal', 'aria-describedby': `${id}-hint`, onchange: () => set(number.value) });
  const show = () => {
    slider.value = number.value = String(settings.values.sampler[name]);
  };
  const element = h('div', { class: 'slider-field' },
    h('label', { for: id }, label), number, slider, h('small', { id: `${id}-hint` }, hint), note);
  return { element, show };
}

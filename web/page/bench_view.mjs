// The bench tab: chooses the tests, runs them on the loaded model, shows table and plots, exports JSON.
import { makeTests, parseDepths, report, runBench } from './bench.mjs';
import { h, saveFile } from './dom.mjs';
import { rateText, secondsText } from './format.mjs';
import { sentence } from './model_host.mjs';
import { plot } from './plot.mjs';

const kUsual = { prompt: 128, generate: 32, depths: '0, 256, 512', repetitions: 3 };
const kMostTokens = 1 << 20;

/**
 * @param {{host: import('./model_host.mjs').ModelHost, chat: import('./chat.mjs').Chat, settings: any,
 *   ready: () => Promise<void>}} app
 */
export function benchView({ host, chat, settings, ready }) {
  const number = (id, label, value) => {
    const input = h('input', { id, type: 'number', min: 0, max: kMostTokens, step: 1, value });
    return { input, element: h('div', { class: 'option' }, h('label', { for: id }, label), input) };
  };
  const prompt = number('bench-prompt', 'Prefill (tokens)', kUsual.prompt);
  const generate = number('bench-generate', 'Decode (tokens)', kUsual.generate);
  const repetitions = number('bench-repetitions', 'Repetitions', kUsual.repetitions);
  const depths = h('input', { id: 'bench-depths', type: 'text', value: kUsual.depths });
  const run = h('button', { type: 'button', class: 'primary', onclick: () => (abort ? abort.abort() : start()) }, 'Run');
  const save = h('button', { type: 'button', hidden: true, onclick: () => saveFile('doppler-bench.json', JSON.stringify(last, null, 2)) }, 'Export JSON');
  const state = h('p', { class: 'facts', role: 'status' });
  const body = h('tbody', {});
  const table = h('div', { class: 'table-frame', tabindex: '0', role: 'region', 'aria-label': 'Results', hidden: true }, h('table', { class: 'results' },
    h('thead', {}, h('tr', {}, ['test', 'tok/s', '±', 'least', 'most', 'TTFT'].map((name) => h('th', { scope: 'col' }, name)))), body));
  const plots = h('div', { class: 'plots' });
  /** @type {AbortController | null} */ let abort = null;
  /** @type {any} */ let last = null;

  const start = async () => {
    abort = new AbortController();
    run.textContent = 'Stop';
    save.hidden = true;
    const { signal } = abort;
    const rows = [];
    body.replaceChildren();
    plots.replaceChildren();
    try {
      if (chat.isBusy) throw new Error('An answer is being written; its speed and the bench\'s would be wrong.');
      state.textContent = 'Loading the model…';
      await ready();
      const model = host.model;
      const workload = {
        tests: makeTests(Number(prompt.input.value), Number(generate.input.value), parseDepths(depths.value, model.info.ctxLen)),
        repetitions: Math.max(1, Number(repetitions.input.value)),
      };
      state.textContent = 'Warming up…';
      await runBench(model, workload, signal, (row, done, total) => {
        rows.push(row);
        state.textContent = `${done} of ${total} tests`;
        table.hidden = false;
        body.append(rowView(row));
        plots.replaceChildren(...plotsOf(rows));
      });
      const device = await (await host.engine()).probe();
      last = report(model, device, rows, workload, { name: host.name, kv: settings.values.kv, agent: navigator.userAgent, now: new Date() });
      save.hidden = false;
      state.textContent = `${host.name} on ${model.info.adapter}, ${model.info.lane} lane. Greedy, tokens without meaning, counted runs: ${workload.repetitions}.`;
    } catch (error) {
      state.textContent = signal.aborted ? 'Stopped.' : sentence(error);
    }
    abort = null;
    run.textContent = 'Run';
  };
  const element = h('section', { class: 'page-part', 'aria-label': 'Bench' },
    h('h1', {}, 'Bench'),
    h('p', { class: 'lead' }, 'Prefill (pp) and decode (tg) speed of the loaded model, after some tokens of context.'),
    h('div', { class: 'options' }, prompt.element, generate.element,
      h('div', { class: 'option' }, h('label', { for: 'bench-depths' }, 'Depths (tokens)'), depths), repetitions.element),
    h('div', { class: 'button-line' }, run, save), state, table, plots);
  return { element };
}

/** @param {any} row */
function rowView({ test, tokens_per_second: speed, ttft_seconds }) {
  return h('tr', {}, h('th', { scope: 'row' }, test), [speed.median, speed.stddev, speed.min, speed.max].map((value) => h('td', {}, rateText(value))),
    h('td', {}, ttft_seconds ? secondsText(ttft_seconds) : '–'));
}

/** @param {any[]} rows */
function plotsOf(rows) {
  const kinds = [
    { title: 'Prefill', colour: 'prefill', of: rows.filter((row) => row.prompt > 0) },
    { title: 'Decode', colour: 'decode', of: rows.filter((row) => row.generate > 0) },
  ];
  return kinds.filter(({ of }) => of.length > 0).map(({ title, colour, of }) =>
    h('figure', {}, h('figcaption', {}, `${title}, tok/s`),
      plot(title, of.map(({ depth, tokens_per_second: { median, min, max } }) => ({ depth, median, min, max })), colour)));
}

// The device tab: what the browser's WebGPU offers, which kernels were chosen and why, the self test, a report to copy.
import { copyText, h, icon } from './dom.mjs';
import { bytesText } from './format.mjs';
import { sentence } from './model_host.mjs';

/** @param {{host: import('./model_host.mjs').ModelHost}} app */
export function deviceView({ host }) {
  const facts = h('div', { class: 'device-facts' });
  const kernels = h('div', {});
  const test = h('div', { role: 'status' });
  /** @type {{device: any, kernels: any[], test: any}} */ const known = { device: null, kernels: [], test: null };
  const copy = h('button', { type: 'button', onclick: () => copyText(copy, reportText(known, host)) }, icon('copy'), 'Copy the report');
  const run = h('button', { type: 'button', onclick: async () => {
    run.disabled = true;
    test.replaceChildren(h('p', { class: 'facts' }, 'Asking tiny models…'));
    try {
      known.test = await host.model.selfTest();
      test.replaceChildren(...testView(known.test));
    } catch (error) {
      test.replaceChildren(h('p', { class: 'error' }, sentence(error)));
    }
    run.disabled = !host.model;
  } }, 'Run the self test');

  const refresh = async () => {
    run.disabled = !host.model;
    try {
      known.device ??= await (await host.engine()).probe();
      facts.replaceChildren(...deviceFacts(known.device));
      known.kernels = (await host.model?.kernels()) ?? [];
      known.test = host.model?.info.selfTest ?? known.test;
      if (known.test) test.replaceChildren(...testView(known.test));
      kernels.replaceChildren(...kernelsView(known.kernels));
    } catch (error) {
      facts.replaceChildren(h('p', { class: 'error' }, sentence(error)));
    }
  };
  const element = h('section', { class: 'page-part', 'aria-label': 'Device' },
    h('h1', {}, 'Device'), facts,
    h('h2', {}, 'Self test'), h('div', { class: 'button-line' }, run, copy), test,
    h('h2', {}, 'Kernels'), kernels);
  return { element, refresh };
}

/** @param {import('../doppler.d.ts').DeviceInfo} device */
function deviceFacts(device) {
  if (!device.available) {
    return [h('p', { class: 'error' }, device.reason),
      h('p', { class: 'facts' }, 'WebGPU is in Chrome and Edge 113, Safari 26 and Firefox 141 (Windows) or 145 (macOS); '
        + 'Firefox on Linux has it where dom.webgpu.enabled is set to true in about:config.')];
  }
  const kBytes = /Size$/;
  const limits = Object.entries(device.limits).sort(([a], [b]) => a.localeCompare(b));
  return [
    pairs([['Adapter', device.adapter], ['Vendor', device.vendor], ['Architecture', device.architecture],
      ['Kind', device.cpu ? 'CPU (no GPU was found: slow)' : 'GPU']]),
    h('h2', {}, 'Features'), chips(device.features), h('h2', {}, 'WGSL language features'), chips(device.languageFeatures),
    h('details', {}, h('summary', {}, 'Limits'),
      pairs(limits.map(([name, value]) => [name, kBytes.test(name) ? `${bytesText(value)}` : value.toLocaleString('en-US')]))),
  ];
}

/** @param {[string, string][]} rows */
function pairs(rows) {
  return h('dl', { class: 'pairs' }, rows.filter(([, value]) => value !== '').map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

/** @param {string[]} words */
function chips(words) {
  if (words.length === 0) return h('p', { class: 'facts' }, 'none');
  return h('p', { class: 'chips' }, [...words].sort().map((word) => h('code', {}, word)));
}

/** @param {import('../doppler.d.ts').KernelChoice[]} choices */
function kernelsView(choices) {
  if (choices.length === 0) return [h('p', { class: 'facts' }, 'Load a model to see which kernels it runs.')];
  const reasons = (refused) => h('ul', { class: 'reasons' }, refused.map(({ variant, reason }) => h('li', {}, h('code', {}, variant), ` ${reason}`)));
  return [h('div', { class: 'table-frame', tabindex: '0', role: 'region', 'aria-label': 'Kernels' }, h('table', { class: 'kernels' },
    h('thead', {}, h('tr', {}, ['operation', 'kernel', 'better ones that were refused'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, choices.map(({ operation, shape, variant, refused }) => h('tr', {},
      h('th', { scope: 'row' }, operation, h('small', {}, shape)), h('td', {}, h('code', {}, variant)), h('td', {}, refused.length ? reasons(refused) : 'none'))))))];
}

/** @param {import('../doppler.d.ts').SelfTestReport} report */
function testView({ passed, lane, formats, replaced }) {
  const names = formats.map(({ format }) => format).join(', ');
  if (passed) return [h('p', { class: 'good' }, `Tiny models of the formats in use (${names}) answer as they do natively, in the lane ${lane}.`)];
  const wrong = formats.filter((format) => !format.passed).map(({ format, wrong: kernel }) =>
    h('li', {}, `${format}: wrong answers`, ...(kernel ? [', made by ', h('code', {}, kernel)] : [' of several kernels'])));
  const used = Object.values(replaced).map((variant) => h('li', {}, 'used in its place: ', h('code', {}, variant)));
  return [h('p', { class: 'error' }, `Kernels of the lane ${lane} compute wrong here.`), h('ul', {}, wrong, used)];
}

/**
 * Everything of this tab as text.
 * @param {{device: any, kernels: any[], test: any}} known
 * @param {import('./model_host.mjs').ModelHost} host
 */
export function reportText({ device, kernels, test }, host) {
  const lines = ['Doppler device report', `browser: ${navigator.userAgent}`];
  if (device) {
    lines.push(`adapter: ${device.adapter} (${device.vendor} ${device.architecture})${device.available ? '' : `; ${device.reason}`}`);
    lines.push(`features: ${device.features.join(' ')}`, `language: ${device.languageFeatures.join(' ')}`);
    for (const [name, value] of Object.entries(device.limits)) lines.push(`limit ${name}: ${value}`);
  }
  if (host.model) lines.push(`model: ${host.name}, ${host.model.info.architecture}, lane ${host.model.info.lane}, context ${host.model.info.ctxLen}`);
  for (const { operation, shape, variant, refused } of kernels) {
    lines.push(`kernel ${operation} ${shape}: ${variant}${refused.map((row) => `; not ${row.variant}: ${row.reason}`).join('')}`);
  }
  if (test) lines.push('', test.text);
  return `${lines.join('\n')}\n`;
}

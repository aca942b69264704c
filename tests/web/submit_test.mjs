// Tests the replay of submits (web/gpu_host.mjs) over a GPU that only notes its calls.
import assert from 'node:assert/strict';
import test from 'node:test';
import { GpuHost } from '../../web/gpu_host.mjs';

const kDispatch = 1, kCommandWords = 8, kNoReadback = -1; // src/gpu/plan.h, host_gpu_web.h
const kReadback = 2; // BufferUse
const kEarly = 32; // gpu_host.mjs

/**
 * A host whose submits are `log`: of each the grids of its dispatches, and 'copy'.
 * @param {string} provider
 * @param {string} adapter
 */
async function startHost(provider, adapter) {
  /** @type {string[][]} */ const log = [];
  const noted = () => {
    /** @type {string[]} */ const commands = [];
    const pass = { setPipeline() {}, setBindGroup() {}, end() {}, dispatchWorkgroups: (...grid) => commands.push(grid.join()) };
    return { beginComputePass: () => pass, copyBufferToBuffer: () => commands.push('copy'), finish: () => commands };
  };
  const device = {
    features: new Set(), limits: {}, lost: new Promise(() => {}), addEventListener() {}, pushErrorScope() {}, popErrorScope: async () => null,
    createCommandEncoder: noted, queue: { submit: (buffers) => log.push(...buffers) },
    createBuffer: ({ size }) => ({ mapAsync: async () => {}, getMappedRange: () => new ArrayBuffer(size), unmap() {} }),
  };
  const info = { device: adapter, vendor: '', architecture: '', description: '' };
  const gpu = { requestAdapter: async () => ({ features: new Set(), limits: {}, info, requestDevice: async () => device }) };
  const memory = { buffer: new ArrayBuffer(1 << 16) };
  /** @type {any} */ let answer;
  const core = { exports: { memory }, text: () => 'name', answer: (_ticket, work) => (answer = work()) };
  const host = new GpuHost(/** @type {any} */ (core), gpu, provider, /** @type {any} */ ({}));
  const imports = host.imports();
  const ask = async (name, ...given) => {
    imports[name](0, ...given);
    await answer;
  };
  await ask('dp_gpu_open');
  for (const id of [0, 1]) await ask('dp_gpu_buffer', id, 16, kReadback, 0, 0);
  return { log, memory, imports, read: (id) => ask('dp_gpu_read', id, 16) };
}

/**
 * A plan of `count` dispatches, run `times` times, whose result is read back or not.
 * @param {Awaited<ReturnType<typeof startHost>>} host
 */
function submit(host, count, times, readback = 1) {
  const works = 0, words = 64;
  const w = new Uint32Array(host.memory.buffer, words, count * kCommandWords);
  for (let i = 0; i < count; i++) w.set([kDispatch, i, i, i + 1, 1, 1, 0, 0], i * kCommandWords);
  new Uint32Array(host.memory.buffer, works, 4).set([words, w.length, 1, times]);
  host.log.length = 0;
  host.imports.dp_gpu_submit(works, 1, readback === kNoReadback ? kNoReadback : 0, 0, readback, 16);
  return host.log;
}

const grids = (count, times = 1) => Array.from({ length: count * times }, (_, i) => `${i % count + 1},1,1`);

test('where the GPU has nothing to do, the first dispatches go before the others are encoded', async () => {
  const host = await startHost('node', 'a GPU');
  const log = submit(host, 20, 3);
  assert.deepEqual(log.map((commands) => commands.length), [kEarly, 60 - kEarly + 1]);
  assert.deepEqual(log.flat(), [...grids(20, 3), 'copy']);
});

test('not while a submit before it was not read', async () => {
  const host = await startHost('node', 'a GPU');
  submit(host, 20, 3);
  assert.deepEqual(submit(host, 20, 3, 0), [[...grids(20, 3), 'copy']]);
  await host.read(1);
  assert.equal(submit(host, 20, 3).length, 1);
  await host.read(0);
  await host.read(1);
  assert.equal(submit(host, 20, 3).length, 2);
});

test('of a submit that has no more than these, all at once but the copy', async () => {
  const host = await startHost('node', 'a GPU');
  assert.deepEqual(submit(host, kEarly - 1, 1, kNoReadback), [grids(kEarly - 1)]);
});

test('never on a CPU, and not in a browser, where encoding costs less', async () => {
  for (const [provider, adapter] of [['node', 'llvmpipe'], ['browser', 'a GPU']]) {
    assert.equal(submit(await startHost(provider, adapter), 60, 1).length, 1);
  }
});

// The GPU half of the boundary: the imports of src/gpu/host_gpu_web.h over the WebGPU API. Objects live in arrays under
// the numbers that WebAssembly gives them. WebAssembly checks the requests; this file only carries them out.
import { kStagingBytes, Staging } from './staging.mjs';
import { HostError, Status } from './wasm_loader.mjs';

// Words of a plan, src/gpu/plan.h.
const kCommandWords = 8;
const kDispatch = 1;
const kAxisShift = 28;
const kRowsMask = 2 ** kAxisShift - 1;

const kNoReadback = 0xffffffff;
const kChunkBytes = 8 << 20; // of a stream: as fast as larger ones, and the browser copies each
// The queue is awaited after so many bytes of all streams: the browser frees its own copies then.
const kPaceBytes = 32 << 20;

// By BufferUse (src/gpu/buffer.h), from the WebGPU standard: MAP_READ 1, COPY_SRC 4, COPY_DST 8, UNIFORM 64, STORAGE
// 128.
const kUsages = [128 | 4 | 8, 64 | 4 | 8, 1 | 8];
const kMapRead = 1;
const kComputeStage = 4;
// By BindKind (src/gpu/bind_kind.h).
const kBindTypes = ['uniform', 'read-only-storage', 'storage'];

// Matrix units: Node, and Chromium where experiments are allowed.
const kMatrix = 'chromium-experimental-subgroup-matrix';
const kFeatures = ['shader-f16', 'subgroups', kMatrix];
const kLimits = ['maxBufferSize', 'maxStorageBufferBindingSize', 'maxStorageBuffersPerShaderStage',
  'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupStorageSize', 'maxComputeWorkgroupsPerDimension'];
// Firefox looks every 100 ms whether the GPU is done (https://bugzilla.mozilla.org/show_bug.cgi?id=1870699) and at each
// submit, hence empty ones while something is waited for. Not on CPUs: Mesa's lavapipe holds a submit back until it is
// done.
const kLooksSeldom = /Firefox\//.test(globalThis.navigator?.userAgent ?? '');
const kLookMs = 4; // the least that browsers wait between timers
// Encoding costs Node 0.7 us a call: where the GPU has nothing to do, the first dispatches of a submit go before the
// others.
const kEarlyDispatches = 32;
const kCpuAdapters = /llvmpipe|swiftshader|software|basic render/i;

const kNoAdapter = {
  browser: 'This browser offers no WebGPU adapter.',
  node: 'The npm package webgpu found no adapter: there is no GPU with a driver for it, and no software driver such as Mesa\'s lavapipe.',
};

async function requestAdapter(gpu, powerPreference, provider) {
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (!adapter) throw new HostError(Status.failed, kNoAdapter[provider]);
  return adapter;
}

const nameOf = (info) =>
  info.device || info.description || [info.vendor, info.architecture].join(' ').trim() || 'unnamed adapter';
const isCpu = (info) => Boolean(info.isFallbackAdapter) || kCpuAdapters.test(`${nameOf(info)} ${info.architecture}`);

/**
 * DeviceInfo of doppler.d.ts.
 * @param {any} gpu @param {string} provider @param {import('./doppler.d.ts').DeviceOptions} [options]
 */
export async function describeAdapter(gpu, provider, { powerPreference = 'high-performance' } = {}) {
  const { info, features, limits } = await requestAdapter(gpu, powerPreference, provider);
  /** @type {Record<string, number>} */ const shownLimits = {};
  for (const name in limits) if (typeof limits[name] === 'number') shownLimits[name] = limits[name];
  return {
    available: true,
    reason: '',
    adapter: nameOf(info),
    vendor: info.vendor,
    architecture: info.architecture,
    cpu: isCpu(info),
    features: [...features].sort(),
    limits: shownLimits,
    languageFeatures: [...(gpu.wgslLanguageFeatures ?? [])].sort(),
  };
}

// Products of 16 x 16 fragments of f16 with sums in f32, as src/gpu/caps.h wants them.
/** @param {any} config */
const isOurFragment = (config) => config.componentType === 'f16' && config.resultComponentType === 'f32'
  && [config.M, config.N, config.K].every((size) => size === 16);

/** @param {any} device @param {any} info */
export const hasMatrixUnits = (device, info) => device.features.has(kMatrix)
  && [...(info.subgroupMatrixConfigs ?? [])].some(isOurFragment);

/**
 * Firefox says only that there was an error; what and where is in the compiler's messages.
 * @param {any} module
 * @param {string} said
 */
async function whatIsWrong(module, said) {
  const { messages } = await module.getCompilationInfo();
  const first = messages.find(({ type }) => type === 'error')?.message.trim() ?? '';
  return said.includes(first) ? said : `${said}: ${first}`;
}

export class GpuHost {
  /** @type {any[]} */ #buffers = [];
  /** @type {any[]} */ #pipelines = [];
  /** @type {any[]} */ #layouts = []; // by pipeline
  /** @type {any[]} */ #groups = [];
  /** @type {Map<string, any>} */ #layoutOf = new Map();
  /** @type {any} */ #device = null;
  #unpaced = 0; // bytes streamed since the queue was waited for
  /** Node's. @type {Staging | null} */ #staging = null;
  /** A read into a mapped buffer. @type {Promise<void> | null} */ #filling = null;
  /** Buffers of submits that were not read yet: the GPU may have work. */ #unread = new Set();
  isCpu = false;
  lost = ''; // why the device is lost; empty while it is there
  /** @type {(why: string) => void} */ onLost = () => {};

  /**
   * @param {import('./wasm_loader.mjs').Core} core
   * @param {any} gpu navigator.gpu, or what the npm package webgpu creates
   * @param {string} provider "browser" or "node"
   * @param {import('./file_host.mjs').FileHost} files
   * @param {import('./doppler.d.ts').DeviceOptions} [device]
   */
  constructor(core, gpu, provider, files, device = {}) {
    this.core = core;
    this.gpu = gpu;
    this.provider = provider;
    this.files = files;
    this.powerPreference = device.powerPreference ?? 'high-performance';
  }

  /** @returns {Record<string, Function>} */
  imports() {
    const { core } = this;
    return {
      dp_gpu_open: (ticket) => core.answer(ticket, () => this.#open()),
      dp_gpu_close: () => this.close(),
      dp_gpu_buffer: (ticket, id, bytes, use, name, nameBytes) => {
        const label = core.text(name, nameBytes);
        core.answer(ticket, () => this.#createBuffer(id, bytes, use, label));
      },
      dp_gpu_free: (id) => {
        this.#buffers[id]?.destroy();
        this.#buffers[id] = null;
      },
      dp_gpu_pipeline: (ticket, id, json, jsonBytes) => {
        const description = JSON.parse(core.text(json, jsonBytes));
        core.answer(ticket, () => this.#createPipeline(id, description));
      },
      dp_gpu_group: (id, pipeline, bindings, count) => this.#createGroup(id, pipeline, bindings, count),
      dp_gpu_write: (buffer, offset, data, bytes) =>
        this.#device.queue.writeBuffer(this.#buffers[buffer], offset, core.bytes(data, bytes)),
      dp_gpu_stream: (ticket, buffer, offset, stream, from, bytes) =>
        core.answer(ticket, () => this.#stream(buffer, offset, stream, from, bytes)),
      dp_gpu_submit: (works, count, from, offset, to, bytes) =>
        this.#submit(works, count, from >>> 0, offset, to, bytes),
      dp_gpu_read: (ticket, buffer, bytes) => core.answer(ticket, () => this.#read(buffer, bytes >>> 0)),
      dp_gpu_idle: (ticket) => core.answer(ticket, () => this.#idle()),
    };
  }

  async #open() {
    const adapter = await requestAdapter(this.gpu, this.powerPreference, this.provider);
    const { info, limits } = adapter;
    /** @type {Record<string, number>} */ const requiredLimits = {};
    for (const name of kLimits) requiredLimits[name] = limits[name];
    const requiredFeatures = kFeatures.filter((feature) => adapter.features.has(feature));
    const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
    this.#device = device;
    device.addEventListener('uncapturederror', (event) => {
      const kind = event.error?.constructor?.name === 'GPUOutOfMemoryError' ? Status.outOfMemory : Status.failed;
      this.#report(kind, event.error?.message ?? 'unknown');
    });
    device.lost.then((lost) => {
      if (this.#device !== device) return;
      this.lost = lost.message || lost.reason;
      this.#report(Status.notThere, this.lost);
      this.onLost(this.lost);
    });
    this.isCpu = isCpu(info);
    return JSON.stringify({
      provider: this.provider,
      adapter: nameOf(info),
      vendor: info.vendor,
      architecture: info.architecture,
      driver: info.description,
      cpu: this.isCpu,
      f16: device.features.has('shader-f16'),
      subgroups: device.features.has('subgroups'),
      subgroup_min: info.subgroupMinSize ?? 0,
      subgroup_max: info.subgroupMaxSize ?? 0,
      matrix_f16: hasMatrixUnits(device, info),
      dp4a: Boolean(this.gpu.wgslLanguageFeatures?.has('packed_4x8_integer_dot_product')),
      max_buffer_bytes: device.limits.maxBufferSize,
      max_binding_bytes: device.limits.maxStorageBufferBindingSize,
      max_storage_buffers: device.limits.maxStorageBuffersPerShaderStage,
      max_invocations: device.limits.maxComputeInvocationsPerWorkgroup,
      max_workgroup_size_x: device.limits.maxComputeWorkgroupSizeX,
      max_workgroup_bytes: device.limits.maxComputeWorkgroupStorageSize,
      max_workgroups: device.limits.maxComputeWorkgroupsPerDimension,
      binding_alignment: Math.max(device.limits.minStorageBufferOffsetAlignment,
        device.limits.minUniformBufferOffsetAlignment),
    });
  }

  /** True if the device is lost; calls that fail because of the loss fail a little before it is told. */
  async isLostSoon() {
    const kSoonSeconds = 1;
    await Promise.race([this.#device?.lost, new Promise((resolve) => setTimeout(resolve, kSoonSeconds * 1000))]);
    return this.lost !== '';
  }

  close() {
    const device = this.#device;
    this.#device = this.#staging = null;
    // Not while a read writes to memory that goes with the device.
    const destroy = () => device?.destroy();
    if (this.#filling) void this.#filling.then(destroy, destroy);
    else destroy();
    this.#buffers = this.#pipelines = this.#layouts = this.#groups = [];
    this.#unread.clear();
  }

  /** An error that no call waits for. @param {number} status @param {string} message */
  #report(status, message) {
    this.core.exports.doppler_gpu_error(status, ...this.core.give(message));
  }

  // A failed allocation is silent except to an error scope.
  async #createBuffer(id, size, use, label) {
    const device = this.#device;
    device.pushErrorScope('out-of-memory');
    device.pushErrorScope('validation');
    this.#buffers[id] = device.createBuffer({ label, size, usage: kUsages[use] });
    const scopes = [device.popErrorScope(), device.popErrorScope()];
    const [invalid, noMemory] = await Promise.all(scopes);
    if (!invalid && !noMemory) return;
    this.#buffers[id].destroy();
    this.#buffers[id] = null;
    throw new HostError(noMemory ? Status.outOfMemory : Status.failed, (noMemory ?? invalid).message);
  }

  #layout(kinds) {
    const key = kinds.join();
    let layout = this.#layoutOf.get(key);
    if (!layout) {
      const entries = kinds.map((kind, binding) =>
        ({ binding, visibility: kComputeStage, buffer: { type: kBindTypes[kind] } }));
      layout = this.#device.createBindGroupLayout({ entries });
      this.#layoutOf.set(key, layout);
    }
    return layout;
  }

  async #createPipeline(id, { label, wgsl, layout: kinds, constants }) {
    const device = this.#device;
    const layout = this.#layout(kinds);
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ label, code: wgsl });
    const scope = device.popErrorScope();
    const compiling = device.createComputePipelineAsync({
      label,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: 'main', constants },
    });
    const [pipeline, invalid] = await Promise.allSettled([compiling, scope]);
    if (invalid.status === 'fulfilled' && invalid.value) throw new Error(await whatIsWrong(module, invalid.value.message));
    if (pipeline.status === 'rejected') throw pipeline.reason;
    this.#pipelines[id] = pipeline.value;
    this.#layouts[id] = layout;
  }

  #createGroup(id, pipeline, at, count) {
    const numbers = new Float64Array(this.core.exports.memory.buffer, at, 3 * count);
    const entries = [];
    for (let i = 0; i < count; i++) {
      const [buffer, offset, size] = numbers.subarray(3 * i, 3 * i + 3);
      entries.push({ binding: i, resource: { buffer: this.#buffers[buffer], offset, size } });
    }
    this.#groups[id] = this.#device.createBindGroup({ layout: this.#layouts[pipeline], entries });
  }

  // Bytes of a file into a buffer, which never enter WebAssembly. The core asks for one stream after the other.
  #stream(buffer, offset, stream, from, bytes) {
    return this.provider === 'node' ? this.#streamMapped(buffer, offset, stream, from, bytes)
      : this.#streamWritten(buffer, offset, stream, from, bytes);
  }

  async #streamMapped(buffer, offset, stream, from, bytes) {
    const staging = (this.#staging ??= new Staging(this.#device));
    for (let at = 0; at < bytes; at += kStagingBytes) {
      const filled = await staging.next(Math.min(kStagingBytes, bytes - at));
      this.#filling = this.files.fill(stream, from + at, filled.view);
      await this.#filling.finally(() => (this.#filling = null));
      staging.send(filled, this.#buffers[buffer], offset + at);
    }
  }

  async #streamWritten(buffer, offset, stream, from, bytes) {
    const { queue } = this.#device;
    for await (const chunk of this.files.chunks(stream, from, bytes, kChunkBytes)) {
      let data = chunk;
      if (data.length % 4 !== 0) { // only the last: writes take whole words
        data = new Uint8Array(Math.ceil(chunk.length / 4) * 4);
        data.set(chunk);
      }
      queue.writeBuffer(this.#buffers[buffer], offset, data);
      offset += data.length;
      this.#unpaced += data.length;
      if (this.#unpaced >= kPaceBytes) {
        this.#unpaced = 0;
        await this.#idle();
      }
    }
  }

  /** The model is loaded, or nothing will be streamed for a while. */
  releaseStaging() {
    this.#staging?.release();
    this.#staging = null;
  }

  // The replay: dispatches share a pass until a copy ends it.
  #submit(works, count, from, fromOffset, to, bytes) {
    const memory = this.core.exports.memory.buffer;
    let encoder = this.#device.createCommandEncoder();
    let early = this.provider === 'node' && !this.isCpu && this.#unread.size === 0 ? kEarlyDispatches : 0;
    /** @type {any} */ let pass = null;
    let lastPipeline = -1, lastGroup = -1;
    const endPass = () => {
      pass?.end();
      pass = null;
      lastPipeline = lastGroup = -1;
    };
    for (let work = 0; work < count; work++) {
      const [wordsAt, wordCount, rows, times] = new Uint32Array(memory, works + 16 * work, 4);
      const w = new Uint32Array(memory, wordsAt, wordCount);
      for (let time = 0; time < times; time++) {
        for (let at = 0; at < wordCount; at += kCommandWords) {
          if (w[at] !== kDispatch) {
            endPass();
            encoder.copyBufferToBuffer(this.#buffers[w[at + 1]], w[at + 2] * 4, this.#buffers[w[at + 3]], w[at + 4] * 4,
              w[at + 5] * 4 * (w[at + 7] ? rows : 1));
            continue;
          }
          pass ??= encoder.beginComputePass();
          if (w[at + 1] !== lastPipeline) pass.setPipeline(this.#pipelines[lastPipeline = w[at + 1]]);
          if (w[at + 2] !== lastGroup) pass.setBindGroup(0, this.#groups[lastGroup = w[at + 2]]);
          const grid = [w[at + 3], w[at + 4], w[at + 5]];
          const rowsPerGroup = w[at + 6] & kRowsMask;
          if (rowsPerGroup) grid[w[at + 6] >>> kAxisShift] = Math.ceil(rows / rowsPerGroup);
          pass.dispatchWorkgroups(grid[0], grid[1], grid[2]);
          if (early > 0 && --early === 0) {
            endPass();
            this.#device.queue.submit([encoder.finish()]);
            encoder = this.#device.createCommandEncoder();
          }
        }
      }
    }
    endPass();
    if (from !== kNoReadback) {
      encoder.copyBufferToBuffer(this.#buffers[from], fromOffset, this.#buffers[to], 0, bytes);
      this.#unread.add(to);
    }
    this.#device.queue.submit([encoder.finish()]);
  }

  #idle() {
    return this.#seen(this.#device.queue.onSubmittedWorkDone());
  }

  /** A promise that settles when the GPU is done. @template T @param {Promise<T>} done @returns {Promise<T>} */
  #seen(done) {
    if (!kLooksSeldom || this.isCpu) return done;
    const looks = setInterval(() => this.#device?.queue.submit([]), kLookMs);
    return done.finally(() => clearInterval(looks));
  }

  async #read(id, bytes) {
    const buffer = this.#buffers[id];
    await this.#seen(buffer.mapAsync(kMapRead, 0, bytes));
    this.#unread.delete(id);
    const copy = new Uint8Array(buffer.getMappedRange(0, bytes)).slice();
    buffer.unmap();
    return copy;
  }
}

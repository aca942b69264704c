// The GPU's device in Node: staging of bytes, a lost or full device, wrong kernels, features. By ctest:
//   GOLDEN_DIR  the unpacked tests/data/families_llama
// Exit status 77: there is no WebGPU device.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { hasMatrixUnits } from '../../web/gpu_host.mjs';
import { Doppler } from '../../web/node.mjs';
import { formatsInUse } from '../../web/self_test.mjs';
import { kStagingBytes, Staging } from '../../web/staging.mjs';
import { check, golden, kExact, kGreedy, smallest, withModel } from './node_models.mjs';
import { failingAllocation, spiedGpu } from './spied_gpu.mjs';

const kWrongKernel = 'attention_decode.cpu'; // in a test

check('bytes of any number arrive through mapped buffers, with zeros up to whole words', '', async () => {
  const adapter = await (await Doppler.gpu()).requestAdapter();
  const device = await adapter.requestDevice();
  const bytes = new Uint8Array(6 * kStagingBytes + 5).map((_, i) => (i * 2654435761) >>> 24);
  const buffer = device.createBuffer({ size: bytes.length + 3, usage: 1 | 8 }); // MAP_READ, COPY_DST
  const staging = new Staging(device);
  for (let at = 0; at < bytes.length; at += kStagingBytes) {
    const filled = await staging.next(Math.min(kStagingBytes, bytes.length - at));
    filled.view.set(bytes.subarray(at, at + filled.view.length));
    staging.send(filled, buffer, at);
  }
  staging.release();
  await buffer.mapAsync(1);
  const arrived = new Uint8Array(buffer.getMappedRange());
  assert.deepEqual(Buffer.from(arrived.subarray(0, bytes.length)).compare(bytes), 0);
  assert.deepEqual([...arrived.subarray(bytes.length)], [0, 0, 0]);
  device.destroy();
});

check('the self test passes, names a kernel that computes wrong, and replaces it', '', async () => {
  const model = join(golden, 'llama/f16');
  const options = { ctx: 64, chunk: 64, selfTest: true };
  await withModel(model, options, async ({ info: { selfTest } }) => assert.ok(selfTest.passed, selfTest.text));
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => {
    const { createShaderModule } = device;
    device.createShaderModule = ({ label, code }) =>
      createShaderModule.call(device, { label, code: label === kWrongKernel ? code.replaceAll('exp2(', 'sin(') : code });
  });
  await withModel(model, { ...options, device: { gpu } }, async ({ info }) => {
    assert.deepEqual(info.selfTest.formats, [{ format: 'f16', passed: false, wrong: kWrongKernel }]);
    assert.deepEqual(Object.keys(info.selfTest.replaced), ['attention_decode']);
    assert.ok(!info.variants.includes(kWrongKernel));
  });
});

check('the self test asks models of the formats in use, also of those that are in tiles on the GPU', '', async () => {
  assert.deepEqual(formatsInUse(['embed.portable', 'matvec.q4_0.cpu']), ['q4_0']);
  assert.deepEqual(formatsInUse(['matmul.tile_q4.cpu', 'matvec.tile_q6.cpu.dp4a', 'matvec.tile_f16.tile']), ['f16', 'q4_k', 'q6_k']);
  assert.deepEqual(formatsInUse(['matvec.tile_bf16.tile']), ['f16']);
});

check('a device that is lost in mid-sentence is made again, and the sentence goes on', '', async () => {
  /** @type {any[]} */ const devices = [];
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
  await withModel(smallest, { ...kExact, device: { gpu } }, async (doppler) => {
    /** @type {string[]} */ const events = [];
    for (const name of ['devicelost', 'restored']) doppler.addEventListener(name, () => events.push(name));
    for (const options of [{}, { temperature: 1.5, seed: 5 }]) {
      const wanted = await doppler.complete({ ...kGreedy, prompt: [1, 2, 3], max_tokens: 24, batch: 2, ...options });
      const stream = await doppler.complete({ ...kGreedy, prompt: [1, 2, 3], max_tokens: 24, batch: 2, ...options, stream: true });
      const tokens = [];
      for await (const chunk of stream) {
        if (tokens.length === 0) devices.at(-1).destroy();
        tokens.push(...chunk.tokens);
      }
      assert.deepEqual(tokens, wanted.tokens);
    }
    assert.deepEqual(events, ['devicelost', 'restored', 'devicelost', 'restored']);
    assert.equal(devices.length, 3);
  });
});

check('a device without room in the middle of a load is an error of its kind, and gives back what it had', '', async () => {
  for (const after of [0, 12]) {
    /** @type {any[]} */ const devices = [];
    const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(failingAllocation(device, after)));
    await assert.rejects(Doppler.load(smallest, { ...kExact, device: { gpu } }), { kind: 'out-of-memory', message: /There is no memory for buffer/ });
    assert.equal((await devices[0].lost).reason, 'destroyed');
  }
});

check('matrix units are used where the device has the feature, and fragments of 16 x 16 x 16 in f16 with sums in f32', '', async () => {
  const feature = 'chromium-experimental-subgroup-matrix';
  const ours = { componentType: 'f16', resultComponentType: 'f32', M: 16, N: 16, K: 16 };
  /** @param {string[]} features @param {object[] | undefined} configs */
  const has = (features, configs) => hasMatrixUnits({ features: new Set(features) }, { subgroupMatrixConfigs: configs });
  assert.equal(has([feature], [{ ...ours, K: 8 }, ours]), true);
  assert.equal(has([], [ours]), false);
  assert.equal(has([feature], undefined), false);
  for (const other of [{ ...ours, M: 8 }, { ...ours, componentType: 'f32' }, { ...ours, resultComponentType: 'f16' }]) {
    assert.equal(has([feature], [other]), false, JSON.stringify(other));
  }
});

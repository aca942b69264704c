// The WGSL for a GPU with matrix units compiles in the Dawn that Node has, whose WGSL of matrix units differs from
// a newer Dawn's: no GPU is needed, since its null backend takes all features and runs nothing. By ctest, with
// DOPPLER_PLANS, the program of tests/plans that writes the WGSL of a model's plans.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';

const kModels = ['llama-3.1-8b:q4_k_m', 'gemma-3-1b:q4_k_m', 'storyteller', 'families_moe/mixtral/bf16'];
const kLanes = ['fast', 'persistent'];
const kMatrix = 'enable chromium_experimental_subgroup_matrix';

test('the WGSL of an H200 compiles in Node', async () => {
  const webgpu = createRequire(new URL('../../web/package.json', import.meta.url)).resolve('webgpu');
  const { create } = await import(pathToFileURL(webgpu).href);
  const gpu = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia']);
  const adapter = await gpu.requestAdapter();
  assert.ok(adapter);
  const wanted = /** @type {GPUFeatureName[]} */ (['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix']);
  const device = await adapter.requestDevice({ requiredFeatures: wanted });
  const folder = mkdtempSync(join(tmpdir(), 'doppler-wgsl-'));
  let withMatrix = 0;
  try {
    for (const model of kModels) {
      for (const lane of kLanes) execFileSync(process.env.DOPPLER_PLANS ?? '', ['write', model, lane, 'h200', folder]);
    }
    for (const file of readdirSync(folder)) {
      const code = readFileSync(join(folder, file), 'utf8');
      if (code.includes(kMatrix)) withMatrix += 1;
      device.pushErrorScope('validation');
      device.createShaderModule({ code });
      const error = await device.popErrorScope();
      assert.equal(error?.message ?? '', '', file);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  assert.ok(withMatrix >= 10, `${withMatrix} pipelines on the matrix units`);
  // Dawn ends the process badly when it is collected before it.
  setImmediate(() => process.exit());
});

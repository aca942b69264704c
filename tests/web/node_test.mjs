// The WebAssembly build in Node against the references of the golden cases and against the native program. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama
//   DOPPLER_NATIVE   the native program, DOPPLER_MODEL a model both run; the comparison is skipped without them
// Exit status 77: there is no WebGPU device. A new golden case needs no line here.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import test from 'node:test';
import { load } from '../../web/node.mjs';
import { caseFolders, readIntegers, serveFolder } from './references.mjs';

const kNoDevice = 77;
const kExact = { lane: 'exact', ctxLen: 64, chunk: 64 };
const golden = process.env.GOLDEN_DIR ?? '';
const smallest = join(golden, 'llama');
const counts = { passed: 0, failed: 0, skipped: 0 };

/** A test that is counted for the closing line. @param {string} name @param {string} missing @param {() => Promise<void>} body */
function check(name, missing, body) {
  test(name, { skip: missing || false }, async () => {
    counts.failed++;
    await body();
    counts.failed--;
    counts.passed++;
  });
  if (missing) counts.skipped++;
}
process.on('exit', () => console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`));

/** @param {string} path @param {object} options @param {(d: any) => Promise<void>} use */
async function withModel(path, options, use) {
  const doppler = await load(path, options);
  try {
    await use(doppler);
  } finally {
    doppler.free();
  }
}

try {
  (await load(smallest, kExact)).free();
} catch (error) {
  if (/** @type {any} */ (error).kind !== 'device') throw error;
  console.log(`skipped: ${/** @type {Error} */ (error).message}`);
  process.exit(kNoDevice);
}

for (const folder of caseFolders(golden)) {
  check(`golden ${relative(golden, folder)}: the greedy tokens are the reference's`, '', async () => {
    const references = join(folder, 'refs.safetensors');
    await withModel(folder, kExact, async (doppler) => {
      const wanted = readIntegers(references, 'greedy_tokens');
      const options = { temperature: 0, maxTokens: wanted.length, batch: 4, ignoreEos: true };
      const answer = await doppler.generate(readIntegers(references, 'prompt_a'), options);
      assert.deepEqual(answer.tokens, wanted);
    });
  });
}

check('a model on a web server gives the same tokens', '', async () => {
  const server = await serveFolder(smallest);
  try {
    const references = join(smallest, 'refs.safetensors');
    await withModel(server.address, kExact, async (doppler) => {
      const options = { temperature: 0, maxTokens: 8, ignoreEos: true };
      const answer = await doppler.generate(readIntegers(references, 'prompt_a'), options);
      assert.deepEqual(answer.tokens, readIntegers(references, 'greedy_tokens').slice(0, 8));
    });
  } finally {
    server.close();
  }
});

check('generation creates nothing, submits at most every eighth token and reads four bytes a token', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const kTokens = 49; // one from the prompt and three whole batches
    const { counters, tokens } = await doppler.generate([1, 2, 3], { temperature: 0, maxTokens: kTokens, ignoreEos: true });
    assert.equal(tokens.length, kTokens);
    assert.equal(counters.objects_created_after_load, 0);
    assert.ok(counters.submits <= kTokens / 8, `${counters.submits} submits`);
    assert.equal(counters.readback_bytes, 4 * kTokens);
  });
});

check('the same seed gives the same tokens, another seed others', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const sample = async (seed) =>
      (await doppler.generate([1, 2, 3], { temperature: 2, topK: 0, topP: 1, seed, maxTokens: 16, ignoreEos: true })).tokens;
    const first = await sample(1);
    assert.deepEqual(await sample(1), first);
    assert.notDeepEqual(await sample(2), first);
  });
});

check('cancel ends a generation early, and the model answers again', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const answering = doppler.generate([1, 2, 3], { temperature: 0, ignoreEos: true, batch: 1 });
    doppler.cancel();
    assert.equal((await answering).stop, 'cancelled');
    assert.equal((await doppler.generate([1, 2, 3], { temperature: 0, maxTokens: 4, ignoreEos: true })).tokens.length, 4);
  });
});

check('what is wrong is said in a sentence', '', async () => {
  await assert.rejects(load(join(golden, 'nowhere')), /There is no file or folder/);
  await assert.rejects(load(smallest, { lane: 'quick' }), { kind: 'invalid-input', message: /quick/ });
  const folder = mkdtempSync(join(tmpdir(), 'doppler-'));
  try {
    copyFileSync(join(smallest, 'config.json'), join(folder, 'config.json'));
    copyFileSync(join(smallest, 'model.safetensors'), join(folder, 'model.safetensors'));
    truncateSync(join(folder, 'model.safetensors'), 20000);
    await assert.rejects(load(folder, kExact), { kind: 'invalid-input' });
  } finally {
    rmSync(folder, { recursive: true });
  }
  await withModel(smallest, kExact, async (doppler) => {
    await assert.rejects(doppler.generate(Array(65).fill(1)), { kind: 'invalid-input', message: /context holds 64/ });
    await assert.rejects(doppler.generate([1], { temperature: -1 }), { kind: 'invalid-input', message: /temperature/ });
    await assert.rejects(doppler.generate([-1]), { kind: 'invalid-input', message: /-1/ });
  });
});

const { DOPPLER_NATIVE: native = '', DOPPLER_MODEL: model = '' } = process.env;
const missing = [native, model].filter((path) => !existsSync(path)).join(' and ');
check('the default model: text and tokens are the native program\'s', missing && `not there: ${missing}`, async () => {
  const kPrompt = 'The fox and the crow';
  const native_answer = JSON.parse(execFileSync(native, ['run', '--model', model, '--lane', 'exact', '--raw', '--json',
    '--temp', '0', '-n', '24', kPrompt], { encoding: 'utf8' }));
  await withModel(model, { lane: 'exact' }, async (doppler) => {
    let text = '';
    const answer = await doppler.generate(kPrompt, { temperature: 0, maxTokens: 24, onText: (piece) => (text += piece) });
    assert.deepEqual(answer.tokens, native_answer.tokens);
    assert.equal(answer.text, native_answer.text);
    assert.equal(text, answer.text);
    assert.equal(await doppler.detokenize(await doppler.tokenize(kPrompt, { addSpecial: false })), kPrompt);
    console.log(`${answer.timings.decode_tokens_per_second.toFixed(1)} tok/s in Node, ` +
      `${native_answer.timings.decode_tokens_per_second.toFixed(1)} natively (${native_answer.device.provider})`);
  });
});

// The WebAssembly build in Node against the references of the golden cases and against the native program. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama
//   EMBEDDING_MODEL  a case of tests/data/embedding_models; its test is skipped without it
//   DRAFTING_MODEL   a case of tests/data/families_next, likewise
//   DOPPLER_NATIVE   the native program, DOPPLER_MODEL a model both run; the comparison is skipped without them
// Exit status 77: there is no WebGPU device. A new golden case needs no line here.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import test from 'node:test';
import { hasMatrixUnits } from '../../web/gpu_host.mjs';
import { Doppler } from '../../web/node.mjs';
import { formatsInUse } from '../../web/self_test.mjs';
import { kStagingBytes, Staging } from '../../web/staging.mjs';
import { caseFolders, readFloats, readIntegers, serveFolder } from './references.mjs';
import { failingAllocation, spiedGpu } from './spied_gpu.mjs';

const kNoDevice = 77;
const kExact = { lane: 'exact', ctx: 64, chunk: 64 };
const golden = process.env.GOLDEN_DIR ?? '';
const embeddingModel = process.env.EMBEDDING_MODEL ?? '';
const draftingModel = process.env.DRAFTING_MODEL ?? '';
const smallest = join(golden, 'llama');
const kWrongKernel = 'attention_decode.cpu'; // in a test
const counts = { passed: 0, failed: 0, skipped: 0 };

/**
 * A test that is counted for the closing line.
 * @param {string} name
 * @param {string} missing
 * @param {() => Promise<void>} body
 */
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
  const doppler = await Doppler.load(path, options);
  try {
    await use(doppler);
  } finally {
    await doppler.unload();
  }
}

try {
  await (await Doppler.load(smallest, kExact)).unload();
} catch (error) {
  if (/** @type {any} */ (error).kind !== 'device') throw error;
  console.log(`skipped: ${/** @type {Error} */ (error).message}`);
  process.exit(kNoDevice);
}

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

for (const folder of caseFolders(golden)) {
  check(`golden ${relative(golden, folder)}: the greedy tokens are the reference's`, '', async () => {
    const references = join(folder, 'refs.safetensors');
    await withModel(folder, kExact, async (doppler) => {
      const wanted = readIntegers(references, 'greedy_tokens');
      const answer = await doppler.complete({
        prompt: readIntegers(references, 'prompt_a'), temperature: 0, max_tokens: wanted.length, batch: 4, ignore_eos: true,
      });
      assert.deepEqual(answer.tokens, wanted);
    });
  });
}

check('a model that drafts gives the reference\'s tokens in fewer steps', draftingModel ? '' : 'no DRAFTING_MODEL', async () => {
  const references = join(draftingModel, 'refs.safetensors');
  const wanted = readIntegers(references, 'greedy_tokens').slice(0, 32);
  for (const draft of ['next', 'off']) {
    await withModel(draftingModel, { ...kExact, draft }, async (doppler) => {
      const { tokens, timings } = await doppler.complete({
        prompt: readIntegers(references, 'prompt_a'), temperature: 0, max_tokens: wanted.length, ignore_eos: true,
        draft_rows: 2,
      });
      assert.deepEqual(tokens, wanted);
      assert.equal(timings.accepted_tokens > wanted.length / 4, draft === 'next');
    });
  }
});

check('an embedding is the reference\'s; a model that writes text has none, one that embeds writes none',
  embeddingModel ? '' : 'no EMBEDDING_MODEL', async () => {
    await withModel(embeddingModel, kExact, async (doppler) => {
      const references = join(embeddingModel, 'embedding_refs.safetensors');
      const prompt = readIntegers(references, 'prompt_a');
      const { embedding, tokens } = await doppler.embed(prompt);
      assert.deepEqual([embedding.length, tokens], [doppler.info.embeddingDim, prompt.length]);
      readFloats(references, 'embedding_a').forEach((wanted, i) => assert.ok(Math.abs(embedding[i] - wanted) < 1e-5));
      const cut = await doppler.embed(Array(kExact.ctx + 1).fill(5), { dimensions: 8, truncate: true });
      assert.deepEqual([cut.embedding.length, cut.tokens], [8, kExact.ctx]);
      await assert.rejects(doppler.embed(prompt, { dimensions: 1000 }), { kind: 'invalid-input' });
      await assert.rejects(doppler.complete({ prompt }), { kind: 'unsupported' });
    });
    await withModel(smallest, kExact, (doppler) => assert.rejects(doppler.embed([1]), { kind: 'unsupported' }));
  });

check('a model on a web server gives the same tokens', '', async () => {
  const server = await serveFolder(smallest);
  try {
    const references = join(smallest, 'refs.safetensors');
    await withModel(server.address, kExact, async (doppler) => {
      const prompt = readIntegers(references, 'prompt_a');
      const answer = await doppler.complete({ prompt, temperature: 0, max_tokens: 8, ignore_eos: true });
      assert.deepEqual(answer.tokens, readIntegers(references, 'greedy_tokens').slice(0, 8));
    });
  } finally {
    server.close();
  }
});

const kGreedy = { temperature: 0, ignore_eos: true };
/** @param {any} doppler @param {object} [options] @returns {Promise<number[]>} */
const greedy = async (doppler, options) =>
  (await doppler.complete({ ...kGreedy, prompt: [1, 2, 3], max_tokens: 24, batch: 2, ...options })).tokens;

check('generation creates nothing, submits at most every eighth token and reads four bytes a token', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const kTokens = 49; // one from the prompt and three whole batches
    const { counters, tokens } = await doppler.complete({ ...kGreedy, prompt: [1, 2, 3], max_tokens: kTokens, batch: 16 });
    assert.equal(tokens.length, kTokens);
    assert.equal(counters.objects_created_after_load, 0);
    assert.ok(counters.submits <= kTokens / 8, `${counters.submits} submits`);
    assert.equal(counters.readback_bytes, 4 * kTokens);
  });
});

check('the same seed gives the same tokens, another seed others', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const sample = (seed) => greedy(doppler, { temperature: 2, top_k: 0, top_p: 1, seed, max_tokens: 16 });
    const first = await sample(1);
    assert.deepEqual(await sample(1), first);
    assert.notDeepEqual(await sample(2), first);
  });
});

check('a stream that is cancelled ends with its figures; an aborted request rejects; the model answers again', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const stream = await doppler.complete({ ...kGreedy, prompt: [1, 2, 3], batch: 1, stream: true });
    stream.cancel();
    let last;
    for await (last of stream);
    assert.equal(last.choices[0].finish_reason, 'cancelled');
    const controller = new AbortController();
    const aborted = greedy(doppler, { max_tokens: 60, signal: controller.signal });
    const waiting = greedy(doppler, { signal: controller.signal });
    controller.abort();
    await assert.rejects(aborted, { kind: 'cancelled' });
    await assert.rejects(waiting, { kind: 'cancelled' });
    assert.equal((await greedy(doppler)).length, 24);
  });
});

check('a load that is aborted rejects', '', async () => {
  const controller = new AbortController();
  const loading = Doppler.load(smallest, { ...kExact, signal: controller.signal, progress: () => controller.abort() });
  await assert.rejects(loading, { kind: 'cancelled' });
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

// Greedy: the kernels that sample for several sequences compile for minutes on a CPU.
check('four requests together give what each gives alone, in fewer steps; one that is aborted leaves the others; a lost device too', '', async () => {
  /** @type {any[]} */ const devices = [];
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
  await withModel(smallest, { ...kExact, sequences: 4, device: { gpu } }, async (doppler) => {
    const references = join(smallest, 'refs.safetensors');
    const requests = [{ prompt: readIntegers(references, 'prompt_a') }, { prompt: [1, 2, 3] }, { prompt: [4, 5] }, { prompt: [9, 8, 7, 6] }]
      .map((request) => ({ ...kGreedy, max_tokens: 24, ...request }));
    const dispatches = async () => (await doppler.complete({ ...requests[1], max_tokens: 1 })).counters.dispatches;
    const before = await dispatches();
    const alone = [];
    for (const request of requests) alone.push((await doppler.complete(request)).tokens);
    const known = readIntegers(references, 'greedy_tokens').slice(0, 24);
    assert.deepEqual(alone[0].slice(0, known.length), known);
    const between = await dispatches();
    const together = await Promise.all(requests.map((request) => doppler.complete(request)));
    assert.deepEqual(together.map(({ tokens }) => tokens), alone);
    assert.equal(together[0].counters.objects_created_after_load, 0);
    assert.ok((await dispatches()) - between < (between - before) / 2);

    const controller = new AbortController();
    const streams = await Promise.all(requests.map((request, i) =>
      doppler.complete({ ...request, stream: true, signal: i === 2 ? controller.signal : undefined })));
    const read = async (stream) => {
      const tokens = [];
      for await (const chunk of stream) {
        if (tokens.length === 0) controller.abort();
        tokens.push(...chunk.tokens);
      }
      return tokens;
    };
    const [a, b, aborted, d] = await Promise.allSettled(streams.map(read));
    assert.deepEqual([a, b, d].map((result) => result.status === 'fulfilled' && result.value), [alone[0], alone[1], alone[3]]);
    assert.equal(aborted.status === 'rejected' && aborted.reason.kind, 'cancelled');

    const lost = await Promise.all(requests.map((request) => doppler.complete({ ...request, batch: 2, stream: true })));
    const rest = lost.map(async (stream) => {
      const tokens = [];
      for await (const chunk of stream) {
        if (tokens.length === 0 && stream === lost[0]) devices.at(-1).destroy();
        tokens.push(...chunk.tokens);
      }
      return tokens;
    });
    assert.deepEqual(await Promise.all(rest), alone);
    assert.equal(devices.length, 2);

    const session = doppler.newSession();
    const [first, other] = await Promise.all([greedy(session, { max_tokens: 5 }), greedy(doppler, { prompt: [9], max_tokens: 5 })]);
    assert.equal(other.length, 5);
    const restored = doppler.newSession();
    await restored.restore(await session.save());
    const wanted = await greedy(doppler, { prompt: [1, 2, 3, ...first, 4], max_tokens: 6 });
    assert.deepEqual(await Promise.all([session, session.fork(), restored].map((of) => greedy(of, { prompt: [4], max_tokens: 6 }))),
      [wanted, wanted, wanted]);
  });
});

check('sessions keep their texts apart; fork, save and restore go on from them', '', async () => {
  await withModel(smallest, kExact, async (doppler) => {
    const [a, b] = [doppler.newSession(), doppler.newSession()];
    const first = await greedy(a, { max_tokens: 5 });
    const forked = a.fork();
    const saved = await a.save();
    await greedy(b, { prompt: [9, 8, 7], max_tokens: 5 });
    const wanted = await greedy(doppler, { prompt: [1, 2, 3, ...first, 4], max_tokens: 6 });
    assert.deepEqual(await greedy(a, { prompt: [4], max_tokens: 6 }), wanted);
    assert.deepEqual(await greedy(forked, { prompt: [4], max_tokens: 6 }), wanted);
    await b.restore(saved);
    assert.deepEqual(await b.tokens(), [1, 2, 3, ...first]);
    const { usage, tokens } = await b.complete({ ...kGreedy, prompt: [4], max_tokens: 6 });
    assert.deepEqual(tokens, wanted);
    assert.equal(usage.prompt_tokens_details.cached_tokens, 7); // the last token was never evaluated
    await assert.rejects(b.restore(saved.subarray(0, 20)), { kind: 'invalid-input' });
  });
});

check('a name of Hugging Face is found through the hub', '', async () => {
  const server = await serveFolder(smallest, { '/api/models/some/model/revision/main':
    JSON.stringify({ sha: 'abc', siblings: [{ rfilename: 'config.json' }, { rfilename: 'model.safetensors' }] }) });
  try {
    await withModel('some/model', { ...kExact, hubUrl: server.address }, async (doppler) => {
      assert.equal((await greedy(doppler)).length, 24);
    });
    await assert.rejects(Doppler.load('some/model:Q4_K_M', { hubUrl: server.address }), { kind: 'invalid-input', message: /Q4_K_M/ });
  } finally {
    server.close();
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

check('what is wrong is said in a sentence', '', async () => {
  await assert.rejects(Doppler.load(join(golden, 'nowhere')), { kind: 'invalid-input', message: /no file or folder/ });
  await assert.rejects(Doppler.load(smallest, { lane: 'quick' }), { kind: 'invalid-input', message: /quick/ });
  const folder = mkdtempSync(join(tmpdir(), 'doppler-'));
  try {
    copyFileSync(join(smallest, 'config.json'), join(folder, 'config.json'));
    copyFileSync(join(smallest, 'model.safetensors'), join(folder, 'model.safetensors'));
    truncateSync(join(folder, 'model.safetensors'), 20000);
    await assert.rejects(Doppler.load(folder, kExact), { kind: 'invalid-input' });
  } finally {
    rmSync(folder, { recursive: true });
  }
  await withModel(smallest, kExact, async (doppler) => {
    const complete = (request) => doppler.complete(request);
    await assert.rejects(complete({ prompt: Array(65).fill(1) }), { kind: 'invalid-input', message: /context holds 64/ });
    await assert.rejects(complete({ prompt: [1], temperature: -1 }), { kind: 'invalid-input', message: /temperature/ });
    await assert.rejects(complete({ prompt: [-1] }), { kind: 'invalid-input', message: /-1/ });
    await assert.rejects(complete({ prompt: [1], tools: [] }), { kind: 'unsupported', message: /tools/ });
    await assert.rejects(complete({}), { kind: 'invalid-input', message: /prompt/ });
  });
});

const { DOPPLER_NATIVE: native = '', DOPPLER_MODEL: model = '' } = process.env;
const missing = [native, model].filter((path) => !existsSync(path)).join(' and ');
check('the default model: text and tokens are the native program\'s', missing && `not there: ${missing}`, async () => {
  const kPrompt = 'The fox and the crow';
  const native_answer = JSON.parse(execFileSync(native, ['run', '--model', model, '--lane', 'exact', '--raw', '--json',
    '--temp', '0', '-n', '24', kPrompt], { encoding: 'utf8' }));
  await withModel(model, { lane: 'exact' }, async (doppler) => {
    const request = { prompt: kPrompt, temperature: 0, max_tokens: 24 };
    let text = '';
    let last;
    for await (last of await doppler.complete({ ...request, stream: true })) text += last.choices[0].text;
    assert.equal(text, native_answer.text);
    const whole = await doppler.complete(request);
    assert.deepEqual(whole.tokens, native_answer.tokens);
    assert.equal(whole.choices[0].text, text);
    assert.equal(await doppler.detokenize(await doppler.tokenize(kPrompt, { addSpecial: false })), kPrompt);
    console.log(`${last.timings.decode_tokens_per_second.toFixed(1)} tok/s in Node, ` +
      `${native_answer.timings.decode_tokens_per_second.toFixed(1)} natively (${native_answer.device.provider})`);
  });
});

// The marks of Hermes' calls and of thoughts, in a comment: the template shows which a model has.
const kToolTemplate = '{# <tool_call> <think> #}{% for m in messages %}{{ m.content }} {% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}';
check('tools: a call that must come is told as OpenAI does, whole and streamed; a format without an engine for it is refused', missing && `not there: ${missing}`, async () => {
  const tools = [{ type: 'function', function: { name: 'find', parameters: { type: 'object' } } }];
  await withModel(model, { lane: 'exact', ctx: 256, chatTemplate: kToolTemplate }, async (doppler) => {
    const ask = (request) => doppler.chat.completions.create({ messages: [{ role: 'user', content: [{ type: 'text', text: 'The fox' }] }],
      temperature: 0, max_tokens: 8, ...request });
    const named = { tools, tool_choice: { type: 'function', function: { name: 'find' } } };
    const { choices: [{ message }] } = await ask(named);
    const [{ id, function: call }] = message.tool_calls;
    assert.deepEqual([id.length, call.name], [9, 'find']);
    let told = '';
    const names = [];
    for await (const { choices: [{ delta }] } of await ask({ ...named, stream: true })) {
      for (const { index, function: { name, arguments: text } } of delta.tool_calls ?? []) {
        assert.equal(index, 0);
        if (name) names.push(name);
        told += text;
      }
    }
    assert.deepEqual([names, told], [['find'], call.arguments]);
    assert.notEqual((await ask({ tools, tool_choice: 'none' })).choices[0].message.content, '');
    await assert.rejects(ask({ tools, tool_choice: { type: 'function', function: { name: 'g' } } }), { kind: 'invalid-input', message: /"g"/ });
    await assert.rejects(ask({ response_format: { type: 'json_object' } }), { kind: 'unsupported', message: /response_format.*grammar/ });
  });
});

// The WebAssembly build in Node against the references of the golden cases and against the native program. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama
//   DRAFTING_MODEL   a case of tests/data/families_next; its test is skipped without it
//   DOPPLER_NATIVE   the native program, DOPPLER_MODEL a model both run; the comparison is skipped without them
// Exit status 77: there is no WebGPU device. A new golden case needs no line here. Read next: node_models.mjs;
// device_test.mjs has devices, vectors_test.mjs models that write no text.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Doppler } from '../../web/node.mjs';
import { check, golden, greedy, kExact, kGreedy, smallest, withModel } from './node_models.mjs';
import { caseFolders, readIntegers, serveFolder } from './references.mjs';
import { spiedGpu } from './spied_gpu.mjs';

const draftingModel = process.env.DRAFTING_MODEL ?? '';

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

// Shows documents, and what closes a message and opens an answer.
const kOpenTemplate = '{% for d in documents or [] %}[{{ d.text }}] {% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}.\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}';
check('a chat goes on from a last message, leaves the opening of an answer out, and takes documents', missing && `not there: ${missing}`, async () => {
  await withModel(model, { lane: 'exact', ctx: 256, chatTemplate: kOpenTemplate }, async (doppler) => {
    const user = { role: 'user', content: 'The fox' };
    const begun = [user, { role: 'assistant', content: 'Once upon' }];
    const options = { temperature: 0, max_tokens: 6 };
    const chat = async (request) => (await doppler.chat.completions.create({ messages: [user], ...options, ...request })).choices[0].message.content;
    const after = async (prompt) => (await doppler.complete({ prompt, add_special: false, ...options })).choices[0].text;
    assert.equal(await chat({}), await after('user: The fox.\nassistant:'));
    assert.equal(await chat({ messages: begun, continue_final_message: true }), await after('user: The fox.\nassistant: Once upon'));
    assert.equal(await chat({ add_generation_prompt: false }), await after('user: The fox.\n'));
    assert.equal(await chat({ documents: [{ text: 'Foxes run' }] }), await after('[Foxes run] user: The fox.\nassistant:'));
    const refused = (request, message) => assert.rejects(chat(request), { kind: 'invalid-input', message });
    await refused({ messages: begun, continue_final_message: true, add_generation_prompt: true }, /continue_final_message.*add_generation_prompt/);
    await refused({ continue_final_message: true }, /continue_final_message.*assistant/);
    await refused({ documents: ['Foxes run'] }, /documents.*list of objects/);
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

// The adapters over a scripted model: no GPU. What types can say of them, web_types_test checks.
import assert from 'node:assert/strict';
import test from 'node:test';
import { aiSdkModel } from '../../web/adapters/ai-sdk.mjs';
import { promptApiModel } from '../../web/adapters/prompt-api.mjs';
import { Chunks, readRequest, Shape } from '../../web/requests.mjs';

const kAnswer = ['once', ' upon', ' a time'];

/** Answers everything with kAnswer; a word is a token. */
function scriptedModel() {
  /** @type {any[]} */ const requests = [];
  const create = async (request) => {
    requests.push(request);
    readRequest(request, true);
    if (request.signal?.aborted) throw Object.assign(new Error('aborted'), { kind: 'cancelled' });
    const shape = new Shape(true, 'scripted');
    const timings = { prompt_tokens: 5, evaluated_tokens: 3, generated_tokens: 3 };
    const answer = { text: kAnswer.join(''), tokens: [1, 2, 3], stop: 'end-of-text', timings };
    if (!request.stream) return shape.whole(answer);
    const chunks = new Chunks(() => {});
    kAnswer.forEach((text, i) => chunks.push(shape.piece({ text, tokens: [i + 1] }, i === 0)));
    chunks.push(shape.last(answer));
    chunks.end();
    return chunks;
  };
  const words = (messages) => messages.map(({ content }) => content).join(' ');
  const doppler = /** @type {any} */ ({ info: { name: 'scripted', ctxLen: 12 }, chat: { completions: { create } },
    applyChatTemplate: async (messages) => words(messages),
    tokenize: async (text) => text.split(' ').filter(Boolean) });
  return { doppler, requests };
}

const kPrompt = /** @type {any} */ ([{ role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'text', text: 'Tell ' }, { type: 'text', text: 'me.' }] }]);

test('AI SDK: doGenerate gives content, usage and the reason of the end', async () => {
  const { doppler, requests } = scriptedModel();
  const result = await aiSdkModel(doppler).doGenerate({ prompt: kPrompt, maxOutputTokens: 7, stopSequences: ['x'], topK: 3 });
  assert.deepEqual(result.content, [{ type: 'text', text: 'once upon a time' }]);
  assert.deepEqual(result.finishReason, { unified: 'stop', raw: 'stop' });
  assert.deepEqual(result.usage.inputTokens, { total: 5, noCache: 3, cacheRead: 2, cacheWrite: undefined });
  assert.deepEqual(requests[0].messages, [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Tell me.' }]);
  assert.equal(requests[0].max_tokens, 7);
});

test('AI SDK: doStream gives its parts in order', async () => {
  const { stream } = await aiSdkModel(scriptedModel().doppler).doStream({ prompt: kPrompt, responseFormat: { type: 'json' } });
  const parts = await gather(stream);
  assert.deepEqual(parts.map(({ type }) => type), ['stream-start', 'response-metadata', 'text-start', 'text-delta', 'text-delta',
    'text-delta', 'text-end', 'finish']);
  assert.deepEqual(parts[0].warnings, [{ type: 'unsupported', feature: 'responseFormat' }]);
  assert.equal(parts.map(({ delta }) => delta ?? '').join(''), 'once upon a time');
});

test('AI SDK: an abort has the name that the SDK knows; tools are refused', async () => {
  const model = aiSdkModel(scriptedModel().doppler);
  await assert.rejects(model.doGenerate({ prompt: kPrompt, abortSignal: AbortSignal.abort() }), { name: 'AbortError' });
  const tools = /** @type {any} */ ([{ type: 'function', name: 'f', inputSchema: {} }]);
  await assert.rejects(model.doGenerate({ prompt: kPrompt, tools }), { kind: 'unsupported', message: /Tools/ });
});

test('Prompt API: a session remembers, appends, measures and drops its oldest words', async () => {
  const { doppler, requests } = scriptedModel();
  const LanguageModel = promptApiModel(doppler);
  assert.equal(await LanguageModel.availability(), 'available');
  const session = await LanguageModel.create({ initialPrompts: [{ role: 'system', content: 'Be brief.' }], topK: 3 });
  assert.equal(session.contextUsage, 2);
  await session.append('In a wood');
  assert.equal(session.contextUsage, 5);
  assert.equal(await session.measureContextUsage('lived a'), 2);
  assert.deepEqual(await gather(session.promptStreaming('lived')), kAnswer);
  assert.equal(session.contextUsage, 10);
  assert.equal(requests[0].top_k, 3);
  let overflows = 0;
  session.addEventListener('contextoverflow', () => ++overflows);
  assert.equal(await (await session.clone()).prompt('x'), 'once upon a time');
  await session.prompt('two more words');
  assert.equal(overflows, 1);
  assert.deepEqual(requests.at(-1).messages.map(({ content }) => content),
    ['Be brief.', 'lived', 'once upon a time', 'two more words']);
  session.destroy();
  await assert.rejects(session.prompt('x'), { name: 'AbortError' });
});

async function gather(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

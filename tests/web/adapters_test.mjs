// The adapters over a scripted model: no GPU. web_types_test checks their types.
import assert from 'node:assert/strict';
import test from 'node:test';
import { aiSdkModel } from '../../web/adapters/ai-sdk.mjs';
import { promptApiModel } from '../../web/adapters/prompt-api.mjs';
import { Chunks, readRequest } from '../../web/requests.mjs';
import { newHead, Shape, whole } from '../../web/shapes.mjs';

const kAnswer = ['once', ' upon', ' a time'];

const kCalls = [['reasoning', 'Hm.'], ['call', 'find'], ['arguments', '{"a":'], ['arguments', '1}']];

/**
 * Answers with kAnswer, or the events of each answer in turn, the last of them ever after; a word is a token.
 * @param {any[][]} given
 */
function scriptedModel(...given) {
  const answers = given.length > 0 ? given : [kAnswer.map((text) => ['text', text])];
  /** @type {any[]} */ const requests = [];
  const create = async (request) => {
    requests.push(request);
    readRequest(request, true);
    if (request.signal?.aborted) throw Object.assign(new Error('aborted'), { kind: 'cancelled' });
    const shape = new Shape(true, newHead(true, 'scripted'));
    const timings = { prompt_tokens: 5, evaluated_tokens: 3, generated_tokens: 3 };
    const answer = { text: kAnswer.join(''), tokens: [1, 2, 3], stop: 'end-of-text', timings };
    const made = answers[Math.min(requests.length, answers.length) - 1].flatMap((event, i) => shape.chunks({ events: [event], tokens: [i + 1] }));
    if (!request.stream) return whole([shape], [answer]);
    const chunks = new Chunks(() => {});
    for (const chunk of made) chunks.push(chunk);
    chunks.push(shape.last(answer));
    chunks.end();
    return chunks;
  };
  const words = (messages) => messages.map(({ content }) => content).join(' ');
  const doppler = /** @type {any} */ ({ info: { name: 'scripted', ctxLen: 12, hasChatTemplate: true }, addEventListener() {}, chat: { completions: { create } },
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
  const { doppler, requests } = scriptedModel();
  const { stream } = await aiSdkModel(doppler).doStream({ prompt: kPrompt, responseFormat: { type: 'json' } });
  const parts = await gather(stream);
  assert.deepEqual(parts.map(({ type }) => type), ['stream-start', 'response-metadata', 'text-start', 'text-delta', 'text-delta',
    'text-delta', 'text-end', 'finish']);
  assert.deepEqual(requests[0].response_format, { type: 'json_object' });
  assert.equal(parts.map(({ delta }) => delta ?? '').join(''), 'once upon a time');
});

test('AI SDK: tools and their results go in, reasoning and calls come out', async () => {
  const tools = /** @type {any} */ ([{ type: 'function', name: 'find', inputSchema: { type: 'object' } }]);
  const prompt = /** @type {any} */ ([...kPrompt,
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'find', input: { a: 0 } }] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'find', output: { type: 'json', value: [2] } }] }]);
  const { doppler, requests } = scriptedModel(kCalls);
  const result = await aiSdkModel(doppler).doGenerate({ prompt, tools, toolChoice: { type: 'tool', toolName: 'find' } });
  assert.deepEqual(requests[0].messages.slice(2), [
    { role: 'assistant', content: '', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: '{"a":0}' } }] },
    { role: 'tool', tool_call_id: 'c1', name: 'find', content: '[2]' }]);
  assert.deepEqual([requests[0].tools[0].function.name, requests[0].tool_choice.function.name], ['find', 'find']);
  const [reasoning, call] = /** @type {any[]} */ (result.content);
  assert.deepEqual([reasoning.text, call.toolName, call.input], ['Hm.', 'find', '{"a":1}']);
  assert.equal(result.finishReason.unified, 'tool-calls');
  const { stream } = await aiSdkModel(doppler).doStream({ prompt, tools });
  const parts = await gather(stream);
  assert.deepEqual(parts.map(({ type }) => type), ['stream-start', 'response-metadata', 'reasoning-start', 'reasoning-delta',
    'reasoning-end', 'tool-input-start', 'tool-input-delta', 'tool-input-delta', 'tool-input-end', 'tool-call', 'finish']);
  assert.equal(parts.at(-2).input, '{"a":1}');
});

test('AI SDK: an abort has the name that the SDK knows; tools of a provider are refused', async () => {
  const model = aiSdkModel(scriptedModel().doppler);
  await assert.rejects(model.doGenerate({ prompt: kPrompt, abortSignal: AbortSignal.abort() }), { name: 'AbortError' });
  const tools = /** @type {any} */ ([{ type: 'provider', id: 'p.f', name: 'f', args: {} }]);
  await assert.rejects(model.doGenerate({ prompt: kPrompt, tools }), { kind: 'unsupported', message: /"f" would run/ });
});

test('AI SDK: ai 6, and ai 7 where Node is new enough, take the model', async () => {
  const versions = [['ai6', 'v3'], ...(Number(process.versions.node.split('.')[0]) >= 22 ? [['ai7', 'v3'], ['ai7', 'v4']] : [])];
  for (const [name, specificationVersion] of versions) {
    const { generateText, streamText } = await import(`../../web/node_modules/${name}/dist/index.${name === 'ai6' ? 'mjs' : 'js'}`);
    const model = aiSdkModel(scriptedModel().doppler, { specificationVersion: /** @type {any} */ (specificationVersion) });
    assert.equal((await generateText({ model, prompt: 'Tell me.' })).text, 'once upon a time');
    const pieces = [];
    for await (const piece of streamText({ model, prompt: 'Tell me.' }).textStream) pieces.push(piece);
    assert.equal(pieces.join(''), 'once upon a time', name);
  }
  assert.throws(() => aiSdkModel(scriptedModel().doppler, { specificationVersion: /** @type {any} */ ('v5') }), /allowed are v3 and v4/);
});

test('Prompt API: what the model cannot do is said, not ignored', async () => {
  const { doppler } = scriptedModel();
  const LanguageModel = promptApiModel(doppler);
  const images = { expectedInputs: [{ type: 'image' }] };
  assert.equal(await LanguageModel.availability({ expectedInputs: [{ type: 'text', languages: ['en'] }] }), 'available');
  assert.equal(await LanguageModel.availability(images), 'unavailable');
  await assert.rejects(LanguageModel.create(images), { name: 'NotSupportedError' });
  await assert.rejects(LanguageModel.create({ topK: 1000 }), RangeError);
  await assert.rejects(LanguageModel.create(/** @type {any} */ ({ topP: 1 })), { kind: 'unsupported', message: /"topP"/ });
  const session = await LanguageModel.create();
  await assert.rejects(session.prompt('x', /** @type {any} */ ({ top_k: 1 })), { kind: 'unsupported', message: /"top_k"/ });
  await assert.rejects(session.prompt('x', { responseConstraint: /yes/i }), { kind: 'unsupported', message: /flags "i"/ });
  doppler.tokenize = async () => {
    throw new Error('The model was unloaded.');
  };
  assert.equal(await LanguageModel.availability(), 'unavailable');
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

test('Prompt API: a constraint is a grammar', async () => {
  const { doppler, requests } = scriptedModel();
  const session = await promptApiModel(doppler).create();
  await session.prompt('x', { responseConstraint: { type: 'boolean' } });
  await session.prompt('x', { responseConstraint: /yes|no/ });
  assert.deepEqual(requests[0].response_format, { type: 'json_schema', json_schema: { schema: { type: 'boolean' } } });
  assert.equal(requests[1].guided_regex, 'yes|no');
});

test('Prompt API: tools are called by the session, which answers behind their results', async () => {
  const { doppler, requests } = scriptedModel(kCalls, [['text', 'Two.']]);
  /** @type {any[]} */ const given = [];
  const execute = async (args) => (given.push(args), { found: 2 });
  const session = await promptApiModel(doppler).create({ tools: [{ name: 'find', inputSchema: { type: 'object' }, execute }] });
  assert.equal(await session.prompt('How many?'), 'Two.');
  assert.deepEqual(given, [{ a: 1 }]);
  const [{ tools: [tool] }, { messages }] = requests;
  assert.deepEqual(tool.function, { name: 'find', description: undefined, parameters: { type: 'object' } });
  assert.deepEqual(messages.map(({ role, content }) => [role, content]), [['user', 'How many?'], ['assistant', ''], ['tool', '{"found":2}']]);
  assert.equal(messages[1].tool_calls[0].id, messages[2].tool_call_id);
});

async function gather(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

// The parts of the page that need no browser: the tree of messages, the store, settings, thoughts, the list of models,
// the bench, and a chat against the fake engine.
import 'fake-indexeddb/auto';
import assert from 'node:assert/strict';
import { makeTests, parseDepths, report, runBench, someTokens, statistics } from '../bench.mjs';
import { memoryEstimate, merged, nameOf, parseSource } from '../catalogue.mjs';
import { Chat } from '../chat.mjs';
import { parseExport } from '../conversation_file.mjs';
import { fit } from '../fits.mjs';
import { bytesText, dayText, rateText, secondsText, titleText } from '../format.mjs';
import { ModelHost } from '../model_host.mjs';
import { niceCeiling } from '../plot.mjs';
import { Settings } from '../settings.mjs';
import { absorb } from '../merge.mjs';
import { adapterOf, whatIsWrong } from '../model_files.mjs';
import { ConversationStore, matches } from '../store.mjs';
import { append, choose, newConversation, path, prompt, remove, restore, siblings } from '../tree.mjs';
import { check } from './counted.mjs';
import * as fake from './fake_engine.mjs';

const texts = (conversation) => path(conversation).map((message) => message.content);

/** question, answer, and a second answer beside it */
function twoAnswers() {
  const conversation = newConversation(1, 'Be brief.');
  const question = append(conversation, null, { role: 'user', content: 'q' }, 2);
  const first = append(conversation, question.id, { role: 'assistant', content: 'a' }, 3);
  const second = append(conversation, question.id, { role: 'assistant', content: 'b' }, 4);
  return { conversation, question, first, second };
}

function memoryStorage() {
  const map = new Map();
  return { getItem: (key) => map.get(key) ?? null, setItem: (key, text) => map.set(key, text) };
}

check('a second answer stands beside the first, and each can be shown', () => {
  const { conversation, first, second } = twoAnswers();
  assert.deepEqual(texts(conversation), ['q', 'b']);
  assert.deepEqual(siblings(conversation, first.id), [first, second]);
  choose(conversation, first.id);
  assert.deepEqual(texts(conversation), ['q', 'a']);
});

check('showing a message shows the way to it', () => {
  const { conversation, first } = twoAnswers();
  const deep = append(conversation, first.id, { role: 'user', content: 'q2' }, 5);
  const edited = append(conversation, null, { role: 'user', content: 'q changed' }, 6);
  assert.deepEqual(texts(conversation), ['q changed']);
  choose(conversation, deep.id);
  assert.deepEqual(texts(conversation), ['q', 'a', 'q2']);
  choose(conversation, edited.id);
  assert.deepEqual(texts(conversation), ['q changed']);
});

check('what is removed takes along what follows, and a sibling is shown', () => {
  const { conversation, question, first, second } = twoAnswers();
  append(conversation, second.id, { role: 'user', content: 'q2' }, 5);
  remove(conversation, second.id, 6);
  assert.deepEqual(texts(conversation), ['q', 'a']);
  assert.deepEqual(conversation.messages.map((message) => message.id), [question.id, first.id]);
  remove(conversation, question.id, 7);
  assert.deepEqual([conversation.messages, conversation.chosen], [[], {}]);
});

check('the engine gets the system prompt and the way to the question, without answers that never came', () => {
  const { conversation, second } = twoAnswers();
  second.content = '';
  const next = append(conversation, second.id, { role: 'user', content: 'again' }, 5);
  assert.deepEqual(prompt(conversation, next.id), [
    { role: 'system', content: 'Be brief.' }, { role: 'user', content: 'q' }, { role: 'user', content: 'again' }]);
});

check('conversations survive export and import; the newer one stays', async () => {
  const store = await ConversationStore.open();
  const { conversation } = twoAnswers();
  conversation.title = 'Two answers';
  await store.put(conversation);
  const file = await store.exportText();
  assert.deepEqual(await store.importText(file), { added: 0, merged: 0, kept: 1 });
  await store.clear();
  await store.put({ ...conversation, messages: conversation.messages.slice(0, 1), chosen: {} });
  assert.deepEqual(await store.importText(file), { added: 0, merged: 1, kept: 0 });
  await store.clear();
  assert.deepEqual(await store.importText(file), { added: 1, merged: 0, kept: 0 });
  assert.deepEqual(await store.get(conversation.id), JSON.parse(JSON.stringify(conversation)));
  await store.clear();
  store.close();
});

const copyOf = (conversation) => structuredClone(conversation);

check('two tabs that write into one conversation lose nothing', () => {
  const { conversation, second } = twoAnswers();
  const other = copyOf(conversation);
  append(conversation, second.id, { role: 'user', content: 'mine' }, 10);
  append(other, second.id, { role: 'user', content: 'theirs' }, 11);
  assert.ok(absorb(conversation, other));
  assert.deepEqual(conversation.messages.slice(-2).map(({ content }) => content), ['mine', 'theirs']);
  assert.deepEqual(texts(conversation), ['q', 'b', 'mine']);
  assert.equal(absorb(conversation, other), false);
});

check('what one tab removed stays away, unless another wrote below it', () => {
  const { conversation, second } = twoAnswers();
  const other = copyOf(conversation);
  const gone = remove(conversation, second.id, 10);
  absorb(other, conversation);
  assert.deepEqual(texts(other), ['q', 'a']);
  const late = copyOf({ ...conversation, messages: [...conversation.messages, second], removed: {} });
  append(late, second.id, { role: 'user', content: 'below' }, 12);
  absorb(other, late);
  choose(other, second.id);
  assert.deepEqual(texts(other), ['q', 'b', 'below']);
  restore(conversation, gone, 13);
  absorb(other, conversation);
  assert.deepEqual(texts(conversation), ['q', 'b']);
});

check('the later title stays, and a growing answer is not set back', () => {
  const { conversation, second } = twoAnswers();
  const other = copyOf(conversation);
  Object.assign(other, { title: 'new', edited: { title: 9 } });
  second.content = 'b and more';
  second.changed = 20;
  absorb(conversation, other);
  assert.deepEqual([conversation.title, second.content], ['new', 'b and more']);
  absorb(other, conversation);
  assert.equal(other.messages.at(-1).content, 'b and more');
});

check('a conversation that cannot be written is held, said, and written later', async () => {
  let isBroken = true;
  const kept = new Map();
  const store = new ConversationStore({
    isKept: true, all: async () => [...kept.values()], get: async (id) => kept.get(id), remove: async () => {}, clear: async () => {}, close() {},
    update: async (id, change) => {
      if (isBroken) throw new Error('The disk is full.');
      kept.set(id, change(kept.get(id)));
    },
  });
  const problems = [];
  store.addEventListener('problem', (event) => problems.push(/** @type {any} */ (event).detail));
  const { conversation } = twoAnswers();
  await store.put(conversation);
  assert.deepEqual((await store.all()).map(({ id }) => id), [conversation.id]);
  isBroken = false;
  await store.put(newConversation(1));
  assert.equal(kept.size, 2);
  assert.deepEqual(problems, ['The disk is full.', '']);
  store.close();
});

check('without IndexedDB conversations are kept in memory', async () => {
  const store = await ConversationStore.open(/** @type {any} */ ({ open() { throw new DOMException('blocked', 'SecurityError'); } }));
  const { conversation } = twoAnswers();
  await store.put(conversation);
  assert.deepEqual([store.isKept, (await store.all()).length], [false, 1]);
  store.close();
});

check('only files that look like models are taken', async () => {
  const file = (name, text) => new File([text], name);
  assert.equal(await whatIsWrong([file('a.gguf', 'GGUF....')]), '');
  assert.equal(await whatIsWrong([file('renamed', 'GGUF....')]), '');
  assert.equal(await whatIsWrong([file('config.json', '{}'), file('model.safetensors', 'x')]), '');
  assert.match(await whatIsWrong([file('cat.png', 'PNG')]), /"cat.png" is no model/);
  assert.match(await whatIsWrong([file('a.gguf', '<!doctype html>')]), /is no model/);
  assert.match(await whatIsWrong([file('a.txt', ''), file('b.txt', '')]), /none of them is config.json/);
});

check('files of an adapter are one GGUF file, or the two of a PEFT folder; others are refused by name', () => {
  const files = (...names) => names.map((name) => /** @type {any} */ ({ name, webkitRelativePath: name.includes('/') ? name : '' }));
  const [gguf] = files('tone.GGUF');
  const peft = files('adapter_model.safetensors', 'adapter_config.json');
  assert.deepEqual(adapterOf([gguf]), { name: 'tone', source: gguf });
  assert.deepEqual(adapterOf(peft), { name: 'adapter', source: peft });
  assert.deepEqual(adapterOf(peft, ['adapter', 'adapter 2']), { name: 'adapter 3', source: peft });
  const folder = peft.map((file) => ({ ...file, webkitRelativePath: `sql/${file.name}` }));
  assert.equal(adapterOf(folder).name, 'sql');
  for (const names of [['adapter_config.json'], ['adapter_config.json', 'x.safetensors'], ['a.gguf', 'b.gguf'], ['cat.png']]) {
    assert.throws(() => adapterOf(files(...names)), { message: `${names.map((name) => `"${name}"`).join(', ')} is no adapter: choose a .gguf file, or adapter_config.json and adapter_model.safetensors together.` });
  }
});

check('whether a model fits is said as far as browsers tell', () => {
  const kGiB = 2 ** 30;
  assert.deepEqual([fit(kGiB, 8), fit(3 * kGiB, 4), fit(6 * kGiB, 4), fit(20 * kGiB, 8), fit(null, 8)].map(({ mark }) => mark), ['fits', 'tight', 'no', 'tight', '']);
});

check('a foreign file is refused with a sentence, and unknown fields do not come in', () => {
  const file = (conversation) => JSON.stringify({ format: 'doppler-conversations', version: 1, conversations: [conversation] });
  const good = { id: 'i', title: 't', created: 1, updated: 1, messages: [], chosen: {}, onclick: 'x' };
  assert.deepEqual(parseExport(file(good)), [{ id: 'i', title: 't', created: 1, updated: 1, system: '', messages: [], chosen: {} }]);
  const asked = (pictures) => parseExport(file({ ...good, messages: [{ id: 'm', parent: null, role: 'user', content: '', pictures }] }))[0].messages[0].pictures;
  assert.deepEqual(asked(['data:image/png;base64,AAAA']), ['data:image/png;base64,AAAA']);
  assert.equal(asked(['https://example.org/tracker.png']), undefined);
  assert.throws(() => parseExport('no'), /not JSON/);
  assert.throws(() => parseExport('{"format":"x"}'), /"format" is "x"/);
  assert.throws(() => parseExport('{"format":"doppler-conversations","version":2,"conversations":[]}'), /version is 2/);
  assert.throws(() => parseExport(file({ ...good, id: 7 })), /Conversation 1 of the file lacks/);
  const message = { id: 'm', parent: 'nobody', role: 'user', content: '' };
  assert.throws(() => parseExport(file({ ...good, messages: [message] })), /parent/);
  assert.throws(() => parseExport(file({ ...good, messages: [{ ...message, parent: null, role: 'system' }] })), /role/);
});

check('a search finds every word, in title and messages', () => {
  const { conversation } = twoAnswers();
  conversation.title = 'The Fox';
  conversation.messages[1].content = 'and the crow';
  assert.ok(matches(conversation, 'CROW fox'));
  assert.ok(!matches(conversation, 'fox wolf'));
});

check('numbers read well', () => {
  assert.deepEqual([900, 15548928, 808000000, 5 * 2 ** 30].map(bytesText), ['900 bytes', '14.8 MiB', '771 MiB', '5.0 GiB']);
  assert.deepEqual([3.217, 77.43, 1234.5].map(rateText), ['3.22', '77.4', '1,235']);
  assert.deepEqual([0.0471, 4.71, 135, 7300].map(secondsText), ['47 ms', '4.7 s', '2 min 15 s', '2 h 1 min']);
  const noon = new Date(2026, 10, 22, 12).getTime();
  assert.deepEqual([noon, noon - 864e5, noon - 864e6].map((time) => dayText(time, noon)), ['Today', 'Yesterday', '12 Nov 2026']);
  assert.equal(titleText('  A tale of many words that go on and on and on, further than a line\nmore'), 'A tale of many words that go on and on and on,…');
  assert.deepEqual([3, 88, 2000, 2001].map(niceCeiling), [5, 100, 2000, 2500]);
});

check('sources: addresses and Hugging Face names; anything else is refused', () => {
  for (const source of ['https://a.b/c.gguf', 'owner/name', 'owner/name:Q4_K_M', 'o/n@main:f-1.gguf', 'models/x.gguf', './a.gguf', '/models/a/']) {
    assert.equal(parseSource(` ${source} `), source);
  }
  for (const source of ['', 'gpt', 'ftp://a.b/c', 'a b/c']) assert.throws(() => parseSource(source), /neither an address/);
  assert.equal(nameOf('https://h/a%20b.gguf'), 'a b');
});

check('the list has no doubles, and marks what is stored', () => {
  const stored = [{ id: 'http://h/models/a.gguf', bytes: 9, cachedBytes: 9, complete: true }, { id: 'http://x/b.gguf', bytes: 4, cachedBytes: 2, complete: false }];
  const list = merged([{ source: 'models/a.gguf', name: 'A' }], [{ source: 'o/n', name: 'N', added: true }], stored, 'http://h/');
  assert.deepEqual(list.map(({ name, cached }) => [name, cached?.complete]), [['A', true], ['N', undefined], ['b', false]]);
});

check('memory is file, cache for the context, and scratch', () => {
  const entry = { source: '', name: '', bytes: 1 << 30, ctx: 8192, cacheBytesPerToken: 1 << 15 };
  const usual = /** @type {number} */ (memoryEstimate(entry, { ctx: 0, kv: 'f16' }));
  assert.equal(usual, (1 << 30) + 4096 * (1 << 15) + (32 << 20));
  assert.equal(memoryEstimate(entry, { ctx: 8192, kv: 'f32' }), usual + 3 * 4096 * (1 << 15));
  assert.equal(memoryEstimate({ source: '', name: '' }, { ctx: 0, kv: 'f16' }), null);
});

check('settings are kept, and become a request', () => {
  const storage = memoryStorage();
  const settings = new Settings(storage);
  settings.set({ seed: '7', stop: 'END\n\nSTOP', ctx: 2048, sampler: { ...settings.values.sampler, temperature: 0 } });
  const again = new Settings(storage);
  const { temperature, seed, stop } = /** @type {any} */ (again.sampling());
  assert.deepEqual({ temperature, seed, stop }, { temperature: 0, seed: 7, stop: ['END', 'STOP'] });
  assert.deepEqual(again.loading(), { lane: 'fast', kv: 'f16', ctx: 2048, grammars: 'vendor/xgrammar.js' });
  assert.deepEqual(again.form(), {});
  again.set({ form: 'json' });
  assert.deepEqual(again.form(), { response_format: { type: 'json_object' } });
  again.set({ schema: '{"type": "boolean"}' });
  assert.deepEqual(again.form().response_format, { type: 'json_schema', json_schema: { schema: { type: 'boolean' } } });
  again.set({ schema: '{' });
  assert.throws(() => again.form(), /The schema is no JSON/);
  storage.setItem('doppler-settings', '{broken');
  assert.equal(new Settings(storage).values.lane, 'fast');
});

check('the bench has the names and the statistics of the program', async () => {
  assert.deepEqual(parseDepths('512, 0,256,0', 1024), [0, 256, 512]);
  assert.throws(() => parseDepths('0, 1024', 1024), /from 0 to 1023/);
  assert.deepEqual(statistics([3, 1, 2]), { median: 2, mean: 2, stddev: 1, min: 1, max: 3, samples: [3, 1, 2] });
  assert.notDeepEqual(someTokens(8, 1000, 1), someTokens(8, 1000, 2));
  const model = await fake.Doppler.load('a.gguf');
  const workload = { tests: [...makeTests(64, 8, [0, 128]), { prompt: 64, generate: 8, depth: 0 }], repetitions: 2 };
  const rows = await runBench(/** @type {any} */ (model), workload, new AbortController().signal, () => {});
  assert.deepEqual(rows.map((row) => row.test), ['pp64', 'tg8', 'pp64 @ d128', 'tg8 @ d128', 'pp64+tg8']);
  assert.equal(rows[0].tokens_per_second.samples.length, 2);
  await assert.rejects(runBench(/** @type {any} */ (model), { ...workload, tests: makeTests(64, 0, [1000]) }, new AbortController().signal, () => {}), /need a context of 1065/);
  const json = report(model, await fake.Doppler.probe(), rows, workload, { name: 'A', kv: 'f16', agent: 'node', now: new Date(0) });
  assert.deepEqual([json.kind, json.date, json.model.name, json.tests.length], ['bench', '1970-01-01T00:00:00Z', 'A', 5]);
});

/** A chat on the fake engine, its model loaded when first asked. */
async function newChat(source = 'a.gguf', settings = new Settings(memoryStorage())) {
  const store = await ConversationStore.open();
  const host = new ModelHost(async () => fake);
  const chat = new Chat(store, host, settings, async () => {
    if (host.state !== 'ready') await host.load(source, 'A');
    if (host.state !== 'ready') throw new Error(host.error);
  });
  return { store, host, chat, settings };
}

check('a question loads the model, is answered with figures, and both are kept', async () => {
  const { store, chat } = await newChat();
  await chat.send('Tell me of the fox');
  const [, answer] = chat.shown;
  assert.match(answer.content, /^# The fox\n/);
  assert.deepEqual([answer.stop, answer.model, answer.figures.lane], ['stop', 'A', 'fast']);
  assert.deepEqual((await store.get(chat.conversation.id)).messages, chat.conversation.messages);
  assert.equal(chat.conversation.title, 'Tell me of the fox');
  await chat.regenerate(answer.id);
  await chat.edit(chat.shown[0].id, 'think about it');
  assert.deepEqual(chat.shown.map((message) => message.content), ['think about it', ' It is **so**.']);
  assert.equal(chat.shown[1].reasoning.trim(), 'The reader asks something hard.\n\nI weigh it.');
  assert.equal(chat.conversation.messages.length, 5);
  store.close();
});

check('a call of a tool is kept, shown to the model again with the result that the reader gives', async () => {
  const storage = memoryStorage();
  const { store, chat, settings } = await newChat('a.gguf', new Settings(storage));
  settings.set({ tools: '{"name": "weather"' });
  await chat.send('call it');
  assert.equal(chat.shown[1].error, 'The tools are no JSON.');
  settings.set({ tools: '{"name": "weather"}' });
  await chat.regenerate(chat.shown[1].id);
  const [, answer] = chat.shown;
  assert.deepEqual([answer.calls, answer.stop], [[{ id: 'c00000001', name: 'weather', arguments: '{"city": "Rome"}' }], 'tool_calls']);
  await chat.giveResults(answer.id, ['sunny']);
  const { messages, tools } = fake.Doppler.requests.at(-1);
  assert.equal(tools[0].function.name, 'weather');
  assert.deepEqual(messages.slice(1), [
    { role: 'assistant', content: '', tool_calls: [{ id: 'c00000001', type: 'function', function: { name: 'weather', arguments: '{"city": "Rome"}' } }] },
    { role: 'tool', content: 'sunny', tool_call_id: 'c00000001' }]);
  assert.deepEqual(chat.shown.map(({ role }) => role), ['user', 'assistant', 'tool', 'assistant']);
  const [again] = parseExport(await store.exportText());
  assert.deepEqual(again.messages, chat.conversation.messages);
  store.close();
});

check('an answer goes on while another conversation is shown; stopped, it keeps what came', async () => {
  const { store, chat } = await newChat();
  const sending = chat.send('a long one');
  while (!chat.growing?.content) await new Promise((resolve) => setTimeout(resolve, 5));
  const { id } = chat.conversation;
  chat.startNew();
  assert.ok(!chat.isAnswering && chat.isRunning(id));
  await chat.send('think');
  assert.equal(chat.shown[1].stop, 'stop');
  assert.ok(await chat.open(id));
  chat.stop();
  await sending;
  assert.ok(!chat.isBusy);
  const [, answer] = (await store.get(id)).messages;
  assert.equal(answer.stop, 'cancelled');
  assert.ok(answer.content.length > 0 && answer.content.length < 2000);
  store.close();
});

check('what fails is said in the answer, and can be tried again', async () => {
  const { store, chat } = await newChat();
  await chat.send('fail');
  assert.equal(chat.shown[1].error, 'The GPU has no room for 3 GiB more.');
  await chat.regenerate(chat.shown[1].id);
  assert.equal(chat.conversation.messages.length, 2);
  store.close();
  const other = await newChat('missing.gguf');
  await other.chat.send('hello');
  assert.match(other.chat.shown[1].error, /404/);
  other.store.close();
});

check('a model without a chat template goes on with the text', async () => {
  const { store, chat } = await newChat('base.gguf');
  await chat.send('The fox and');
  assert.equal(fake.Doppler.requests.at(-1).prompt, 'The fox and');
  store.close();
});

check('a load can be cancelled, and another one takes its place', async () => {
  const host = new ModelHost(async () => fake);
  const slow = host.load('slow.gguf', 'Slow');
  while (!host.progress) await new Promise((resolve) => setTimeout(resolve, 5));
  host.cancel();
  await slow;
  assert.deepEqual([host.state, host.error], ['none', '']);
  host.load('slow.gguf', 'Slow');
  await host.load('b.gguf', 'B');
  assert.deepEqual([host.state, host.name], ['ready', 'B']);
});

check('the loaded model stays until another one is ready, and answers end before it goes', async () => {
  const host = new ModelHost(async () => fake);
  await host.load('a.gguf', 'A');
  const { model } = host;
  for (const source of ['missing.gguf', 'broken.gguf', 'missing_huge.gguf']) {
    assert.notEqual(await host.load(source, 'X'), '');
    assert.deepEqual([host.state, host.name, host.model === model], ['ready', 'A', true]);
  }
  const release = host.hold(/** @type {any} */ (model));
  await host.load('b.gguf', 'B');
  assert.deepEqual([host.name, /** @type {any} */ (model).isUnloaded], ['B', undefined]);
  release();
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(/** @type {any} */ (model).isUnloaded, true);
  // Two that do not fit together: the old one comes back when the new one cannot be loaded.
  assert.notEqual(await host.load('broken_huge.gguf', 'Huge'), '');
  assert.deepEqual([host.state, host.name, host.failure?.name], ['ready', 'B', 'Huge']);
});

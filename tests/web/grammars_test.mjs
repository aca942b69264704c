// Answers that must fit a grammar, in Node with the npm package @mlc-ai/web-xgrammar. By ctest:
//   DOPPLER_MODEL  a model with a tokenizer, DOPPLER_WASM the module
// Exit status 77: there is no WebGPU device.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { Doppler } from '../../web/node.mjs';
import { spiedGpu } from './spied_gpu.mjs';

const kNoDevice = 77;
const { DOPPLER_MODEL = '' } = process.env;
if (!(await Doppler.probe()).available) process.exit(kNoDevice);

/** @type {any[]} */ const devices = [];
const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
// A text that goes on after a lost device is evaluated as a prompt: only the lane exact promises the same tokens.
const doppler = await Doppler.load(DOPPLER_MODEL, { grammars: true, lane: 'exact', ctx: 256, chunk: 32, device: { gpu } });
after(() => doppler.unload());

const kMessages = [{ role: 'user', content: 'The fox and the crow' }];
const kSchema = { type: 'object', properties: { name: { type: 'string', maxLength: 12 }, kind: { enum: ['fox', 'crow'] }, old: { type: 'boolean' } },
  required: ['name', 'kind', 'old'], additionalProperties: false };
const kFormat = { type: 'json_schema', json_schema: { schema: kSchema } };

/** @param {string} text */
function fits(text) {
  const { name, kind, old, ...others } = JSON.parse(text);
  assert.ok(name.length <= 12 && ['fox', 'crow'].includes(kind) && typeof old === 'boolean', text);
  assert.deepEqual(others, {});
}

test('at temperature 1 each answer fits its schema, also two together and over a lost device', async () => {
  const ask = (seed, more = {}) => doppler.chat.completions.create({ messages: kMessages, max_tokens: 60, temperature: 1, seed, response_format: kFormat, ...more });
  const answers = await Promise.all([ask(1), ask(2)]);
  for (const { choices: [{ message, finish_reason: reason }], timings } of answers) {
    fits(message.content);
    assert.equal(reason, 'stop');
    assert.equal(timings.preemptions, 0);
  }
  let text = '';
  let pieces = 0;
  for await (const { choices: [{ delta }] } of await ask(1, { stream: true, batch: 1 })) {
    text += delta.content ?? '';
    if (++pieces === 8) devices.at(-1).destroy();
  }
  assert.equal(devices.length, 2);
  assert.equal(text, answers[0].choices[0].message.content);
});

test('GBNF, choices and regular expressions hold for completions; what cannot be read is refused, and the next request works', async () => {
  const ask = async (fields) => (await doppler.complete({ prompt: 'Say', max_tokens: 16, temperature: 1, seed: 4, ...fields })).choices[0].text;
  assert.match(await ask({ grammar: 'root ::= "fox" | "crow" " sings"' }), /^(fox|crow sings)$/);
  await assert.rejects(ask({ json_schema: { type: 7 } }), { kind: 'invalid-input', message: /^Field "json_schema": The grammar cannot be used/ });
  await assert.rejects(ask({ grammar: 'start: "a"' }), { kind: 'unsupported', message: /Lark/ });
  await assert.rejects(ask({ guided_regex: 'a', grammar: 'root ::= "a"' }), { kind: 'invalid-input', message: /one grammar/ });
  assert.match(await ask({ guided_choice: ['yes', 'no'] }), /^(yes|no)$/);
  assert.match(await ask({ guided_choice: ['a fox (red)', 'a fox (red)?'] }), /^a fox \(red\)\??$/);
  assert.match(await ask({ guided_regex: 'a\\x7Cb\\\\x{2}' }), /^a\|b\\xx$/);
  assert.match(await ask({ guided_regex: '[a-c]{3}-[0-9]{2}' }), /^[a-c]{3}-\d\d$/);
});

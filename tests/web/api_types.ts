// Compiled, never run: a program that uses all of the package's types as its users do (tsc --strict).
import type { LanguageModelV3 } from '@ai-sdk/provider';
import { aiSdkModel } from 'doppler-webgpu/ai-sdk';
import { promptApiModel } from 'doppler-webgpu/prompt-api';
import { type ChatChunk, Doppler, DopplerError, type Progress } from 'doppler-webgpu';

export async function use(file: File, folder: FileSystemDirectoryHandle): Promise<void> {
  const controller = new AbortController();
  const show = ({ phase, bytes, total, secondsLeft }: Progress): string =>
    `${phase} ${bytes}/${total} ${secondsLeft?.toFixed(0) ?? '?'} s`;
  const doppler = await Doppler.load('owner/name:Q4_K_M', { progress: show, signal: controller.signal, ctx: 4096, lane: 'fast',
    adapters: [{ source: 'owner/tone', name: 'tone', scale: 0.5, headers: { Authorization: 'x' } }, { source: [file, file] }], adapterSlots: 4, adapterRank: 32,
    device: { powerPreference: 'low-power' }, grammars: new URL('https://example.com/xgrammar.js'), workerUrl: new URL('https://example.com/worker.mjs') });
  for (const source of [file, [file], folder, new URL('https://example.com/model.gguf')]) await Doppler.load(source);

  const messages = [{ role: 'user', content: 'The fox' }];
  const whole = await doppler.chat.completions.create({ messages, temperature: 0 });
  const content: string = whole.choices[0].message.content;
  const stream = await doppler.chat.completions.create({ messages, stream: true, max_tokens: 10 });
  let last: ChatChunk | undefined;
  for await (const chunk of stream) last = chunk;
  stream.cancel();
  const rate: number | undefined = last?.timings?.decode_tokens_per_second;
  const { choices: [{ text }], usage: { total_tokens } } = await doppler.complete({ prompt: [1, 2], stop: 'x', guided_choice: ['yes', 'no'] });
  await doppler.chat.completions.create({ messages, response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } });

  const several = await doppler.chat.completions.create({ messages, n: 2, logprobs: true, top_logprobs: 3, max_completion_tokens: 9, user: 'me',
    stream: true, stream_options: { include_usage: true } });
  for await (const { choices } of several) console.log(choices[0]?.logprobs?.content[0].top_logprobs[0].logprob);
  await doppler.chat.completions.create({ messages, documents: [{ title: 'Foxes', text: 'Foxes are clever.' }], continue_final_message: true,
    add_generation_prompt: false });
  const { bytes } = await Doppler.inspect('owner/name', { headers: { Authorization: 'x' } });
  doppler.addEventListener('workerlost', ({ detail }) => console.log(detail.length, bytes));
  // @ts-expect-error: no such load option
  await Doppler.load(file, { contextSize: 5, integrity: 'sha256-x' });

  const { embedding, tokens } = await doppler.embed([1, 2], { dimensions: 64, truncate: true });
  const { results: [{ index, relevance_score, document }] } = await doppler.rerank({ query: 'who', documents: ['a', { text: 'b' }], top_n: 1, signal: controller.signal });
  console.log(document?.text ?? index, relevance_score > 0.5, doppler.info.givesScores);
  // @ts-expect-error: a request for scores needs texts
  await doppler.rerank({ query: 'who' });
  const scaled: Float32Array = embedding.map((value) => value * tokens);

  const { rank, path } = await doppler.loadAdapter('sql', file, { scale: 2, signal: controller.signal });
  await doppler.complete({ prompt: path, adapters: [{ name: 'sql', scale: rank }, { name: 'tone' }] });
  for (const { name } of await doppler.adapters()) await doppler.unloadAdapter(name);
  // @ts-expect-error: an adapter of an answer has a name
  await doppler.complete({ prompt: 'x', adapters: [{ scale: 1 }] });

  const session = doppler.newSession();
  await session.restore(await session.fork().save());
  await session.complete({ prompt: 'and', signal: controller.signal });
  const model: LanguageModelV3 = aiSdkModel(doppler);
  const prompted = await promptApiModel(doppler).create({ initialPrompts: [{ role: 'system', content: 'Be brief.' }] });
  const reader: ReadableStream<string> = prompted.promptStreaming('Hello', { responseConstraint: /yes|no/ });
  for (const { id, complete } of await Doppler.cache.list()) if (!complete) await Doppler.cache.delete(id);
  doppler.addEventListener('devicelost', () => console.log(content, rate, text, total_tokens, scaled, model, reader));
  await doppler.unload().catch((error: unknown) => {
    if (error instanceof DopplerError && error.kind === 'cancelled') return;
    // @ts-expect-error: no such kind
    if ((error as DopplerError).kind === 'nothing') return;
    throw error;
  });
  // @ts-expect-error: a chat needs messages
  await doppler.chat.completions.create({ prompt: 'x' });
}

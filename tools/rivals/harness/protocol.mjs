// The protocol of a harness in Node with comparison/process.py: the twin of protocol.h. An engine is
// { load(values) -> {version, device, vocabulary, settings}, generate(prompts, count) -> {seconds, prefill, streams},
// quit(), texts: whether prompts are texts }.
import { createInterface } from 'node:readline';

/** Until `quit` or the end of the input. @param {any} engine */
export async function serve(engine) {
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'quit') break;
    if (line === '') continue;
    let out;
    try {
      out = { ok: true, ...(await answer(engine, line.split('\t'))) };
    } catch (error) {
      out = { ok: false, error: String(/** @type {any} */ (error)?.message ?? error) };
    }
    process.stdout.write(`${JSON.stringify(out)}\n`);
  }
  await engine.quit();
  process.exit(0);
}

/** @param {any} engine @param {string[]} words */
async function answer(engine, [verb, ...words]) {
  if (verb === 'load') {
    const values = Object.fromEntries(words.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]));
    const start = performance.now();
    const loaded = await engine.load(values);
    return { seconds: (performance.now() - start) / 1000, ...loaded };
  }
  if (verb === 'generate' && words.length > 1) {
    const prompts = engine.texts ? words.slice(1) : words.slice(1).map((word) => word.split(',').map(Number));
    return engine.generate(prompts, Number(words[0]));
  }
  throw new Error(`"${verb}" is not known; allowed are load, generate and quit.`);
}

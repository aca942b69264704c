// Doppler's package as an engine of protocol.mjs, in Node (doppler_node.mjs) and in a page (browser.mjs).

/** The options of the package's load(), from words. @param {any} values */
function options(values) {
  return { ctx: Number(values.context), lane: values.lane, kv: values.kv, chunk: values.chunk && Number(values.chunk),
    cache: false, selfTest: false };
}

/** @param {any} Doppler the class @param {any} source a model's file or address @param {any} values */
export async function open(Doppler, source, values) {
  const doppler = await Doppler.load(source, options(values));
  const { info } = doppler;
  return {
    doppler,
    loaded: { version: values.version, device: info.adapter, vocabulary: info.vocabSize,
      settings: { provider: info.provider, lane: values.lane ?? 'fast', 'cache type': values.kv ?? 'f16' } },
  };
}

/** @param {any} doppler @param {number[][]} prompts @param {number} count */
export async function generate(doppler, [prompt], count) {
  const start = performance.now();
  const answer = await doppler.complete({ prompt, max_tokens: count, temperature: 0, ignore_eos: true });
  const seconds = (performance.now() - start) / 1000;
  const { ttft_seconds: ttft, decode_seconds: decode } = answer.timings;
  return { seconds, prefill: ttft,
    streams: [{ ttft, decode, intervals: answer.tokens.length - 1, tokens: answer.tokens, text: answer.choices[0].text }] };
}

// wllama in a page: llama.cpp as WebAssembly, with its WebGPU backend or (layers=0) on the processor. Its own timings,
// from inside its worker, are what is counted: chunks of text come later, by way of two threads.
import { Wllama } from './node_modules/@wllama/wllama/esm/index.js';

/** @type {any} */ let wllama;

/** @param {any} values */
export async function load(values) {
  wllama = new Wllama({ default: '/node_modules/@wllama/wllama/esm/wasm/wllama.wasm' });
  const model = await (await fetch('/model.gguf')).blob();
  const layers = values.layers === undefined ? 99999 : Number(values.layers);
  const threads = Number(values.threads ?? navigator.hardwareConcurrency);
  await wllama.loadModel([model], { n_ctx: Number(values.context), n_gpu_layers: layers, n_threads: threads, n_parallel: 1,
    cache_type_k: values.kv ?? 'f16', cache_type_v: values.kv ?? 'f16', flash_attn: values.flash !== 'off', seed: 1 });
  const adapter = layers > 0 ? await navigator.gpu?.requestAdapter() : undefined;
  const device = adapter ? adapter.info.description || adapter.info.device || adapter.info.vendor || 'unnamed adapter' : 'CPU';
  return {
    version: `${values.version} (llama.cpp ${Wllama.getLibllamaVersion()})`, device,
    vocabulary: wllama.getLoadedContextInfo().n_vocab,
    settings: { 'cache type': values.kv ?? 'f16', 'flash attention': values.flash ?? 'auto',
      threads: String(wllama.isMultithread() ? wllama.getNumThreads() : 1), 'layers on the device': String(layers) },
  };
}

/** @param {string[]} prompts @param {number} count */
export async function generate([prompt], count) {
  const start = performance.now();
  const answer = await wllama.createCompletion({ prompt, max_tokens: count, temperature: 0, top_k: 1, ignore_eos: true,
    cache_prompt: false, samplers: ['top_k'] });
  const seconds = (performance.now() - start) / 1000;
  const { timings } = answer;
  const tokens = prompt.trim().split(' ').length + (wllama.mustAddBosToken() ? 1 : 0);
  if (timings.prompt_n !== tokens) throw new Error(`It evaluated ${timings.prompt_n} prompt tokens of ${tokens}.`);
  if (timings.predicted_n !== count) throw new Error(`It gave ${timings.predicted_n} tokens of ${count}.`);
  const ttft = timings.prompt_ms / 1000;
  return { seconds, prefill: ttft,
    streams: [{ ttft, decode: timings.predicted_ms / 1000, intervals: count - 1, tokens: [], text: answer.choices[0].text }] };
}

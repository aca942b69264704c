// Transformers.js in Node: a graph that onnx_model.py made of the model file, on ONNX Runtime's Node package. Tokens
// are counted where its generate() hands them to a streamer.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AutoModelForCausalLM, AutoTokenizer, env, Tensor } from '@huggingface/transformers';
import { serve } from './protocol.mjs';

/** @type {any} */ let model;
/** @type {any} */ let tokenizer;
await serve({
  load: async (/** @type {any} */ values) => {
    env.allowRemoteModels = false;
    env.localModelPath = join(values.libraries, '../../graphs');
    const graph = `${basename(values.model, '.gguf')}.${values.graph}`;
    const device = values.device ?? 'cpu';
    const threads = Number(values.threads ?? 0); // 0: its default
    // dtype names the file: model.onnx is fp32's, whatever is in it.
    model = await AutoModelForCausalLM.from_pretrained(graph, { subfolder: '', dtype: 'fp32', device,
      session_options: { intraOpNumThreads: threads } });
    tokenizer = await AutoTokenizer.from_pretrained(graph);
    return { version: values.version, device: device === 'cpu' ? 'CPU' : device, vocabulary: model.config.vocab_size,
      settings: { threads: threads === 0 ? 'its default' : String(threads),
        'graph made as': readFileSync(join(env.localModelPath, graph, 'made_by'), 'utf8') } };
  },
  generate: async ([prompt], count) => {
    /** @type {number[]} */ const times = [];
    const start = performance.now();
    const whole = await model.generate({
      inputs: new Tensor('int64', BigInt64Array.from(prompt, BigInt), [1, prompt.length]),
      attention_mask: new Tensor('int64', new BigInt64Array(prompt.length).fill(1n), [1, prompt.length]),
      max_new_tokens: count, do_sample: false, eos_token_id: [],
      streamer: { put: () => times.push((performance.now() - start) / 1000), end: () => undefined },
    });
    const seconds = (performance.now() - start) / 1000;
    const [, ttft] = times; // the prompt itself comes first
    const tokens = whole.tolist()[0].slice(prompt.length).map(Number);
    return { seconds, prefill: ttft,
      streams: [{ ttft, decode: times[count] - ttft, intervals: count - 1, tokens, text: tokenizer.decode(tokens) }] };
  },
  quit: () => model?.dispose(),
});

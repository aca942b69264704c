// Models that write no text, in Node: vectors of texts, and scores of texts for a query. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama
//   EMBEDDING_MODEL  a case of tests/data/embedding_models
//   ENCODERS_DIR     the unpacked tests/data/encoders, with rerankers
// Exit status 77: there is no WebGPU device.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Doppler } from '../../web/node.mjs';
import { check, kExact, smallest, withModel } from './node_models.mjs';
import { readFloats, readIntegers } from './references.mjs';
import { spiedGpu } from './spied_gpu.mjs';

const { EMBEDDING_MODEL: embeddingModel = '', ENCODERS_DIR: encoders = '' } = process.env;
const kTolerance = 1e-5; // of values in f32

check('an embedding is the reference\'s; a model that writes text has none, one that embeds writes none',
  '', async () => {
    await withModel(embeddingModel, kExact, async (doppler) => {
      const references = join(embeddingModel, 'embedding_refs.safetensors');
      const prompt = readIntegers(references, 'prompt_a');
      const { embedding, tokens } = await doppler.embed(prompt);
      assert.deepEqual([embedding.length, tokens], [doppler.info.embeddingDim, prompt.length]);
      readFloats(references, 'embedding_a').forEach((wanted, i) => assert.ok(Math.abs(embedding[i] - wanted) < kTolerance));
      const cut = await doppler.embed(Array(kExact.ctx + 1).fill(5), { dimensions: 8, truncate: true });
      assert.deepEqual([cut.embedding.length, cut.tokens], [8, kExact.ctx]);
      await assert.rejects(doppler.embed(prompt, { dimensions: 1000 }), { kind: 'invalid-input' });
      await assert.rejects(doppler.complete({ prompt }), { kind: 'unsupported' });
    });
    await withModel(smallest, kExact, (doppler) => assert.rejects(doppler.embed([1]), { kind: 'unsupported' }));
  });

const reranker = join(encoders, 'xlmr_rerank');
const kQuestion = { query: 'Who lives in the tree?', documents: ['The fox sleeps.', { text: 'The crow lives in the tree.' }, 'A crow.'] };
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

check('texts are scored for a query, the best first, as the server answers /v1/rerank', '', async () => {
  await withModel(reranker, kExact, async (doppler) => {
    assert.deepEqual([doppler.info.givesScores, doppler.info.embeddingDim], [true, 0]);
    const { object, model, results, usage } = await doppler.rerank(kQuestion);
    assert.deepEqual([object, model, usage.prompt_tokens === usage.total_tokens], ['list', doppler.info.name, true]);
    assert.deepEqual(results.map(({ index }) => index).sort(), [0, 1, 2]);
    const scores = results.map(({ relevance_score: score }) => score);
    assert.deepEqual(scores, scores.toSorted((a, b) => b - a));
    const references = join(reranker, 'embedding_refs.safetensors');
    const { relevance_score: score } = results.find(({ index }) => index === 1);
    assert.ok(Math.abs(score - sigmoid(readFloats(references, 'score_a')[0])) < kTolerance, `${score}`);
    const whole = await doppler.rerank({ ...kQuestion, documents: ['The crow lives in the tree.'] });
    assert.equal(whole.usage.total_tokens, readIntegers(references, 'prompt_a').length);
    const best = await doppler.rerank({ ...kQuestion, top_n: 1, return_documents: true, model: 'mine' });
    assert.deepEqual([best.model, best.results], ['mine', [{ ...results[0],
      document: { text: kQuestion.documents.map((entry) => entry.text ?? entry)[results[0].index] } }]]);
  });
});

check('a model whose head has "yes" and "no" scores texts too', '', async () => {
  await withModel(join(encoders, 'qwen3_reranker/model.gguf'), { ...kExact, ctx: 512 }, async (doppler) => {
    const { results: [{ relevance_score: score }] } = await doppler.rerank({ query: 'Who lives in the tree?', documents: ['The crow does.'] });
    assert.ok(score > 0 && score < 1, `${score}`);
  });
});

check('a request for scores that is aborted rejects; a device that is lost is made again; wrong ones are refused by name', '', async () => {
  /** @type {any[]} */ const devices = [];
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
  await withModel(reranker, { ...kExact, device: { gpu } }, async (doppler) => {
    const { results } = await doppler.rerank(kQuestion);
    const controller = new AbortController();
    const asked = doppler.rerank({ ...kQuestion, signal: controller.signal });
    controller.abort();
    await assert.rejects(asked, { kind: 'cancelled' });
    const scoring = doppler.rerank(kQuestion);
    devices.at(-1).destroy();
    assert.deepEqual((await scoring).results, results);
    assert.equal(devices.length, 2);
    for (const [wrong, message] of [[{ query: 5 }, /"query"/], [{ documents: [] }, /"documents"/], [{ documents: ['a', 7] }, /number 1 is 7/],
      [{ top_n: 0 }, /"top_n" is 0; allowed is 1 or more/]]) {
      await assert.rejects(doppler.rerank({ ...kQuestion, ...wrong }), { kind: 'invalid-input', message });
    }
    await assert.rejects(doppler.rerank({ ...kQuestion, instruction: 'x' }), { kind: 'unsupported', message: /"instruction"/ });
    await assert.rejects(doppler.embed('The fox'), { kind: 'unsupported', message: /gives scores/ });
    await assert.rejects(doppler.complete({ prompt: 'The fox' }), { kind: 'unsupported' });
  });
  await withModel(smallest, kExact, (doppler) => assert.rejects(doppler.rerank(kQuestion), { kind: 'unsupported', message: /to write text/ }));
});

check('requests for vectors and scores that come together wait for each other, also with several sequences', '', async () => {
  await withModel(reranker, { ...kExact, sequences: 2 }, async (doppler) => {
    const other = { query: 'A crow', documents: ['Who lives in the tree? The fox sleeps there.', 'The tree.'] };
    const alone = [await doppler.rerank(kQuestion), await doppler.rerank(other)];
    assert.deepEqual(await Promise.all([doppler.rerank(kQuestion), doppler.rerank(other)]), alone);
  });
});

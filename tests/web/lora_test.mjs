// Adapters (LoRA) in Node: the greedy tokens are those of transformers with peft, as natively (tests/golden). By ctest:
//   LORA_DIR    the unpacked tests/data/adapters
//   GOLDEN_DIR  the unpacked tests/data/families_llama
// Exit status 77: there is no WebGPU device. A new adapter among the fixtures needs no line here.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Doppler } from '../../web/node.mjs';
import { check, kExact, withModel } from './node_models.mjs';
import { kMixes, Lora } from './lora_cases.mjs';
import { serveFolder } from './references.mjs';
import { spiedGpu } from './spied_gpu.mjs';

const root = process.env.LORA_DIR ?? '';
const kBases = readdirSync(root).filter((name) => existsSync(join(root, name, 'adapters'))).sort();
const kRoom = { ...kExact, kv: 'f32', adapterSlots: 2, adapterRank: 12 };
const llama = new Lora(join(root, 'llama'));

/** The tokens of an answer. @param {any} doppler @param {Lora} lora @param {any[]} [adapters] as requests have them */
const answered = async (doppler, lora, adapters) => (await doppler.complete({ ...lora.request, adapters })).tokens;

for (const base of kBases) {
  const lora = new Lora(join(root, base));

  check(`${base}: adapters that every answer has, also of the embedding and whole modules, give the references' tokens`, '', async () => {
    for (const name of ['dora', ...lora.names.filter((one) => lora.isOfLoad(one))]) {
      await withModel(lora.model, { ...kExact, kv: 'f32', adapters: [{ source: lora.pathOf(name) }] }, async (doppler) => {
        assert.deepEqual(await answered(doppler, lora), lora.tokens(name), name);
      });
    }
  });

  check(`${base}: adapters come, take turns in two slots, are added up and leave, on a model that is loaded once`, '', async () => {
    await withModel(lora.model, kRoom, async (doppler) => {
      assert.deepEqual(await answered(doppler, lora), lora.tokens('base'));
      const names = lora.names.filter((name) => !lora.isOfLoad(name));
      for (const name of names) await doppler.loadAdapter(name, lora.pathOf(name));
      assert.deepEqual((await doppler.adapters()).map(({ name }) => name), names);
      for (const name of [...names, names[0], 'base', names[1]]) {
        assert.deepEqual(await answered(doppler, lora, name === 'base' ? [] : [{ name }]), lora.tokens(name), name);
      }
      assert.deepEqual(await answered(doppler, lora, lora.two), lora.tokens('two'));
      await doppler.unloadAdapter(names[0]);
      await assert.rejects(answered(doppler, lora, [{ name: names[0] }]), { kind: 'invalid-input', message: `There is no adapter "${names[0]}".` });
      assert.deepEqual(await answered(doppler, lora), lora.tokens('base'));
    });
  });
}

check('GGUF adapters of a GGUF model give the references\' tokens; a scale of 0 is none', '', async () => {
  const names = readdirSync(join(root, 'llama/gguf')).map((file) => basename(file, '.gguf')).filter((name) => name !== 'base' && !llama.isOfLoad(name));
  await withModel(join(root, 'llama/gguf/base.gguf'), kRoom, async (doppler) => {
    for (const name of names) await doppler.loadAdapter(name, join(root, `llama/gguf/${name}.gguf`));
    for (const name of names) assert.deepEqual(await answered(doppler, llama, [{ name }]), llama.tokens(name), name);
    assert.deepEqual(await answered(doppler, llama, [{ name: names[0], scale: 0 }]), llama.tokens('base'));
  });
});

check('the sources of an adapter: an address of a folder and of a file, two Files, a Hugging Face name; scales of load and request multiply', '', async () => {
  const info = JSON.stringify({ sha: 'abc', siblings: ['adapter_config.json', 'adapter_model.safetensors'].map((rfilename) => ({ rfilename })) });
  const server = await serveFolder(join(root, 'llama'), { '/api/models/owner/name/revision/main': info });
  const hub = await serveFolder(llama.pathOf('dora'), { '/api/models/owner/name/revision/main': info });
  const files = ['adapter_config.json', 'adapter_model.safetensors'].map((name) => new File([readFileSync(join(llama.pathOf('rslora'), name))], name));
  try {
    const adapters = [{ source: `${server.address}adapters/qv_r4/`, name: 'qv', scale: llama.two[0].scale * 2 },
      { source: new URL(`${server.address}adapters/all_r8/adapter_model.safetensors`), name: 'all' }];
    await withModel(llama.model, { ...kRoom, hubUrl: hub.address, adapters }, async (doppler) => {
      const { path, rank, scale } = await doppler.loadAdapter('rs', files, { scale: 0.5 });
      assert.deepEqual([path, scale, rank > 0], ['adapter_config.json', 0.5, true]);
      await doppler.loadAdapter('hub', 'owner/name');
      assert.deepEqual(await answered(doppler, llama, [{ name: 'rs', scale: 2 }]), llama.tokens('rslora'));
      assert.deepEqual(await answered(doppler, llama, [{ name: 'hub' }]), llama.tokens('dora'));
      assert.deepEqual(await answered(doppler, llama, [{ name: 'qv', scale: 0.5 }, { name: 'all', scale: llama.two[1].scale }]), llama.tokens('two'));
      assert.deepEqual(await answered(doppler, llama), llama.tokens('base'));
    });
  } finally {
    server.close();
    hub.close();
  }
});

check('on a lost device the adapters are there again: those of the load that were not unloaded, and later ones', '', async () => {
  /** @type {any[]} */ const devices = [];
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
  const adapters = ['dora', 'rslora'].map((name) => ({ name, source: llama.pathOf(name) }));
  await withModel(llama.model, { ...kRoom, adapters, device: { gpu } }, async (doppler) => {
    await doppler.loadAdapter('later', llama.pathOf('all_r8'));
    await doppler.loadAdapter('gone', llama.pathOf('all_r8'));
    await doppler.unloadAdapter('gone');
    await doppler.unloadAdapter('rslora');
    for (const round of [0, 1]) {
      assert.deepEqual((await doppler.adapters()).map(({ name }) => name), ['dora', 'later'], String(round));
      const streamed = [];
      for await (const chunk of await doppler.complete({ ...llama.request, batch: 1, stream: true, adapters: [{ name: 'later' }] })) {
        if (streamed.length === 0) devices.at(-1).destroy();
        streamed.push(...chunk.tokens);
      }
      assert.deepEqual(streamed, llama.tokens('all_r8'));
    }
    assert.equal(devices.length, 3);
    assert.deepEqual(await answered(doppler, llama, [{ name: 'dora' }]), llama.tokens('dora'));
  });
});

check('an adapter that a new device cannot read again is missed by those who ask for it, and by no others', '', async () => {
  /** @type {any[]} */ const devices = [];
  /** @type {string[]} */ const warnings = [];
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
  const folder = mkdtempSync(join(tmpdir(), 'lora-'));
  cpSync(llama.pathOf('rslora'), join(folder, 'gone'), { recursive: true });
  await withModel(llama.model, { ...kRoom, device: { gpu } }, async (doppler) => {
    doppler.addEventListener('warning', ({ detail }) => warnings.push(detail));
    await doppler.loadAdapter('gone', join(folder, 'gone'));
    await doppler.loadAdapter('later', llama.pathOf('all_r8'));
    rmSync(folder, { recursive: true });
    devices.at(-1).destroy();
    // The requests come at once. No request may find a device that lacks its adapters.
    const answers = await Promise.all([[], [{ name: 'later' }], [{ name: 'later' }]].map((list) => answered(doppler, llama, list)));
    assert.deepEqual(answers, ['base', 'all_r8', 'all_r8'].map((name) => llama.tokens(name)));
    await assert.rejects(answered(doppler, llama, [{ name: 'gone' }]), { message: 'There is no adapter "gone".' });
    assert.match(warnings.join('\n'), /^The adapter "gone" is not there any more: /);
  });
});

check('of two loads of one name the last counts, and a load that was cancelled does not', '', async () => {
  await withModel(llama.model, kRoom, async (doppler) => {
    await Promise.all(['dora', 'rslora'].map((name) => doppler.loadAdapter('same', llama.pathOf(name))));
    assert.deepEqual(await answered(doppler, llama, [{ name: 'same' }]), llama.tokens('rslora'));
    const abort = new AbortController();
    const loading = doppler.loadAdapter('same', llama.pathOf('dora'), { signal: abort.signal });
    abort.abort();
    await assert.rejects(loading, { kind: 'cancelled' });
    assert.deepEqual(await answered(doppler, llama, [{ name: 'same' }]), llama.tokens('rslora'));
  });
});

check('four requests of different adapters together give what each gives alone', '', async () => {
  await withModel(llama.model, { ...kRoom, sequences: 4 }, async (doppler) => {
    for (const name of kMixes) await doppler.loadAdapter(name, llama.pathOf(name));
    const asked = [...kMixes, 'base'];
    const together = await Promise.all(asked.map((name) => answered(doppler, llama, name === 'base' ? [] : [{ name }])));
    assert.deepEqual(together, asked.map((name) => llama.tokens(name)));
  });
});

check('a wrong adapter is refused in a sentence, and the model answers as before', '', async () => {
  const load = (options) => Doppler.load(llama.model, { ...kRoom, ...options });
  for (const [options, message] of /** @type {[any, string | RegExp][]} */ ([
    [{ adapters: 'dora' }, 'Option adapters is "dora"; allowed is a list of {source, name, scale, headers}.'],
    [{ adapters: [{ name: 'x' }] }, /^An adapter has the source undefined; allowed are an address, /],
    [{ adapters: [{ source: root, scale: 'big' }] }, 'An adapter has the scale "big"; a scale is a number.'],
    [{ adapters: [{ source: root, scale: 1e39 }] }, 'An adapter has the scale 1e+39; a scale is a number.'],
    [{ adapters: [{ source: root, rank: 8 }] }, 'An adapter has "rank", which is not known; known are: source, name, scale, headers.'],
    [{ adapterSlots: -1 }, 'Option adapterSlots is -1; allowed is 0 to 256.'],
    [{ adapterRank: 2000 }, 'Option adapterRank is 2000; allowed is 0 to 1024.'],
    [{ adapters: [{ source: llama.model }] }, /adapter_config\.json/]])) {
    await assert.rejects(load(options), { message });
  }
  await withModel(llama.model, kExact, (doppler) =>
    assert.rejects(doppler.loadAdapter('dora', llama.pathOf('dora')), { kind: 'unsupported', message: /without room for adapters; load it with .*adapterSlots/ }));
  await withModel(llama.model, { ...kRoom, adapterRank: 4 }, async (doppler) => {
    await assert.rejects(doppler.loadAdapter('', llama.pathOf('dora')), { message: 'An adapter has the name ""; a name is a text that is not empty.' });
    await assert.rejects(doppler.loadAdapter('all', llama.pathOf('all_r8')), { message: /rank 8 together do not fit a slot of rank 4; .*adapterRank/ });
    await assert.rejects(doppler.loadAdapter('x', join(root, 'nothing')), { message: /is no file or folder, no address/ });
    await assert.rejects(doppler.loadAdapter('x', join(root, 'gemma3/adapters/qv_r4')), { kind: 'invalid-input' });
    await assert.rejects(doppler.unloadAdapter('x'), { message: 'There is no adapter "x".' });
    await assert.rejects(answered(doppler, llama, [{ name: 'x' }]), { message: 'There is no adapter "x".' });
    for (const adapters of [[{}], [{ name: 'x', scale: '1' }], ['x'], [{ name: 'x', rank: 1 }]]) {
      await assert.rejects(answered(doppler, llama, adapters), { kind: 'invalid-input', message: /^A request has the adapter .*; allowed is {name, scale}/ });
    }
    await assert.rejects(answered(doppler, llama, /** @type {any} */ ('x')), { message: 'A request has "adapters": "x"; allowed is a list of {name, scale}.' });
    assert.deepEqual(await doppler.adapters(), []);
    assert.deepEqual(await answered(doppler, llama), llama.tokens('base'));
  });
});

// `doppler bench --surface node`: the report of the npm package is the native program's, with two loads. By ctest:
//   DOPPLER_NATIVE  the native program, DOPPLER_MODEL a model, DOPPLER_WASM the module
// Exit status 77: there is no WebGPU device. A browser is measured the same way (web/surfaces/bench.mjs).
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { Doppler } from '../../web/node.mjs';

const kNoDevice = 77;
const { DOPPLER_MODEL = '', DOPPLER_NATIVE = '' } = process.env;

/** @param {string[]} flags */
const bench = (...flags) => spawnSync(DOPPLER_NATIVE, ['bench', '-m', DOPPLER_MODEL, '--surface', ...flags], { encoding: 'utf8' });

if (!(await Doppler.probe()).available) process.exit(kNoDevice);

test('Node is measured with the rows and the report of the program', () => {
  const { status, stdout, stderr } = bench('node', '-p', '16', '-n', '8', '-d', '16', '-r', '1', '--lane', 'portable', '--ctx', '64', '-o', 'json');
  assert.equal(status, 0, stderr);
  const report = JSON.parse(stdout);
  assert.deepEqual([report.kind, report.surface, report.device.provider, report.settings.lane], ['bench', 'node', 'node', 'portable']);
  assert.deepEqual(report.tests.map((row) => row.test), ['pp16 @ d16', 'tg8 @ d16']);
  for (const { tokens_per_second: { median, samples }, dispatches_per_token: dispatches, objects_created: made } of report.tests) {
    assert.deepEqual([median > 0, samples.length, dispatches > 0, made], [true, 1, true, 0]);
  }
  const { load: { cold, warm, seconds } } = report;
  assert.equal(seconds, warm.seconds);
  for (const load of [cold, warm]) {
    const sum = load.phases.reduce((all, phase) => all + phase.seconds, 0);
    assert.ok(Math.abs(sum - load.seconds) < 1e-6, JSON.stringify(load));
    assert.ok(load.phases.some(({ phase, bytes }) => phase === 'upload' && bytes === report.model.bytes), JSON.stringify(load));
  }
});

test('what is missing or does not fit is said in a sentence', () => {
  const missing = bench('browser', '--chromium', '/nowhere');
  assert.deepEqual([missing.status, missing.stderr], [1, 'doppler: There is no Chromium at /nowhere.\n']);
  const full = bench('node', '-p', '16', '-n', '0', '-r', '1', '--lane', 'portable', '--ctx', '16');
  assert.match(full.stderr, /doppler: The tests need a context of 17 tokens; the model was loaded with 16\./);
  assert.equal(full.status, 1);
});

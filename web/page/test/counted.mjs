// Tests whose number the runner of all tests reads from the closing line "N passed, N failed, N skipped".
import test from 'node:test';

const counts = { passed: 0, failed: 0, skipped: 0 };
process.on('exit', () => console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`));

/** @param {string} name what holds @param {(t: any) => void | Promise<void>} body */
export function check(name, body) {
  test(name, async (t) => {
    counts.failed++;
    await body(t);
    counts.failed--;
    counts.passed++;
  });
}

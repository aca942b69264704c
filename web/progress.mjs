// Progress of a load for its user, from the reports of the core and the network: phases, rates, the time that is left.

const kWindowSeconds = 3;         // of the rate
const kEverySeconds = 0.1;        // between two reports of a phase
const kSettledSeconds = 1.5;      // of a phase, before its rate says how long the rest takes

export class ProgressMeter {
  /** @type {{seconds: number, done: number}[]} */ #samples = [];
  #phase = '';
  #reportedAt = -Infinity;
  #begunAt = 0; // the phase
  #networkBytes = 0;
  #areWeightsDone = false;

  /** @param {(progress: import('./doppler.d.ts').Progress) => void} report */
  constructor(report) {
    this.report = report;
  }

  /** @param {number} bytes */
  addNetwork(bytes) {
    this.#networkBytes += bytes;
  }

  /**
   * As the core tells it: kernels compile while weights stream, and are told when these are done.
   * @param {string} stage
   * @param {number} done
   * @param {number} total
   */
  update(stage, done, total) {
    if (stage === 'weights') {
      this.#areWeightsDone = done === total;
      this.#tell(this.#networkBytes > 0 ? 'download' : 'upload', done, total);
    } else if (stage !== 'kernels') {
      this.#tell(stage, done, total);
    } else if (this.#areWeightsDone) {
      this.#tell('compile', done, total);
    }
  }

  /** @param {any} phase @param {number} done @param {number} total */
  #tell(phase, done, total) {
    const seconds = performance.now() / 1000;
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#samples = [];
      this.#begunAt = seconds;
      this.#reportedAt = -Infinity;
    }
    if (seconds - this.#reportedAt < kEverySeconds && done !== total) return;
    this.#reportedAt = seconds;
    this.#samples.push({ seconds, done });
    while (this.#samples.length > 2 && seconds - this.#samples[1].seconds > kWindowSeconds) this.#samples.shift();
    const first = this.#samples[0];
    const elapsed = seconds - first.seconds;
    const rate = elapsed > 0 ? (done - first.done) / elapsed : 0;
    const isSettled = seconds - this.#begunAt >= kSettledSeconds && rate > 0 && total > 0;
    this.report({ phase, bytes: done, total, rate, secondsLeft: isSettled ? (total - done) / rate : null });
  }
}

// The number of decode steps of a submit. Text should come, and a caller can end an answer, about every tenth of a
// second. If steps are short, a submit of more steps is faster.

const kEverySeconds = 0.1;
const kMost = 16; // kDefaultBatch of src/model/step_runner.h
const kFirst = 4; // while no speed is known

export class Steps {
  #tokensPerSecond = 0;

  /** @returns {number} of the next answer's submits */
  ofSubmit() {
    if (this.#tokensPerSecond === 0) return kFirst;
    return Math.min(kMost, Math.max(1, Math.round(this.#tokensPerSecond * kEverySeconds)));
  }

  /** @param {{generated_tokens: number, decode_tokens_per_second: number}} timings of an answer */
  note({ generated_tokens: tokens, decode_tokens_per_second: speed }) {
    if (tokens > 1 && speed > 0) this.#tokensPerSecond = speed;
  }
}

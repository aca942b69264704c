// Times of an answer that began again, on another device or in another worker, whose own clock knows only the last
// part.

export class Times {
  #begun = performance.now();
  #firstToken = 0;
  isResumed = false;

  /** A token came. */
  note() {
    this.#firstToken ||= performance.now();
  }

  /** @param {any} answer of the last part, with the tokens of all */
  of(answer) {
    if (!this.isResumed) return answer;
    const now = performance.now();
    const first = this.#firstToken || now;
    const seconds = (now - first) / 1000;
    const count = answer.tokens.length;
    return { ...answer, timings: { ...answer.timings, generated_tokens: count, ttft_seconds: (first - this.#begun) / 1000, decode_seconds: seconds,
      decode_tokens_per_second: seconds > 0 ? Math.max(0, count - 1) / seconds : 0 } };
  }
}

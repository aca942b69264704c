// Answers in OpenAI's shapes, of what the core gives: pieces as they come, and the whole at the end.

const kFinishReasons = { 'end-of-text': 'stop', 'stop-string': 'stop', 'token-limit': 'length', 'context-full': 'length',
  cancelled: 'cancelled' };

/** The shapes of one answer, which takes its pieces as they come. */
export class Shape {
  #calls = 0;
  #isFirst = true;
  /** @type {any} */ #message = { role: 'assistant', content: '' };

  /**
   * @param {boolean} isChat @param {{id: string, created: number, model: string}} head
   * @param {number} [index] of several answers
   */
  constructor(isChat, head, index = 0) {
    this.isChat = isChat;
    this.head = head;
    this.index = index;
  }

  /** The chunks of a piece. @param {{tokens: number[], text?: string, events?: [string, string][]}} piece */
  chunks({ tokens, text, events }) {
    const contents = this.isChat ? this.#deltas(events ?? []) : [{ text }];
    return contents.map((content, i) => this.#chunk(content, i === 0 ? tokens : [], null));
  }

  /** @param {any} answer */
  last(answer) {
    const chunk = this.#chunk(this.isChat ? { delta: {} } : { text: '' }, [], this.#reason(answer));
    Object.assign(chunk.choices[0], this.#logprobs(answer));
    return { ...chunk, ...figures(answer) };
  }

  /** The choice, after all pieces went through chunks(). @param {any} answer */
  choice(answer) {
    const content = this.isChat ? { message: this.#message } : { text: answer.text };
    return { index: this.index, ...content, ...this.#logprobs(answer), finish_reason: this.#reason(answer) };
  }

  /** @param {any} answer whose tokens have their texts */
  #logprobs({ logprobs, text }) {
    if (!logprobs) return {};
    if (this.isChat) return { logprobs: { content: logprobs.map(({ top, ...token }) => ({ ...token, top_logprobs: top })) } };
    let at = 0;
    const offsets = logprobs.map((token) => {
      const from = at;
      at += token.token.length;
      return Math.min(from, text.length);
    });
    return { logprobs: {
      tokens: logprobs.map(({ token }) => token), token_logprobs: logprobs.map(({ logprob }) => logprob), text_offset: offsets,
      top_logprobs: logprobs.map(({ top }) => Object.fromEntries(top.map(({ token, logprob }) => [token, logprob]))),
    } };
  }

  /** @param {[string, string][]} events */
  #deltas(events) {
    const deltas = events.map((event) => ({ delta: this.#delta(event) }));
    if (deltas.length === 0) deltas.push({ delta: { content: '' } }); // tokens whose text is not certain yet
    if (this.#isFirst) deltas[0].delta = { role: 'assistant', ...deltas[0].delta };
    this.#isFirst = false;
    return deltas;
  }

  /** @param {[string, string]} event @returns {any} */
  #delta([kind, text]) {
    const message = this.#message;
    if (kind === 'text') {
      message.content += text;
      return { content: text };
    }
    if (kind === 'reasoning') {
      message.reasoning_content = (message.reasoning_content ?? '') + text;
      return { reasoning_content: text };
    }
    message.tool_calls ??= [];
    if (kind === 'call') {
      const call = { id: callId(), type: 'function', function: { name: text, arguments: '' } };
      this.#calls = message.tool_calls.push(call);
      return { tool_calls: [{ index: this.#calls - 1, ...call, function: { ...call.function } }] };
    }
    message.tool_calls.at(-1).function.arguments += text;
    return { tool_calls: [{ index: this.#calls - 1, function: { arguments: text } }] };
  }

  /** @param {any} answer */
  #reason({ stop }) {
    const reason = kFinishReasons[stop];
    return reason === 'stop' && this.#calls > 0 ? 'tool_calls' : reason;
  }

  #chunk(content, tokens, finish_reason) {
    const object = this.isChat ? 'chat.completion.chunk' : 'text_completion';
    return { ...this.head, object, choices: [{ index: this.index, ...content, finish_reason }], tokens };
  }
}

// As the server makes them: some templates take only nine letters and digits.
const kCallIdLength = 9;
function callId() {
  return crypto.randomUUID().replaceAll('-', '').slice(0, kCallIdLength);
}

/** @param {boolean} isChat @param {string} model */
export function newHead(isChat, model) {
  return { id: `${isChat ? 'chatcmpl' : 'cmpl'}-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model };
}

/** The whole of several answers. @param {Shape[]} shapes @param {any[]} answers */
export function whole(shapes, answers) {
  const [{ isChat, head }] = shapes;
  const choices = shapes.map((shape, i) => shape.choice(answers[i]));
  return { ...head, object: isChat ? 'chat.completion' : 'text_completion', choices, tokens: answers.flatMap(({ tokens }) => tokens),
    ...figures(answers[0]), usage: usageOf(answers) };
}

/** The chunk of stream_options.include_usage, which has no choice. @param {Shape} shape @param {any[]} answers */
export function usageChunk({ isChat, head }, answers) {
  return { ...head, object: isChat ? 'chat.completion.chunk' : 'text_completion', choices: [], tokens: [], usage: usageOf(answers) };
}

/** The prompt counts once. @param {any[]} answers */
function usageOf(answers) {
  const [{ timings: t }] = answers;
  const made = answers.reduce((sum, { timings }) => sum + timings.generated_tokens, 0);
  const sum = (/** @type {string} */ name) => answers.reduce((all, { timings }) => all + (timings[name] ?? 0), 0);
  const drafted = sum('drafted_tokens'), accepted = sum('accepted_tokens');
  const details = { accepted_prediction_tokens: accepted, rejected_prediction_tokens: drafted - accepted };
  return { prompt_tokens: t.prompt_tokens, completion_tokens: made, total_tokens: t.prompt_tokens + made,
    prompt_tokens_details: { cached_tokens: t.prompt_tokens - t.evaluated_tokens },
    ...(drafted ? { completion_tokens_details: details } : {}) };
}

/** @param {any} answer */
function figures(answer) {
  const { timings: t, counters } = answer;
  return {
    usage: usageOf([answer]),
    timings: {
      ttft_seconds: t.ttft_seconds,
      evaluated_tokens: t.evaluated_tokens,
      prefill_tokens_per_second: t.prefill_tokens_per_second,
      decode_seconds: t.decode_seconds,
      decode_tokens_per_second: t.decode_tokens_per_second,
      drafted_tokens: t.drafted_tokens ?? 0,
      accepted_tokens: t.accepted_tokens ?? 0,
      preemptions: t.preemptions ?? 0,
    },
    counters,
  };
}

// The reports of the engine in words: how far a load is, and the figures under an answer. No DOM.
import { bytesText, rateText, secondsText } from './format.mjs';

export const kPhases = {
  download: 'Downloading',
  upload: 'To the GPU',
  compile: 'Compiling kernels',
  'self-test': 'Checking the kernels',
};

/** @param {import('../doppler.d.ts').Progress} progress */
export function detailText({ phase, bytes, total, rate, secondsLeft }) {
  if (phase === 'self-test') return '';
  const left = secondsLeft === null ? [] : [`${secondsText(secondsLeft)} left`];
  if (phase === 'compile') return [`${bytes} of ${total} kernels`, ...left].join(' · ');
  const amount = total > 0 ? `${bytesText(bytes)} of ${bytesText(total)}` : bytesText(bytes);
  return [amount, ...(rate > 0 ? [`${bytesText(Math.round(rate))}/s`] : []), ...left].join(' · ');
}

/** The figures under an answer. @param {any} figures chat.mjs makes them @returns {{text: string, hint: string}[]} */
export function figureParts(figures) {
  const parts = [
    { text: `TTFT ${secondsText(figures.ttft_seconds)}`, hint: 'time to the first token' },
    {
      text: `prefill ${rateText(figures.prefill_tokens_per_second)} tok/s`,
      hint: `${figures.evaluated_tokens} of ${figures.prompt_tokens} prompt tokens evaluated; the others were in the cache`,
    },
    { text: `decode ${rateText(figures.decode_tokens_per_second)} tok/s`, hint: `${figures.completion_tokens} tokens` },
    { text: `${figures.completion_tokens} tokens`, hint: 'length of the answer' },
  ];
  if (figures.memory_bytes) parts.push({ text: bytesText(figures.memory_bytes), hint: 'memory on the GPU' });
  parts.push({ text: `${figures.lane} lane`, hint: figures.adapter });
  return parts;
}

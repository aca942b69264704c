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

/**
 * The parts of "Details" under an answer.
 * @param {any} figures run.mjs makes them @returns {{name: string, text: string}[]}
 */
export function figureParts(figures) {
  const { evaluated_tokens: evaluated, prompt_tokens: prompt } = figures;
  const parts = [
    { name: 'Time to the first token', text: secondsText(figures.ttft_seconds) },
    { name: 'Reading the question', text: `${rateText(figures.prefill_tokens_per_second)} tokens a second; ${evaluated} of ${prompt} tokens were new` },
    { name: 'Writing', text: `${rateText(figures.decode_tokens_per_second)} tokens a second` },
    { name: 'Length', text: `${figures.completion_tokens} tokens` },
  ];
  if (figures.memory_bytes) parts.push({ name: 'Memory on the GPU', text: bytesText(figures.memory_bytes) });
  parts.push({ name: 'Kernels', text: `${figures.lane} lane` }, { name: 'Device', text: figures.adapter });
  return parts;
}

// Shows an error that no other code caught. While the page starts, it stands in the middle; later it is a notice that
// stays. first_paint.js does it until this is loaded. No error ends as a blank page.
import { notice } from './notices.mjs';
import { sentence } from './model_host.mjs';

export function takeUncaught() {
  globalThis.dopplerStarted = true; // first_paint.js leaves the rest to us
  const seen = new Set();
  const show = (error) => {
    const text = sentence(error ?? 'Something went wrong');
    if (error?.name === 'AbortError' || seen.has(text)) return;
    seen.add(text);
    notice(`Something went wrong: ${text}`, { kind: 'error', stays: true });
  };
  addEventListener('error', (event) => show(event.error ?? event.message));
  addEventListener('unhandledrejection', (event) => show(event.reason));
}

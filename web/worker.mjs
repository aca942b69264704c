// The dedicated worker in which a browser runs the engine; doppler.mjs starts it. It has no state of its own.
import { browser } from './browser.mjs';
import { serveCalls } from './calls.mjs';

serveCalls(browser, globalThis);

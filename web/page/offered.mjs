// The list of models beside the page, which whoever hosts it may change. No DOM.

/**
 * @returns {Promise<{offered: import('./catalogue.mjs').Entry[], problem: string}>} problem: why the list is empty; or
 *   empty
 */
export async function fetchOffered() {
  try {
    const answer = await fetch('models.json');
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const offered = await answer.json();
    if (!Array.isArray(offered)) throw new Error('it is no list');
    return { offered: offered.filter((entry) => typeof entry?.source === 'string' && typeof entry.name === 'string'), problem: '' };
  } catch (error) {
    const why = /** @type {Error} */ (error).message;
    return { offered: [], problem: `The list of models (models.json) could not be read: ${why}. Models are loaded by address, name or file all the same.` };
  }
}

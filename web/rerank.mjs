// Requests and answers of rerank(), in the shape of the server's /v1/rerank (src/server/apis/rerank.cpp).
import { DopplerError } from './errors.mjs';

const kMostDocuments = 2048; // as the server
const kFields = ['query', 'documents', 'top_n', 'return_documents', 'model', 'user', 'signal'];

/**
 * Reads the request. Error: a member that would change the answer and is not known; one of a wrong form.
 * @param {any} request @returns {{query: string, texts: string[]}}
 */
export function readRerank(request) {
  const unknown = Object.keys(request).find((name) => !kFields.includes(name));
  if (unknown) throw new DopplerError('unsupported', `A request has "${unknown}", which rerank() does not know; known are: ${kFields.join(', ')}.`);
  const { query, documents, top_n: most = 1 } = request;
  if (typeof query !== 'string') throw invalid('"query"', query, 'a text');
  if (!Array.isArray(documents) || documents.length === 0 || documents.length > kMostDocuments) {
    throw invalid('"documents"', Array.isArray(documents) ? `${documents.length} entries` : documents, `a list of 1 to ${kMostDocuments} texts`);
  }
  if (!Number.isInteger(most) || most < 1) throw invalid('"top_n"', most, '1 or more');
  return { query, texts: documents.map(textOf) };
}

/** @param {any} entry @param {number} number */
function textOf(entry, number) {
  const text = typeof entry === 'string' ? entry : entry?.text;
  if (typeof text !== 'string') throw invalid(`"documents", of which number ${number}`, entry, 'a text, or an object with "text"');
  return text;
}

/** @param {string} name @param {any} given @param {string} allowed */
const invalid = (name, given, allowed) => new DopplerError('invalid-input',
  `Field ${name} is ${typeof given === 'string' ? given : JSON.stringify(given)}; allowed is ${allowed}.`);

/**
 * The answer, the best text first.
 * @param {any} request @param {string[]} texts @param {{score: number, tokens: number}[]} scored by text
 * @param {string} model
 */
export function rerankAnswer({ top_n: most, return_documents: tells }, texts, scored, model) {
  const results = scored.map(({ score }, index) => ({ index, relevance_score: score, ...(tells ? { document: { text: texts[index] } } : {}) }))
    .sort((a, b) => b.relevance_score - a.relevance_score).slice(0, most);
  const tokens = scored.reduce((sum, one) => sum + one.tokens, 0);
  return { object: 'list', model, results, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

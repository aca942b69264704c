// Grammars of answers: what of a model's tokens may be next, by the npm package @mlc-ai/web-xgrammar, which is fetched
// when the first grammar is asked for. The core asks token by token (src/web/web_guide.h), so an answer must come at
// once. Hence it calls the package's inner object of the matcher, whose methods do not wait.
import { asDopplerError, DopplerError } from './errors.mjs';

// The fate of a token; the numbers are also in src/web/web_guide.cpp.
const kNotAllowed = 0;
const kGoesOn = 1;
const kEnd = 2;

/** @typedef {{kind: 'json-schema' | 'regex' | 'grammar' | 'none', text: string, source: string}} Grammar */
/** @typedef {{bytes: Uint8Array, ends: number[]}} Vocabulary as doppler_vocabulary gives it */

export class Grammars {
  /** @type {Promise<{library: any, compiler: any, ends: Set<number>, size: number}> | null} */ #opened = null;
  /** @type {Map<number, {matcher: any, ends: Set<number>, size: number}>} */ #matchers = new Map();
  #lastMatcher = 0;

  #opens = 0;

  /** @param {(opens: number) => Promise<any>} load gives the package's module, another one for each number */
  constructor(load) {
    this.load = load;
  }

  /**
   * A matcher of an answer that has these tokens already. Only the first call reads the vocabulary.
   * @param {Grammar} grammar @param {number[]} generated @param {() => Promise<Vocabulary>} vocabulary
   * @returns {Promise<number>} for the core, until end()
   */
  async begin(grammar, generated, vocabulary) {
    this.#opened ??= this.#open(vocabulary);
    const { library, compiler, ends, size } = await this.#opened.catch((error) => {
      this.#opened = null;
      throw error;
    });
    let matcher;
    try {
      matcher = await library.GrammarMatcher.createGrammarMatcher(await compile(compiler, grammar));
    } catch (error) {
      if (error instanceof DopplerError) throw error;
      this.#opened = null; // a grammar that it does not understand ends the package's program
      throw new DopplerError('invalid-input', `${grammar.source}: The grammar cannot be used: ${asDopplerError(error).message}`);
    }
    for (const token of generated) matcher.acceptToken(token);
    this.#matchers.set(++this.#lastMatcher, { matcher, ends, size });
    return this.#lastMatcher;
  }

  /** @param {number} number */
  end(number) {
    this.#matchers.get(number)?.matcher.dispose();
    this.#matchers.delete(number);
  }

  /** @param {import('./wasm_loader.mjs').Core} core @returns {Record<string, Function>} */
  imports(core) {
    return {
      dp_grammar_allowed: (number, at, count) => Number(this.#allowed(number, core, at, count)),
      dp_grammar_accept: (number, token) => {
        const { matcher, ends } = /** @type {any} */ (this.#matchers.get(number));
        if (ends.has(token)) return kEnd;
        return matcher.acceptToken(token) ? kGoesOn : kNotAllowed;
      },
    };
  }

  /**
   * @param {number} number
   * @param {import('./wasm_loader.mjs').Core} core
   * @param {number} at
   * @param {number} count of words
   */
  #allowed(number, core, at, count) {
    const { matcher, size } = /** @type {any} */ (this.#matchers.get(number));
    const words = matcher.handle.GetNextTokenBitmask(size);
    const mask = new Uint32Array(core.exports.memory.buffer, at >>> 0, count);
    let any = 0;
    for (let i = 0; i < Math.min(count, words.size()); i++) any |= mask[i] = words.get(i);
    words.delete();
    return any !== 0;
  }

  /** @param {() => Promise<Vocabulary>} vocabulary */
  async #open(vocabulary) {
    const library = await this.load(++this.#opens);
    const { bytes, ends } = await vocabulary();
    const tokens = spellings(bytes);
    const info = await library.TokenizerInfo.createTokenizerInfo(tokens, 'byte_level', false, tokens.length, ends);
    const compiler = await library.GrammarCompiler.createGrammarCompiler(info);
    return { library, compiler, ends: new Set(ends), size: tokens.length };
  }
}

/**
 * JSON is written without blanks, except for one after "," and ":": small models go on with blanks for ever.
 * @param {any} compiler
 * @param {Grammar} grammar
 */
async function compile(compiler, { kind, text, source }) {
  if (kind === 'json-schema') return compiler.compileJSONSchema(text, false, -1, undefined, false);
  if (kind === 'regex') return compiler.compileStructuralTag({ type: 'structural_tag', format: { type: 'regex', pattern: inItsEscapes(text) } });
  if (!text.includes('::=')) {
    throw new DopplerError('unsupported', `${source} is, or with tools becomes, a grammar in Lark; here JSON schemas, regular expressions and GBNF can be used.`);
  }
  return compiler.compileGrammar(text);
}

/** The package knows \u{7C}; of \x{7C} and \x7C it takes the letter x. @param {string} pattern */
const inItsEscapes = (pattern) => pattern.replace(/\\(?:x\{(\w+)\}|x([\da-fA-F]{2})|.)/gsu,
  (escape, long, short) => (long || short ? `\\u{${long ?? short}}` : escape));

/** The tokens in the letters of byte-level vocabularies, which spell any bytes. @param {Uint8Array} packed */
function spellings(packed) {
  const letters = byteLetters();
  const tokens = [];
  for (let at = 0; at < packed.length;) {
    const count = packed[at] + packed[at + 1] * 256;
    at += 2;
    tokens.push(Array.from(packed.subarray(at, at + count), (byte) => letters[byte]).join(''));
    at += count;
  }
  return tokens;
}

/** GPT-2's letter of each byte: the byte itself if it is visible, the others from U+0100 on in order. */
function byteLetters() {
  const isSeen = (byte) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : next++));
}

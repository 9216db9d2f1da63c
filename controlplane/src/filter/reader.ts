/** Reads the text of a filter or of an order, piece by piece. Pure. */

/** What is wrong with a filter, and where. The message is for people. */
export class FilterError extends Error {
  /** Position of the wrong character, from 1. */
  readonly position: number;

  constructor(text: string, at: number, problem: string) {
    const position = [...text.slice(0, at)].length + 1;
    const near = [...text.slice(at)].slice(0, 20).join('');
    const location = near === '' ? 'at the end' : `near ${JSON.stringify(near)}`;
    super(`at character ${position}, ${location}: ${problem}`);
    this.position = position;
  }
}

/** A value, as written. A star at its end stands for any text. */
export interface FilterValue {
  readonly text: string;
  readonly at: number;
  readonly startsAnyhow: boolean;
  readonly endsAnyhow: boolean;
}

const space = /\s*/y;
const fieldWord = /[^\s()"'=<>!:,]+/y;
const valueWord = /[^\s()"',]+/y;
const comparators = /!=|<=|>=|=|<|>|:/y;
const quoted = /"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'/y;

const keywords = ['AND', 'OR', 'NOT'] as const;
type Keyword = (typeof keywords)[number];

/** The comparison of a field with a value. */
export type Comparator = '=' | '!=' | '<' | '<=' | '>' | '>=' | ':';

export class FilterReader {
  readonly text: string;
  #at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Position of the next character that is no space. */
  get at(): number {
    this.#take(space);
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.at === this.text.length;
  }

  fail(problem: string, at = this.at): never {
    throw new FilterError(this.text, at, problem);
  }

  /** Consumes this text if it comes next. True: it was consumed. */
  takes(text: string): boolean {
    if (!this.text.startsWith(text, this.at)) return false;
    this.#at += text.length;
    return true;
  }

  /** Consumes this word if it comes next. True: it was consumed. */
  takesWord(word: string): boolean {
    const start = this.at;
    if (this.#take(fieldWord) === word) return true;
    this.#at = start;
    return false;
  }

  /** The name of a field, or a keyword; undefined: neither comes next. */
  word(): string | undefined {
    this.#take(space);
    return this.#take(fieldWord);
  }

  comparator(): Comparator | undefined {
    this.#take(space);
    return this.#take(comparators) as Comparator | undefined;
  }

  value(): FilterValue {
    const at = this.at;
    if (`"'`.includes(this.text[at] ?? ' ')) {
      const whole = this.#take(quoted);
      if (whole === undefined) this.fail('this quotation mark is never closed', at);
      return this.#valueOf(whole.slice(1, -1), at);
    }
    const word = this.#take(valueWord);
    if (word === undefined) this.fail('a value has to stand here; "" is the empty one', at);
    if ('=<>!:'.includes(word[0] ?? '')) {
      this.fail('a value does not begin with this character unless it is in quotation marks', at);
    }
    if (isKeyword(word)) this.fail(`put ${word} in quotation marks if it is the value`, at);
    return this.#valueOf(word, at);
  }

  #valueOf(written: string, at: number): FilterValue {
    const startsAnyhow = written.startsWith('*');
    const body = written.slice(startsAnyhow ? 1 : 0);
    const ends = /(?<!\\)(?:\\\\)*\*$/.test(body);
    const inner = ends ? body.slice(0, -1) : body;
    if (/(?<!\\)(?:\\\\)*\*/.test(inner)) {
      this.fail('a star stands at the start or the end of a value; \\* is the character', at);
    }
    const text = inner.replace(/\\([\s\S])/g, '$1');
    return { text, at, startsAnyhow, endsAnyhow: ends };
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.text) ?? [];
    this.#at += found?.length ?? 0;
    return found;
  }
}

export function isKeyword(word: string | undefined): word is Keyword {
  return keywords.some((each) => each === word);
}

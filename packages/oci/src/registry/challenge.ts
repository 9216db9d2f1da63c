/**
 * WWW-Authenticate (RFC 9110 §11.6.1): the authentication that a registry requires. One header may
 * hold several challenges, and quoted texts may hold commas.
 */

export interface Challenge {
  /** Lower-case: "bearer", "basic". */
  readonly scheme: string;
  /** Lower-case names. */
  readonly parameters: Readonly<Record<string, string>>;
}

const headerCharactersMax = 8_192;
const challengesMax = 16;

const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const space = /[ \t]*/y;
const quoted = /"((?:[^"\\]|\\.)*)"/y;
/** The token that Negotiate and its like have in place of parameters. */
const token68 = /[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;

/** The challenges in their order; empty when the header cannot be read. */
export function parseChallenges(header: string): Challenge[] {
  if (header.length > headerCharactersMax) return [];
  const text = new Cursor(header);
  const found: { scheme: string; parameters: Record<string, string> }[] = [];
  while (!text.atEnd()) {
    text.take(space);
    if (text.takeText(',')) continue;
    const name = text.take(token)?.toLowerCase();
    if (name === undefined) return [];
    text.take(space);
    if (text.takeText('=')) {
      text.take(space);
      const value = text.takeQuoted() ?? text.take(token);
      const current = found.at(-1);
      if (value === undefined || current === undefined) return [];
      if (!Object.hasOwn(current.parameters, name)) current.parameters[name] = value;
      continue;
    }
    if (found.length >= challengesMax) return [];
    found.push({ scheme: name, parameters: {} });
    if (!text.startsParameter()) text.take(token68);
  }
  return found;
}

class Cursor {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  atEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  take(form: RegExp): string | undefined {
    return this.#match(form)?.[0];
  }

  takeText(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  takeQuoted(): string | undefined {
    return this.#match(quoted)?.[1]?.replace(/\\(.)/g, '$1');
  }

  /** Whether "name=" with a value follows. */
  startsParameter(): boolean {
    const start = this.#at;
    const isOne =
      this.take(token) !== undefined &&
      this.take(space) !== undefined &&
      this.takeText('=') &&
      this.take(space) !== undefined &&
      (this.takeQuoted() ?? this.take(token)) !== undefined;
    this.#at = start;
    return isOne;
  }

  #match(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at;
    const found = form.exec(this.#text);
    if (found === null) return undefined;
    this.#at = form.lastIndex;
    return found;
  }
}

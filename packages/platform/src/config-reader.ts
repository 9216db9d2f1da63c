/**
 * Reads a configuration object key by key. Pure.
 *
 * 1. Every key has to be asked for: what is left over is refused, with the nearest name.
 * 2. A value of the wrong shape is refused with its path and what would be right.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export class ConfigReader {
  readonly #path: string;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #asked = new Set<string>();
  readonly #sections: ConfigReader[] = [];

  /** `path` is '' for the whole file. Undefined counts as an empty section. */
  constructor(value: unknown, path = '') {
    this.#path = path;
    if (value !== undefined && !isRecord(value)) throw wrong(path || 'the file', 'a mapping');
    this.#values = value ?? {};
  }

  text(key: string, fallback?: string): string {
    return this.#read(key, fallback, 'a text', (value) => {
      return typeof value === 'string' && value !== '' ? value : undefined;
    });
  }

  optionalText(key: string): string | undefined {
    return this.#has(key) ? this.text(key) : undefined;
  }

  /** A whole number in [least, most]. */
  whole(key: string, range: readonly [least: number, most: number], fallback?: number): number {
    const [least, most] = range;
    return this.#read(key, fallback, `a whole number from ${least} to ${most}`, (value) => {
      const fits = typeof value === 'number' && Number.isInteger(value);
      return fits && value >= least && value <= most ? value : undefined;
    });
  }

  oneOf<const T extends string>(key: string, choices: readonly T[], fallback?: NoInfer<T>): T {
    return this.#read(key, fallback, `one of ${choices.join(', ')}`, (value) =>
      choices.find((choice) => choice === value),
    );
  }

  texts(key: string, fallback?: readonly string[]): readonly string[] {
    return this.#read(key, fallback, 'a list of texts', (value) => {
      const fits = Array.isArray(value) && value.every((item) => typeof item === 'string');
      return fits ? value : undefined;
    });
  }

  section<T>(key: string, read: (section: ConfigReader) => T): T {
    return this.#section(this.#take(key), this.#at(key), read);
  }

  optionalSection<T>(key: string, read: (section: ConfigReader) => T): T | undefined {
    return this.#has(key) ? this.section(key, read) : undefined;
  }

  sections<T>(key: string, read: (section: ConfigReader) => T): readonly T[] {
    const value = this.#take(key) ?? [];
    if (!Array.isArray(value)) throw wrong(this.#at(key), 'a list');
    return value.map((item, index) => this.#section(item, `${this.#at(key)}[${index}]`, read));
  }

  /** Refuses every key that nobody asked for, here and in the sections below. */
  end(): void {
    for (const key of Object.keys(this.#values)) {
      if (this.#asked.has(key)) continue;
      const near = nearestName(key, [...this.#asked]);
      const hint = near === undefined ? '' : `; did you mean ${near}?`;
      throw new ConfigError(`${this.#at(key)} is no key of this configuration${hint}`);
    }
    for (const section of this.#sections) section.end();
  }

  #section<T>(value: unknown, path: string, read: (section: ConfigReader) => T): T {
    const section = new ConfigReader(value, path);
    this.#sections.push(section);
    return read(section);
  }

  #read<T>(
    key: string,
    fallback: T | undefined,
    what: string,
    accept: (value: unknown) => T | undefined,
  ): T {
    const value = this.#take(key) ?? fallback;
    if (value === undefined) throw new ConfigError(`${this.#at(key)} is missing: give ${what}`);
    const accepted = accept(value);
    if (accepted === undefined) throw wrong(this.#at(key), what);
    return accepted;
  }

  #take(key: string): unknown {
    this.#asked.add(key);
    return this.#values[key] ?? undefined;
  }

  #has(key: string): boolean {
    return this.#take(key) !== undefined;
  }

  #at(key: string): string {
    return this.#path === '' ? key : `${this.#path}.${key}`;
  }
}

/** The candidate that takes the fewest edits, unless even that one is a different word. */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const candidate of candidates) {
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (best === undefined || edits < best.edits) best = { name: candidate, edits };
  }
  if (best === undefined || best.edits > Math.max(2, best.name.length / 2)) return undefined;
  return best.name;
}

/** Levenshtein's distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (const [at, other] of [...to].entries()) {
      const replaced = (row[at] ?? 0) + (character === other ? 0 : 1);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrong(path: string, what: string): ConfigError {
  return new ConfigError(`${path} has to be ${what}`);
}

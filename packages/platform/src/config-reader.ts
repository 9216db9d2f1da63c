/**
 * Reads a configuration object key by key. Pure.
 *
 * 1. Every key has to be read: a remaining one is refused, with the nearest name.
 * 2. A value of the wrong shape is refused with its path and what would be right.
 * 3. `readConfiguration` goes on after a problem, and reports all of them at once.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** Each begins with the path of its key. */
  readonly problems: readonly string[];

  constructor(problems: string | readonly string[], options?: ErrorOptions) {
    const all = typeof problems === 'string' ? [problems] : problems;
    super(all.join('\n'), options);
    this.problems = all;
  }
}

/** Reads all of `value` by `read`; throws one ConfigError with everything that is wrong. */
export function readConfiguration<T>(value: unknown, read: (reader: ConfigReader) => T): T {
  const problems: string[] = [];
  try {
    const reader = new ConfigReader(value, '', problems);
    const config = read(reader);
    reader.end();
    if (problems.length === 0) return config;
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    // The value read in place of a wrong one may be wrong as well: such a problem is not repeated.
    const known = new Set(problems.map(keyOf));
    problems.push(...cause.problems.filter((problem) => !known.has(keyOf(problem))));
    throw new ConfigError(problems, { cause });
  }
  throw new ConfigError(problems);
}

/** The path of the key that a problem begins with. */
export function keyOf(problem: string): string {
  return problem.split(/:? /, 1)[0] ?? '';
}

export class ConfigReader {
  readonly #path: string;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #asked = new Set<string>();
  readonly #sections: ConfigReader[] = [];
  readonly #problems: string[] | undefined;

  /**
   * `path` is '' for the whole file. Undefined counts as an empty section. With `problems`, each
   * problem is added there and a harmless value is read in its place; otherwise it is thrown.
   */
  constructor(value: unknown, path = '', problems?: string[]) {
    this.#path = path;
    this.#problems = problems;
    if (value !== undefined && !isRecord(value)) throw wrong(path || 'the file', 'a mapping');
    this.#values = value ?? {};
  }

  text(key: string, fallback?: string): string {
    return this.#read(key, fallback, '', 'a text', (value) => {
      return typeof value === 'string' && value !== '' ? value : undefined;
    });
  }

  /** A text that `fits`; `form` says what would be right. */
  textThat(key: string, fits: (text: string) => boolean, form: string, fallback?: string): string {
    return this.#read(key, fallback, '', form, (value) =>
      typeof value === 'string' && fits(value) ? value : undefined,
    );
  }

  optionalTextThat(key: string, fits: (text: string) => boolean, form: string): string | undefined {
    return this.#has(key) ? this.textThat(key, fits, form) : undefined;
  }

  optionalText(key: string): string | undefined {
    return this.#has(key) ? this.text(key) : undefined;
  }

  /** A whole number in [least, most]. */
  whole(key: string, range: readonly [least: number, most: number], fallback?: number): number {
    const [least, most] = range;
    return this.#read(key, fallback, least, `a whole number from ${least} to ${most}`, (value) => {
      const fits = typeof value === 'number' && Number.isInteger(value);
      return fits && value >= least && value <= most ? value : undefined;
    });
  }

  /** Undefined where the configuration leaves it out. */
  optionalWhole(key: string, range: readonly [least: number, most: number]): number | undefined {
    return this.#has(key) ? this.whole(key, range) : undefined;
  }

  oneOf<const T extends string>(key: string, choices: readonly T[], fallback?: NoInfer<T>): T {
    const [first] = choices;
    if (first === undefined) throw new Error('a choice needs something to choose from');
    return this.#read<T>(key, fallback, first, `one of ${choices.join(', ')}`, (value) =>
      choices.find((choice) => choice === value),
    );
  }

  texts(key: string, fallback?: readonly string[]): readonly string[] {
    return this.#read(key, fallback, [], 'a list of texts', (value) => {
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
    if (!Array.isArray(value)) return this.#fail(wrong(this.#at(key), 'a list'), []);
    return value.map((item, index) => this.#section(item, `${this.#at(key)}[${index}]`, read));
  }

  /** Refuses a withdrawn key, and names its replacement. */
  withdrawn(key: string, instead: string): void {
    if (this.#has(key)) this.#fail(new ConfigError(`${this.#at(key)} ${instead}`), undefined);
  }

  /** Refuses every key that was not read, here and in the sections below. */
  end(): void {
    for (const key of Object.keys(this.#values)) {
      if (this.#asked.has(key)) continue;
      const near = nearestName(key, [...this.#asked]);
      const hint = near === undefined ? '' : `; did you mean ${near}?`;
      const text = `${this.#at(key)} is no key of this configuration${hint}`;
      this.#fail(new ConfigError(text), undefined);
    }
    for (const section of this.#sections) section.end();
  }

  #section<T>(value: unknown, path: string, read: (section: ConfigReader) => T): T {
    const usable = value === undefined || isRecord(value);
    if (!usable) this.#fail(wrong(path, 'a mapping'), undefined);
    const section = new ConfigReader(usable ? value : undefined, path, this.#problems);
    this.#sections.push(section);
    return read(section);
  }

  #read<T>(
    key: string,
    fallback: T | undefined,
    harmless: T,
    form: string,
    accept: (value: unknown) => T | undefined,
  ): T {
    const value = this.#take(key) ?? fallback;
    if (value === undefined) {
      const missing = new ConfigError(`${this.#at(key)} is missing: give ${form}`);
      return this.#fail(missing, harmless);
    }
    const accepted = accept(value);
    return accepted ?? this.#fail(wrong(this.#at(key), form), fallback ?? harmless);
  }

  #fail<T>(problem: ConfigError, instead: T): T {
    if (this.#problems === undefined) throw problem;
    this.#problems.push(...problem.problems);
    return instead;
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

function wrong(path: string, form: string): ConfigError {
  return new ConfigError(`${path} has to be ${form}`);
}

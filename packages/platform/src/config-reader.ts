/**
 * Reads a configuration object key by key. Pure.
 *
 * 1. Every key has to be read: a remaining one is refused, with the nearest name.
 * 2. A value of the wrong shape is refused with its path and what would be right.
 * 3. `readConfiguration` goes on after a problem, and reports all of them at once.
 */

/** One thing that is wrong with a configuration. */
export interface ConfigProblem {
  /** The path of the key, `files[1].name`; '' for the whole file. */
  readonly key: string;
  /** What is wrong and what would be right, as said after the key: "has to be 1, 3 or 5". */
  readonly text: string;
}

/** The problem as people read it: the path of its key, then its text. */
export function problemText({ key, text }: ConfigProblem): string {
  return key === '' ? text : `${key} ${text}`;
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: ConfigProblem | readonly ConfigProblem[], options?: ErrorOptions) {
    const all = 'key' in problems ? [problems] : problems;
    super(all.map(problemText).join('\n'), options);
    this.problems = all;
  }
}

/**
 * Reads all of `value` by `read`, which refuses what it finds wrong through its reader; throws one
 * ConfigError with everything that is wrong.
 */
export function readConfiguration<T>(value: unknown, read: (reader: ConfigReader) => T): T {
  const found: FoundProblems = new Map();
  const reader = new ConfigReader(value, '', found);
  const config = read(reader);
  reader.end();
  if (found.size > 0) throw new ConfigError([...found.values()]);
  return config;
}

/** The first problem of each key, by its path. */
type FoundProblems = Map<string, ConfigProblem>;

export class ConfigReader {
  readonly #path: string;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #asked = new Set<string>();
  readonly #sections: ConfigReader[] = [];
  readonly #found: FoundProblems | undefined;

  /**
   * `path` is '' for the whole file. Undefined counts as an empty section. With `found`, each
   * problem is added there and a harmless value is read in its place; otherwise it is thrown.
   */
  constructor(value: unknown, path = '', found?: FoundProblems) {
    this.#path = path;
    this.#found = found;
    if (value !== undefined && !isRecord(value)) {
      const text = path === '' ? 'the file has to be a mapping' : 'has to be a mapping';
      throw new ConfigError({ key: path, text });
    }
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
    return this.#section(this.#take(key), key, read);
  }

  optionalSection<T>(key: string, read: (section: ConfigReader) => T): T | undefined {
    return this.#has(key) ? this.section(key, read) : undefined;
  }

  sections<T>(key: string, read: (section: ConfigReader) => T): readonly T[] {
    const value = this.#take(key) ?? [];
    if (!Array.isArray(value)) return this.refuse(key, 'has to be a list', []);
    return value.map((item, index) => this.#section(item, `${key}[${index}]`, read));
  }

  /** Refuses a key that may not stand here, or no longer, and says what to do instead. */
  withdrawn(key: string, instead: string): void {
    if (this.#has(key)) this.refuse(key, instead);
  }

  /**
   * Refuses the value of a key, for a check that no other method makes. `key` may go deeper, as in
   * `racks[0]`. The result is what to read in place of the value.
   */
  refuse(key: string, text: string): void;
  refuse<T>(key: string, text: string, instead: T): T;
  refuse<T>(key: string, text: string, instead?: T): T | undefined {
    const path = this.#at(key);
    const problem = { key: path, text };
    if (this.#found === undefined) throw new ConfigError(problem);
    // The value read in place of a wrong one may be wrong as well: the first problem is the true
    // one.
    if (!this.#found.has(path)) this.#found.set(path, problem);
    return instead;
  }

  /**
   * Whether a problem of this key was found, of a section around it or of something in it: then
   * what was read may not be what the file says, and is not compared with other values.
   */
  hasProblem(key: string): boolean {
    const path = this.#at(key);
    const paths = [...(this.#found?.keys() ?? [])];
    return paths.some((other) => isWithin(other, path) || isWithin(path, other));
  }

  /** Refuses every key that was not read, here and in the sections below. */
  end(): void {
    for (const key of Object.keys(this.#values)) {
      if (this.#asked.has(key)) continue;
      const near = nearestName(key, [...this.#asked]);
      const hint = near === undefined ? '' : `; did you mean ${near}?`;
      this.refuse(pathPart(key), `is no key of this configuration${hint}`);
    }
    for (const section of this.#sections) section.end();
  }

  #section<T>(value: unknown, key: string, read: (section: ConfigReader) => T): T {
    const path = this.#at(key);
    const usable = value === undefined || isRecord(value);
    if (!usable) this.refuse(key, 'has to be a mapping');
    // What is missing in something else than a mapping is not told as well.
    const found = usable ? this.#found : new Map();
    const section = new ConfigReader(usable ? value : undefined, path, found);
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
      return this.refuse(key, `is missing: give ${form}`, harmless);
    }
    const accepted = accept(value);
    return accepted ?? this.refuse(key, `has to be ${form}`, fallback ?? harmless);
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

/**
 * The key as a part of a path: in quotes if it could be taken for a longer path, or for none, or
 * has control characters, which would break the line of its problem.
 */
function pathPart(key: string): string {
  return /^[^."[\]\p{Cc}]+$/u.test(key) ? key : JSON.stringify(key);
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || path.startsWith(`${outer}.`) || path.startsWith(`${outer}[`);
}

/** The keys and indices of a path, from the outermost one. */
export function pathParts(path: string): readonly string[] {
  const parts = path.match(/"(?:[^"\\]|\\.)*"|[^."[\]]+/g) ?? [];
  return parts.map((part) => (part.startsWith('"') ? String(JSON.parse(part)) : part));
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

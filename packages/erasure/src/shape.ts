/**
 * Reads untrusted JSON into typed values, strictly: unknown and missing fields are errors that name
 * their path. Objects get their fields in the order of the shape, which makes the serialised form
 * canonical.
 */

/** A value that violates the format. */
export class ShapeError extends Error {
  /** Like `device.serial` or `deviceLog[3]`; empty for the whole document. */
  readonly path: string;

  constructor(path: string, message: string, options?: ErrorOptions) {
    super(path === '' ? message : `${path}: ${message}`, options);
    this.name = 'ShapeError';
    this.path = path;
  }
}

/** Reads one value or throws a `ShapeError`. */
export type Shape<T> = (value: unknown, path: string) => T;
export type ShapeOf<S> = S extends Shape<infer T> ? T : never;

export function text(charactersMax: number): Shape<string> {
  return (value, path) => {
    if (typeof value !== 'string') throw new ShapeError(path, `a text, not ${describe(value)}`);
    if (value.length > charactersMax) {
      throw new ShapeError(path, `${value.length} characters, at most ${charactersMax} allowed`);
    }
    return value;
  };
}

export function matching(pattern: RegExp, name: string): Shape<string> {
  return (value, path) => {
    if (typeof value === 'string' && pattern.test(value)) return value;
    throw new ShapeError(path, `${name}, not ${describe(value)}`);
  };
}

export const boolean: Shape<boolean> = (value, path) => {
  if (typeof value === 'boolean') return value;
  throw new ShapeError(path, `true or false, not ${describe(value)}`);
};

export const sha256Text = matching(/^[0-9a-f]{64}$/, 'a SHA-256 in lower-case hex');
export const base64Text = matching(
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  'base64',
);
export const timestamp = matching(
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  'a time like 2026-01-31T12:00:00.000Z',
);

export function integer(min = 0): Shape<number> {
  return (value, path) => {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value;
    throw new ShapeError(path, `a whole number of at least ${min}, not ${describe(value)}`);
  };
}

export function oneOf<const T extends readonly (string | null)[]>(allowed: T): Shape<T[number]> {
  return (value, path) => {
    const found = allowed.find((each) => each === value);
    if (found === undefined) {
      throw new ShapeError(path, `one of ${allowed.join(', ')}, not ${describe(value)}`);
    }
    return found;
  };
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value, path) => (value === null ? null : shape(value, path));
}

export function list<T>(of: Shape<T>, itemsMax: number): Shape<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw new ShapeError(path, `a list, not ${describe(value)}`);
    if (value.length > itemsMax) {
      throw new ShapeError(path, `${value.length} items, at most ${itemsMax} allowed`);
    }
    return value.map((item: unknown, index) => of(item, `${path}[${index}]`));
  };
}

/** Keys are sorted, so that one map has one form. */
export function textMap(
  entriesMax: number,
  charactersMax: number,
): Shape<Readonly<Record<string, string>>> {
  const read = text(charactersMax);
  return (value, path) => {
    const entries = Object.entries(asObject(value, path));
    if (entries.length > entriesMax) {
      throw new ShapeError(path, `${entries.length} entries, at most ${entriesMax} allowed`);
    }
    const sorted = entries.sort(([left], [right]) => (left < right ? -1 : 1));
    return Object.fromEntries(sorted.map(([key, each]) => [key, read(each, `${path}.${key}`)]));
  };
}

type Fields = Readonly<Record<string, Shape<unknown>>>;
type ShapedObject<F extends Fields> = { readonly [K in keyof F]: ShapeOf<F[K]> };

export function object<F extends Fields>(fields: F): Shape<ShapedObject<F>> {
  const shapes = Object.entries(fields);
  return (value, path) => {
    const source = asObject(value, path);
    const at = (key: string) => (path === '' ? key : `${path}.${key}`);
    for (const key of Object.keys(source)) {
      if (!Object.hasOwn(fields, key)) throw new ShapeError(at(key), 'no field of this format');
    }
    const shaped: Record<string, unknown> = {};
    for (const [key, shape] of shapes) {
      if (!Object.hasOwn(source, key)) throw new ShapeError(at(key), 'missing');
      shaped[key] = shape(source[key], at(key));
    }
    return shaped as ShapedObject<F>;
  };
}

/** A union, discriminated by its field `kind`. */
export function byKind<V extends Readonly<Record<string, Shape<unknown>>>>(
  variants: V,
): Shape<ShapeOf<V[keyof V]>> {
  return (value, path) => {
    const kind = asObject(value, path)['kind'];
    const variant =
      typeof kind === 'string' && Object.hasOwn(variants, kind) ? variants[kind] : undefined;
    if (variant === undefined) {
      const names = Object.keys(variants).join(', ');
      throw new ShapeError(`${path}.kind`, `one of ${names}, not ${describe(kind)}`);
    }
    return variant(value, path) as ShapeOf<V[keyof V]>;
  };
}

/** Parses UTF-8 JSON by a shape; throws nothing but `ShapeError`. */
export function parseJson<T>(bytes: Uint8Array, shape: Shape<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new ShapeError('', 'no JSON text', { cause });
  }
  return shape(value, '');
}

/** The one form in which a shaped value is written: indented by two, ended by a line feed. */
export function canonicalJson<T>(value: unknown, shape: Shape<T>): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(shape(value, ''), undefined, 2)}\n`);
}

/** Throws `ShapeError`, naming the first byte that differs from the one form of a value. */
export function mustBeCanonical<T>(bytes: Uint8Array, value: T, shape: Shape<T>): void {
  const canonical = canonicalJson(value, shape);
  if (Buffer.compare(bytes, canonical) === 0) return;
  const length = Math.max(bytes.length, canonical.length);
  let at = 0;
  while (at < length && bytes[at] === canonical[at]) at++;
  throw new ShapeError('', `not in canonical form from byte ${at} on`);
}

function asObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new ShapeError(path, `an object, not ${describe(value)}`);
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return value !== null && typeof value === 'object' ? 'an object' : JSON.stringify(value);
}

/**
 * Mutations of a JSON text that leave it JSON: a value of another type, deep nesting, long lists
 * and texts, keys that all objects inherit. A text of several lines that is no JSON as a whole has
 * JSON at the ends of its lines: one of them is changed.
 */
import type { Chance } from './target.ts';

/** What is put for a value, as JSON text. */
function oddValue(chance: Chance, tokens: readonly string[]): string {
  const all: readonly (() => string)[] = [
    () => 'null',
    () => 'true',
    () => '[]',
    () => '{}',
    () => '""',
    () => '[null]',
    () => ['0', '-1', '1.5', '1e400', '-0', '9007199254740993'][chance.below(6)] ?? '0',
    () => JSON.stringify(tokens[chance.below(Math.max(1, tokens.length))] ?? '/'),
    () => JSON.stringify('x'.repeat(1 << chance.below(15))),
    () => JSON.stringify('\u0000\ud800"\\\u2028\n'),
    () => `[${Array.from({ length: 1 << chance.below(11) }, () => '{}').join(',')}]`,
    () => `[${Array.from({ length: 1 << chance.below(11) }, (_, at) => at).join(',')}]`,
    () => nested(1 << chance.below(14), '[', ']', ''),
    () => nested(1 << chance.below(11), '{"a":', '}', '1'),
    () => '{"__proto__":{"polluted":1}}',
    () => '{"constructor":{"prototype":{"polluted":1}}}',
    () => '{"toString":1,"valueOf":2,"length":3}',
  ];
  return all[chance.below(all.length)]?.() ?? 'null';
}

function nested(depth: number, open: string, close: string, inner: string): string {
  return `${open.repeat(depth)}${inner}${close.repeat(depth)}`;
}

/** Where the values of a JSON text stand, keys left out. */
interface Span {
  readonly from: number;
  readonly to: number;
  /** The key before the value, where it stands in an object. */
  readonly key: Span | undefined;
}

const token = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

/** Every value of a text that is JSON, by one pass over its tokens. */
export function valueSpans(text: string): Span[] {
  const spans: Span[] = [];
  const open: { from: number; key: Span | undefined; isObject: boolean }[] = [];
  let key: Span | undefined;
  let pending: Span | undefined;
  for (const found of text.matchAll(token)) {
    const [word] = found;
    const from = found.index;
    const to = from + word.length;
    if (word === '{' || word === '[') {
      open.push({ from, key, isObject: word === '{' });
      key = undefined;
      pending = undefined;
    } else if (word === '}' || word === ']') {
      if (pending !== undefined) spans.push({ ...pending, key });
      const one = open.pop();
      if (one === undefined) return spans;
      spans.push({ from: one.from, to, key: one.key });
      key = undefined;
      pending = undefined;
    } else if (word === ':') {
      key = pending;
      pending = undefined;
    } else if (word === ',') {
      if (pending !== undefined) spans.push({ ...pending, key });
      key = undefined;
      pending = undefined;
    } else {
      pending = { from, to, key: undefined };
    }
  }
  if (pending !== undefined) spans.push(pending);
  return spans;
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');

/** Undefined: there is no value in it. The text is UTF-8, whose bytes are kept as they are. */
export function mutateJson(
  input: Uint8Array,
  chance: Chance,
  tokens: readonly Uint8Array[],
): Uint8Array | undefined {
  const whole = latin1(input);
  const [start, end] = segmentOf(whole, chance);
  const text = whole.slice(start, end);
  const spans = valueSpans(text);
  const span = spans[chance.below(Math.max(1, spans.length))];
  if (span === undefined) return undefined;
  const changed = change(text, span, spans, chance, tokens.map(latin1));
  // A copy: a Buffer is a view of memory that others share.
  return Uint8Array.from(Buffer.from(whole.slice(0, start) + changed + whole.slice(end), 'latin1'));
}

/** The whole text, or the JSON at the end of one of its lines. */
function segmentOf(whole: string, chance: Chance): [start: number, end: number] {
  if (/^\s*[[{"]/.test(whole)) return [0, whole.length];
  const lines = [...whole.matchAll(/[[{"].*$/gm)];
  const line = lines[chance.below(Math.max(1, lines.length))];
  return line === undefined ? [0, whole.length] : [line.index, line.index + line[0].length];
}

function change(
  text: string,
  span: Span,
  spans: readonly Span[],
  chance: Chance,
  tokens: readonly string[],
): string {
  const value = text.slice(span.from, span.to);
  const put = (by: string, at: Span = span): string =>
    text.slice(0, at.from) + by + text.slice(at.to);
  switch (chance.below(9)) {
    case 0: {
      const other = spans[chance.below(spans.length)] ?? span;
      return put(text.slice(other.from, other.to));
    }
    case 1:
      return put(`[${value}]`);
    case 2: {
      const times = 1 << chance.below(10);
      return value.length * times > 100_000 ? text : put(Array(times).fill(value).join(','));
    }
    case 3: {
      const names = ['__proto__', 'constructor', 'toString', '', ...tokens];
      const name = JSON.stringify(names[chance.below(names.length)]);
      return span.key === undefined ? put(`{${name}:${value}}`) : put(name, span.key);
    }
    case 4:
      return remove(text, span);
    case 5: {
      const number = value.replace(/\d+/, () => String(chance.below(2) * 2 ** chance.below(64)));
      return put(number);
    }
    default:
      return put(oddValue(chance, tokens));
  }
}

/** The value goes, with its key and one comma. */
function remove(text: string, { from, to, key }: Span): string {
  const before = text.slice(0, key?.from ?? from);
  const after = text.slice(to);
  if (/^\s*,/.test(after)) return before + after.replace(/^\s*,/, '');
  return before.replace(/,\s*$/, '') + after;
}

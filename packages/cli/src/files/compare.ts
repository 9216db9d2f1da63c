/** The differences between two plain values, in lines for a person; pure. */
import type { Plain } from './plain.ts';

/** Lines of a long text that are shown, each side. */
const textLinesMax = 20;
const charsMax = 120;

/** "spec.bmc.port: 623 → 624", one line each; of long texts the lines that differ. */
export function differences(
  before: Plain | undefined,
  after: Plain | undefined,
  path = '',
): string[] {
  if (isText(before, after)) return textLines(path, textOf(before), textOf(after));
  if (!isBranch(before) && !isBranch(after)) {
    return before === after ? [] : [`${path}: ${shown(before)} → ${shown(after)}`];
  }
  const [a, b] = [membersOf(before), membersOf(after)];
  const names = [...new Set([...a.keys(), ...b.keys()])];
  const lines = names.flatMap((name) => differences(a.get(name), b.get(name), below(path, name)));
  // An empty object was added or removed; for the whole object the action already says so.
  const cameOrWent = path !== '' && (before === undefined) !== (after === undefined);
  return lines.length > 0 || !cameOrWent ? lines : [`${path}: ${shown(before)} → ${shown(after)}`];
}

function textOf(value: Plain | undefined): string {
  return typeof value === 'string' ? value : '';
}

function below(path: string, name: string): string {
  if (path === '') return name;
  return /^[A-Za-z][A-Za-z0-9]*$/.test(name) ? `${path}.${name}` : `${path}[${name}]`;
}

function isBranch(value: Plain | undefined): boolean {
  return typeof value === 'object';
}

function membersOf(value: Plain | undefined): Map<string, Plain> {
  return new Map(typeof value === 'object' ? Object.entries(value) : []);
}

function isText(before: Plain | undefined, after: Plain | undefined): boolean {
  const texts = [before, after].filter((each) => each !== undefined);
  return (
    texts.every((each) => typeof each === 'string') && texts.some((each) => each.includes('\n'))
  );
}

/** The lines between the common beginning and the common end of both. */
function textLines(path: string, before: string, after: string): string[] {
  if (before === after) return [];
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  const room = Math.min(a.length, b.length) - start;
  while (end < room && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const side = (sign: string, lines: readonly string[]) => {
    const changed = lines.slice(start, lines.length - end);
    const more = changed.length - textLinesMax;
    const kept = changed.slice(0, textLinesMax).map((line) => `  ${sign} ${cut(line)}`);
    return more > 0 ? [...kept, `  ${sign} … ${more} more lines`] : kept;
  };
  return [`${path}, line ${start + 1}:`, ...side('-', a), ...side('+', b)];
}

function shown(value: Plain | undefined): string {
  if (value === undefined) return '(none)';
  return cut(typeof value === 'object' ? JSON.stringify(value) : String(value) || '""');
}

function cut(text: string): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}

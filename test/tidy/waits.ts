/**
 * Waits in tests: each ends by itself, and says what it waited for.
 *
 * T1 A loop that pauses has a bound: a time, a number of rounds, a throw, or an end that others
 *    tell it. Without one it goes on after its test has timed out.
 * T2 A poll compares what is there, or has a message: "expected false to be true" tells nothing.
 */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** `for (…; …; …)` with a condition counts its rounds. */
const loop = /\bwhile \(|\bfor \([^()]*;\s*;/g;
const pause = /\bawait (sleep|delay|pause|wait)\(|\b(setTimeout|setImmediate)\(/;
/** By what a loop ends: an error, a time, a number of rounds, or another's word. */
const bounds: readonly RegExp[] = [
  /\bthrow\b/,
  /\b(end|until|deadline|stop)(At|Time)?(Ms)?\b|Max\b/,
  /\b(round|tries|attempt)s? [<>]/,
  /\b(o|isO)ver\b|\baborted\b/,
];
const silentPoll = /\bexpect\s*\.poll\((?:(?!\bmessage\b|;)[\s\S])*?\)\s*\.toBe\((true|false)\)/g;

/** A person sees that they go on. */
const benchmarks = /^test\/bench\//;

/** Waits of test code that may never end (T1), or fail without a word (T2). */
export function findWaits(file: SourceFile): Finding[] {
  if (!isTestCode(file.path) || benchmarks.test(file.path)) return [];
  const code = codeOf(file.text);
  const find = (at: number, message: string): Finding => {
    return { path: file.path, line: code.slice(0, at).split('\n').length, message };
  };
  const endless = [...code.matchAll(loop)].filter(({ index }) => {
    const text = loopAt(code, index);
    return pause.test(text) && !bounds.some((bound) => bound.test(text));
  });
  return [
    ...endless.map(({ index }) => find(index, 'waits without end; poll with a time limit')),
    ...[...code.matchAll(silentPoll)].map(({ index }) =>
      find(index, 'fails without a word; poll what is compared, or give a message'),
    ),
  ];
}

/** The loop's head, and its statement or block. */
function loopAt(code: string, start: number): string {
  const head = closing(code, code.indexOf('(', start), '(', ')');
  const block = /^\)\s*\{/.exec(code.slice(head));
  const end =
    block === null ? code.indexOf(';', head) : closing(code, head + block[0].length - 1, '{', '}');
  return code.slice(start, end + 1);
}

/** Where what opens at `start` is closed. */
function closing(code: string, start: number, opens: string, closes: string): number {
  let depth = 0;
  for (let at = start; at < code.length; at += 1) {
    if (code[at] === opens) depth += 1;
    if (code[at] === closes) depth -= 1;
    if (depth === 0) return at;
  }
  return code.length;
}

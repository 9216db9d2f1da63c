/**
 * Product code drops an error only with a comment that gives the reason, on its lines or on the
 * line before. A reason has three words or more: the number of an invariant is none. These forms
 * drop an error:
 *
 * - `catch {…}`, and `catch (error) {}`;
 * - `.catch(() => undefined)`, or any other answer that never changes;
 * - `.then(…, () => undefined)`;
 * - `markHandled(…)` and `whenSettled(…)` of a call, as the promise has no other owner.
 */
import { codeOf, commentBlocksOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** Code for tests and demonstrations. */
const shows = /^packages\/(sim|demo)\//;

const block = /\bcatch\s*(?=\{)|\bcatch\s*\(\w+\)\s*(?=\{\s*\})/g;
const constant = /(?:undefined|null|false|true|\d+|'\s*'|"\s*"|`\s*`|\[\s*\]|\{\s*\}|\(\{\s*\}\))/;
const callback = new RegExp(
  `\\.catch\\(\\s*(?:async\\s*)?\\(\\)\\s*=>\\s*${constant.source}\\s*,?\\s*\\)`,
  'g',
);
const ofCall = /\b(?:markHandled|whenSettled)\((?=[^()]*\()/g;
const then = /\.then\(/g;
const lastArgument = new RegExp(`,\\s*\\(\\)\\s*=>\\s*${constant.source}\\s*,?\\s*$`);

/** Words that a reason has at least. */
const wordsMin = 3;

/** Places that drop an error without a reason beside them. */
export function findDroppedErrors(file: SourceFile): Finding[] {
  if (isTestCode(file.path) || shows.test(file.path)) return [];
  const code = codeOf(file.text);
  const reasons = commentBlocksOf(file.text).filter(({ text }) => wordsIn(text) >= wordsMin);
  const lineAt = (at: number): number => code.slice(0, at).split('\n').length;
  const isSaid = (from: number, to: number): boolean =>
    reasons.some(({ first, last }) => last >= lineAt(from) - 1 && first <= lineAt(to));
  return [...blocksIn(code), ...callbacksIn(code)]
    .filter(({ from, to }) => !isSaid(from, to))
    .map(({ at }) => {
      const message = 'drops an error; say why nothing is lost, check its kind, or log it';
      return { path: file.path, line: lineAt(at), message };
    });
}

function wordsIn(text: string): number {
  return text.match(/\p{L}[\p{L}\p{N}’'-]*/gu)?.length ?? 0;
}

interface Place {
  /** Where it is reported. */
  readonly at: number;
  /** Where a comment on it may stand. */
  readonly from: number;
  readonly to: number;
}

function blocksIn(code: string): Place[] {
  return [...code.matchAll(block)].map(({ 0: found, index }) => {
    return { at: index, from: index, to: closing(code, index + found.length) };
  });
}

function callbacksIn(code: string): Place[] {
  const caught = [...code.matchAll(callback)].map(({ 0: found, index }) => {
    return { at: index, from: statementStart(code, index), to: index + found.length };
  });
  const thens = [...code.matchAll(then)].flatMap(({ 0: found, index }) => {
    const end = closing(code, index + found.length - 1);
    if (!lastArgument.test(code.slice(index, end))) return [];
    return [{ at: end, from: statementStart(code, index), to: end }];
  });
  const calls = [...code.matchAll(ofCall)].map(({ 0: found, index }) => {
    const to = closing(code, index + found.length - 1);
    return { at: index, from: statementStart(code, index), to };
  });
  return [...caught, ...thens, ...calls];
}

/** The first character of the statement that `at` is in. */
function statementStart(code: string, at: number): number {
  const before = Math.max(...[';', '{', '}'].map((sign) => code.lastIndexOf(sign, at - 1)));
  const rest = code.slice(before + 1);
  return before + 1 + (rest.length - rest.trimStart().length);
}

/** Where what opens at `start` is closed. */
function closing(code: string, start: number): number {
  let depth = 0;
  for (let at = start; at < code.length; at += 1) {
    const sign = code[at] ?? '';
    if ('([{'.includes(sign)) depth += 1;
    if (')]}'.includes(sign)) depth -= 1;
    if (depth === 0) return at;
  }
  return code.length;
}

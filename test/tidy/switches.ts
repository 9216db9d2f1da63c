/**
 * A call `read(path, true)` does not say what is true. Our functions take an option with a name, or
 * are two functions. One argument alone is said by the function's name, as in `setBusy(true)`.
 */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** Functions of others, whose arguments nobody here can name: Node, Web Crypto, X.509, yaml. */
const foreign: ReadonlySet<string> = new Set([
  ...['setKeepAlive', 'sleep', 'compose', 'get'],
  ...['generateKey', 'importKey', 'BasicConstraintsExtension', 'KeyUsagesExtension'],
]);
/** Of a DataView: little-endian. */
const ofDataView = /^[gs]et(Big)?Uint\d+$/;
/** What is put or found under a key is a value, and no switch. */
const keyed: ReadonlySet<string> = new Set(['set', 'flagAt', 'dhcpQuiet']);

/**
 * Calls of production code in which `true` or `false` stands beside other arguments, and parameters
 * that invite such a call.
 */
export function findSwitches(file: SourceFile): Finding[] {
  if (isTestCode(file.path)) return [];
  const code = codeOf(file.text);
  return [...findLiterals(file, code), ...findDefaults(file, code)];
}

function findLiterals(file: SourceFile, code: string): Finding[] {
  const literals = [...code.matchAll(/(?<=[(,]\s*)\b(true|false)\b(?=\s*[,)])/g)];
  return literals.flatMap(({ index, 1: literal }) => {
    const call = callAround(code, index);
    if (call === undefined || call.isAlone || isExempt(call.name)) return [];
    const line = lineAt(code, index);
    const message = `${call.name}(…, ${literal}) does not say what is ${literal}; name an option`;
    return [{ path: file.path, line, message }];
  });
}

/** A parameter that has a switch's value when it is left out asks for such a call. */
function findDefaults({ path }: SourceFile, code: string): Finding[] {
  const defaults = [
    ...code.matchAll(/(?<=[(,]\s*)(\w+)(?:: boolean)? = (?:true|false)(?=\s*[,)])/g),
  ];
  return defaults.flatMap(({ index, 1: name }) => {
    if (code[openBracketBefore(code, index)] !== '(') return [];
    const message = `the parameter ${name} is a switch; name an option, or list its values`;
    return [{ path, line: lineAt(code, index), message }];
  });
}

function lineAt(code: string, at: number): number {
  return code.slice(0, at).split('\n').length;
}

function isExempt(name: string): boolean {
  return foreign.has(name) || ofDataView.test(name) || keyed.has(name);
}

interface Call {
  readonly name: string;
  /** Whether the literal is the only argument. */
  readonly isAlone: boolean;
}

/** The call among whose arguments this place is; undefined: it is in a list or an object. */
function callAround(code: string, at: number): Call | undefined {
  const open = openBracketBefore(code, at);
  if (code[open] !== '(') return undefined;
  const name = /([\w$]+)(<[^()]*>)?$/.exec(code.slice(Math.max(0, open - 200), open))?.[1];
  if (name === undefined) return undefined;
  const isFirst = code.slice(open + 1, at).trim() === '';
  const isLast = /^\w+\s*,?\s*\)/.test(code.slice(at, at + 200));
  return { name, isAlone: isFirst && isLast };
}

function openBracketBefore(code: string, at: number): number {
  let depth = 0;
  for (let index = at - 1; index >= 0; index--) {
    const char = code[index] ?? '';
    if (')]}'.includes(char)) depth += 1;
    if ('([{'.includes(char)) depth -= 1;
    if (depth < 0) return index;
  }
  return -1;
}

/**
 * A line of the log about something that was caught carries what was caught: its kind, its stack
 * and the chain of its causes. A text that is made of it drops all three.
 */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** `catch (error) {`, `catch {`, `.catch((error: unknown) =>`, `.catch(() =>`. */
const handlers =
  /\bcatch\s*(?:\((?<bound>\w+)\)\s*)?(?=\{)|\.catch\(\s*(?:async\s*)?\((?:(?<given>\w+)[^()]*)?\)\s*=>\s*/g;
const logCall = /\b(?:\w*log|#log)\.(?:debug|info|warn|error)\(/gi;

/** Lines that are logged where something was caught, and do not name it. */
export function findDroppedCauses(file: SourceFile): Finding[] {
  if (isTestCode(file.path)) return [];
  const code = codeOf(file.text);
  return [...code.matchAll(handlers)].flatMap(({ 0: found, index, groups }) => {
    const from = index + found.length;
    const name = groups?.['bound'] ?? groups?.['given'];
    const body = code.slice(from, endOf(code, from));
    return [...body.matchAll(logCall)].flatMap((call) => {
      const open = call.index + call[0].length - 1;
      const given = body.slice(open, endOf(body, open));
      if (name !== undefined && new RegExp(`,\\s*${name}\\s*,?\\s*\\)`).test(`${given})`))
        return [];
      const line = code.slice(0, from + call.index).split('\n').length;
      const message = `logs what was caught without it; give ${name ?? 'it'} as the last argument`;
      return [{ path: file.path, line, message }];
    });
  });
}

/** Where the block, list or expression that begins here is closed; the bracket is left out. */
function endOf(code: string, from: number): number {
  let depth = 0;
  for (let index = from; index < code.length; index++) {
    const char = code[index] ?? '';
    if ('([{'.includes(char)) depth += 1;
    if (')]}'.includes(char)) {
      depth -= 1;
      if (depth <= 0) return depth === 0 && !'([{'.includes(code[from] ?? '') ? index + 1 : index;
    }
  }
  return code.length;
}

/**
 * Ids have a kind (`packages/messages/src/ids.ts`), in generated messages and in our own code.
 *
 * I1 `typeIds` gives the fields of generated messages their kinds; `npm run gen` and the test of
 *    freshness both use it.
 * I2 `findPlainIds` finds what is called as such a field and is declared as any text.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding, SourceFile } from './sources.ts';

/** Kinds by the names of fields, whatever the message. */
const kinds: readonly (readonly [names: RegExp, kind: string])[] = [
  [/^(hostUid|\w+HostUid)s?$/, 'HostUid'],
  [/^(operationId|\w+OperationId)s?$/, 'OperationId'],
];

/** Kinds of fields whose names say nothing of them. */
const kindsOfFields: ReadonlyMap<string, string> = new Map([
  ['rackwright.v1.Host.uid', 'HostUid'],
  ['rackwright.agent.v1.Operation.id', 'OperationId'],
]);

const kindOf = (name: string): string | undefined => kinds.find(([names]) => names.test(name))?.[1];

/** Gives the ids in a folder of generated code their kinds (I1). */
export function typeIds(folder: string): void {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  for (const name of names.filter((each) => /^rackwright\/.*_pb\.ts$/.test(each))) {
    const path = join(folder, name);
    const depth = name.split('/').length;
    writeFileSync(path, typedCode(readFileSync(path, 'utf8'), depth));
  }
}

/** One generated file, `depth` names below the folder of the kinds. */
export function typedCode(text: string, depth: number): string {
  const used = new Set<string>();
  let message = '';
  const lines = text.split('\n').map((line) => {
    message = /^export type \w+ = Message<"([\w.]+)">/.exec(line)?.[1] ?? message;
    return line.replace(/^  (\w+)(\??): (string|bigint)(?=(\[\])?;$)/, (field, name, optional) => {
      const kind = kindsOfFields.get(`${message}.${name}`) ?? kindOf(name);
      if (kind === undefined) return field;
      used.add(kind);
      return `  ${name}${optional}: ${kind}`;
    });
  });
  if (used.size === 0) return text;
  const from = `${'../'.repeat(depth)}ids.ts`;
  lines.splice(3, 0, `import type { ${[...used].sort().join(', ')} } from "${from}";`);
  return lines.join('\n');
}

/** Names of ids that are declared as any text (I2). Tracing knows no messages, and none of them. */
export function findPlainIds({ path, text }: SourceFile): Finding[] {
  if (/^(packages\/trace|test\/tidy)\//.test(path)) return [];
  return text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/\b(\w+)\??: (?:readonly )?(?:string|bigint)\b/g)].flatMap(
      ([, name = '']) => {
        const kind = kindOf(name);
        if (kind === undefined) return [];
        return [{ path, line: index + 1, message: `${name} is any text; it is a ${kind}` }];
      },
    ),
  );
}

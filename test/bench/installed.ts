/** How the packages start a program: what is measured of it is measured under the same settings. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const units = join(import.meta.dirname, '../../packages/debian/files');

/** The arguments that its unit gives Node before the program. Throws for a unit that names none. */
export function installedArguments(name: 'agent' | 'controlplane'): string[] {
  const path = join(units, name, `rackwright-${name}.service`);
  const found = /^ExecStart=\S*\/node ([\s\S]*?)\S*\.mjs\b/m.exec(readFileSync(path, 'utf8'));
  const args = found?.[1]?.split(/[\s\\]+/).filter((each) => each !== '') ?? [];
  if (args.length === 0) throw new Error(`${path} gives Node no arguments`);
  return args;
}

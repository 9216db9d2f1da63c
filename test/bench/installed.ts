/** How the packages start a program: what is measured of it is measured under the same settings. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const units = join(import.meta.dirname, '../../packages/debian/files');

function unitOf(name: 'agent' | 'controlplane'): { readonly path: string; readonly text: string } {
  const path = join(units, name, `rackwright-${name}.service`);
  return { path, text: readFileSync(path, 'utf8') };
}

/** The settings of the C library's memory that its unit gives it; empty when it gives none. */
export function installedMemorySettings(name: 'agent' | 'controlplane'): Record<string, string> {
  const found = unitOf(name).text.matchAll(/^Environment=.*$/gm);
  const pairs = [...found].flatMap(([line]) => [...line.matchAll(/(MALLOC_\w+)=(\d+)/g)]);
  return Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value]));
}

/** The arguments that its unit gives Node before the program. Throws for a unit that names none. */
export function installedArguments(name: 'agent' | 'controlplane'): string[] {
  const { path, text } = unitOf(name);
  const found = /^ExecStart=\S*\/node ([\s\S]*?)\S*\.mjs\b/m.exec(text);
  const args = found?.[1]?.split(/[\s\\]+/).filter((each) => each !== '') ?? [];
  if (args.length === 0) throw new Error(`${path} gives Node no arguments`);
  return args;
}

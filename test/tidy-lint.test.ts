/** The linter's configuration bites: each rule that we rely on, on one planted line. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from './tidy/sources.ts';

const planted: Readonly<Record<string, string>> = {
  'no-floating-promises': 'export function a(b: () => Promise<void>): void {\n  b();\n}\n',
  'switch-exhaustiveness-check':
    "export function a(b: 'x' | 'y'): void {\n  switch (b) {\n    case 'x':\n      a(b);\n  }\n}\n",
  'no-explicit-any': 'export function a(b: any): void {\n  void b;\n}\n',
  'no-default-export': 'export default function a(): void {}\n',
  'no-non-null-assertion': 'export const a = (b?: string): number => b!.length;\n',
  'max-lines-per-function': `export function a(): void {\n${'  a();\n'.repeat(70)}}\n`,
  'no-misused-promises':
    'export function a(b: () => Promise<boolean>): void {\n  if (b()) a(b);\n}\n',
};

let folder = '';
let output = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lint-'));
  cpSync(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
  const compilerOptions = { strict: true, target: 'es2024', module: 'nodenext', types: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const [rule, text] of Object.entries(planted))
    writeFileSync(join(folder, `${rule}.ts`), text);
  const bin = join(root, 'node_modules', '.bin');
  const done = spawnSync(join(bin, 'oxlint'), ['--type-aware', '-f', 'unix', '.'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
  });
  output = `${done.stdout}${done.stderr}`;
});

afterAll(() => rmSync(folder, { recursive: true }));

test.each(Object.keys(planted))('the lint finds a violation of %s', (rule) => {
  const lines = output.split('\n').filter((line) => line.startsWith(`${rule}.ts`));
  expect(lines.join('\n')).toContain(`(${rule})`);
});

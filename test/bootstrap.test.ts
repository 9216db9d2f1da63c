import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

let clone = '';

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'bootstrap-'));
  mkdirSync(join(clone, 'test'));
  copyFileSync(join(import.meta.dirname, 'bootstrap.mjs'), join(clone, 'test', 'bootstrap.mjs'));
  lock('package-lock.json', '1.0.0');
});
afterEach(() => rmSync(clone, { recursive: true }));

function lock(path: string, version: string): void {
  const packages = {
    '': {},
    'node_modules/a': { version, integrity: 'sha512-a' },
    'node_modules/a-for-another-processor': { version, optional: true },
  };
  writeFileSync(join(clone, path), JSON.stringify({ packages }));
}

/** Puts a program under a name where the bootstrap looks for the pinned ones. */
function program(path: string, script: string): void {
  mkdirSync(join(clone, 'node_modules', '.bin'), { recursive: true });
  writeFileSync(join(clone, path), script);
  chmodSync(join(clone, path), 0o755);
}

function installed(version: string): void {
  program('node_modules/.bin/node', '#!/bin/sh\necho "pinned node: $*"\nexit ${CODE:-0}\n');
  lock('node_modules/.package-lock.json', version);
  const hidden = JSON.parse(readFileSync(join(clone, 'node_modules/.package-lock.json'), 'utf8'));
  delete hidden.packages['node_modules/a-for-another-processor'];
  writeFileSync(join(clone, 'node_modules/.package-lock.json'), JSON.stringify(hidden));
}

function bootstrap(args: string[], environment: Record<string, string> = {}) {
  const done = spawnSync(process.execPath, [join(clone, 'test', 'bootstrap.mjs'), ...args], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], npm_execpath: join(clone, 'npm.cjs'), ...environment },
  });
  return { code: done.status, output: `${done.stdout}${done.stderr}` };
}

test('the bootstrap lists its commands when it is given an unknown one', () => {
  const { code, output } = bootstrap(['nonsense']);
  expect(code).toBe(1);
  expect(output).toContain('test, check, gen, format, lock, peers, lab, sim');
});

test('the bootstrap refuses an argument that a command would not read', () => {
  installed('1.0.0');
  const { code, output } = bootstrap(['format', '--check']);
  expect(code).toBe(1);
  expect(output).toBe('npm run format does not know "--check": it takes no arguments.\n');
  expect(bootstrap(['gen', '--release']).output).toContain('it takes --released.');
  expect(bootstrap(['check', '--no-tests', 'a.test.ts']).output).toBe(
    'npm run check does not know "a.test.ts": it takes --no-tests.\n',
  );
});

test('the bootstrap runs a program with the pinned Node, its arguments and its exit code', () => {
  installed('1.0.0');
  const { code, output } = bootstrap(['sim', '--seed', '7'], { CODE: '3' });
  expect(output).toBe('pinned node: test/sim/main.ts --seed 7\n');
  expect(code).toBe(3);
});

test('the bootstrap answers 128 plus the signal for a program that was killed', () => {
  installed('1.0.0');
  program('node_modules/.bin/node', '#!/bin/sh\nkill -9 $$\n');
  expect(bootstrap(['sim']).code).toBe(137);
});

test('the bootstrap installs when what is installed differs from the lock file', () => {
  installed('0.9.0');
  program(
    'npm.cjs',
    "require('fs').copyFileSync('package-lock.json', 'node_modules/.package-lock.json');\n" +
      "console.log('npm', process.argv.slice(2).join(' '));",
  );
  const { code, output } = bootstrap(['sim']);
  expect(output).toContain('npm ci ');
  expect(output).toContain('pinned node: test/sim/main.ts');
  expect(code).toBe(0);
});

test('the bootstrap says that the registry cannot be reached, and runs nothing', () => {
  program('npm.cjs', "console.error('npm error code ECONNREFUSED'); process.exit(1);");
  const { code, output } = bootstrap(['sim']);
  expect(code).toBe(1);
  expect(output).toContain('The npm registry cannot be reached');
  expect(output).not.toContain('pinned node');
});

test('the bootstrap stops when npm left the wrong versions behind', () => {
  installed('0.9.0');
  program('npm.cjs', '');
  const { code, output } = bootstrap(['sim']);
  expect(code).toBe(1);
  expect(output).toContain('still differs from package-lock.json');
});

test('a check stops at the stage that failed, and shows its output', () => {
  installed('1.0.0');
  for (const tool of ['biome', 'oxlint', 'buf', 'vitest']) {
    program(`node_modules/.bin/${tool}`, `#!/bin/sh\ntouch ran-${tool}\n`);
  }
  mkdirSync(join(clone, 'proto'));
  program('node_modules/.bin/tsc', '#!/bin/sh\necho "a.ts(1,1): error"\nexit 2\n');
  const { code, output } = bootstrap(['check']);
  expect(code).toBe(2);
  expect(output).toContain('a.ts(1,1): error');
  expect(output).toMatch(/^ok +lint/m);
  expect(output).toMatch(/^FAILED +types/m);
  expect(existsSync(join(clone, 'ran-oxlint'))).toBe(true);
  expect(existsSync(join(clone, 'ran-vitest'))).toBe(false);
});

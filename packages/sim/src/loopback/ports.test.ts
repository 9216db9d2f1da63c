import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { freePorts } from './ports.ts';

const run = promisify(execFile);

test('gives no port twice, in this process and in others that ask at the same time', async () => {
  const module = join(import.meta.dirname, 'ports.ts');
  const ask = `import { freePorts } from '${module}'; console.log(...(await freePorts(40)));`;
  const others = Array.from({ length: 4 }, () =>
    run(process.execPath, ['--input-type=module', '--eval', ask]),
  );
  const own = await Promise.all([freePorts(3), freePorts(20)]);
  const theirs = (await Promise.all(others)).flatMap(({ stdout }) => stdout.trim().split(' '));
  const all = [...own.flat(), ...theirs.map(Number)];
  expect(all).toHaveLength(3 + 20 + 4 * 40);
  expect(new Set(all).size).toBe(all.length);
  expect(Math.min(...all)).toBeGreaterThanOrEqual(12_000);
  expect(Math.max(...all)).toBeLessThan(32_768);
});

test('passes over a port on which somebody listens', async () => {
  const [first = 0] = await freePorts(1);
  const server = createServer().listen(first + 1, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    expect(await freePorts(1)).not.toContain(first + 1);
  } finally {
    server.close();
  }
});

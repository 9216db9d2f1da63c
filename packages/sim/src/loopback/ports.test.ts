import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePorts } from './ports.ts';

test('no port is given twice, in this process or others that ask at the same time', async () => {
  const module = join(import.meta.dirname, 'ports.ts');
  // Ports belong to a process until it ends: each waits until all have theirs.
  const ask =
    `import { freePorts } from '${module}'; console.log(...(await freePorts(40)));` +
    'process.stdin.resume();';
  const others = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '--eval', ask], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  );
  const own = await Promise.all([freePorts(3), freePorts(20)]);
  const lines = await Promise.all(others.map(async ({ stdout }) => once(stdout, 'data')));
  const theirs = lines.flatMap(([line]) => String(line).trim().split(' '));
  for (const { stdin } of others) stdin.end();
  const all = [...own.flat(), ...theirs.map(Number)];
  expect(all).toHaveLength(3 + 20 + 4 * 40);
  expect(new Set(all).size).toBe(all.length);
  expect(Math.min(...all)).toBeGreaterThanOrEqual(12_000);
  expect(Math.max(...all)).toBeLessThan(32_768);
});

test('the allocator passes over a port on which somebody listens', async () => {
  const [first = 0] = await freePorts(1);
  const server = createServer().listen(first + 1, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    expect(await freePorts(1)).not.toContain(first + 1);
  } finally {
    server.close();
  }
});

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Log } from '../log.ts';
import { type LogLevel, logTextUnitsMax, nodeLog } from './log.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'log-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function linesOf(level: LogLevel, write: (log: Log) => void): Record<string, unknown>[] {
  const path = join(folder, 'lines');
  const fd = openSync(path, 'w');
  write(nodeLog(level, fd));
  closeSync(fd);
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line): Record<string, unknown> => JSON.parse(line));
}

test('writes one JSON object per line with level, time, fields and message', () => {
  const lines = linesOf('info', (log) => log.info({ host: 'h1', attempt: 2 }, 'step began\nnow'));
  expect(lines).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      host: 'h1',
      attempt: 2,
      message: 'step began\nnow',
    },
  ]);
});

test('carries the fields of a child log on its lines only', () => {
  const lines = linesOf('info', (log) => {
    log.child({ host: 'h1' }).warn({ operation: 'o1' }, 'first');
    log.error({}, 'second');
  });
  expect(lines[0]).toMatchObject({ level: 'warn', host: 'h1', operation: 'o1' });
  expect(lines[1]).toMatchObject({ level: 'error', message: 'second' });
  expect(lines[1]).not.toHaveProperty('host');
});

test('drops lines below its level', () => {
  const lines = linesOf('info', (log) => log.debug({}, 'too fine'));
  expect(lines).toEqual([]);
});

test('cuts long texts and says so', () => {
  const long = 'x'.repeat(logTextUnitsMax + 1);
  const lines = linesOf('info', (log) => log.child({ a: long }).info({ b: long }, long));
  for (const name of ['a', 'b', 'message']) {
    expect(lines[0]?.[name]).toBe(
      `${'x'.repeat(logTextUnitsMax)}… [cut, ${logTextUnitsMax + 1} in all]`,
    );
  }
});

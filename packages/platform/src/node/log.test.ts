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

test('a line of the log is one JSON object with level, time, fields and message', () => {
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

test('the log carries the fields of a child log on its lines only', () => {
  const lines = linesOf('info', (log) => {
    log.child({ host: 'h1' }).warn({ operation: 'o1' }, 'first');
    log.error({}, 'second');
  });
  expect(lines[0]).toMatchObject({ level: 'warn', host: 'h1', operation: 'o1' });
  expect(lines[1]).toMatchObject({ level: 'error', message: 'second' });
  expect(lines[1]).not.toHaveProperty('host');
});

test('the log keeps the kind, code, stack and causes of what was caught', () => {
  const cause = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' });
  const caught = new TypeError('no answer', { cause });
  const [line] = linesOf('info', (log) => log.warn({ host: 'h1' }, 'tried again', caught));
  expect(line).toMatchObject({
    host: 'h1',
    message: 'tried again',
    error: {
      kind: 'TypeError',
      message: 'no answer',
      stack: expect.stringContaining('log.test.ts'),
      cause: { kind: 'Error', message: 'connect refused', code: 'ECONNREFUSED' },
    },
  });
});

test('the log accepts any thrown value, and an endless chain of causes', () => {
  const endless = new Error('again');
  endless.cause = endless;
  const textless = {
    toString() {
      throw new Error('no text');
    },
  };
  const lines = linesOf('info', (log) => {
    log.error({}, 'a text', 'plain words');
    log.error({}, 'an object', textless);
    log.error({}, 'a circle', endless);
    log.error({}, 'nothing', undefined);
  });
  expect(lines[0]).toMatchObject({ error: { kind: 'string', message: 'plain words' } });
  expect(lines[1]).toMatchObject({
    error: { kind: 'object', message: 'no text can be made of it' },
  });
  expect(JSON.stringify(lines[2]).match(/"kind"/g)).toHaveLength(9);
  expect(lines[3]).not.toHaveProperty('error');
});

test('the log drops lines below its level', () => {
  const lines = linesOf('info', (log) => log.debug({}, 'too fine'));
  expect(lines).toEqual([]);
});

test('the log cuts long texts and says so', () => {
  const long = 'x'.repeat(logTextUnitsMax + 1);
  const lines = linesOf('info', (log) => log.child({ a: long }).info({ b: long }, long));
  for (const name of ['a', 'b', 'message']) {
    expect(lines[0]?.[name]).toBe(
      `${'x'.repeat(logTextUnitsMax)}… [cut, ${logTextUnitsMax + 1} in all]`,
    );
  }
});

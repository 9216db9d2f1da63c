import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
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

describe('the log into a pipe that does not block', () => {
  const openPipe = () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    return { path, reader, writer };
  };

  test('waits for room, and loses no line', async () => {
    const { path, reader, writer } = openPipe();
    const script = 'sleep 0.2; exec cat "$1" > "$2"';
    const read = join(folder, 'read');
    const late = spawn('sh', ['-c', script, 'sh', path, read], { stdio: 'ignore' });
    const ended = once(late, 'exit');
    const log = nodeLog('info', writer);
    // Several times what a pipe holds.
    for (let line = 0; line < 100; line += 1) log.info({ line, text: 'ä'.repeat(2_000) }, 'long');
    closeSync(writer);
    closeSync(reader);
    await ended;
    const lines = readFileSync(read, 'utf8').trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).line)).toEqual([...Array(100).keys()]);
  });

  test('goes on without a reader', () => {
    const { reader, writer } = openPipe();
    closeSync(reader);
    const log = nodeLog('info', writer);
    log.info({}, 'unread');
    log.info({}, 'unread again');
    closeSync(writer);
  });
});

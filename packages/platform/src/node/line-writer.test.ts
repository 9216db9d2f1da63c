import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lineWriter } from './line-writer.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lines-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Longer than what a pipe takes whole or not at all. */
const lineOf = (line: number) => `${JSON.stringify({ line, text: 'ä'.repeat(3_000) })}\n`;

describe('lines into a pipe that does not block', () => {
  const openPipe = () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    return { path, reader, writer };
  };

  /** All that the pipe holds now. */
  const drain = (reader: number): string => {
    const pieces: Buffer[] = [];
    const piece = Buffer.alloc(65_536);
    try {
      for (;;) pieces.push(Buffer.from(piece.subarray(0, readSync(reader, piece))));
    } catch (cause) {
      expect(cause).toMatchObject({ code: 'EAGAIN' });
    }
    return Buffer.concat(pieces).toString();
  };

  test('wait for room, and none is lost', async () => {
    const { path, reader, writer } = openPipe();
    const script = 'sleep 0.2; exec cat "$1" > "$2"';
    const read = join(folder, 'read');
    const late = spawn('sh', ['-c', script, 'sh', path, read], { stdio: 'ignore' });
    const ended = once(late, 'exit');
    const write = lineWriter(writer);
    // Several times what a pipe holds.
    for (let line = 0; line < 100; line += 1) write(lineOf(line));
    closeSync(writer);
    closeSync(reader);
    await ended;
    const lines = readFileSync(read, 'utf8').trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).line)).toEqual([...Array(100).keys()]);
  });

  test('are lost while a reader does not read, and counted for it later', () => {
    const { reader, writer } = openPipe();
    const write = lineWriter(writer, 50);
    for (let line = 0; line < 100; line += 1) write(lineOf(line));
    const early = drain(reader).split('\n');
    write(lineOf(100));
    write(lineOf(101));
    const [endOfTorn, ...late] = drain(reader).trimEnd().split('\n');
    closeSync(writer);
    closeSync(reader);
    // What is written after a part of a line stands on a line of its own.
    expect(endOfTorn).toBe('');
    const whole = early.slice(0, -1).map((line) => JSON.parse(line).line);
    expect(whole).toEqual([...Array(whole.length).keys()]);
    expect(late.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', lost: 100 - whole.length },
      { line: 100 },
      { line: 101 },
    ]);
  });

  test('are dropped without a reader', () => {
    const { reader, writer } = openPipe();
    closeSync(reader);
    const write = lineWriter(writer);
    write(lineOf(0));
    write(lineOf(1));
    closeSync(writer);
  });
});

test('lines onto a full disk are dropped', () => {
  const full = openSync('/dev/full', 'w');
  const write = lineWriter(full);
  write(lineOf(0));
  write(lineOf(1));
  closeSync(full);
});

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { isZeroWrite, readBlockLog, touchedBytes } from './blocklog.ts';

const DEVICE_BYTES = 8 * 1024 * 1024;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-blocklog-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Lets QEMU itself write a log: the commands go through its own block layer. */
function logOf(context: TestContext, commands: readonly string[]): string {
  if (spawnSync('qemu-io', ['--version']).status !== 0) {
    context.skip('peer missing: qemu-io (qemu-utils): run npm run peers');
  }
  const [disk, log] = [join(folder, 'disk'), join(folder, 'log')];
  writeFileSync(disk, '');
  truncateSync(disk, DEVICE_BYTES);
  writeFileSync(log, '');
  const chain =
    'driver=blklogwrites,discard=unmap,file.driver=raw,file.discard=unmap,file.file.driver=file,' +
    `file.file.discard=unmap,file.file.filename=${disk},log.driver=file,log.filename=${log},` +
    'log-super-update-interval=1';
  const done = spawnSync('qemu-io', ['--image-opts', chain], {
    input: `${commands.join('\n')}\n`,
    encoding: 'utf8',
  });
  expect(done.stderr).toBe('');
  return log;
}

test('writes, zeroings, discards and flushes come back in the order of QEMU', (context) => {
  const log = logOf(context, [
    'write -P 0xaa 8192 4096',
    'flush',
    'write -z 65536 1M',
    'write -P 0xbb 4096 512',
    'discard 0 1M',
  ]);
  const entries = readBlockLog(log, DEVICE_BYTES);
  const steps = entries.filter((entry) => entry.kind !== 'flush');
  expect(steps.map((entry) => [entry.kind, entry.offset, entry.length])).toEqual([
    ['write', 8192, 4096],
    ['write', 65536, 1048576],
    ['write', 4096, 512],
    ['discard', 0, 1048576],
  ]);
  expect(entries[1]).toEqual({ kind: 'flush' });
  const writes = steps.filter((entry) => entry.kind === 'write');
  expect(writes.map((entry) => isZeroWrite(log, entry))).toEqual([false, true, false]);
  const first = writes[0]?.dataAt ?? 0;
  expect(readFileSync(log).subarray(first, first + 4096)).toEqual(Buffer.alloc(4096, 0xaa));
});

test('touched bytes count overlaps once and keep the kinds apart', (context) => {
  const log = logOf(context, ['write 0 8192', 'write 4096 8192', 'discard 1M 4M', 'discard 2M 1M']);
  const entries = readBlockLog(log, DEVICE_BYTES);
  expect(touchedBytes(entries, ['write'], DEVICE_BYTES)).toBe(12288);
  expect(touchedBytes(entries, ['discard'], DEVICE_BYTES)).toBe(4 * 1024 * 1024);
});

test('a log cut at any place gives only whole entries', (context) => {
  const log = logOf(context, ['write 0 512', 'write 512 512', 'discard 4096 4096']);
  const whole = readBlockLog(log, DEVICE_BYTES);
  const bytes = readFileSync(log);
  for (let length = 0; length < bytes.length; length += 64) {
    writeFileSync(log, bytes.subarray(0, length));
    const part = readBlockLog(log, DEVICE_BYTES);
    expect(part).toEqual(whole.slice(0, part.length));
  }
});

test('a file that is no log, and a log that makes no sense, are refused', (context) => {
  const log = logOf(context, ['write 0 512']);
  expect(() => readBlockLog(log, 0)).toThrow('beyond the device');
  writeFileSync(log, Buffer.alloc(4096, 1));
  expect(() => readBlockLog(log, DEVICE_BYTES)).toThrow('is no block log');
});

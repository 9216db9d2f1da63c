import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { firstDifference, firstSectorCameLast, rebuildDisk } from './written-disk.ts';

const DEVICE_BYTES = 4 * 1024 * 1024;
const MIB = 1024 * 1024;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-written-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Lets QEMU itself do these things to the disk and write the log of them. */
function logOf(context: TestContext, name: string, commands: readonly string[]): string {
  if (spawnSync('qemu-io', ['--version']).status !== 0) {
    context.skip('peer missing: qemu-io (qemu-utils): run npm run peers');
  }
  const [disk, log] = [join(folder, 'disk'), join(folder, name)];
  writeFileSync(disk, '', { flag: 'a' });
  truncateSync(disk, DEVICE_BYTES);
  writeFileSync(log, '');
  const chain =
    'driver=blklogwrites,discard=unmap,file.driver=raw,file.discard=unmap,file.file.driver=file,' +
    `file.file.discard=unmap,file.file.filename=${disk},log.driver=file,log.filename=${log},` +
    'log-super-update-interval=1';
  const input = `${commands.join('\n')}\n`;
  const done = spawnSync('qemu-io', ['--image-opts', chain], { input, encoding: 'utf8' });
  expect(done.stderr).toBe('');
  return log;
}

test('the disk that its logs tell of is the disk, and differs where it was changed', (context) => {
  const logs = [
    logOf(context, 'first', ['write -P 0xaa 0 2M', 'write -P 0xbb 512 1024', 'discard 65536 64k']),
    logOf(context, 'second', ['write -P 0xcc 1M 4096', 'write -z 4096 4096']),
  ];
  const [disk, rebuilt] = [join(folder, 'disk'), join(folder, 'rebuilt')];
  rebuildDisk(logs, DEVICE_BYTES, rebuilt);
  expect(readFileSync(rebuilt).equals(readFileSync(disk))).toBe(true);
  expect(firstDifference(disk, rebuilt, DEVICE_BYTES, [])).toBeUndefined();
  rebuildDisk(logs.slice(0, 1), DEVICE_BYTES, rebuilt);
  expect(firstDifference(disk, rebuilt, DEVICE_BYTES, [])).toBe(4096);
  const zeroed = { from: 4096, to: 8192 };
  expect(firstDifference(disk, rebuilt, DEVICE_BYTES, [zeroed])).toBe(MIB);
  expect(firstDifference(disk, rebuilt, MIB, [zeroed])).toBeUndefined();
});

test('a first sector that came before the rest is told from one that came last', (context) => {
  const [wipe, rest] = ['write -P 0 0 4096', 'write -P 1 1M 1M'];
  const table = 'write -P 2 0 4096';
  const last = logOf(context, 'last', [wipe, rest, table]);
  expect(firstSectorCameLast(last, DEVICE_BYTES)).toBe(true);
  const early = logOf(context, 'early', [wipe, table, rest]);
  expect(firstSectorCameLast(early, DEVICE_BYTES)).toBe(false);
  expect(firstSectorCameLast(logOf(context, 'none', [wipe, rest]), DEVICE_BYTES)).toBe(false);
});

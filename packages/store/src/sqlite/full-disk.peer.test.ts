/** Q2 on a file system that really is full: a small tmpfs, which needs root. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { asWriteId, VALUE_BYTES_MAX } from '../contract.ts';
import { openSqliteStore } from './store.ts';

let folder = '';

beforeEach(async (context) => {
  if (process.getuid?.() !== 0) context.skip('not root');
  folder = await mkdtemp(join(tmpdir(), 'rackwright-store-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'rackwright', folder]);
  } catch {
    await rm(folder, { recursive: true });
    context.skip('this machine does not let root mount a file system');
  }
});

afterEach(async () => {
  if (folder === '') return;
  execFileSync('umount', [folder]);
  await rm(folder, { recursive: true });
  folder = '';
});

test('a write on a full disk is unknown; the store loses nothing, and goes on later', async () => {
  const ballast = join(folder, 'ballast');
  await writeFile(ballast, new Uint8Array(400 * 1024));
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    random: nodeRandom(),
    clock: nodeClock(),
  });
  expect(store.survivesPowerLoss).toBe('no');
  const large = new Uint8Array(VALUE_BYTES_MAX).fill(7);
  const kept = await store.put('hosts.a', bytes('one'), 'absent');
  const tooMuch = [1, 2, 3, 4].map((at) =>
    store.put(`hosts.large${at}`, large, 'absent', asWriteId(`w-${at}`)),
  );
  const [full] = await Promise.all(tooMuch);
  expect(full).toMatchObject({ kind: 'unknown', writeId: 'w-1' });
  expect(await store.get('hosts.a')).toMatchObject({ kind: 'found', ...revisionIn(kept) });
  expect((await store.get('hosts.large1')).kind).toBe('absent');

  await rm(ballast);
  expect((await store.put('hosts.large1', large, 'absent', asWriteId('w-1'))).kind).toBe('ok');
  expect((await store.get('hosts.large1')).kind).toBe('found');
  await store.close();
});

function revisionIn(result: { kind: string; revision?: number }): { revision: number } {
  return { revision: result.revision ?? 0 };
}

/** Checks the revision, then overwrites the value that is there by then: nats-server 2.9 at R3. */
import type {
  ExpectedRevision,
  GetResult,
  StateStore,
  WriteId,
  WriteResult,
} from '../../contract.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

function fits(current: GetResult, expected: ExpectedRevision): boolean {
  return expected === 'absent' ? current.kind === 'absent' : current.revision === expected;
}

async function checkThenWrite(
  good: StateStore,
  key: string,
  value: Uint8Array,
  expected: ExpectedRevision,
  writeId?: WriteId,
): Promise<WriteResult> {
  const current = await good.get(key);
  if (!fits(current, expected)) return good.put(key, value, expected, writeId);
  for (;;) {
    const now = await good.get(key);
    const result = await good.put(key, value, now.revision ?? 'absent', writeId);
    if (result.kind !== 'conflict') return result;
  }
}

export const twoWinners: BrokenStore = {
  name: 'two winners',
  caughtBy: 'lets at most one of two writers win each race for a revision',
  message: /has 2 winners/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          put: (key, value, expected, writeId) =>
            checkThenWrite(good, key, Uint8Array.from(value), expected, writeId),
        }),
    );
  },
};

import type { Clock, Disk, FileStat } from '@rackwright/platform';
import { afterMicrotasks, quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { type FoundFile, KeptFiles } from './kept-files.ts';

/** Files by path; time passes by hand. */
function keeper(bytesMax: number, contents: Record<string, string>) {
  let nowMs = 0;
  const timers = new Set<{ readonly atMs: number; run(): void }>();
  const reads: string[] = [];
  const stat = async (path: string): Promise<FileStat | undefined> => {
    const found = contents[path];
    if (found === undefined) return undefined;
    return { sizeBytes: found.length, mode: 0o600, isOurs: true, version: found };
  };
  const disk = {
    stat,
    read: async (path: string) => {
      reads.push(path);
      const found = contents[path];
      return found === undefined ? undefined : Buffer.from(found);
    },
  } as Partial<Disk> as Disk;
  const clock: Clock = {
    nowMs: () => nowMs,
    suspendAwareMs: () => nowMs,
    after: (delayMs, run) => {
      const timer = { atMs: nowMs + delayMs, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  const files = new KeptFiles({ disk, clock, log: quietLog, bytesMax });
  const pass = (ms: number): void => {
    nowMs += ms;
    for (const timer of [...timers]) {
      if (timer.atMs > nowMs) continue;
      timers.delete(timer);
      timer.run();
    }
  };
  /** Like a client: asks again after the read that its first request caused. */
  const ask = async (path: string): Promise<FoundFile> => {
    const first = files.find(path);
    if (first.kind !== 'later') return first;
    await afterMicrotasks(10);
    return files.find(path);
  };
  return { files, pass, ask, reads, contents };
}

function textOf(found: FoundFile): string {
  return found.kind === 'kept' ? Buffer.from(found.bytes).toString() : found.kind;
}

test('the first caller gets no answer, and finds the file when it asks again', async () => {
  const { files, ask, reads } = keeper(100, { kernel: 'a kernel' });
  expect(files.find('kernel').kind).toBe('later');
  expect(textOf(await ask('kernel'))).toBe('a kernel');
  expect(textOf(files.find('kernel'))).toBe('a kernel');
  expect(reads).toEqual(['kernel']);
});

test('a client that asks again after 5 s finds a file that is in memory', async () => {
  const { files, ask, pass } = keeper(100, { kernel: 'a kernel' });
  await ask('kernel');
  pass(20_000);
  expect(files.find('kernel').kind).toBe('later');
  await afterMicrotasks(10);
  pass(5_001);
  expect(textOf(files.find('kernel'))).toBe('a kernel');
});

test('another file under the same name is read again by the next boot', async () => {
  const { ask, pass, reads, contents } = keeper(100, { kernel: 'old' });
  const old = await ask('kernel');
  contents['kernel'] = 'new one';
  pass(16_000);
  expect(textOf(await ask('kernel'))).toBe('new one');
  expect(textOf(old)).toBe('old');
  expect(reads).toEqual(['kernel', 'kernel']);
});

test('the limit holds for all together, those under transfer included', async () => {
  const { ask } = keeper(10, { one: '12345678', two: 'abcdef', large: '12345678901' });
  const one = await ask('one');
  expect((await ask('two')).kind).toBe('later');
  if (one.kind === 'kept') one.giveBack();
  await ask('two');
  expect(textOf(await ask('two'))).toBe('abcdef');
  expect((await ask('large')).kind).toBe('tooLarge');
  expect((await ask('none')).kind).toBe('missing');
});

test('a file is given back a while after its last transfer, and not during one', async () => {
  const { ask, pass, reads } = keeper(100, { one: '1', two: '2' });
  const one = await ask('one');
  if (one.kind === 'kept') one.giveBack();
  await ask('two');
  pass(61_000);
  expect((await ask('one')).kind).toBe('kept');
  expect((await ask('two')).kind).toBe('kept');
  expect(reads).toEqual(['one', 'two', 'one']);
});

test('a file that appears later is found by who asks later', async () => {
  const { ask, contents } = keeper(100, {});
  expect((await ask('kernel')).kind).toBe('missing');
  contents['kernel'] = 'here';
  await ask('kernel');
  expect(textOf(await ask('kernel'))).toBe('here');
});

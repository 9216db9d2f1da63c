/** What a step tells on its way, and which of several failures names its end. */
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { DeviceError } from '../machine/block-devices.ts';
import {
  addDisk,
  clock,
  heldAs,
  messageOf,
  mib,
  nvme,
  regionsAs,
  run,
  useFolder,
} from './erase.fixture.ts';
import { bytesToWrite } from './method.ts';

useFolder();

test('progress is reported at the start, at the first transfer, then once a second', async () => {
  addDisk('sda', { discardSupported: false }, undefined, 64 * mib);
  let nowMs = 0;
  const told: { readonly atMs: number; readonly percent: number }[] = [];
  const slow = { ...clock, nowMs: () => nowMs };
  // It lies, so that its reading ends at once.
  const devices = heldAs((held) =>
    regionsAs(held, () => ({
      writeZeros: async () => {
        nowMs += 700;
      },
    })),
  );
  const progress = (percent: number, text: string): void => {
    if (text.includes('overwrite')) told.push({ atMs: nowMs, percent });
  };
  await run({ context: { devices, clock: slow, reportProgress: progress } });
  const [start, ...later] = told;
  expect(start).toEqual({ atMs: 0, percent: 0 });
  expect(later.length).toBeGreaterThan(2);
  const gapsMs = later.slice(1).map(({ atMs }, index) => atMs - (later[index]?.atMs ?? 0));
  expect(Math.min(...gapsMs)).toBeGreaterThanOrEqual(1_000);
  expect(later.at(-1)?.percent).toBeGreaterThan(later[0]?.percent ?? 100);
});

test('an erasure that takes hours inside the disk is announced before it begins', async () => {
  addDisk('nvme0', nvme);
  const told: string[] = [];
  let toldBefore: string | undefined;
  const devices = heldAs((held) => ({
    nvmeFormat: async (mode) => {
      toldBefore = told.at(-1);
      return held.nvmeFormat(mode);
    },
  }));
  const progress = (_percent: number, text: string): void => void told.push(text);
  await run({ context: { devices, reportProgress: progress } });
  expect(toldBefore).toContain('nvmeFormat');
});

test.each([
  'discard',
  'nvmeFormat',
  'nvmeFormatCrypto',
  'sanitizeCrypto',
  'sanitizeBlock',
  'sanitizeOverwrite',
  'ataSecurityErase',
  'ataEnhancedErase',
] as const)('a disk that erases itself by %s leaves us nothing to write', (method) => {
  expect(bytesToWrite({ method, challenges: [] })).toBe(0);
});

test('evidence says how long the method took, and how long the reading', async () => {
  addDisk('sda');
  let passedMs = 0;
  const slow = { ...clock, suspendAwareMs: () => passedMs };
  let erased = false;
  const devices = heldAs((held) =>
    regionsAs(held, (open) => ({
      discard: async (offset, length) => {
        passedMs += 7_000.4;
        erased = true;
        return open.discard(offset, length);
      },
      readInto: async (offset, target) => {
        if (erased) passedMs = 9_500.4;
        await open.readInto(offset, target);
      },
    })),
  );
  const end = await run({ context: { devices, clock: slow } });
  expect(end.evidence?.devices?.[0]).toMatchObject({ methodMs: 7_000n, verifyMs: 2_500n });
});

test('a disk that fails while it is erased outranks one that is only unproved', async () => {
  addDisk('sda');
  addDisk('sdb');
  const devices = heldAs((held, name) =>
    regionsAs(held, (open) => {
      if (name === 'sda') return { discard: () => Promise.reject(new DeviceError('it failed')) };
      let erased = false;
      return {
        discard: (offset, length) => {
          erased = true;
          return open.discard(offset, length);
        },
        readInto: (offset, target) =>
          erased
            ? Promise.reject(new DeviceError('no answer', { operation: 'read' }))
            : open.readInto(offset, target),
      };
    }),
  );
  const end = await run({ context: { devices } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'ioError' });
  expect(messageOf(end)).toMatch(/^2 of 2 devices are not proved erased/);
  const [sda, sdb] = end.evidence?.devices ?? [];
  // An error that is no transfer of the device does not count as one.
  expect(sda?.errors).toEqual({});
  expect(Object.keys(sdb?.errors ?? {})).toEqual(['read']);
});

test('a disk that opens with less than was planned proves nothing', async () => {
  addDisk('sda');
  const end = await run({ context: { devices: heldAs(() => ({ regions: [] })) } });
  expect(messageOf(end)).toContain('sda is not open');
  expect(end.evidence?.devices?.[0]).toMatchObject({
    verdict: agent.VerdictKind.UNVERIFIED,
    challengeBlocksWritten: 0n,
  });
});

test.each([16, 64])('a challenge seed of %d bytes is taken', async (length) => {
  addDisk('sda');
  const end = await run({ order: { challengeSeed: new Uint8Array(length).fill(7) } });
  expect(end.result).toEqual({ kind: 'complete' });
});

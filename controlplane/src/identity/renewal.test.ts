/** The control plane's own certificate over time, on a disk that may be full. */
import { Authority_Stage as Stage, userActor } from '@rackwright/messages';
import type { Clock, Disk } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulDisk, recordingLog } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { type Authorities, openAuthorities } from './authorities.ts';
import { halfLifeMs } from './authority.ts';
import { makeAuthority } from './authority-record.ts';
import { type OwnIdentity, openIdentity } from './identity.ts';
import { defaultTrustTiming } from './rotation.ts';

const yearMs = 365 * 86_400_000;
const retryMs = 5_000;
const random = nodeRandom();
/** No automatic checks. */
const timing = { ...defaultTrustTiming, checkMs: 10 * yearMs };
let nowMs: number;
let timers: { readonly atMs: number; readonly act: () => void }[];
let isFull: boolean;
let lines: string[];
let store: StateStore;
let own: OwnIdentity;
let authorities: Authorities;
let following: StoreFollower;

const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: (delayMs, act) => {
    const timer = { atMs: nowMs + delayMs, act };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  },
};
const log = recordingLog(({ level, message }) => {
  if (level !== 'debug') lines.push(message);
});

/** Jumps ahead at once, and runs what is due by then. */
function pass(ms: number): void {
  nowMs += ms;
  const due = timers.filter(({ atMs }) => atMs <= nowMs);
  timers = timers.filter((each) => !due.includes(each));
  for (const { act } of due) act();
}

async function until(holds: () => boolean): Promise<void> {
  await expect.poll(holds, { interval: 5, message: String(holds) }).toBe(true);
}

const shown = (): string => authorities.now.server.tls.certificateChainPem;
const toHalfLifeMs = (): number => halfLifeMs(authorities.now.server.certificate) - nowMs;
const hasSaid = (text: string) => () => lines.some((line) => line.includes(text));

beforeEach(async () => {
  nowMs = Date.UTC(2026, 10, 20);
  [timers, lines, isFull] = [[], [], false];
  const files = forgetfulDisk(new ForgetfulFiles());
  const disk: Disk = {
    ...files,
    writeAtomic: async (path, bytes, mode) => {
      if (isFull) throw new Error('no space left on device');
      await files.writeAtomic(path, bytes, mode);
    },
  };
  store = await openMemoryStore({ random });
  const { caLifetimeMs } = timing;
  own = await openIdentity({ disk, clock, random, log, folder: '/identity', caLifetimeMs });
  const parts = { ...own, store, clock, random, log, timing, sealer: own.secrets };
  authorities = await openAuthorities({ ...parts, serverNames: ['127.0.0.1'] });
  following = new StoreFollower({ store, clock, log, retryDelayMs: 1_000 });
  await authorities.start(following, () => []);
});

afterEach(async () => {
  authorities.stop();
  following.stop();
  await store.close();
});

test('a certificate is renewed at half its life, not before, and observers are told', async () => {
  const first = shown();
  const told: string[] = [];
  authorities.onChange(({ server }) => void told.push(server.tls.certificateChainPem));
  pass(toHalfLifeMs() - 1);
  await until(() => timers.length > 0);
  expect([shown(), told]).toEqual([first, []]);
  pass(1);
  await until(() => shown() !== first);
  expect(told).toEqual([shown()]);
  expect(toHalfLifeMs()).toBeGreaterThan(0);
});

test('after a failed renewal the old certificate stays in use, and a retry follows', async () => {
  const first = shown();
  isFull = true;
  pass(toHalfLifeMs());
  await until(hasSaid('could not be renewed'));
  expect(shown()).toBe(first);
  isFull = false;
  pass(retryMs - 1);
  expect(shown()).toBe(first);
  pass(1);
  await until(() => shown() !== first);
});

test('a control plane that stops while its disk is full tries nothing again', async () => {
  isFull = true;
  pass(toHalfLifeMs());
  authorities.stop();
  await until(hasSaid('could not be renewed'));
  expect(timers.some(({ atMs }) => atMs === nowMs + retryMs)).toBe(false);
});

/** As by another replica. */
function rotate() {
  return authorities.change(async (record) => {
    const { caLifetimeMs } = timing;
    const making = { clock, random, sealer: own.secrets, caLifetimeMs };
    record.authorities.push(await makeAuthority(making, Stage.NEXT, userActor('p'), 'yearly'));
    record.generation += 1n;
    return record;
  });
}

test('authorities are trusted only once they can be kept on disk', async () => {
  isFull = true;
  await rotate();
  expect(lines).toContain('the certificate authorities could not be followed');
  expect(authorities.now.certificates).toHaveLength(1);
  isFull = false;
  pass(retryMs);
  await until(() => authorities.now.certificates.length === 2);
});

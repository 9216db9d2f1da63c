/** Sign-ins of browsers over one store: at two replicas, across a restart, and at their bounds. */
import { ApiFailure, type CallContext, oidcActor, Role, readActor } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { MemoryDisk, openMemoryStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { everywhere, type Principal } from './principal.ts';
import { endSignInsOf, SignIns, type SignInsOptions, signInCookie } from './sign-ins.ts';

const quiet = () => undefined;
const lifeMs = 3_600_000;
const secret = 'ab'.repeat(32);

let disk: MemoryDisk;
let stops: (() => unknown)[];
let shiftMs: number;
let isRevoked: boolean;
const clock: Clock = {
  nowMs: () => nodeClock().nowMs() + shiftMs,
  after: (...timing) => nodeClock().after(...timing),
} as Clock;

beforeEach(() => {
  disk = new MemoryDisk();
  stops = [];
  shiftMs = 0;
  isRevoked = false;
});

afterEach(async () => {
  for (const stop of stops) await stop();
});

/** One of several control planes on the store. */
async function replica(more: Partial<SignInsOptions> = {}) {
  const store = await openMemoryStore({ random: nodeRandom(), disk, ...more });
  const following = new StoreFollower({ store, clock, log, retryDelayMs: 10 });
  const signIns = new SignIns({
    ...{ store, following, clock, log, lifeMs, random: nodeRandom(), configSha256: '0a' },
    principalOfSecret: async (name, secretSha256) => {
      expect([name, Buffer.from(secretSha256).toString('hex')]).toEqual(['tokens/ci', secret]);
      if (isRevoked) throw new Error('revoked');
      return ofToken;
    },
    ...more,
  });
  await signIns.start();
  stops.push(
    () => signIns.stop(),
    () => following.stop(),
    () => store.close(),
  );
  return { signIns, store };
}

const ann: Principal = {
  ...{
    actor: readActor('oidc:ann'),
    role: Role.OPERATOR,
    token: '',
    issuer: 'https://idp.example',
  },
  ...{ scope: { racks: ['racks/r1'], pools: ['gpu'] }, expireMs: 1, proofSha256: 'cc' },
};
const ofToken: Principal = {
  ...{ actor: readActor('token:ci'), role: Role.VIEWER, token: 'tokens/ci', issuer: '' },
  ...{ scope: everywhere, expireMs: undefined, proofSha256: secret },
};
const byProvider = { kind: 'provider', principal: ann } as const;
const byToken = { kind: 'token', principal: ofToken } as const;

function callWith(name: string): CallContext {
  const headers: Readonly<Record<string, string>> = {
    ...{ host: 'cp.example:7440', origin: 'https://cp.example:7440' },
    cookie: `other=1; ${signInCookie}=${name}`,
  };
  return { header: (name: string) => headers[name] } as never;
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(quiet, (thrown: unknown) => thrown);
  if (error instanceof ApiFailure) return error.error.reason;
  throw new Error(`expected an ApiFailure, got ${String(error)}`);
}

const pause = () => new Promise<void>((resolve) => nodeClock().after(5, resolve));

/** Waits until every replica's watch has reported a write. */
async function untilTrue(what: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 2_000 && !(await what()); round += 1) await pause();
  expect(await what()).toBe(true);
}

const recordsIn = async (store: StateStore) => (await store.list('browserSessions')).entries;

test('a sign-in that one replica has opened counts at the other, and after a restart', async () => {
  const [here, there] = [await replica(), await replica()];
  const { name, expireMs } = await here.signIns.open(byProvider);
  const { proofSha256: _, ...carried } = { ...ann, expireMs };
  expect(await there.signIns.principalOf(callWith(name))).toMatchObject(carried);
  here.signIns.stop();
  const restarted = await replica();
  expect(await restarted.signIns.principalOf(callWith(name))).toMatchObject(carried);
});

test('a sign-in that ends at one replica is refused at the other with the next call', async () => {
  const [here, there] = [await replica(), await replica()];
  const { name } = await here.signIns.open(byToken);
  const principal = await there.signIns.principalOf(callWith(name));
  let isEnded = false;
  const hash = principal?.signInHash ?? '';
  there.signIns.onEnd(hash, () => (isEnded = true));
  expect(await here.signIns.close(callWith(name))).toBe(true);
  expect(await reasonOf(there.signIns.principalOf(callWith(name)))).toBe('SESSION_OVER');
  await untilTrue(() => isEnded);
  // A sign-in that ends between the check and the opening of its stream is not overlooked.
  let isLateEnded = false;
  there.signIns.onEnd(hash, () => (isLateEnded = true));
  await untilTrue(() => isLateEnded);
  expect(await there.signIns.close(callWith(name))).toBe(false);
});

test('a sign-in ends by the clock, and its record goes; using it writes nothing', async () => {
  const { signIns, store } = await replica();
  const { name } = await signIns.open(byProvider);
  const written = await store.latestRevision();
  shiftMs = lifeMs - 1_000;
  await signIns.principalOf(callWith(name));
  shiftMs = lifeMs;
  expect(await reasonOf(signIns.principalOf(callWith(name)))).toBe('SESSION_OVER');
  expect(await store.latestRevision()).toBe(written);
  await signIns.sweep();
  expect(await recordsIn(store)).toEqual([]);
});

test('a sign-in by a token ends with it; its own end is no later', async () => {
  const { signIns } = await replica();
  const expireMs = clock.nowMs() + 1_000;
  const short = { kind: 'token', principal: { ...ofToken, expireMs } } as const;
  expect((await signIns.open(short)).expireMs).toBe(expireMs);
  const { name } = await signIns.open(byToken);
  expect(await signIns.principalOf(callWith(name))).toMatchObject({
    actor: readActor('token:ci'),
  });
  isRevoked = true;
  await expect(signIns.principalOf(callWith(name))).rejects.toThrow('revoked');
});

test('neither the name nor a token stands in the store', async () => {
  const { signIns, store } = await replica();
  const { name } = await signIns.open(byToken);
  const [entry] = await recordsIn(store);
  const text = `${entry?.key} ${Buffer.from(entry?.value ?? []).toString('latin1')}`;
  expect(text).not.toContain(name);
  expect(text).toContain('token:ci');
});

test('rights of another configuration, or of before the store was restored, are over', async () => {
  const here = await replica();
  const { name } = await here.signIns.open(byProvider);
  const changed = await replica({ configSha256: '0b' });
  expect(await reasonOf(changed.signIns.principalOf(callWith(name)))).toBe('SESSION_OVER');
  const { name: ofTokenName } = await here.signIns.open(byToken);
  const restored = await replica({ restored: true } as never);
  expect(await reasonOf(restored.signIns.principalOf(callWith(ofTokenName)))).toBe('SESSION_OVER');
  await restored.signIns.sweep();
  expect(await recordsIn(restored.store)).toEqual([]);
});

test('one caller has at most 20 live sign-ins, whichever replica has opened them', async () => {
  const [here, there] = [await replica(), await replica()];
  const names: string[] = [];
  for (let round = 0; round < 24; round += 1) {
    shiftMs += 1;
    const at = round % 2 === 0 ? here : there;
    names.push((await at.signIns.open(byProvider)).name);
  }
  await there.signIns.open(byToken);
  // A replica whose watch lags removes the excess later.
  await untilTrue(async () => {
    await here.signIns.sweep();
    return (await recordsIn(here.store)).length === 21;
  });
  for (const name of names.slice(0, 4)) {
    expect(await reasonOf(here.signIns.principalOf(callWith(name)))).toBe('SESSION_OVER');
  }
  for (const name of names.slice(4)) await here.signIns.principalOf(callWith(name));
});

test('all sign-ins of one caller are ended at once, at every replica, and no others', async () => {
  const [here, there] = [await replica(), await replica()];
  const open = async () => (await here.signIns.open(byProvider)).name;
  const names = [await open(), await open()];
  const { name: other } = await here.signIns.open(byToken);
  const seen = await there.signIns.principalOf(callWith(names[0] ?? ''));
  let isEnded = false;
  there.signIns.onEnd(seen?.signInHash ?? '', () => (isEnded = true));
  expect(await endSignInsOf(here.store, oidcActor('ann'))).toBe(2);
  for (const { signIns } of [here, there]) {
    for (const name of names) {
      expect(await reasonOf(signIns.principalOf(callWith(name)))).toBe('SESSION_OVER');
    }
    expect(await signIns.principalOf(callWith(other))).toMatchObject({
      actor: readActor('token:ci'),
    });
  }
  await untilTrue(() => isEnded);
  expect(await endSignInsOf(there.store, readActor('oidc:ann'))).toBe(0);
});

test('guessed names cost the store little, and keep out nobody who is signed in', async () => {
  const { signIns, store } = await replica();
  const { name } = await signIns.open(byProvider);
  let reads = 0;
  const get = store.get.bind(store);
  store.get = (key) => {
    reads += 1;
    return get(key);
  };
  const guesses = Array.from({ length: 1_000 }, (_, index) =>
    reasonOf(signIns.principalOf(callWith(`g${index}`.padEnd(43, 'x')))),
  );
  expect(new Set(await Promise.all(guesses))).toEqual(new Set(['SESSION_OVER', 'SIGN_IN_BUSY']));
  expect(reads).toBeLessThanOrEqual(150);
  expect(await signIns.principalOf(callWith(name))).toMatchObject({
    actor: readActor('oidc:ann'),
  });
  expect(await reasonOf(signIns.principalOf(callWith('too-short')))).toBe('SESSION_OVER');
});

test('a record that cannot be read keeps no one from starting, and is swept', async () => {
  const key = `browserSessions.${'ef'.repeat(32)}`;
  const { store } = await replica();
  await store.put(key, Uint8Array.of(0xff, 0xff), 'absent');
  const { signIns } = await replica();
  const { name } = await signIns.open({ kind: 'token', principal: ofToken });
  expect(name).not.toBe('');
  expect((await store.get(key)).kind).toBe('absent');
});

/** A key rotation that is interrupted at each of its writes, before and after it. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { asReplicaId, userActor, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { SecretsKeeper } from './keeper.ts';
import { createSecrets, type Secrets, secretsKeyId } from './secrets.ts';

const random = nodeRandom();
const [one, two] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)] as const;
const names = ['c1', 'c2', 'c3'];
/** The writes of the replica that gets the request, in this order. */
const itsWrites = [
  'secrets.key',
  'secrets.readers.a',
  'secrets.key',
  ...names.map((name) => `credentials.${name}`),
];

let store: StateStore;
let nowMs = 0;
let timers: (() => void)[] = [];
const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: (_delayMs, callback) => {
    timers.push(callback);
    return () => {
      timers = timers.filter((each) => each !== callback);
    };
  },
};

beforeEach(async () => {
  store = await openMemoryStore({ random });
  nowMs = Date.UTC(2026, 10, 22);
  timers = [];
});

async function started(replicaId: string, keys: readonly Uint8Array[], its = store) {
  const secrets = createSecrets(keys, random);
  const source = { described: 'its file', read: async () => [two, one] };
  const parts = {
    store: its,
    clock,
    random,
    log,
    secrets,
    source,
    replicaId: asReplicaId(replicaId),
    isShared: true,
  };
  const following = new StoreFollower({ store: its, clock, log, retryDelayMs: 1_000 });
  const keeper = new SecretsKeeper({ ...parts, following, resyncIntervalMs: 60_000 });
  await keeper.start();
  return { keeper, secrets, stop: () => [keeper.stop(), following.stop()] };
}

async function add(secrets: Secrets, name: string): Promise<void> {
  const record = create(wire.CredentialRecordSchema, {
    credential: { name: `credentials/${name}`, version: 1n, username: 'root' },
    ...secrets.seal(`credentials/${name}`, 1n, `secret of ${name}`),
  });
  await store.put(`credentials.${name}`, toBinary(wire.CredentialRecordSchema, record), 'absent');
}

/** The store of a replica that dies at a write, and has no effect afterwards. */
function dying(at: number, when: 'before' | 'after', writes: string[]): StateStore {
  const died = () => Promise.reject(new Error('it was killed'));
  const isDead = () => writes.length > at;
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'put' && name !== 'delete') {
        return (...given: unknown[]) => (isDead() ? died() : value.apply(target, given));
      }
      return async (...given: unknown[]) => {
        if (isDead()) return died();
        writes.push(String(given[0]));
        if (!isDead()) return value.apply(target, given);
        if (when === 'after') await value.apply(target, given);
        return died();
      };
    },
  });
}

/** How many secrets a program with only these keys can open. */
async function openedBy(...keys: Uint8Array[]): Promise<number> {
  const secrets = createSecrets(keys, random);
  let count = 0;
  for (const name of names) {
    const found = await store.get(`credentials.${name}`);
    if (found.kind !== 'found') throw new Error(`no ${name}`);
    try {
      const { password } = secrets.open(fromBinary(wire.CredentialRecordSchema, found.value));
      if (password === `secret of ${name}`) count += 1;
    } catch {
      // It is under another key.
    }
  }
  return count;
}

/** Longer than others wait for a replica that stopped without notice. */
async function passTime(): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    nowMs += 30_000;
    const due = timers;
    timers = [];
    for (const callback of due) callback();
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}

test('the tests cut every write of a replica that changes the key', async () => {
  const writes: string[] = [];
  const first = await started('a', [one]);
  for (const name of names) await add(first.secrets, name);
  first.stop();
  const a = await started('a', [one], dying(Infinity, 'before', writes));
  writes.length = 0;
  await a.keeper.rotate(userActor('admin'), 'r1');
  expect(writes).toEqual(itsWrites);
  expect(await openedBy(two)).toBe(names.length);
  a.stop();
});

const cuts = itsWrites.flatMap((write, at) =>
  (['before', 'after'] as const).map((when) => ({ at, when, write })),
);

describe.each(['the next to start', 'the one that is up'])('%s ends a change', (who) => {
  test.each(cuts)(
    'a change that was killed $when write $at, of $write, comes to its end',
    async ({ at, when }) => {
      const first = await started('a', [one]);
      for (const name of names) await add(first.secrets, name);
      first.stop();
      const isUp = who === 'the one that is up';
      // It may write some of it first: only the end is checked then.
      const up = isUp ? await started('b', [one, two]) : undefined;
      const writes: string[] = [];
      const kept = dying(at, when, writes);
      const waiting = { isOn: false };
      const a = await started(
        'a',
        [one],
        new Proxy(store, {
          get: (_, name) => {
            const value: unknown = Reflect.get(waiting.isOn ? kept : store, name);
            return typeof value === 'function' && !waiting.isOn ? value.bind(store) : value;
          },
        }),
      );
      waiting.isOn = true;
      const outcome = await a.keeper.rotate(userActor('admin'), 'r1').then(
        () => 'done',
        () => 'killed',
      );
      a.stop();
      if (!isUp) {
        // The kill happened at the intended write, with the intended remains.
        expect([outcome, writes]).toEqual(['killed', itsWrites.slice(0, at + 1)]);
        const resealed = Math.max(0, at - 3 + (when === 'after' ? 1 : 0));
        expect(await openedBy(two)).toBe(resealed);
      }
      const other = up ?? (await started('b', [one, two]));
      await passTime();
      const isAsked = at > 0 || when === 'after';
      const sealing = isAsked ? two : one;
      expect(other.secrets.keyId).toBe(secretsKeyId(sealing));
      expect(await openedBy(sealing)).toBe(names.length);
      other.stop();
      const again = await started('a', [sealing]);
      expect(again.keeper.isFit).toBe(true);
      again.stop();
    },
  );
});

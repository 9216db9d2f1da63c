/** The authorities of control planes on one store, each with its own folder. */
import { X509Certificate } from 'node:crypto';
import { chmod, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  RackSchema,
  Authority_Stage as Stage,
  userActor,
  store as wire,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeClock, nodeDisk, nodeRandom } from '@rackwright/platform/node';
import { recordingLog } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { writeRecord } from '../records/index.ts';
import { type Authorities, openAuthorities } from './authorities.ts';
import { makeAuthority, trustKey } from './authority-record.ts';
import type { RefusedKey } from './enrolment.ts';
import { type OwnIdentity, openIdentity } from './identity.ts';
import { RackKeys } from './rack-keys.ts';
import { advanceAuthority, authorityAt, defaultTrustTiming } from './rotation.ts';

/** The looks of all replicas that have ended: each sets the time of the next one. */
let looks = 0;
const machine = nodeClock();
const clock: Clock = {
  ...machine,
  after: (delayMs, callback) => {
    if (delayMs === timing.checkMs) looks += 1;
    return machine.after(delayMs, callback);
  },
};
const random = nodeRandom();
const disk = nodeDisk();
let lines: string[] = [];
const log = recordingLog(({ level, message }) => {
  if (level === 'warn' || level === 'error') lines.push(message);
});
let timing = { ...defaultTrustTiming, nextStayMs: 0, retiredStayMs: 0, checkMs: 50 };
let root: string;
let store: StateStore;
let stops: (() => void)[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'rackwright-authorities-'));
  store = await openMemoryStore({ random });
  stops = [];
  lines = [];
});

afterEach(async () => {
  for (const stop of stops) stop();
  await store.close();
  // A replica that was just stopped may still be copying.
  await rm(root, { recursive: true, maxRetries: 5 });
});

interface Replica {
  readonly own: OwnIdentity;
  readonly authorities: Authorities;
  readonly keys: RackKeys;
}

async function start(name: string): Promise<Replica> {
  const { caLifetimeMs } = timing;
  const folder = join(root, name);
  const own = await openIdentity({ disk, clock, random, log, folder, caLifetimeMs });
  if (own.isNew) await own.complete();
  const parts = { ...own, store, clock, random, log, timing, sealer: own.secrets };
  const authorities = await openAuthorities({ ...parts, serverNames: ['127.0.0.1'] });
  const following = new StoreFollower({ store, clock, log, retryDelayMs: 1_000 });
  const keys = new RackKeys({ store, log, following });
  await keys.start();
  keys.onChange(() => authorities.checkSoon());
  await authorities.start(following, () => keys.trusts());
  stops.push(() => {
    authorities.stop();
    keys.stop();
    following.stop();
  });
  return { own, authorities, keys };
}

async function startTwo(): Promise<[Replica, Replica]> {
  const first = await start('one');
  await cp(join(root, 'one'), join(root, 'two'), { recursive: true });
  await chmod(join(root, 'two'), 0o700);
  return [first, await start('two')];
}

const file = (folder: string, name: string) => readFile(join(root, folder, name), 'utf8');

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(holds, { interval: 20, message: String(holds) }).toBe(true);
}

/** Until the replicas have looked at the authorities this often from now on. */
async function moreLooks(count: number): Promise<void> {
  const wanted = looks + count;
  await until(() => looks >= wanted);
}

function rotate({ own, authorities }: Replica) {
  return authorities.change(async (record) => {
    const making = { clock, random, sealer: own.secrets, caLifetimeMs: timing.caLifetimeMs };
    record.authorities.push(await makeAuthority(making, Stage.NEXT, userActor('p'), 'yearly'));
    record.generation += 1n;
    return record;
  });
}

async function putRack(fields: MessageInitShape<typeof wire.RackRecordSchema>): Promise<void> {
  const key = storeKey('racks', 'r1');
  const found = await store.get(key);
  const rack = create(RackSchema, { name: 'racks/r1' });
  const record = create(wire.RackRecordSchema, { ...fields, rack });
  const expected = found.kind === 'found' ? found.revision : 'absent';
  await writeRecord({ store }, wire.RackRecordSchema, key, record, expected);
}

describe('replicas on one store', () => {
  test('sign with one authority, and follow its rotation with their own certificates', async () => {
    const [first, second] = await startTwo();
    const old = first.authorities.now.caSha256;
    expect(second.authorities.now.caSha256).toBe(old);
    await putRack({ agentPublicKey: new Uint8Array(9), trustedCaSha256: [old] });
    await rotate(first);
    // All replicas trust both while an agent does not.
    await until(() => second.authorities.now.certificates.length === 2);
    expect(await file('two', 'ca.pem')).toBe(second.authorities.now.certificates.join(''));
    await moreLooks(6);
    expect(first.authorities.now.caSha256).toBe(old);

    const next = authorityAt(first.authorities.now.record, Stage.NEXT)?.authority?.sha256 ?? '';
    await putRack({ agentPublicKey: new Uint8Array(9), trustedCaSha256: [old, next] });
    for (const { authorities } of [first, second]) {
      await until(() => authorities.now.caSha256 === next);
      const shown = new X509Certificate(authorities.now.server.tls.certificateChainPem);
      const [signer = ''] = authorities.now.certificates;
      expect(shown.verify(new X509Certificate(signer).publicKey)).toBe(true);
    }
    // The old one stays because of the agent's certificate, whose issuer was not recorded.
    expect(first.authorities.now.certificates).toHaveLength(2);
    const trusted = { trustedCaSha256: [old, next], certificateCaSha256: next };
    await putRack({ agentPublicKey: new Uint8Array(9), ...trusted });
    for (const { authorities } of [first, second]) {
      await until(() => authorities.now.certificates.length === 1);
    }
    expect((await file('one', 'ca.pem')).match(/BEGIN/g)).toHaveLength(1);
  });

  test('know which authorities there are, also one that another has just made', async () => {
    const [first, second] = await startTwo();
    const old = first.authorities.now.caSha256;
    await putRack({ agentPublicKey: new Uint8Array(9), trustedCaSha256: [old] });
    const { record } = await rotate(first);
    const next = authorityAt(record, Stage.NEXT)?.authority?.sha256 ?? '';
    const said = ['00'.repeat(32), old, next];
    for (const { authorities } of [first, second]) {
      expect(await authorities.existing(said)).toEqual([old, next]);
    }
    expect(await second.authorities.existing([])).toEqual([]);
  });

  test('end what stands on a key when another one of them takes it away', async () => {
    const [first] = await startTwo();
    const key = new Uint8Array([1, 2, 3]);
    const keySha256 = '039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81';
    await putRack({ agentPublicKey: key });
    const ended: RefusedKey[] = [];
    const end = (why: RefusedKey) => void ended.push(why);
    first.keys.attend({ rackId: 'r1', keySha256, end });
    const leave = first.keys.attend({ rackId: 'r1', keySha256, end });
    const trustedCaSha256 = [first.authorities.now.caSha256];
    await putRack({ agentPublicKey: key, tombstones: ['h1'], trustedCaSha256 });
    await until(() => first.keys.trusts().some(({ trusts }) => trusts.length > 0));
    expect(ended).toEqual([]);
    leave();
    await putRack({ agentPublicKey: new Uint8Array() });
    await until(() => ended.length === 1);
    // A change between the read of the record and `attend` is not missed either.
    first.keys.attend({ rackId: 'r1', keySha256, end });
    await until(() => ended.length === 2);
  });
});

test('an unreadable record of a rack ends its sessions, and keeps its keys taken', async () => {
  const { keys } = await start('one');
  const key = new Uint8Array([1, 2, 3]);
  const keySha256 = '039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81';
  await putRack({ agentPublicKey: key });
  await until(() => keys.rackOf(keySha256) === 'r1');
  const ended: RefusedKey[] = [];
  keys.attend({ rackId: 'r1', keySha256, end: (why) => void ended.push(why) });
  const found = await store.get(storeKey('racks', 'r1'));
  await store.put(storeKey('racks', 'r1'), Uint8Array.of(255, 255), found.revision ?? 0);
  await until(() => ended.length === 1);
  expect(keys.rackOf(keySha256)).toBe('r1');
});

test('an authority that ends soon is warned of, once', async () => {
  const usual = timing;
  // Created for a quarter of an hour; with the usual life configured, it expires soon.
  timing = { ...usual, caLifetimeMs: 900_000 };
  await start('one');
  for (const stop of stops.splice(0)) stop();
  expect(lines).toEqual([]);
  timing = usual;
  await start('one');
  await until(() => lines.length > 0);
  await moreLooks(3);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('rackwright trust rotate');
});

test('a start that loses the race for the record shows what the winner has written', async () => {
  const first = await start('one');
  await cp(join(root, 'one'), join(root, 'two'), { recursive: true });
  await chmod(join(root, 'two'), 0o700);
  const { record } = await rotate(first);
  for (const stop of stops.splice(0)) stop();
  const shared = store;
  const fresh = await openMemoryStore({ random });
  let races = 0;
  // Folder "two" does not know of the rotation; the winner writes while it decides.
  store = new Proxy(fresh, {
    get: (target, name) => {
      const own: unknown = Reflect.get(target, name);
      if (name !== 'put' || typeof own !== 'function') {
        return typeof own === 'function' ? own.bind(target) : own;
      }
      return async (...args: Parameters<StateStore['put']>) => {
        if (args[0] === trustKey && races === 0) {
          races += 1;
          await writeRecord({ store: fresh }, wire.TrustRecordSchema, trustKey, record, 'absent');
        }
        return target.put(...args);
      };
    },
  });
  const second = await start('two');
  expect(races).toBe(1);
  expect(second.authorities.now.record.generation).toBe(record.generation);
  expect(second.authorities.now.certificates).toHaveLength(2);
  await shared.close();
});

describe('the authorities of a folder', () => {
  test('outlive the store, and an older one that was put in its place', async () => {
    const first = await start('one');
    const { record } = await rotate(first);
    for (const stop of stops.splice(0)) stop();
    const lost = store;
    store = await openMemoryStore({ random });
    const again = await start('one');
    expect(again.authorities.now.record.generation).toBe(record.generation);
    expect(again.authorities.now.caSha256).toBe(first.authorities.now.caSha256);
    await lost.close();
  });

  test('authorities of another control plane are refused, and so is one without any', async () => {
    await start('one');
    const mine = store;
    store = await openMemoryStore({ random });
    const other = await start('two');
    await other.authorities.change(async (record) => advanceAuthority(record, '', [], 0));
    const theirs = store;
    store = mine;
    await expect(start('two')).rejects.toThrow('are not those of the store');
    store = await openMemoryStore({ random });
    await rm(join(root, 'two/ca.sealed'));
    await expect(start('two')).rejects.toThrow('a new authority would not fit the agents');
    await theirs.close();
    await mine.close();
  });
});

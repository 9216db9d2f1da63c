/** A search by trait finds the same hosts as a scan over all records and facts. */
import { create, toBinary } from '@bufbuild/protobuf';
import { type HostId, store as wire } from '@rackwright/messages';
import type { LogFields } from '@rackwright/platform';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { type Listing, openMemoryStore, type StateStore, type WatchEvent } from '@rackwright/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { untilBroken } from '../following/until-broken.fixture.ts';
import { FleetView, machineKeys } from './index.ts';

const quiet = () => undefined;
const macOf = (n: number) => `52:54:00:00:00:0${n}`;
const uuidOf = (n: number) => Uint8Array.from({ length: 16 }, (_, at) => at + n);
const hexOf = (n: number) => Buffer.from(uuidOf(n)).toString('hex');

interface ReportedTraits {
  readonly macs: readonly number[];
  readonly uuid: number;
}

/** A fleet view over a store whose listings and watch the test controls. */
class Site {
  readonly heap = new EventHeap();
  /** The listing that is returned. */
  onList: (prefix: string, listing: Listing) => Promise<Listing> = async (_, listing) => listing;
  breakWatch: () => void = quiet;
  /** The fields of each logged failure, and whether the line has its cause. */
  readonly warned: unknown[] = [];
  readonly view: FleetView;
  readonly #store: StateStore;

  private constructor(store: StateStore) {
    this.#store = store;
    const { clock } = new SimProcess('p', this.heap, 0, () => false);
    const log = {
      info: quiet,
      warn: (fields: LogFields, _: string, error?: unknown) => {
        this.warned.push({ ...fields, isError: error instanceof Error });
      },
    };
    this.view = new FleetView({ store: this.#held(), clock, log, retryDelayMs: 1_000 });
  }

  static async of(): Promise<Site> {
    return new Site(await openMemoryStore({ random: seededRandom(1) }));
  }

  #held(): StateStore {
    const target = Object.create(this.#store) as StateStore;
    target.latestRevision = () => this.#store.latestRevision();
    target.presentRevision = () => this.#store.presentRevision();
    target.list = async (prefix, page) =>
      await this.onList(prefix, await this.#store.list(prefix, page));
    target.watch = (from, prefix, signal) => {
      const broken = Promise.withResolvers<IteratorResult<WatchEvent>>();
      broken.promise.catch(quiet);
      this.breakWatch = () => broken.reject(new Error('broken'));
      return untilBroken(this.#store.watch(from, prefix, signal), broken.promise);
    };
    return target;
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    const found = await this.#store.get(key);
    await this.#store.put(key, value, found.kind === 'found' ? found.revision : 'absent');
  }

  async remove(key: string): Promise<void> {
    const found = await this.#store.get(key);
    if (found.kind === 'found') await this.#store.delete(key, found.revision);
  }

  async putFacts(hostId: HostId, { macs, uuid }: ReportedTraits): Promise<void> {
    const interfaces = macs.map((n) => ({ mac: macOf(n) }));
    const inventory = { interfaces, system: { uuid: uuidOf(uuid) } };
    const facts = create(wire.HostFactsSchema, { hostUid: `uid-${hostId}`, inventory });
    await this.put(`facts.${hostId}`, toBinary(wire.HostFactsSchema, facts));
  }

  async putHost(hostId: HostId, host: { macs: number[]; guid?: number; accepted?: number }) {
    const { macs, guid, accepted } = host;
    const status = guid === undefined ? {} : { bmcIdentity: { guid: uuidOf(guid) } };
    const record = create(wire.HostRecordSchema, {
      host: { name: `hosts/${hostId}`, spec: { bootMacs: macs.map(macOf) }, status },
      ...(accepted === undefined ? {} : { acceptedIdentity: { uuid: uuidOf(accepted) } }),
    });
    await this.put(`hosts.${hostId}`, toBinary(wire.HostRecordSchema, record));
  }

  async during<T>(work: Promise<T>): Promise<T> {
    work.catch(quiet);
    await this.heap.run(this.heap.nowMs + 3_000, () => false);
    return await work;
  }

  like(...keys: string[]): Promise<readonly string[]> {
    return this.during(this.view.hostsLike(keys));
  }
}

const ids = ['a', 'a-b', 'c'];
const anySeen = fc.record({ macs: fc.array(fc.nat(3), { maxLength: 2 }), uuid: fc.nat(2) });
const anyStep = fc.oneof(
  { weight: 6, arbitrary: fc.record({ hostId: fc.constantFrom(...ids), seen: anySeen }) },
  { weight: 2, arbitrary: fc.record({ gone: fc.constantFrom(...ids) }) },
  { weight: 1, arbitrary: fc.record({ undecodable: fc.constantFrom(...ids) }) },
  { weight: 3, arbitrary: fc.constant('ask' as const) },
  { weight: 1, arbitrary: fc.constant('break' as const) },
);

test('whatever becomes of facts, hosts are found by those that they have now', async () => {
  const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 20 }), async (steps) => {
    const site = await Site.of();
    const model = new Map<string, ReportedTraits>();
    const having = (has: (seen: ReportedTraits) => boolean) =>
      [...model].flatMap(([hostId, seen]) => (has(seen) ? [hostId] : [])).sort();
    for (const step of [...steps, 'ask' as const]) {
      if (step === 'break') site.breakWatch();
      else if (step === 'ask') {
        for (let n = 0; n <= 3; n += 1) {
          expect(await site.like(`mac ${macOf(n)}`)).toEqual(
            having(({ macs }) => macs.includes(n)),
          );
          expect(await site.like(`uuid ${hexOf(n)}`)).toEqual(having(({ uuid }) => uuid === n));
        }
      } else if ('gone' in step) {
        await site.remove(`facts.${step.gone}`);
        model.delete(step.gone);
      } else if ('undecodable' in step) {
        await site.put(`facts.${step.undecodable}`, Uint8Array.of(255, 255));
        model.delete(step.undecodable);
      } else {
        await site.putFacts(step.hostId, step.seen);
        model.set(step.hostId, step.seen);
      }
    }
  });
  await fc.assert(property, { numRuns: 40 });
});

test('facts that cannot be decoded count as absent, and are logged with the cause', async () => {
  const site = await Site.of();
  await site.putFacts('a', { macs: [1], uuid: 1 });
  await site.put('facts.c', Uint8Array.of(255, 255));
  expect(await site.like(`mac ${macOf(1)}`)).toEqual(['a']);
  expect(site.warned).toEqual([{ record: 'facts.c', isError: true }]);
  await site.put('facts.a', Uint8Array.of(255, 255));
  expect(await site.like(`mac ${macOf(1)}`)).toEqual([]);
  expect(site.warned.at(-1)).toEqual({ record: 'facts.a', isError: true });
});

test('changes during a reading of facts, and a late store, give no wrong host', async () => {
  const site = await Site.of();
  for (const hostId of ids) await site.putFacts(hostId, { macs: [1], uuid: 1 });
  await site.during(site.view.caughtUp());
  let listed = 0;
  site.onList = async (prefix, listing) => {
    if (prefix !== 'facts') return listing;
    listed += 1;
    // From before the state that the view has seen.
    if (listed === 1) return { entries: [], before: listing.before - 1 };
    // One deletion and one change come after the listing, and the watch reports them first.
    await site.remove('facts.a');
    await site.putFacts('c', { macs: [2], uuid: 2 });
    await new Promise<void>((resolve) => site.heap.after(100, resolve));
    return listing;
  };
  expect(await site.like(`mac ${macOf(1)}`)).toEqual(['a-b']);
  expect(await site.like(`mac ${macOf(2)}`)).toEqual(['c']);
  expect(listed).toBe(2);
});

test('a store that failed to list facts is asked again at the next lookup', async () => {
  const site = await Site.of();
  await site.putFacts('a', { macs: [1], uuid: 1 });
  await site.during(site.view.caughtUp());
  site.onList = () => Promise.reject(new Error('away'));
  await expect(site.like(`mac ${macOf(1)}`)).rejects.toThrow('away');
  site.onList = async (_, listing) => listing;
  expect(await site.like(`mac ${macOf(1)}`)).toEqual(['a']);
});

test('a machine finds its host by boot MACs, by what it was accepted for, by its BMC', async () => {
  const site = await Site.of();
  await site.putHost('mac', { macs: [1] });
  await site.putHost('accepted', { macs: [], accepted: 2 });
  await site.putHost('bmc', { macs: [], guid: 3 });
  const found = (uuid: Uint8Array, bootMac = '') => {
    const inventory = create(wire.HostFactsSchema, { inventory: { system: { uuid } } }).inventory;
    return site.like(...machineKeys(inventory, bootMac));
  };
  expect(await found(uuidOf(9), macOf(1))).toEqual(['mac']);
  expect(await found(uuidOf(2))).toEqual(['accepted']);
  expect(await found(uuidOf(3))).toEqual(['bmc']);
  // A BMC may reverse all bytes.
  expect(await found(uuidOf(3).toReversed())).toEqual(['bmc']);
  await site.putHost('bmc', { macs: [], guid: 4 });
  expect(await found(uuidOf(3))).toEqual([]);
});

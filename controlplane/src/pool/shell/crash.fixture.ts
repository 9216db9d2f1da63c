/**
 * A pool over real replicas: real host state machines, real stores on one disk, and pools that die
 * at any call of the store. Only the racks are missing: the test writes the results of runs into
 * the hosts' records.
 */
import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asPoolId,
  HostState,
  PoolSchema,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { type StateStore, storeKey } from '@rackwright/store';
import { type Replica, Rig } from '../../host/testing/rig.ts';
import { digest, reference } from '../decide/rollout.fixture.ts';
import { seenHost } from '../facts/seen.ts';
import { historyOf } from '../ledger/history.ts';
import { poolKey } from '../policy/names.ts';
import { Pools } from './loop.ts';

const hostsCount = 8;
export const unavailable = 2;
const roundsMax = 200;

export interface Trouble {
  /** Replicas die at calls of their stores. */
  readonly crashes?: boolean;
  readonly wrapStore?: (store: StateStore) => StateStore;
}

/** The problems of the execution; empty: there are none. */
export class PoolSite {
  readonly rig = new Rig();
  readonly problems = new Set<string>();
  /** Successful runs that wrote an image, as "host run digest". */
  readonly successes: string[] = [];
  readonly #trouble: Trouble;
  readonly #random: ReturnType<typeof seededRandom>;
  readonly #alive: (Replica | undefined)[] = [undefined, undefined];
  readonly #tags = new Map<string, string>();
  #seen = 0;

  constructor(seed: number, trouble: Trouble = {}) {
    this.#trouble = trouble;
    this.#random = seededRandom(seed);
    this.rig.addRack();
    for (let n = 1; n <= hostsCount; n++) this.#addHost(n);
    const record = create(wire.PoolRecordSchema, {
      pool: create(PoolSchema, {
        ...{ name: 'pools/p', uid: 'pool-uid' },
        spec: {
          ...{ hosts: { rack: 'racks/r1' }, image: reference },
          rollout: { maxUnavailable: { amount: { case: 'count', value: unavailable } } },
        },
      }),
    });
    this.rig.put(poolKey(asPoolId('p')), wire.PoolRecordSchema, record);
  }

  /** Rolls an image out to all hosts, despite any crashes. */
  async rollOut(letter: string): Promise<void> {
    this.#tags.set(reference, digest(letter));
    for (let round = 0; round < roundsMax && !this.#isOn(letter); round++) {
      await this.#keepReplicas();
      await this.rig.advance(1_000 + this.#random.below(60_000));
      this.#judge();
      this.#endRuns();
      // A tag is resolved again at intervals.
      if (round % 10 === 0) await this.rig.advance(300_000);
      this.#judge();
    }
    if (!this.#isOn(letter)) this.problems.add(`not all hosts came to ${letter}`);
  }

  /** The present ledger: "host run digest" of each entry. */
  ledger(): string[] {
    return this.rig.disk.lastChanges('deployments').flatMap(({ key }) => {
      const entry = this.rig.read(key, wire.DeploymentRecordSchema);
      return entry === undefined ? [] : [`${entry.host} ${entry.run} ${entry.digest}`];
    });
  }

  history() {
    const entries = this.rig.disk.lastChanges('deployments').flatMap(({ key }) => {
      return this.rig.read(key, wire.DeploymentRecordSchema) ?? [];
    });
    const hosts = this.#hosts().flatMap((record) => seenHost(record) ?? []);
    return historyOf(entries, hosts, { limit: 10, target: '' });
  }

  pool(): wire.PoolRecord | undefined {
    return this.rig.read(poolKey(asPoolId('p')), wire.PoolRecordSchema);
  }

  kill(): void {
    for (const [index, replica] of this.#alive.entries()) {
      replica?.kill();
      this.#alive[index] = undefined;
    }
  }

  #addHost(n: number): void {
    this.rig.addHost(n);
    const record = this.rig.record(`h${n}`);
    const { host } = record;
    if (host?.status === undefined || host.spec?.bmc === undefined) throw new Error('no host');
    Object.assign(host.status, { state: HostState.AVAILABLE, dirty: false });
    record.verifiedBmc = host.spec.bmc;
    this.rig.put(storeKey('hosts', `h${n}`), wire.HostRecordSchema, record);
  }

  async #keepReplicas(): Promise<void> {
    for (const [index, replica] of this.#alive.entries()) {
      if (replica !== undefined) continue;
      this.#alive[index] = await this.#start(index);
    }
  }

  async #start(index: number): Promise<Replica | undefined> {
    const crashIn = this.#trouble.crashes === true ? 150 + this.#random.below(600) : Infinity;
    const isAfter = this.#random.below(2) === 0;
    let calls = 0;
    const born: { replica?: Replica } = {};
    const die = () => {
      born.replica?.kill();
      this.#alive[index] = undefined;
    };
    const { wrapStore } = this.#trouble;
    const replica = await this.rig.replica({
      id: `r${index}`,
      ...(wrapStore === undefined ? {} : { wrapStore }),
      faults: () => {
        calls += 1;
        if (calls < crashIn || born.replica === undefined) return { kind: 'none' };
        if (!isAfter) die();
        else queueMicrotask(die);
        return { kind: 'none' };
      },
    });
    born.replica = replica;
    const { whenKilled, ...shared } = replica.shared;
    const pools = new Pools({
      ...{ ...shared, hosts: replica.hosts },
      ...{ resyncIntervalMs: 60_000, retryDelayMs: 1_000 },
      resolve: async (name) => {
        return { kind: 'digest', digest: this.#tags.get(name) ?? '', version: '' };
      },
    });
    whenKilled(() => pools.stop());
    await this.rig.during(
      pools.start().catch(() => undefined),
      1_000,
    );
    return replica;
  }

  #hosts(): wire.HostRecord[] {
    return Array.from({ length: hostsCount }, (_, index) => this.rig.record(`h${index + 1}`));
  }

  #isOn(letter: string): boolean {
    const isCurrent = this.#hosts().every(({ host }) => {
      return host?.status?.image.endsWith(digest(letter)) === true;
    });
    return isCurrent && (this.pool()?.pool?.status?.slots ?? []).length === 0;
  }

  /** Some of the runs in progress end, as their racks would report. */
  #endRuns(): void {
    for (const record of this.#hosts()) {
      const { host } = record;
      const run = host?.status?.run;
      if (host?.status === undefined || run === undefined) continue;
      const isWriting = run.kind === RunKind.PROVISION || run.kind === RunKind.REIMAGE;
      if (!isWriting || run.phase === RunPhase.ENDED || this.#random.below(3) > 0) continue;
      run.phase = RunPhase.ENDED;
      run.outcome = RunOutcome.SUCCEEDED;
      run.endTime = timestampFromMs(this.rig.clock.nowMs());
      host.status.state = HostState.PROVISIONED;
      host.status.image = record.image;
      delete record.operation;
      this.successes.push(`${host.name} ${run.number} ${record.image.split('@')[1]}`);
      this.rig.put(storeKey('hosts', host.name.slice(6)), wire.HostRecordSchema, record);
    }
  }

  /**
   * Checks every revision since the last check: each host that is out has a slot, and the number of
   * slots is within the bound.
   */
  #judge(): void {
    const latest = this.rig.disk.latest();
    const pools = this.rig.disk.after(this.#seen, 'pools', 10_000);
    this.#seen = latest;
    for (const change of pools) {
      if (change.kind !== 'put') continue;
      const { pool } = fromBinary(wire.PoolRecordSchema, change.value);
      const slots = pool?.status?.slots ?? [];
      if (slots.length > unavailable) this.problems.add(`${slots.length} slots at once`);
      const hosts = new Set(slots.map(({ host }) => host));
      if (hosts.size < slots.length) this.problems.add('a host has two slots');
    }
    const slots = this.pool()?.pool?.status?.slots ?? [];
    const out = this.#hosts().filter(({ host }) => {
      const run = host?.status?.run;
      const isWriting = run?.kind === RunKind.PROVISION || run?.kind === RunKind.REIMAGE;
      return isWriting && run.phase !== RunPhase.ENDED;
    });
    if (out.length > unavailable) this.problems.add(`${out.length} hosts out at once`);
    for (const { host } of out) {
      const has = slots.some((slot) => slot.hostUid === host?.uid);
      if (!has) this.problems.add('a host is out without a slot');
    }
  }
}

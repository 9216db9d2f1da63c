/**
 * A pool and its hosts on the bench: the pure step, and hosts that carry out requests when the test
 * says so. The test does the loop's work between two passes (claims, cleans, runs).
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  HostState,
  type ImageRegistry,
  type PoolConditionType,
  PoolSchema,
  type PoolSpec,
  type PoolSpecSchema,
  poolCondition,
  type RolloutSlot,
  RolloutSlotState,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  readActor,
  StepState,
  store as wire,
  writeImageStep,
} from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import type { SlotNews } from '../facts/draft-types.ts';
import type { OtherPool } from '../facts/members.ts';
import type { SeenHost } from '../facts/seen.ts';
import { knownDigest, type ResolvedImage } from '../facts/target.ts';
import { digestInImage } from '../policy/image-name.ts';
import { decidePool, type PoolDecision } from './decide.ts';
import type { GateFacts, GateOrder } from './gate.ts';
import { survey } from './survey.ts';

export const startMs = Date.UTC(2026, 10, 22, 12);

/** A digest of its own for each letter. */
export function digest(letter: string): string {
  return `sha256:${letter.charCodeAt(0).toString(16).padStart(2, '0').repeat(32)}`;
}

/** The image of a letter, by digest. */
export function image(letter: string): string {
  return `registry.example/os@${digest(letter)}`;
}

export const reference = 'registry.example/os:stable';

type SpecInit = Exclude<MessageInitShape<typeof PoolSpecSchema>, PoolSpec>;

/** The intended end of a run. */
export type End = 'succeeded' | 'failedWriting' | 'failedBefore';

export class Rollout {
  record: wire.PoolRecord;
  hosts: SeenHost[];
  nowMs = startMs;
  others: OtherPool[] = [];
  /** By key, as in a store. */
  readonly ledger = new Map<string, wire.DeploymentRecord>();
  /** The most hosts in service that were taken out at once. */
  outMax = 0;
  nextPassMs: number | undefined;
  gate: GateFacts | undefined;
  registries: readonly ImageRegistry[] = [];
  /** The questions to the gate's webhook after the last step. */
  questions: readonly GateOrder[] = [];
  readonly #runs = new Map<string, Run>();

  constructor(count: number, spec: SpecInit = {}, host: Partial<SeenHost> = {}) {
    this.hosts = Array.from({ length: count }, (_, index) => seen(index + 1, host));
    this.record = create(wire.PoolRecordSchema, {
      pool: create(PoolSchema, {
        name: 'pools/p',
        uid: 'pool-uid',
        spec: { hosts: { labels: { pool: 'p' } }, image: reference, ...spec },
      }),
    });
  }

  get spec(): PoolSpec {
    const spec = this.record.pool?.spec;
    if (spec === undefined) throw new Error('the pool has no spec');
    return spec;
  }

  get slots(): readonly RolloutSlot[] {
    return this.record.pool?.status?.slots ?? [];
  }

  /** "h1 h2": the hosts with a slot, in the order of the slots. */
  get out(): string {
    return this.slots.map(({ host }) => idOf(host)).join(' ');
  }

  condition(type: PoolConditionType): string {
    return poolCondition(this.record.pool?.status, type)?.reason ?? '';
  }

  messageOf(type: PoolConditionType): string {
    return poolCondition(this.record.pool?.status, type)?.message ?? '';
  }

  host(n: number): SeenHost {
    const found = this.hosts[n - 1];
    if (found === undefined) throw new Error(`there is no h${n}`);
    return found;
  }

  set(n: number, change: Partial<SeenHost>): void {
    this.hosts[n - 1] = { ...this.host(n), ...withService(change) };
  }

  /** Reconciles until nothing changes; claims and sends requests in between, like the loop. */
  reconcile(resolved?: ResolvedImage): this {
    this.#step(resolved);
    for (let round = 0; round < 50; round++) {
      const before = JSON.stringify([this.record, this.hosts], bigints);
      this.#actOnHosts();
      this.#step();
      if (JSON.stringify([this.record, this.hosts], bigints) === before) return this;
    }
    throw new Error('the pool does not come to rest');
  }

  /** One pass, as in the loop after each answer. */
  reconcileOnce(): void {
    this.#step();
  }

  /** From now on the registry resolves the tag to this digest. */
  push(letter: string): this {
    const { image: named } = this.spec;
    return this.reconcile({
      ...{ kind: 'digest', reference: named, digest: digest(letter), version: `v-${letter}` },
      known: knownDigest(this.record, named),
    });
  }

  /** Ends the run of the slot's host; `left` is the remaining change of the host. */
  end(name: string, how: End = 'succeeded', left: Partial<SeenHost> = {}): this {
    const slot = this.slots.find(({ host }) => host === `hosts/${name}`);
    const index = this.hosts.findIndex((host) => host.name === `hosts/${name}`);
    const host = this.hosts[index];
    const run = slot === undefined ? undefined : this.#runs.get(`${slot.hostUid}/${slot.run}`);
    if (slot === undefined || host === undefined || run === undefined) {
      throw new Error(`${name} has no run`);
    }
    run.phase = RunPhase.ENDED;
    run.endTime = timestampFromMs(this.nowMs);
    run.outcome = how === 'succeeded' ? RunOutcome.SUCCEEDED : RunOutcome.FAILED;
    const wrote = create(RunSchema, {
      steps: [{ name: writeImageStep, attempt: how === 'failedBefore' ? 0 : 1 }],
    });
    run.steps = wrote.steps;
    this.hosts[index] = { ...host, ...withService({ ...after(slot, host, how), ...left }), run };
    return this.reconcile();
  }

  /** Ends runs as they come until no host has a slot. */
  finish(): this {
    for (let round = 0; round < 500; round++) {
      const running = this.slots.find(({ state }) => state === RolloutSlotState.RUNNING);
      if (running === undefined) return this;
      this.nowMs += 60_000;
      this.end(idOf(running.host));
    }
    throw new Error('the rollout does not end');
  }

  /** Hosts that run the image of a letter. */
  countOn(letter: string): number {
    return this.hosts.filter((host) => host.digest === digest(letter)).length;
  }

  /** What each host waits for, as explained. */
  surveyed() {
    const hosts = new Map(this.hosts.map((host) => [host.uid, host]));
    return survey(this.record, hosts, this.nowMs);
  }

  #step(resolved?: ResolvedImage): PoolDecision {
    const step = decidePool(this.record, {
      ...{ hosts: this.hosts, others: this.others, nowMs: this.nowMs, resolved },
      registries: this.registries,
      ...(this.gate === undefined ? {} : { gate: this.gate }),
      news: new Map(this.slots.flatMap((slot) => this.#newsOf(slot))),
    });
    for (const each of step.deployments) {
      const key = `${each.hostUid}/${each.run}`;
      if (!this.ledger.has(key)) this.ledger.set(key, each);
    }
    this.record = step.record;
    this.nextPassMs = step.nextPassMs;
    this.questions = step.questions;
    const serving = this.slots.filter(({ kind }) => kind === RunKind.REIMAGE);
    this.outMax = Math.max(this.outMax, serving.length);
    return step;
  }

  #newsOf(slot: RolloutSlot): [bigint, SlotNews][] {
    if (slot.state === RolloutSlotState.GATE) return [];
    const host = this.hosts.find(({ uid }) => uid === slot.hostUid);
    if (host === undefined) return [];
    const known = slot.run === 0n ? asRunNumber(slot.runsBefore + 1n) : slot.run;
    const key = `${slot.hostUid}/${known}`;
    let run = this.#runs.get(key);
    if (run === undefined) {
      run = create(RunSchema, {
        ...{ kind: slot.kind, number: known, phase: RunPhase.RUNNING, requestedBy: 'pools/p' },
        steps: [{ name: writeImageStep, state: StepState.PENDING }],
      });
      this.#runs.set(key, run);
      const index = this.hosts.indexOf(host);
      this.hosts[index] = {
        ...host,
        run,
        runCount: known,
        keptBy: { kind: 'run', text: 'busy: its run holds it' },
      };
    }
    return [[slot.number, { kind: 'run', run }]];
  }

  #actOnHosts(): void {
    const members = new Set(this.record.members.map(({ hostUid }) => hostUid));
    this.hosts = this.hosts.map((host) => {
      if (members.has(host.uid) && host.claimedBy === undefined) {
        return { ...host, claimedBy: readActor('pools/p') };
      }
      if (!members.has(host.uid) && host.claimedBy === 'pools/p') {
        return { ...host, claimedBy: undefined };
      }
      if (host.state === HostState.MANAGEABLE && host.goalStopped === undefined) {
        return { ...host, state: HostState.AVAILABLE };
      }
      return host;
    });
  }
}

/** An unclaimed, healthy host that runs image A. */
export function seen(n: number, change: Partial<SeenHost> = {}): SeenHost {
  return {
    name: `hosts/h${n}`,
    uid: `u${n}`,
    rack: `racks/r${(n % 2) + 1}`,
    labels: { pool: 'p' },
    state: HostState.PROVISIONED,
    image: image('A'),
    digest: digest('A'),
    claimedBy: undefined,
    illness: undefined,
    service: 'in',
    isComingBack: false,
    keptBy: undefined,
    brake: undefined,
    isInRescue: false,
    switchedOffBy: undefined,
    spec: undefined,
    runCount: 0n,
    retries: 0n,
    run: undefined,
    goalStopped: undefined,
    isDeleting: false,
    waitsForReview: false,
    isStillIn: false,
    ...withService(change),
  };
}

/** A host with an illness is out, unless the change says otherwise. */
function withService(change: Partial<SeenHost>): Partial<SeenHost> {
  if (!('illness' in change)) return change;
  return { service: change.illness === undefined ? 'in' : 'out', ...change };
}

/** The state of a host after a run. */
function after(slot: RolloutSlot, { state }: SeenHost, how: End): Partial<SeenHost> {
  const free = { keptBy: undefined };
  switch (how) {
    case 'succeeded':
      return {
        ...{ ...free, state: HostState.PROVISIONED, image: slot.image, illness: undefined },
        digest: digestInImage(slot.image),
      };
    case 'failedWriting':
      if (slot.kind === RunKind.PROVISION) {
        return { ...free, state: HostState.MANAGEABLE };
      }
      return {
        ...free,
        image: '',
        digest: '',
        illness: { kind: 'fault', text: 'reimageFailed: write error' },
      };
    case 'failedBefore':
      return { ...free, state };
  }
}

function bigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

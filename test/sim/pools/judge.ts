/**
 * The judge's rules about pools, by machines' own words and by records as they were written. A
 * machine is in service while it runs an image that it wholly holds and that has proved itself.
 *
 * P1 Never more machines out of service that a pool took out than may be out.
 * P2 A host is provisioned by a run only if its machine got that very image wholly, by that very
 *    run, and has proved itself since.
 * P3 The ledger has entries of such runs alone, as of when the control plane has heard of it, and
 *    none ever changes or goes.
 * P4 The history that each replica tells is the ledger's, counted (`audit.ts`); the ledger has an
 *    entry for whoever a pool brought to its image.
 * P5 A pool acts only on hosts whose claim it holds, begins nothing without a slot, and nothing on
 *    whom a person works on.
 * P6 No more slots than hosts may be out, no host twice; numbers rise, what a slot says stays, and
 *    it goes only once the host's run has ended, or was called off before it wrote anything.
 * P7 Whom a pool says to have failed has lost its image by that, and as many of them stop it: until
 *    one comes back, or people want another image or say otherwise, whoever leaves or joins.
 * P8 When the faults stop every pool comes to rest, its hosts on its image.
 * P9 What people have changed of a pool is not lost by what the pool itself writes.
 * P10 A host whose failed reimage has written nothing keeps its image in its status, is no more ill
 *     by that than before, and is switched on again (`untouched.ts`).
 * P11 to P16: when a host is taken (`policy.ts`).
 * P17 Nothing comes over an image that is whole before all of what comes was proved in the rack.
 */
import { equals, fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  HostState,
  type HostUid,
  PoolSpecSchema,
  type RolloutSlot,
  RolloutSlotState,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  store,
} from '@rackwright/messages';
import { type JudgedHost, type JudgeParts, machineOf } from '../judged.ts';
import type { ImageEvent, SimMachine } from '../machine.ts';
import { BegunDeployments } from './begun.ts';
import { isDeployment, isUnderWay } from './given-back.ts';
import { HaltRule } from './halts.ts';
import { inHands } from './in-hands.ts';
import { PolicyRules } from './policy.ts';
import { digestOf, UntouchedRule } from './untouched.ts';

const requestIdsKept = 32;

/** A host that a pool has taken out of service. */
interface TakenOut {
  readonly pool: string;
  readonly hostUid: HostUid;
  /** How many might be out when its slot was taken. */
  readonly most: number;
}

export class PoolJudge {
  readonly #parts: JudgeParts;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  /** By name. */
  readonly #pools = new Map<string, store.PoolRecord>();
  /** "POOL-UID NUMBER" → how many might be out when the slot was taken. */
  readonly #most = new Map<string, number>();
  /** By key. */
  readonly #ledger = new Map<string, store.DeploymentRecord>();
  readonly #begun = new BegunDeployments();
  readonly #written = new Set<string>();
  readonly #proved = new Set<string>();
  /** By machine. */
  readonly #out = new Map<string, TakenOut>();
  /** Machines whose disks people have changed since their image was written. */
  readonly #opened = new Set<string>();
  readonly #untouched: UntouchedRule;
  readonly #policy: PolicyRules;
  readonly #halts: HaltRule;
  #imagesRead = 0;
  /** The store went back: nothing of before has to hold any more. */
  #isBack = false;

  constructor(
    parts: JudgeParts,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
  ) {
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
    const count = (what: string) => parts.view.count(what);
    this.#untouched = new UntouchedRule({ begun: this.#begun, found, count });
    this.#halts = new HaltRule(found);
    this.#policy = new PolicyRules({ view: parts.view, found });
  }

  /** An older state of the store stands there now: what it says is noted next. */
  reload(): void {
    this.#isBack = true;
    this.#pools.clear();
    this.#ledger.clear();
    this.#out.clear();
    this.#halts.reload();
    this.#untouched.reload();
    this.#policy.reload();
  }

  /** Takes in what an older state of the store says. */
  noteAgain(key: string, value: Uint8Array): void {
    if (key.startsWith('pools.')) {
      const record = fromBinary(store.PoolRecordSchema, value);
      this.#pools.set(record.pool?.name ?? '', record);
    } else if (key.startsWith('deployments.')) {
      this.#ledger.set(key, fromBinary(store.DeploymentRecordSchema, value));
    }
  }

  /** Takes in what was written; undefined: it is gone. */
  note(key: string, value: Uint8Array | undefined): void {
    if (!this.#parts.view.pools) return;
    if (key.startsWith('deployments.')) this.#noteDeployment(key, value);
    if (!key.startsWith('pools.')) return;
    const name = key.replace('.', '/');
    const before = this.#pools.get(name);
    if (value === undefined) {
      this.#pools.delete(name);
      this.#judgeGone(name);
      return;
    }
    const record = fromBinary(store.PoolRecordSchema, value);
    this.#pools.set(name, record);
    const isSame = before?.pool?.uid === record.pool?.uid;
    this.#halts.written(isSame ? before : undefined, record, thresholdOf(record));
    this.#noteSlots(isSame ? before : undefined, record);
    const [threshold, most] = [thresholdOf(record), unavailableMax(record)];
    const facts = { isBack: this.#isBack, threshold, most };
    this.#policy.written(isSame ? before : undefined, record, facts);
    if (isSame && before !== undefined) this.#judgeChange(before, record);
  }

  /** Takes in a written record of a host, before it takes its place. */
  changed(before: store.HostRecord | undefined, record: store.HostRecord): void {
    if (!this.#parts.view.pools) return;
    this.#policy.changed(record);
    if (this.#isBack) return;
    const { uid, status } = record.host ?? {};
    const was = before?.host?.uid === uid ? before : undefined;
    const [old, run] = [was?.host?.status?.run, status?.run];
    if (run === undefined) return;
    if (was !== undefined && !this.#parts.view.netboot) this.#untouched.changed(was, record);
    const isNew = old === undefined || old.number < run.number;
    if (isNew) this.#judgeStart(was, record, run);
    const hadEnded = !isNew && old.phase === RunPhase.ENDED;
    if (isDeployment(run) && hasSucceeded(run) && !hadEnded) this.#judgeEnd(record, run);
    this.#begun.changed(record, run);
  }

  /** An agent has died. */
  agentDied(): void {
    for (const { record } of this.#hosts.values()) this.#begun.agentDied(record);
  }

  /** A host is gone. */
  removed(record: store.HostRecord): void {
    this.#policy.removed(record);
  }

  look(): void {
    const { images } = this.#parts.logs;
    for (; this.#imagesRead < images.length; this.#imagesRead++) {
      const event = images[this.#imagesRead];
      if (event !== undefined) this.#noteImage(event);
    }
  }

  /** Whether every pool is at rest: P8 may be judged. */
  isSettled(): boolean {
    return [...this.#pools.values()].every((record) => this.#unrest(record) === undefined);
  }

  end(): void {
    if (!this.#parts.view.pools) return;
    for (const [name, record] of this.#pools) {
      const why = this.#unrest(record);
      if (why !== undefined) this.#found('P8', `${name} does not come to rest: ${why}`);
      else if (!this.#isBack) this.#judgeRest(name, record);
    }
  }

  #noteImage({ act, machine, digest, deployment, by, atMs, isRash }: ImageEvent): void {
    const what = `${deployment} ${digest}`;
    switch (act) {
      case 'begun':
        this.#begun.note(what);
        // An older state of the store knows nothing of what stands on the disk.
        if (isRash === true && !this.#isBack) {
          this.#found('P17', `${machine} loses its image to ${what}, which is not proved yet`);
        }
        return;
      case 'fetched':
        this.#begun.note(what);
        this.#written.add(what);
        this.#parts.view.count('image fetched');
        return;
      case 'written':
        this.#written.add(what);
        this.#opened.delete(machine);
        return;
      case 'opened':
        this.#opened.add(machine);
        return;
      case 'proved':
        this.#proved.add(what);
        this.#policy.proved(what, atMs);
        this.#out.delete(machine);
        this.#parts.view.count('image proved');
        return;
      case 'booted':
        if (this.#proved.has(what)) this.#out.delete(machine);
        return;
      case 'stopped':
        if (by === 'bmc') this.#takenOut(machine);
    }
  }

  /** P1: a machine that was in service is switched off; for a pool, if its host's run says so. */
  #takenOut(machine: string): void {
    if (this.#isBack) return;
    const host = this.#hostOf(machine);
    const run = host?.record.host?.status?.run;
    if (host === undefined || run?.kind !== RunKind.REIMAGE || run.phase === RunPhase.ENDED) return;
    const record = this.#pools.get(run.requestedBy);
    const hostUid = host.record.host?.uid ?? '';
    const slot = slotsOf(record).find((each) => each.hostUid === hostUid);
    if (record === undefined || slot === undefined) return;
    const pool = run.requestedBy;
    const most = this.#most.get(slotKey(record, slot)) ?? 0;
    this.#out.set(machine, { pool, hostUid, most });
    this.#parts.view.count('taken out by a pool');
    const out = [...this.#out].filter(([name, each]) => each.pool === pool && this.#isOut(name));
    const allowed = Math.max(...out.map(([, each]) => each.most));
    if (out.length <= allowed) return;
    const names = out.map(([name]) => name).join(', ');
    this.#found('P1', `${pool} has taken out ${names}; ${allowed} may be`);
  }

  /** Who was left dirty by a run that failed, or is the pool's no more, is not in service. */
  #isOut(machine: string): boolean {
    const taken = this.#out.get(machine);
    const status = this.#hostOf(machine)?.record.host?.status;
    const record = taken === undefined ? undefined : this.#pools.get(taken.pool);
    if (taken === undefined || status === undefined || record === undefined) return false;
    if (slotsOf(record).some(({ hostUid }) => hostUid === taken.hostUid)) return true;
    return status.state === HostState.PROVISIONED && status.claim?.by === taken.pool;
  }

  #hostOf(machine: string): JudgedHost | undefined {
    const { machines } = this.#parts;
    return [...this.#hosts.values()].find((host) => machineOf(machines, host)?.name === machine);
  }

  /** P5. */
  #judgeStart(before: store.HostRecord | undefined, record: store.HostRecord, run: Run): void {
    const pool = run.requestedBy;
    if (!pool.startsWith('pools/')) return;
    const { host } = record;
    const name = host?.name ?? '';
    this.#parts.view.count(isDeployment(run) ? 'deployment of a pool' : 'another run of a pool');
    const claims = [before, record].map((each) => each?.host?.status?.claim?.by);
    if (!claims.includes(pool)) {
      this.#found('P5', `${pool} begins run ${run.number} of ${name}, which ${claims[1]} claims`);
    }
    const hands = inHands(before, pool);
    if (hands !== undefined) {
      this.#found('P5', `${pool} begins run ${run.number} of ${name}, which ${hands}`);
    }
    if (!isDeployment(run)) return;
    const slot = slotsOf(this.#pools.get(pool)).find(({ hostUid }) => hostUid === host?.uid);
    if (slot === undefined) {
      this.#found('P5', `${pool} begins run ${run.number} of ${name} without a slot`);
    } else if (slot.image !== record.image) {
      this.#found('P5', `${name} gets ${record.image}, its slot says ${slot.image}`);
    }
  }

  /** P2. */
  #judgeEnd({ host }: store.HostRecord, run: Run): void {
    const what = `${host?.uid}/${run.number} ${digestOf(host?.status?.image ?? '')}`;
    const name = host?.name ?? '';
    if (!this.#written.has(what)) {
      this.#found('P2', `${name}: run ${run.number} succeeded, and no disk got ${what} wholly`);
    } else if (!this.#proved.has(what)) {
      this.#found('P2', `${name}: run ${run.number} succeeded, and ${what} has proved nothing`);
    }
  }

  /** P3. */
  #noteDeployment(key: string, value: Uint8Array | undefined): void {
    const before = this.#ledger.get(key);
    if (value === undefined || before !== undefined) {
      this.#found('P3', `${key} is ${value === undefined ? 'gone' : 'written once more'}`);
      return;
    }
    const entry = fromBinary(store.DeploymentRecordSchema, value);
    this.#ledger.set(key, entry);
    this.#parts.view.count('deployment told');
    if (this.#isBack) return;
    const what = `${entry.hostUid}/${entry.run} ${entry.digest}`;
    if (!this.#written.has(what)) this.#found('P3', `${key} tells of ${what}, which nobody wrote`);
    else if (!this.#proved.has(what)) {
      this.#found('P3', `${key} tells of ${what}, which has proved nothing`);
    }
    // Whatever the clock of the agent shows.
    const { heap, wallStartMs } = this.#parts.view;
    const atMs = (entry.endTime === undefined ? 0 : timestampMs(entry.endTime)) - wallStartMs;
    const isHeard = atMs >= this.#policy.provedAtMs(what) && atMs <= heap.nowMs;
    if (!isHeard) this.#found('P3', `${key} is told as of ${atMs} ms, at ${heap.nowMs} ms`);
  }

  /** P6: what is taken. */
  #noteSlots(before: store.PoolRecord | undefined, record: store.PoolRecord): void {
    const slots = slotsOf(record);
    const had = new Set(slotsOf(before).map(({ number }) => number));
    const most = unavailableMax(record);
    const fresh = slots.filter(({ number }) => !had.has(number));
    for (const slot of fresh) {
      this.#most.set(slotKey(record, slot), most);
      this.#parts.view.count('slot taken');
      if (before !== undefined && slot.number <= before.slotCount) {
        this.#found('P6', `${record.pool?.name}: slot ${slot.number} is given again`);
      }
    }
    if (fresh.length > 0 && slots.length > most) {
      this.#found('P6', `${record.pool?.name}: ${slots.length} slots, ${most} may be out`);
    }
    if (new Set(slots.map(({ hostUid }) => hostUid)).size < slots.length) {
      this.#found('P6', `${record.pool?.name}: a host has two slots`);
    }
    if (fresh.length > 0 && !this.#isBack) this.#halts.judge(record, fresh);
  }

  #judgeChange(before: store.PoolRecord, record: store.PoolRecord): void {
    const name = record.pool?.name ?? '';
    for (const slot of slotsOf(before)) {
      const now = slotsOf(record).find(({ number }) => number === slot.number);
      if (now === undefined) this.#judgeGiven(name, slot);
      else if (fixedOf(now) !== fixedOf(slot)) {
        this.#found('P6', `${name}: slot ${slot.number} was ${fixedOf(slot)}: ${fixedOf(now)}`);
      }
    }
    for (const failure of record.failures) {
      const isKnown = before.failures.some((each) =>
        equals(store.PoolFailureSchema, each, failure),
      );
      if (failure.counted && !isKnown) this.#judgeFailure(before, failure);
    }
    this.#judgeAuthors(name, before, record);
  }

  /** P6: what is given back. */
  #judgeGiven(pool: string, slot: RolloutSlot): void {
    if (slot.state === RolloutSlotState.GATE || this.#isBack) return;
    const record = [...this.#hosts.values()].find((each) => {
      return each.record.host?.uid === slot.hostUid;
    });
    const run = record?.record.host?.status?.run;
    if (!isUnderWay(slot, run, pool, this.#begun)) return;
    this.#found('P6', `${pool}: slot ${slot.number} is given back while ${slot.host} is under way`);
  }

  /** P7: a machine that was never written has lost nothing. */
  #judgeFailure(before: store.PoolRecord, { host, hostUid, digest }: store.PoolFailure): void {
    if (this.#isBack) return;
    const slot = slotsOf(before).find((each) => each.hostUid === hostUid);
    const record = [...this.#hosts.values()].find((each) => each.record.host?.uid === hostUid);
    const runs = [slot?.run, record?.record.host?.status?.run?.number];
    if (runs.some((run) => run && this.#begun.mayHaveBegun(hostUid, run, digest))) return;
    this.#found('P7', `${before.pool?.name}: ${host} counts as failed, and nothing was written`);
  }

  /** P9: only an asked-for change moves the spec, and no request is forgotten. */
  #judgeAuthors(name: string, before: store.PoolRecord, record: store.PoolRecord): void {
    const [was, is] = [before.pool?.spec, record.pool?.spec];
    const added = record.requestIds.some((id) => !before.requestIds.includes(id));
    const isMoved = was !== undefined && is !== undefined && !equals(PoolSpecSchema, was, is);
    if (isMoved && !added) this.#found('P9', `${name} was changed, and nobody asked for it`);
    const lost = before.requestIds.filter((id) => !record.requestIds.includes(id));
    if (lost.length > 0 && record.requestIds.length < requestIdsKept) {
      this.#found('P9', `${name} has forgotten the request ${lost[0]}`);
    }
    if (before.deletion !== undefined && record.deletion === undefined) {
      this.#found('P9', `${name} is not deleted any more`);
    }
  }

  /** P5: a pool that is gone claims nobody. */
  #judgeGone(pool: string): void {
    for (const { record } of this.#hosts.values()) {
      if (record.host?.status?.claim?.by !== pool || this.#isBack) continue;
      this.#found('P5', `${pool} is gone and claims ${record.host.name}`);
    }
  }

  /** Why a pool is not at rest; undefined: it is. */
  #unrest(record: store.PoolRecord): string | undefined {
    if (record.deletion !== undefined) return 'it is being deleted';
    const [slot] = slotsOf(record);
    if (slot !== undefined) return `${slot.host} is out: ${slot.message}`;
    const [failure] = record.failures;
    if (failure !== undefined) return `${failure.host} has failed: ${failure.message}`;
    const target = record.pool?.status?.target;
    if (target === undefined || target.reference !== record.pool?.spec?.image) return 'no target';
    if (record.pool.status?.rolledBackFrom === target.digest) return 'it went back';
    return this.#memberAside(record, target.digest);
  }

  /** A member that is not the pool's, on this image. */
  #memberAside({ members, pool }: store.PoolRecord, digest: string): string | undefined {
    for (const { host, hostUid } of members) {
      const found = [...this.#hosts.values()].find((each) => each.record.host?.uid === hostUid);
      const status = found?.record.host?.status;
      if (status?.state !== HostState.PROVISIONED) return `${host} is not provisioned`;
      if (digestOf(status.image) !== digest) return `${host} is on ${status.image}`;
      if (status.claim?.by !== pool?.name) return `${host} is claimed by ${status.claim?.by}`;
    }
    return undefined;
  }

  /** P8 by machines, and P4. */
  #judgeRest(name: string, record: store.PoolRecord): void {
    const digest = record.pool?.status?.target?.digest ?? '';
    const entries = [...this.#ledger.values()].filter((each) => each.poolUid === record.pool?.uid);
    for (const { hostUid, host } of record.members) {
      const found = [...this.#hosts.values()].find((each) => each.record.host?.uid === hostUid);
      const machine = found === undefined ? undefined : this.#machineOf(found);
      const { image = machine?.netbooted } = machine?.drives[0] ?? {};
      const isOpened = machine !== undefined && this.#opened.has(machine.name);
      if (!isOpened && (image?.whole !== true || image.digest !== digest)) {
        this.#found('P8', `${name}: ${host} shall run ${digest}, its disk holds ${image?.digest}`);
      }
      const wasOurs = entries.some((each) => each.hostUid === hostUid && each.digest === digest);
      const run = this.#deployedBy(found);
      if (wasOurs || run !== name) continue;
      this.#found('P4', `${name}: the history does not tell of ${host} on ${digest}`);
    }
  }

  #machineOf(host: JudgedHost): SimMachine | undefined {
    return machineOf(this.#parts.machines, host);
  }

  /** Who asked for the last deployment of a host that is still known. */
  #deployedBy(host: JudgedHost | undefined): string | undefined {
    const { record } = host ?? {};
    const runs = [...(record?.finishedRuns ?? []), record?.host?.status?.run];
    const done = runs.filter((run) => run !== undefined && isDeployment(run)) as Run[];
    const last = done.toSorted((a, b) => Number(a.number - b.number)).at(-1);
    return last?.outcome === RunOutcome.SUCCEEDED ? last.requestedBy : undefined;
  }
}

function slotsOf(record: store.PoolRecord | undefined): readonly RolloutSlot[] {
  return record?.pool?.status?.slots ?? [];
}

function slotKey({ pool }: store.PoolRecord, { number }: RolloutSlot): string {
  return `${pool?.uid} ${number}`;
}

/** What of a slot never changes. */
function fixedOf({ host, hostUid, image, kind, takeTime }: RolloutSlot): string {
  return [host, hostUid, image, kind, takeTime?.seconds, takeTime?.nanos].join(' ');
}

/** How many of its hosts may be out at once, as controlplane/OPERATING.md and proto say it. */
function unavailableMax({ pool, members }: store.PoolRecord): number {
  const { case: unit, value = 0 } = pool?.spec?.rollout?.maxUnavailable?.amount ?? {};
  if (unit === undefined) return 1;
  if (unit === 'count') return value;
  return value === 0 ? 0 : Math.max(1, Math.floor((members.length * value) / 100));
}

/** 5 percent, but at least 2, when nothing is said. */
function thresholdOf({ pool, members }: store.PoolRecord): number {
  const { case: unit, value = 0 } = pool?.spec?.rollout?.failureThreshold?.amount ?? {};
  if (unit === undefined) return Math.max(2, Math.floor((members.length * 5) / 100));
  if (unit === 'count') return Math.max(1, value);
  return Math.max(1, Math.floor((members.length * value) / 100));
}

function hasSucceeded({ phase, outcome }: Run): boolean {
  return phase === RunPhase.ENDED && outcome === RunOutcome.SUCCEEDED;
}

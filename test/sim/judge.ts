/**
 * Judges a simulated rack by what its devices and its store went through, after every event. It
 * decodes records, but decides by rules of its own and uses none of the code that it judges. The
 * rules by number stand in README.md; each is kept where its number is cited.
 */
import { equals } from '@bufbuild/protobuf';
import {
  DeletionMode,
  HostState,
  type OperationId,
  type Run,
  RunPhase,
  RunSchema,
  store,
} from '@rackwright/messages';
import type { StoredWrite } from './acknowledged.ts';
import { DiscoveryJudge } from './discovery/judge.ts';
import type { DriveEvent } from './drives.ts';
import { hostRecordOf } from './host-record.ts';
import { BrakeJudge } from './judge-brakes.ts';
import { CertificateJudge } from './judge-certificates.ts';
import { DeviceJudge } from './judge-devices.ts';
import { ProofJudge } from './judge-proof.ts';
import { ShutdownJudge } from './judge-shutdown.ts';
import { StepJudge } from './judge-steps.ts';
import { type JudgedHost, type JudgeParts, machineOf } from './judged.ts';
import { PoolJudge } from './pools/judge.ts';
import { BatchJudge } from './workflows/batch-judge.ts';
import { WorkflowJudge } from './workflows/judge.ts';
import { OwnStepJudge } from './workflows/own-judge.ts';

export interface Violation {
  /** "J1", … as in README.md. */
  readonly rule: string;
  readonly atMs: number;
  readonly text: string;
}

const violationsMax = 100;
/** How long work whose order a restored store has lost may still be carried out. */
const lostWorkMs = 120_000;
/** The changes of these keys are kept for the explanation of a violation. */
const hostsPrefix = 'hosts';

export class Judge {
  readonly violations: Violation[] = [];
  readonly #parts: JudgeParts;
  readonly #hosts = new Map<string, JudgedHost>();
  readonly #bytes = new Map<string, Uint8Array>();
  readonly #devices: DeviceJudge;
  readonly #certificates: CertificateJudge;
  readonly #brakes: BrakeJudge;
  readonly #shutdowns: ShutdownJudge;
  readonly #steps: StepJudge;
  readonly #proof: ProofJudge;
  readonly #workflows: WorkflowJudge;
  readonly #ownSteps: OwnStepJudge;
  readonly #discovery: DiscoveryJudge;
  readonly #batches: BatchJudge;
  readonly #pools: PoolJudge;
  #revision = 0;
  /** People have put an older state of the store back. */
  #wasRestored = false;
  /** What agents had seen of the store when it was put back. */
  #seenRevision = Number.POSITIVE_INFINITY;

  constructor(parts: JudgeParts) {
    this.#parts = parts;
    const found = (rule: string, text: string) => this.found(rule, text);
    this.#brakes = new BrakeJudge(found, () => this.#goesBack(lostWorkMs));
    const begun = (event: DriveEvent) => this.#brakes.begun(event);
    this.#devices = new DeviceJudge(parts, this.#hosts, found, begun);
    this.#shutdowns = new ShutdownJudge(parts, found);
    this.#steps = new StepJudge(parts, this.#hosts, found);
    this.#proof = new ProofJudge(parts, this.#hosts, found);
    this.#certificates = new CertificateJudge(parts, found);
    this.#workflows = new WorkflowJudge(parts, this.#hosts, found);
    this.#discovery = new DiscoveryJudge(parts, this.#hosts, found);
    this.#ownSteps = new OwnStepJudge(parts, this.#hosts, found);
    this.#batches = new BatchJudge(parts, found);
    this.#pools = new PoolJudge(parts, this.#hosts, found);
  }

  /** The hosts as last written. */
  get hosts(): ReadonlyMap<string, JudgedHost> {
    return this.#hosts;
  }

  /** What is judged of readings after a power cycle. */
  get proof(): ProofJudge {
    return this.#proof;
  }

  /** What is judged of runs of workflows. */
  get workflows(): WorkflowJudge {
    return this.#workflows;
  }

  /** What is judged of machines that are no hosts. */
  get discovery(): DiscoveryJudge {
    return this.#discovery;
  }

  /** What is judged of batches. */
  get batches(): BatchJudge {
    return this.#batches;
  }

  /** What is judged of pools. */
  get pools(): PoolJudge {
    return this.#pools;
  }

  /** The newest revision that has been judged. */
  get revision(): number {
    return this.#revision;
  }

  found(rule: string, text: string): void {
    if (this.violations.length >= violationsMax) return;
    this.violations.push({ rule, atMs: this.#parts.view.heap.nowMs, text });
  }

  /** Looks at everything that is new. */
  look(): void {
    const wrote = this.#readChanges();
    const acted = this.#devices.look();
    this.#discovery.look();
    this.#shutdowns.look();
    this.#steps.look();
    this.#proof.look();
    this.#workflows.look();
    this.#ownSteps.look();
    this.#pools.look();
    if (wrote || acted) this.#judgeAvailable();
  }

  /** J8: what was acknowledged to a control plane stands in the store. */
  acknowledged({ key, revision, writeId }: StoredWrite): void {
    const disk = this.#parts.view.storeDisk();
    const kept = disk.changesOf(key);
    const [oldest] = kept;
    const isTrimmed = oldest !== undefined && oldest.revision > revision;
    const isThere = kept.some((each) => each.revision === revision && each.writeId === writeId);
    if (!isThere && !isTrimmed) this.found('J8', `${key} lost its revision ${revision}`);
  }

  /** People have put an older state of the store back; agents have seen this revision of it. */
  storeRestored(seenRevision: number): void {
    const disk = this.#parts.view.storeDisk();
    this.#wasRestored = true;
    this.#proof.restored();
    this.#hosts.clear();
    this.#bytes.clear();
    this.#revision = disk.latest();
    this.#workflows.reload();
    this.#discovery.reload();
    this.#batches.reload();
    this.#pools.reload();
    for (const change of disk.lastChanges('')) {
      if (change.kind !== 'put') continue;
      this.#proof.reloaded(change.key, change.value);
      this.#workflows.note(change.key, change.value);
      this.#discovery.note(change.key, change.value);
      this.#batches.note(change.key, change.value);
      this.#pools.noteAgain(change.key, change.value);
      this.#bytes.set(change.key, change.value);
      this.#brakes.note(change.key, change.value, this.#parts.view.heap.nowMs);
      if (!change.key.startsWith(`${hostsPrefix}.`)) continue;
      const record = hostRecordOf(change.value);
      this.#workflows.reloaded(record);
      const host = { key: change.key, revision: change.revision, record };
      this.#hosts.set(change.key, host);
      this.#discovery.reloaded(host);
    }
    const known = seenRevision > disk.latest();
    this.#seenRevision = seenRevision;
    this.#brakes.restored(known, this.#parts.view.heap.nowMs);
    if (!known) this.#forgetOrders();
    // That disks were changed or written may be lost; it is found out when the loss is accepted.
    for (const machine of this.#parts.machines.values()) {
      machine.unseen ||= machine.changed || machine.hasData;
    }
    // What is under way goes on until the loss is accepted (DESIGN §10).
    this.#goesBack(known ? Number.POSITIVE_INFINITY : lostWorkMs);
  }

  /** The agent's memory of the store may be gone. */
  agentForgot(): void {
    if (this.#wasRestored) this.#forgetOrders();
    this.#brakes.memoryLost();
    this.#goesBack(lostWorkMs);
  }

  /** J12: what was answered `applied` has moved its host, durably. */
  applied(operationId: OperationId): void {
    this.#readChanges();
    this.#proof.applied(operationId);
    for (const { key, record } of this.#hosts.values()) {
      if (record.operation?.operation?.id !== operationId) continue;
      this.found('J12', `${operationId} was answered applied, ${key} still waits for it`);
    }
  }

  /** What must hold when the world ends. */
  end(files: Iterable<Uint8Array>, secret: string): void {
    for (const { key, record } of this.#hosts.values()) {
      const { deletion } = record.host?.status ?? {};
      if (deletion?.mode === DeletionMode.FORCE) this.found('J14', `${key} is not gone by force`);
    }
    this.#workflows.end();
    this.#discovery.end();
    this.#batches.end();
    this.#pools.end();
    // J15: secrets stay in memory; in the store they are sealed.
    const stored = [...this.#bytes.values(), ...files];
    if (stored.some((bytes) => Buffer.from(bytes).includes(secret))) {
      this.found('J15', 'a BMC password stands on a disk');
    }
  }

  /** Nobody can know that orders were lost: their numbers are used again. */
  #forgetOrders(): void {
    this.#devices.forgetOrders();
    this.#steps.forgetOrders();
    this.#workflows.forgetOrders();
  }

  /** Permits, for `forMs`, work whose order the restored store has lost. */
  #goesBack(forMs: number): void {
    this.#devices.restored(forMs);
    this.#shutdowns.restored(forMs);
    this.#steps.restored(forMs);
    this.#workflows.restored(forMs);
    this.#ownSteps.restored(forMs);
    this.#discovery.restored(forMs);
    this.#batches.restored(forMs);
  }

  #readChanges(): boolean {
    const disk = this.#parts.view.storeDisk();
    if (disk.latest() < this.#revision) {
      this.found('J8', `the store went back from ${this.#revision} to ${disk.latest()}`);
      this.#revision = disk.latest();
    }
    const changes = disk.after(this.#revision, '', 1_000);
    for (const change of changes) {
      this.#revision = change.revision;
      if (change.revision >= this.#seenRevision) this.#brakes.caughtUp();
      const value = change.kind === 'put' ? change.value : undefined;
      this.#workflows.note(change.key, value);
      this.#discovery.note(change.key, value);
      this.#proof.note(change.key, value);
      this.#batches.note(change.key, value);
      this.#pools.note(change.key, value);
      if (change.kind !== 'put') {
        const gone = this.#hosts.get(change.key);
        if (gone !== undefined) this.#removed(gone);
        this.#hosts.delete(change.key);
        this.#bytes.delete(change.key);
        continue;
      }
      const before = this.#bytes.get(change.key);
      // A reservation is confirmed by writing it again: a writer that held it for stale must lose.
      const confirms = change.key.startsWith('reservations.');
      if (!confirms && before !== undefined && Buffer.from(before).equals(change.value)) {
        this.found('J5', `${change.key} was written without a change`);
      }
      this.#bytes.set(change.key, change.value);
      this.#brakes.note(change.key, change.value, this.#parts.view.heap.nowMs);
      if (change.key.startsWith(`${hostsPrefix}.`)) {
        this.#readHost(change.key, change.revision, change.value, before);
      }
    }
    return changes.length > 0;
  }

  #removed(gone: JudgedHost): void {
    this.#workflows.removed(gone.record);
    this.#discovery.removed(gone);
    this.#batches.removed(gone.record);
    this.#pools.removed(gone.record);
  }

  #readHost(key: string, revision: number, value: Uint8Array, bytes?: Uint8Array): void {
    const record = hostRecordOf(value);
    const before = this.#hosts.get(key)?.record;
    if (before !== undefined && before.host?.uid === record.host?.uid) {
      // What says the same in another order has the same bytes; others need no comparison.
      const mayBeSame = bytes?.length === value.length && sumOf(bytes) === sumOf(value);
      if (mayBeSame && equals(store.HostRecordSchema, before, record)) {
        this.found('J5', `${key} was written without a change`);
      }
      this.#judgeWrite(key, before, record);
    }
    const host = { key, revision, record };
    this.#pools.changed(before, record);
    this.#hosts.set(key, host);
    this.#discovery.changed(host);
    this.#devices.ordered(record);
    this.#shutdowns.changed(before, host);
    this.#proof.changed(before, record);
    this.#steps.changed(record);
    this.#workflows.changed(record);
    this.#ownSteps.changed(record);
    this.#batches.changed(record);
  }

  #judgeWrite(key: string, before: store.HostRecord, record: store.HostRecord): void {
    const was = before.host?.status?.run;
    const is = record.host?.status?.run;
    if (was !== undefined && is !== undefined) this.#judgeRun(key, was, is, before, record);
    this.#judgeCause(key, before, record);
    this.#brakes.changed(before, record);
  }

  /** J4. */
  #judgeRun(
    key: string,
    was: Run,
    is: Run,
    before: store.HostRecord,
    record: store.HostRecord,
  ): void {
    // Numbers that runs of a lost stretch may have had are passed over.
    const next = this.#wasRestored ? is.number : was.number + 1n;
    if (is.number < was.number || is.number > next) {
      this.found('J4', `${key}: run ${is.number} follows run ${was.number}`);
    }
    const replaced = is.number > was.number && was.phase !== RunPhase.ENDED;
    // A run may end and its successor start in one revision: then its end is the cause.
    if (replaced && record.change?.cause === before.change?.cause) {
      this.found('J4', `${key}: run ${was.number} was replaced before it ended`);
    }
    const ended = is.number === was.number && was.phase === RunPhase.ENDED;
    if (ended && !equals(RunSchema, was, is)) {
      this.found('J4', `${key}: run ${was.number} changed after its end`);
    }
  }

  /** J10: only the operation that stands in the record may move it. */
  #judgeCause(key: string, before: store.HostRecord, record: store.HostRecord): void {
    const cause = record.change?.operationId ?? '';
    if (cause === '' || cause === before.change?.operationId) return;
    const slots = [before, record].map((each) => each.operation?.operation?.id);
    if (!slots.includes(cause)) this.found('J10', `${key} was moved by ${cause}, not its own`);
  }

  /** J1: by the disks themselves, and by the certificates. */
  #judgeAvailable(): void {
    for (const host of this.#hosts.values()) {
      const { status } = host.record.host ?? {};
      const machine = machineOf(this.#parts.machines, host);
      if (status?.state !== HostState.AVAILABLE) {
        if (machine?.listed === true) machine.unseen = false;
        continue;
      }
      this.#certificates.judge(host);
      if (machine === undefined || machine.unseen) continue;
      // Data that returned after the erasure is unknown until the disk is read again (E2).
      const left = machine.drives.filter((drive) => drive.hasData && !drive.hasReturned);
      const dirty = left.map(({ serial }) => serial);
      if (dirty.length > 0) this.found('J1', `${host.key} is available with data on ${dirty}`);
    }
  }
}

function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum += byte;
  return sum;
}

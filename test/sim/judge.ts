/**
 * Judges a simulated rack by what its devices and its store went through, event by event. It
 * decodes records, but decides by rules of its own and uses none of the code that it judges.
 *
 * J1 No host is available while one of its disks still holds data.
 * J2 No operation begins to destroy twice.
 * J3 Nothing is destroyed but by an operation that is in the record, with the journal it went to.
 * J4 A run that has ended never changes, and runs are numbered one after another.
 * J5 Nothing is written when nothing has changed.
 * J6 Nothing destructive begins without a work lease that was granted by the control plane.
 * J7 When the faults stop, every host becomes available.
 * J8 No write that the store has made is lost.
 */
import { equals, fromBinary } from '@bufbuild/protobuf';
import { HostState, RunPhase, RunSchema, store } from '@rackwright/api';
import type { MemoryDisk } from '@rackwright/store';
import type { DeviceEvent, SimMachine } from './hardware.ts';

export interface Violation {
  readonly rule: 'J1' | 'J2' | 'J3' | 'J4' | 'J5' | 'J6' | 'J7' | 'J8';
  readonly atMs: number;
  readonly text: string;
}

/** Until when a granted lease lets the agent begin. */
export interface LeaseView {
  untilMs: number;
}

export class Judge {
  readonly violations: Violation[] = [];
  readonly #disk: () => MemoryDisk;
  readonly #machines: ReadonlyMap<string, SimMachine>;
  readonly #log: readonly DeviceEvent[];
  readonly #lease: LeaseView;
  readonly #begun = new Set<string>();
  readonly #ordered = new Set<string>();
  readonly #records = new Map<string, { revision: number; record: store.HostRecord }>();
  #logRead = 0;
  #revision = 0;

  constructor(
    disk: () => MemoryDisk,
    machines: ReadonlyMap<string, SimMachine>,
    log: readonly DeviceEvent[],
    lease: LeaseView,
  ) {
    this.#disk = disk;
    this.#machines = machines;
    this.#log = log;
    this.#lease = lease;
  }

  /** Looks at everything that is new. */
  look(atMs: number): void {
    this.#readRecords(atMs);
    for (; this.#logRead < this.#log.length; this.#logRead++) {
      const event = this.#log[this.#logRead];
      if (event?.kind === 'eraseBegun') this.#judgeErase(event);
    }
    this.#judgeAvailable(atMs);
  }

  /** J7, at the end. */
  judgeEnd(atMs: number): void {
    for (const [key, { record }] of this.#records) {
      if (record.host?.status?.state === HostState.AVAILABLE) continue;
      const run = record.host?.status?.run;
      const why = run?.waiting?.message ?? run?.error?.message;
      const text = `${key} is not available at the end: ${why}`;
      this.#found('J7', atMs, text);
    }
  }

  #readRecords(atMs: number): void {
    const disk = this.#disk();
    if (disk.latest() < this.#revision) {
      this.#found('J8', atMs, `the store went back from ${this.#revision} to ${disk.latest()}`);
    }
    for (const change of disk.after(this.#revision, 'hosts', 1_000)) {
      this.#revision = change.revision;
      if (change.kind !== 'put') continue;
      const record = fromBinary(store.HostRecordSchema, change.value);
      this.#judgeWrite(change.key, record, atMs);
      this.#records.set(change.key, { revision: change.revision, record });
      const slot = record.operation;
      if (slot?.sentTo !== undefined) this.#ordered.add(slot.operation?.id ?? '');
    }
  }

  #judgeWrite(key: string, record: store.HostRecord, atMs: number): void {
    const before = this.#records.get(key)?.record;
    if (before === undefined) return;
    if (equals(store.HostRecordSchema, before, record)) {
      this.#found('J5', atMs, `${key} was written without a change`);
    }
    const was = before.host?.status?.run;
    const is = record.host?.status?.run;
    if (was === undefined || is === undefined) return;
    if (is.number < was.number || is.number > was.number + 1n) {
      this.#found('J4', atMs, `${key}: run ${is.number} follows run ${was.number}`);
    }
    if (is.number > was.number && was.phase !== RunPhase.ENDED && !endsWithin(record, before)) {
      this.#found('J4', atMs, `${key}: run ${was.number} was replaced before it ended`);
    }
    if (is.number === was.number && was.phase === RunPhase.ENDED && !equals(RunSchema, was, is)) {
      this.#found('J4', atMs, `${key}: run ${was.number} changed after its end`);
    }
  }

  #judgeErase(event: DeviceEvent): void {
    const { operationId, atMs } = event;
    if (this.#begun.has(operationId)) this.#found('J2', atMs, `${operationId} began twice`);
    this.#begun.add(operationId);
    if (!this.#ordered.has(operationId)) {
      this.#found('J3', atMs, `${operationId} began without being in the record`);
    }
    if (atMs > this.#lease.untilMs) {
      this.#found(
        'J6',
        atMs,
        `${operationId} began ${atMs - this.#lease.untilMs} ms after the lease`,
      );
    }
  }

  #judgeAvailable(atMs: number): void {
    for (const [key, { record }] of this.#records) {
      if (record.host?.status?.state !== HostState.AVAILABLE) continue;
      const machine = this.#machines.get(record.host.uid);
      const dirty = machine?.drives.filter((drive) => drive.hasData) ?? [];
      if (dirty.length === 0) continue;
      this.#found('J1', atMs, `${key} is available with data on ${dirty.map((d) => d.serial)}`);
    }
  }

  #found(rule: Violation['rule'], atMs: number, text: string): void {
    if (this.violations.length < 100) this.violations.push({ rule, atMs, text });
  }
}

/** A run may end and its successor start in one revision: then the first one's end is its cause. */
function endsWithin(after: store.HostRecord, before: store.HostRecord): boolean {
  return after.change?.cause !== before.change?.cause;
}

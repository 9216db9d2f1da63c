/**
 * The judge's rules about devices, decided by the devices' own logs:
 * J2 nothing destructive begins twice for one order, J3 nothing is written that is not in the plan,
 * J6 nothing destructive begins without a lease, J11 no power command but the host's own run's.
 */
import { agent, type HostUid, type OperationId, RunPhase, type store } from '@rackwright/messages';
import { type DriveEvent, isWrite } from './drives.ts';
import type { JudgedHost, JudgeParts } from './judged.ts';
import type { PowerEvent } from './machine.ts';

/** From the agent's last look at its lease to the device: the network and the runner's guards. */
const leaseSlackMs = 5_000;
/** How long after its order left the record a power command may still reach the machine. */
const powerSlackMs = 30_000;

interface ErasureOrder {
  readonly operationId: OperationId;
  readonly hostUid: HostUid;
  readonly serials: ReadonlySet<string>;
  /** Serials whose erasure has begun. */
  readonly begun: Set<string>;
  /** Whether the store may have forgotten it: its id may name another order since. */
  isLost: boolean;
}

interface PowerOrder {
  readonly operationId: OperationId;
  readonly address: string;
  readonly on: boolean;
  /** Undefined while it stands in the record. */
  leftMs: number | undefined;
}

export class DeviceJudge {
  readonly #parts: JudgeParts;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  readonly #begun: (event: DriveEvent) => void;
  readonly #erasures = new Map<string, ErasureOrder>();
  /** By host uid: those that stand, or stood until lately. */
  readonly #powers = new Map<string, PowerOrder[]>();
  #backUntilMs = -1;
  #drivesRead = 0;
  #powersRead = 0;

  constructor(
    parts: JudgeParts,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
    begun: (event: DriveEvent) => void,
  ) {
    this.#begun = begun;
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
  }

  /** Nobody can know that orders were lost: their numbers are used again. */
  forgetOrders(): void {
    for (const order of this.#erasures.values()) {
      order.begun.clear();
      order.isLost = true;
    }
  }

  /** The store went back: for a while devices still do what stands there no more. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
  }

  /** Notes what a record orders. */
  ordered(record: store.HostRecord): void {
    const operationRecord = record.operation;
    const operation = operationRecord?.sentTo === undefined ? undefined : operationRecord.operation;
    this.#notePower(record, operation);
    if (operation?.kind.case !== 'runStep') return;
    const known = this.#erasures.get(operation.id);
    if (known !== undefined && !known.isLost) return;
    const { mode, devices } = operation.kind.value;
    if (mode === agent.StepMode.CHECK) return;
    const serials = devices.map(({ device }) => device?.serial ?? '');
    this.#erasures.set(operation.id, {
      operationId: operation.id,
      hostUid: operation.hostUid,
      // What the lost order named may still be written for a while.
      serials: new Set([...(known?.serials ?? []), ...serials]),
      begun: new Set(known?.begun),
      isLost: false,
    });
  }

  /** Judges what the devices have logged since. True when there was anything. */
  look(): boolean {
    const { drives, power } = this.#parts.logs;
    const before = this.#drivesRead + this.#powersRead;
    for (; this.#drivesRead < drives.length; this.#drivesRead++) {
      const event = drives[this.#drivesRead];
      if (event !== undefined) this.#judgeDrive(event);
    }
    for (; this.#powersRead < power.length; this.#powersRead++) {
      const event = power[this.#powersRead];
      if (event?.by === 'bmc') this.#judgePower(event);
    }
    return this.#drivesRead + this.#powersRead > before;
  }

  #notePower(record: store.HostRecord, operation: agent.Operation | undefined): void {
    const uid = record.host?.uid ?? '';
    const { nowMs } = this.#parts.view.heap;
    const orders = (this.#powers.get(uid) ?? []).filter(
      ({ leftMs }) => leftMs === undefined || nowMs - leftMs <= powerSlackMs,
    );
    for (const order of orders) {
      if (order.operationId !== operation?.id) order.leftMs ??= nowMs;
    }
    if (operation?.kind.case === 'setPower' && orders.at(-1)?.operationId !== operation.id) {
      const { bmc, on } = operation.kind.value;
      const { id: operationId } = operation;
      const address = bmc?.address ?? '';
      orders.push({ operationId, address, on: on === true, leftMs: undefined });
    }
    this.#powers.set(uid, orders);
  }

  #judgeDrive(event: DriveEvent): void {
    const { act, serial, machine, atMs } = event;
    if (act === 'osWrote' && atMs < this.#backUntilMs) this.#wroteUnseen(machine);
    if (!isWrite(event)) return;
    const orders = [...this.#erasures.values()].filter((order) => order.serials.has(serial));
    if (orders.length === 0) {
      this.#found('J3', `${machine}: ${act} on ${serial}, which no plan names`);
      return;
    }
    // An erasure begins with its challenge, once for each disk of each order.
    if (act !== 'challenge') return;
    this.#begun(event);
    const isBack = atMs < this.#backUntilMs;
    const current = this.#currentOrder(orders);
    // The record may hold an older order again, while the machine begins the one that was lost.
    const lost = isBack ? orders.find(({ begun }) => !begun.has(serial)) : undefined;
    if (current?.begun.has(serial) === true && lost !== undefined) {
      lost.begun.add(serial);
      return;
    }
    if (current === undefined && isBack) return;
    if (current === undefined) {
      this.#found('J3', `${machine}: ${serial} is written for no order that stands`);
    } else if (current.begun.has(serial)) {
      this.#found('J2', `${current.operationId} began twice on ${serial}`);
    } else current.begun.add(serial);
    const lateMs = atMs - this.#parts.leaseUntilMs() - leaseSlackMs;
    if (lateMs > 0) this.#found('J6', `${machine}: ${serial} is written without a lease`);
  }

  /** Work that the store knows no more has written: what it knows of the disks is older. */
  #wroteUnseen(name: string): void {
    const machine = this.#parts.machines.get(name);
    if (machine !== undefined) machine.unseen = true;
  }

  /** The order in whose name a disk is written now: the one that its host's record holds. */
  #currentOrder(orders: readonly ErasureOrder[]): ErasureOrder | undefined {
    const slots = new Set<string>();
    for (const { record } of this.#hosts.values()) {
      slots.add(record.operation?.operation?.id ?? '');
    }
    return orders.find(({ operationId }) => slots.has(operationId));
  }

  /** J11: the host behind the BMC has ordered this state, by the run that holds it. */
  #judgePower(event: PowerEvent): void {
    const isOwn = [...this.#powers.values()].flat().some((order) => {
      if (order.on !== event.on || order.address !== event.via) return false;
      return order.leftMs === undefined || event.atMs - order.leftMs <= powerSlackMs;
    });
    if (!isOwn && event.atMs >= this.#backUntilMs) {
      const what = `${event.machine} was switched ${event.on ? 'on' : 'off'}`;
      this.#found('J11', `${what}, which no run of its host ordered (${this.#runs()})`);
    }
  }

  #runs(): string {
    return [...this.#hosts.values()]
      .map(({ key, record }) => {
        const run = record.host?.status?.run;
        const held = run !== undefined && run.phase !== RunPhase.ENDED;
        return `${key}: ${held ? 'run' : 'no run'} ${record.operation?.operation?.id ?? ''}`;
      })
      .join('; ');
  }
}

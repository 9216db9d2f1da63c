/**
 * The simulated machines of a rack: power, the runner that comes up, and disks that remember what
 * was done to them. Their log is what the judge reads; it knows nothing of who gave the orders.
 */
import type { EventHeap } from '@rackwright/sim';

export type DiskKind = 'overwrite' | 'format';

export interface SimDrive {
  readonly serial: string;
  readonly kind: DiskKind;
  /** Whether old data can still be read. */
  hasData: boolean;
  /** Says that it erased, and did not. */
  readonly lies: boolean;
}

/** One line of the devices' own log. */
export interface DeviceEvent {
  readonly atMs: number;
  readonly host: string;
  readonly kind: 'eraseBegun' | 'erased' | 'checked' | 'dataWritten';
  readonly operationId: string;
  readonly serials: readonly string[];
}

export type StepEnd =
  | { readonly kind: 'done'; readonly mode: 'run' | 'check'; readonly clean: boolean }
  | { readonly kind: 'interrupted'; readonly progress: string };

interface Running {
  readonly operationId: string;
  readonly ended: (end: StepEnd) => void;
}

export interface SimRunner {
  readonly bootOperationId: string;
  readonly session: string;
  readonly bootId: string;
}

export interface HardwareChance {
  /** Milliseconds; how long something of about this length takes now. */
  around(typicalMs: number): number;
  happens(probability: number): boolean;
}

export class SimMachine {
  readonly uid: string;
  readonly guid: Uint8Array;
  readonly drives: readonly SimDrive[];
  readonly log: DeviceEvent[];
  poweredOn = false;
  runner: SimRunner | undefined;
  /** Told when a runner has come up. */
  onRunner: (runner: SimRunner) => void = () => {};
  readonly #heap: EventHeap;
  readonly #chance: HardwareChance;
  readonly #ends = new Map<string, StepEnd>();
  #running: Running | undefined;
  #waiting: ((operationId: string, end: StepEnd) => void) | undefined;
  #boots = 0;
  #power = 0;

  constructor(
    uid: string,
    guid: Uint8Array,
    drives: readonly SimDrive[],
    log: DeviceEvent[],
    heap: EventHeap,
    chance: HardwareChance,
  ) {
    this.uid = uid;
    this.guid = guid;
    this.drives = drives;
    this.log = log;
    this.#heap = heap;
    this.#chance = chance;
  }

  powerOff(): void {
    this.#power += 1;
    this.poweredOn = false;
    this.runner = undefined;
    this.#interrupt('power was lost');
    this.#ends.clear();
  }

  /** Boots into a runner, if the machine was off. */
  powerOn(bootOperationId: string): void {
    if (this.poweredOn) return;
    this.poweredOn = true;
    this.#power += 1;
    const power = this.#power;
    this.#heap.after(this.#chance.around(20_000), () => {
      if (power !== this.#power) return;
      this.#boots += 1;
      const name = `${this.uid}-boot${this.#boots}`;
      this.runner = { bootOperationId, session: name, bootId: name };
      this.onRunner(this.runner);
    });
  }

  /** The runner dies and is started again in the same boot. */
  crashRunner(): void {
    this.#interrupt('the runner was restarted');
  }

  /** A step's end is kept until somebody asks for it, as the runner keeps unreceived reports. */
  endOf(operationId: string): Promise<StepEnd | undefined> {
    const end = this.#ends.get(operationId);
    if (end !== undefined) return Promise.resolve(end);
    if (this.#running?.operationId !== operationId) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const before = this.#waiting;
      this.#waiting = (id, ended) => {
        before?.(id, ended);
        if (id === operationId) resolve(ended);
      };
    });
  }

  /** Erases or checks. Orders while another one runs are refused. */
  order(operationId: string, mode: 'run' | 'check', serials: readonly string[]): boolean {
    if (this.#running !== undefined || this.runner === undefined) return false;
    this.#running = {
      operationId,
      ended: (end) => {
        this.#running = undefined;
        this.#ends.set(operationId, end);
        this.#waiting?.(operationId, end);
        this.#waiting = undefined;
      },
    };
    const running = this.#running;
    if (mode === 'run') this.#write(operationId, 'eraseBegun', serials);
    this.#heap.after(this.#chance.around(15_000), () => {
      if (mode === 'run') this.#finishErase(operationId, serials);
      else this.#write(operationId, 'checked', serials);
      if (this.#running !== running) return;
      const claims = this.drives.every((drive) => drive.lies || !drive.hasData);
      running.ended({ kind: 'done', mode, clean: claims });
    });
    return true;
  }

  #finishErase(operationId: string, serials: readonly string[]): void {
    // An overwrite ends with its runner; a format goes on inside the device without it.
    const stopped = this.#running?.operationId !== operationId;
    for (const drive of this.drives) {
      if (!serials.includes(drive.serial) || drive.lies) continue;
      if (stopped && drive.kind === 'overwrite') continue;
      drive.hasData = false;
    }
    this.#write(operationId, 'erased', serials);
  }

  #interrupt(progress: string): void {
    this.#running?.ended({ kind: 'interrupted', progress });
  }

  #write(operationId: string, kind: DeviceEvent['kind'], serials: readonly string[]): void {
    const atMs = this.#heap.nowMs;
    this.log.push({ atMs, host: this.uid, kind, operationId, serials });
  }
}

/**
 * The judge's rules about programs of the site's own in cleans.
 *
 * C1 Such a program begins for an order that stands in its host's record, in a clean, once for each
 *    order; one that never runs twice by itself begins again in its run only after it has ended
 *    with a failure and has retries left, or a person has acted.
 * C2 It never begins in a run that has begun to erase, and no disk is erased in the boot in which
 *    it ran. That nothing of what it wrote is left on a host that is available is J1.
 */
import { type OperationId, RunKind, type store } from '@rackwright/messages';
import type { DriveEvent } from '../drives.ts';
import type { JudgedHost, JudgeParts } from '../judged.ts';
import { type Own, ownStepsOf, ownTemplate } from './own-steps.ts';
import type { WorkEvent } from './programs.ts';

/** What a run's program has done. */
interface Begun {
  readonly operations: Set<string>;
  allowed: number;
  retries: number;
}

export class OwnStepJudge {
  readonly #parts: Pick<JudgeParts, 'logs' | 'view'>;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  /** "<host uid>/<run>" → what began in it. */
  readonly #runs = new Map<string, Begun>();
  /** Machines on which a program ran in the boot under way. */
  readonly #ran = new Set<string>();
  /** Machine → the run that erased last on it. */
  readonly #erased = new Map<string, string>();
  #backUntilMs = -1;
  #workRead = 0;
  #drivesRead = 0;

  constructor(
    parts: Pick<JudgeParts, 'logs' | 'view'>,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
  ) {
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
  }

  /** Nobody can know that orders were lost: their numbers are used again. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
    this.#runs.clear();
    this.#erased.clear();
  }

  /** Takes in a written record. */
  changed({ host, change }: store.HostRecord): void {
    if (change?.actor.startsWith('user:') !== true) return;
    for (const [ofRun, begun] of this.#runs) {
      if (ofRun.startsWith(`${host?.uid}/`)) begun.allowed = begun.operations.size + 1;
    }
  }

  #drive({ act, machine, serial, atMs }: DriveEvent): void {
    if (act === 'powerLost' || act === 'restarted') this.#ran.delete(machine);
    if (act !== 'challenge') return;
    if (this.#ran.has(machine) && atMs >= this.#backUntilMs) {
      this.#found('C2', `${machine}: ${serial} is erased in a boot in which a program ran`);
    }
    const order = this.#orderOn(serial);
    if (order !== undefined) this.#erased.set(machine, runOf(order));
  }

  look(): void {
    const { work, drives } = this.#parts.logs;
    for (; this.#workRead < work.length; this.#workRead++) {
      const event = work[this.#workRead];
      if (event?.templateId === ownTemplate) this.#judge(event);
    }
    for (; this.#drivesRead < drives.length; this.#drivesRead++) {
      const event = drives[this.#drivesRead];
      if (event !== undefined) this.#drive(event);
    }
  }

  #judge({ act, operationId, machine, code, atMs }: WorkEvent): void {
    const ofRun = runOf(operationId);
    const begun = this.#runs.get(ofRun) ?? { operations: new Set(), allowed: 1, retries: 0 };
    this.#runs.set(ofRun, begun);
    if (act === 'ended' && code !== 0 && code !== undefined) this.#mayRetry(begun);
    if (act !== 'begun') return;
    this.#ran.add(machine);
    const isTwice = begun.operations.has(operationId);
    begun.operations.add(operationId);
    if (atMs < this.#backUntilMs) return;
    if (isTwice) this.#found('C1', `${operationId} began twice`);
    if (!this.#isOrdered(operationId))
      this.#found('C1', `${operationId} is not ordered in a clean`);
    if (this.#step?.idempotent !== true && begun.operations.size > begun.allowed) {
      this.#found('C1', `${operationId} runs again, and nobody has said so`);
    }
    if (this.#erased.get(machine) === ofRun) {
      this.#found('C2', `${operationId} begins after its run has begun to erase`);
    }
  }

  get #step(): Own | undefined {
    return ownStepsOf(this.#parts.view.seed)[0];
  }

  #mayRetry(begun: Begun): void {
    if (begun.retries >= (this.#step?.retries ?? 0)) return;
    begun.retries += 1;
    begun.allowed = begun.operations.size + 1;
  }

  #isOrdered(id: string): boolean {
    return [...this.#hosts.values()].some(({ record }) => {
      const { operation, host } = record;
      return operation?.operation?.id === id && host?.status?.run?.kind === RunKind.CLEAN;
    });
  }

  /** The operation in a record that is to write to this disk. */
  #orderOn(serial: string): string | undefined {
    for (const { record } of this.#hosts.values()) {
      const operation = record.operation?.operation;
      if (operation?.kind.case !== 'runStep') continue;
      const { devices } = operation.kind.value;
      if (devices.some(({ device }) => device?.serial === serial)) return operation.id;
    }
    return undefined;
  }
}

function runOf(operationId: OperationId): string {
  return operationId.split('/').slice(0, 2).join('/');
}

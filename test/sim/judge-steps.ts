/**
 * J2 and J3 for what machines begin that their disks do not log: an order that stands names it, and
 * begins it once. What must never run twice by itself begins again only after a person has acted.
 */

import type { store } from '@rackwright/messages';
import { type JudgedHost, type JudgeParts, machineOf } from './judged.ts';
import type { StepEvent } from './machine.ts';
import { flashStepName } from './runner-steps.ts';

export class StepJudge {
  readonly #parts: JudgeParts;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  /** Operation ids that have begun something. */
  readonly #begun = new Set<string>();
  /** Run and step that has begun to flash → whether a person has acted on its host since. */
  readonly #flashed = new Map<string, { readonly uid: string; seenToBy: boolean }>();
  #backUntilMs = -1;
  #read = 0;

  constructor(
    parts: JudgeParts,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
  ) {
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
  }

  /** Nobody can know that orders were lost: their numbers are used again. */
  forgetOrders(): void {
    this.#begun.clear();
    this.#flashed.clear();
  }

  /** The store went back: for a while machines still begin what stands there no more. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
  }

  /** Takes in a written record. */
  changed({ host, change }: store.HostRecord): void {
    if (change?.actor.startsWith('user:') !== true) return;
    for (const flash of this.#flashed.values()) {
      if (flash.uid === host?.uid) flash.seenToBy = true;
    }
  }

  look(): void {
    const { steps } = this.#parts.logs;
    for (; this.#read < steps.length; this.#read++) {
      const event = steps[this.#read];
      if (event !== undefined) this.#judge(event);
    }
  }

  #judge({ atMs, machine, step }: StepEvent): void {
    const order = this.#order(machine, step);
    if (order === undefined && atMs < this.#backUntilMs) return;
    if (order === undefined) {
      this.#found('J3', `${machine} begins ${step}, which no order that stands names`);
      return;
    }
    const { id, hostUid: uid } = order;
    if (this.#begun.has(id)) this.#found('J2', `${id} began ${step} twice`);
    this.#begun.add(id);
    if (step !== flashStepName) return;
    const ofRun = id.slice(0, id.lastIndexOf('/'));
    if (this.#flashed.get(ofRun)?.seenToBy === false) {
      this.#found('J2', `${id} flashes once more, and no person has said so`);
    }
    this.#flashed.set(ofRun, { uid, seenToBy: false });
  }

  #order(machine: string, step: string) {
    for (const host of this.#hosts.values()) {
      const operation = host.record.operation?.operation;
      if (operation?.kind.case !== 'runStep' || operation.kind.value.step !== step) continue;
      if (machineOf(this.#parts.machines, host)?.name === machine) return operation;
    }
    return undefined;
  }
}

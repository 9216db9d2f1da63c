/**
 * Output of programs, on its way from runners to the control plane. It is shown to people while it
 * arrives, so an excess is left out rather than waited for. A piece that is left out shows as a gap
 * of offsets.
 */

import { create } from '@bufbuild/protobuf';
import { agent, type HostUid, type runner } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';

/** The size of one piece; a longer one is left out. */
export const stepLogPieceBytesMax = 64 * 1024;
/** The rate of all runners of this rack together. */
export const stepLogBytesPerSecondMax = 512 * 1024;
/** Bytes that may come at once after a pause. */
const burstBytesMax = 1024 * 1024;

export class LogBudget {
  readonly #clock: Clock;
  readonly #report: (log: agent.StepLog) => void;
  #leftBytes = burstBytesMax;
  #atMs: number;

  constructor(clock: Clock, report: (log: agent.StepLog) => void) {
    this.#clock = clock;
    this.#report = report;
    this.#atMs = clock.suspendAwareMs();
  }

  /** Hands the piece on, or leaves it out. */
  pass(hostUid: HostUid, { operationId, offset, content }: runner.StepLog): void {
    const nowMs = this.#clock.suspendAwareMs();
    const earned = ((nowMs - this.#atMs) / 1000) * stepLogBytesPerSecondMax;
    this.#leftBytes = Math.min(burstBytesMax, this.#leftBytes + earned);
    this.#atMs = nowMs;
    const { length } = content;
    if (length === 0 || length > stepLogPieceBytesMax || length > this.#leftBytes) return;
    this.#leftBytes -= length;
    this.#report(create(agent.StepLogSchema, { operationId, hostUid, offset, content }));
  }
}

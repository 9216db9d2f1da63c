/** Percent of each host's present step: in memory, and only while its operation is the same. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type agent,
  type HostId,
  type OperationId,
  type Progress,
  ProgressSchema,
  type store as wire,
} from '@rackwright/messages';

interface OperationProgress {
  readonly operationId: OperationId;
  readonly progress: Progress;
  /** Its position in the queue; 0: it does not wait. */
  readonly queuePlace: number;
}

export class StepProgress {
  readonly #byHost = new Map<HostId, OperationProgress>();

  of(hostId: HostId): Progress | undefined {
    return this.#byHost.get(hostId)?.progress;
  }

  /** Its position in the queue of its agent, from 1. */
  queuePositionOf(hostId: HostId): number | undefined {
    return this.#byHost.get(hostId)?.queuePlace || undefined;
  }

  keep(
    hostId: HostId,
    record: wire.HostRecord,
    { percent, text, queuePlace }: agent.Continuing,
    nowMs: number,
  ): void {
    const asOf = timestampFromMs(nowMs);
    this.#byHost.set(hostId, {
      operationId: operationIdOf(record),
      queuePlace,
      progress: create(ProgressSchema, { percent: percent ?? 0, text, asOf }),
    });
  }

  /** Drops the progress of any other operation than the record's. */
  settle(hostId: HostId, record: wire.HostRecord): void {
    const kept = this.#byHost.get(hostId);
    if (kept !== undefined && kept.operationId !== operationIdOf(record)) this.drop(hostId);
  }

  drop(hostId: HostId): void {
    this.#byHost.delete(hostId);
  }
}

function operationIdOf({ operation }: wire.HostRecord): OperationId {
  return operation?.operation?.id ?? '';
}

/** Percent of each host's present step: in memory, and only while its operation is the same. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type agent,
  type HostId,
  type OperationId,
  type Progress,
  ProgressSchema,
  type RackId,
  type store as wire,
} from '@rackwright/messages';
import type { Cancel } from '@rackwright/platform';

/** Hears what may be shown differently of a host, although its record is the same. */
export interface ServedObserver {
  progressChanged(hostId: HostId): void;
  /** The rack's agent has connected or gone. */
  agentChanged(rackId: RackId): void;
}

interface OperationProgress {
  readonly operationId: OperationId;
  readonly progress: Progress;
  /** Its position in the queue; 0: it does not wait. */
  readonly queuePlace: number;
}

export class StepProgress {
  readonly #byHost = new Map<HostId, OperationProgress>();
  readonly #observers = new Set<(hostId: HostId) => void>();

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
    this.#changed(hostId);
  }

  /** Drops the progress of any other operation than the record's. */
  settle(hostId: HostId, record: wire.HostRecord): void {
    const kept = this.#byHost.get(hostId);
    if (kept !== undefined && kept.operationId !== operationIdOf(record)) this.drop(hostId);
  }

  drop(hostId: HostId): void {
    if (this.#byHost.delete(hostId)) this.#changed(hostId);
  }

  /** Calls `observer` with the host whenever its progress changes, until it is cancelled. */
  onChange(observer: (hostId: HostId) => void): Cancel {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  #changed(hostId: HostId): void {
    for (const observer of this.#observers) observer(hostId);
  }
}

function operationIdOf({ operation }: wire.HostRecord): OperationId {
  return operation?.operation?.id ?? '';
}

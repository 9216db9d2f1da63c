/**
 * J13: a freeze lets nothing destructive begin any more, one lease period after it was written.
 * Reads the freeze from the records of rack and fleet, the beginning from the disks.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { store } from '@rackwright/api';
import type { DriveEvent } from './drives.ts';

/** The lease of `control-plane.ts`, and the way from the agent's last look at it to the disk. */
const leaseMs = 15_000;
const slackMs = 5_000;

export class BrakeJudge {
  /** Record key → since when it says that it is frozen, simulated time. */
  readonly #frozenSinceMs = new Map<string, number>();
  readonly #found: (rule: string, text: string) => void;

  constructor(found: (rule: string, text: string) => void) {
    this.#found = found;
  }

  /** Takes in a written record of a rack or of the fleet. */
  note(key: string, value: Uint8Array, nowMs: number): void {
    const frozen = isFrozen(key, value);
    if (frozen === undefined) return;
    if (!frozen) this.#frozenSinceMs.delete(key);
    else if (!this.#frozenSinceMs.has(key)) this.#frozenSinceMs.set(key, nowMs);
  }

  /** Something destructive has begun. */
  begun({ atMs, serial, machine }: DriveEvent): void {
    for (const [key, sinceMs] of this.#frozenSinceMs) {
      const lateMs = atMs - sinceMs - leaseMs - slackMs;
      if (lateMs > 0) this.#found('J13', `${machine}: ${serial} is written, ${key} is frozen`);
    }
  }
}

/** Undefined for records that have no brake. */
function isFrozen(key: string, value: Uint8Array): boolean | undefined {
  if (key.startsWith('racks.')) {
    return fromBinary(store.RackRecordSchema, value).rack?.status?.freeze !== undefined;
  }
  if (key.startsWith('fleet.')) {
    return fromBinary(store.FleetRecordSchema, value).fleet?.status?.freeze !== undefined;
  }
  return undefined;
}

/**
 * J13: a freeze lets nothing destructive begin any more, one lease period after it was written.
 * J16: neither does anything after the store was put back to an older state than agents have seen,
 * until a person accepts that; nor afterwards by itself, before a person has looked. Reads records
 * of hosts, rack and fleet, and the beginning from the disks.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { RunKind, store } from '@rackwright/messages';
import type { DriveEvent } from './drives.ts';

/** The lease of `control-plane.ts`, and the way from the agent's last look at it to the disk. */
const leaseMs = 15_000;
const slackMs = 5_000;

const writing: ReadonlySet<RunKind> = new Set([RunKind.CLEAN, RunKind.REIMAGE, RunKind.PROVISION]);

export class BrakeJudge {
  /** Record key → since when it says that it is frozen, simulated time. */
  readonly #frozenSinceMs = new Map<string, number>();
  readonly #found: (rule: string, text: string) => void;
  /** Told when a person has accepted what the store has lost. */
  readonly #accepted: () => void;
  #lostSinceMs: number | undefined;
  #noticed = false;

  constructor(found: (rule: string, text: string) => void, accepted: () => void) {
    this.#found = found;
    this.#accepted = accepted;
  }

  /** The store was put back; `known`: an agent has seen more than it has now. */
  restored(known: boolean, nowMs: number): void {
    this.#frozenSinceMs.clear();
    this.#noticed = false;
    this.#lostSinceMs = known ? nowMs : undefined;
  }

  /** An agent has lost its memory: nobody knows any more what the store has lost. */
  memoryLost(): void {
    this.#lostSinceMs = undefined;
  }

  /** The store counts beyond what agents have seen, and none has noticed: nobody can any more. */
  caughtUp(): void {
    if (!this.#noticed) this.#lostSinceMs = undefined;
  }

  /** Takes in a written record of a rack or of the fleet. */
  note(key: string, value: Uint8Array, nowMs: number): void {
    this.#noticed ||= isNoticed(key, value);
    if (this.#lostSinceMs !== undefined && isAccepted(key, value)) {
      this.#lostSinceMs = undefined;
      this.#accepted();
    }
    const frozen = isFrozen(key, value);
    if (frozen === undefined) return;
    if (!frozen) this.#frozenSinceMs.delete(key);
    else if (!this.#frozenSinceMs.has(key)) this.#frozenSinceMs.set(key, nowMs);
  }

  /** A host's record is followed by the next one. */
  changed(before: store.HostRecord, { host, change }: store.HostRecord): void {
    const { kind = 0, number = 0n, requestedBy = '' } = host?.status?.run ?? {};
    const isNew = number > (before.host?.status?.run?.number ?? 0n);
    if (before.lookFirstSince === undefined || !isNew) return;
    if (hasLooked(change)) return;
    if (writing.has(kind) && (requestedBy === 'goal' || requestedBy.startsWith('pools/'))) {
      this.#found('J16', `${host?.name}: run ${number} of ${requestedBy}, and nobody has looked`);
    }
  }

  /** Something destructive has begun. */
  begun({ atMs, serial, machine }: DriveEvent): void {
    const lostMs = atMs - (this.#lostSinceMs ?? atMs);
    if (lostMs > leaseMs + slackMs)
      this.#found('J16', `${machine}: ${serial} is written, the store is behind`);
    for (const [key, sinceMs] of this.#frozenSinceMs) {
      if (atMs - sinceMs > leaseMs + slackMs)
        this.#found('J13', `${machine}: ${serial} is written, ${key} is frozen`);
    }
  }
}

function isNoticed(key: string, value: Uint8Array): boolean {
  if (!key.startsWith('racks.')) return false;
  const { rack } = fromBinary(store.RackRecordSchema, value);
  return rack?.status?.restoredStore !== undefined;
}

function isAccepted(key: string, value: Uint8Array): boolean {
  if (!key.startsWith('racks.')) return false;
  return fromBinary(store.RackRecordSchema, value).acceptedStore !== undefined;
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

/** Who looked says so by that, and the goal may go on in the same write. */
function hasLooked(change: store.HostRecord['change']): boolean {
  const { actor = '', cause = '' } = change ?? {};
  return actor.startsWith('user:') && cause.includes('retry requested');
}

/**
 * What a slot at the gate waits for, and a person's approval of it. Pure; approving changes a
 * draft.
 *
 * Invariant: a person approves a digest: the approval never passes a slot for another digest.
 */
import {
  type Actor,
  type HostName,
  type RolloutSlot,
  RolloutSlotState,
  type store as wire,
} from '@rackwright/messages';
import { digestInImage } from '../policy/image-name.ts';
import { wantsApproval } from './gate.ts';

/** What could move it first. */
export type GateWait =
  | 'approval'
  /** Other hosts are out. */
  | 'others'
  | 'window'
  | 'webhook'
  /** The gate no longer holds it. */
  | 'queue';

/** What a slot at the gate waits for; `isOpen`: a window is open, or none is configured. */
export function gateWait(
  record: wire.PoolRecord,
  slot: RolloutSlot,
  { isOpen }: { readonly isOpen: boolean },
): GateWait {
  if (wantsApproval(record, slot)) return 'approval';
  if (slot.waitsForOthers) return 'others';
  if (!isOpen) return 'window';
  return (record.pool?.spec?.rollout?.gate?.webhookUrl ?? '') === '' ? 'queue' : 'webhook';
}

export interface Approval {
  /** "hosts/HOST"; empty: all hosts that wait for an approval of the digest. */
  readonly hosts: readonly HostName[];
  readonly digest: string;
  readonly by: Actor;
}

/** Approves all named hosts; or none, and says why. */
export function approve(
  { pool }: wire.PoolRecord,
  { hosts, digest, by }: Approval,
): string | undefined {
  const slots = pool?.status?.slots ?? [];
  const atGate = slots.filter(({ state }) => state === RolloutSlotState.GATE);
  const isAsked = pool?.spec?.rollout?.gate?.approval === true;
  if (!isAsked) return 'no host waits for an approval: its gate asks nobody for one';
  const isOfDigest = ({ image }: RolloutSlot) => digestInImage(image) === digest;
  const other = (slot: RolloutSlot) =>
    `${slot.host} waits for an approval of ${digestInImage(slot.image)}, not of ${digest}`;
  const [first] = atGate;
  if (hosts.length === 0) {
    if (first === undefined) return 'no host waits for an approval';
    if (!atGate.some(isOfDigest)) return other(first);
  }
  for (const host of hosts) {
    const slot = atGate.find((each) => each.host === host);
    if (slot === undefined) return `${host} does not wait for an approval`;
    if (!isOfDigest(slot)) return other(slot);
  }
  for (const slot of atGate.filter(isOfDigest)) {
    const isMeant = hosts.length === 0 || hosts.includes(slot.host);
    if (isMeant && slot.approvedBy === '') slot.approvedBy = by;
  }
  return undefined;
}

/**
 * Verification on the wire ↔ the types of this package. A value without an equivalent becomes
 * undefined: an order then reads everything, and evidence proves nothing (R8).
 */
import { create } from '@bufbuild/protobuf';
import { type VerificationPolicy as WirePolicy } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { Verification } from './challenge.ts';
import { defaultVerificationPolicy, type VerificationPolicy } from './verification.ts';

/** `share_ppcm` counts millionths of a percent. */
const shareUnits = 100_000_000;
/** `confidence_bp` counts hundredths of a percent. */
const confidenceUnits = 10_000;

/** A device's reading according to the evidence; undefined for an unknown form. */
export function verificationOf(message: agent.Verification | undefined): Verification | undefined {
  if (message?.level === agent.VerificationLevel.FULL) return { level: 'full' };
  if (message?.level !== agent.VerificationLevel.SAMPLED) return undefined;
  const places = Number(message.places);
  return places > 0 ? { level: 'sampled', places } : undefined;
}

/** The reading that an order wants of a device: whole, unless it says otherwise. */
export function orderedVerification(plan: Pick<agent.DevicePlan, 'verification'>): Verification {
  return verificationOf(plan.verification) ?? { level: 'full' };
}

export function verificationToWire(verification: Verification): agent.Verification {
  const message =
    verification.level === 'full'
      ? { level: agent.VerificationLevel.FULL }
      : { level: agent.VerificationLevel.SAMPLED, places: BigInt(verification.places) };
  return create(agent.VerificationSchema, message);
}

/** A policy of the wire; unset fields are as `fallback` says. */
export function verificationPolicyOf(
  message: WirePolicy | undefined,
  fallback: VerificationPolicy = defaultVerificationPolicy,
): VerificationPolicy {
  if (message === undefined) return fallback;
  const holeBytes =
    message.holeBytes === undefined ? fallback.holeBytes : Number(message.holeBytes);
  // A policy that names a share and no hole means the share.
  const ofShare = message.sharePpcm !== undefined && message.holeBytes === undefined;
  return {
    full: message.full ?? fallback.full,
    fullBelowBytes: Number(message.fullBelowBytes ?? BigInt(fallback.fullBelowBytes)),
    share: inUnits(message.sharePpcm, shareUnits) ?? fallback.share,
    ...(holeBytes === undefined || ofShare ? {} : { holeBytes }),
    confidence: inUnits(message.confidenceBp, confidenceUnits) ?? fallback.confidence,
    sampleOverwritten: message.sampleOverwritten ?? fallback.sampleOverwritten,
  };
}

/** Why a policy of the wire cannot be meant, naming its field; undefined for a sound one. */
export function verificationPolicyProblem(message: WirePolicy): string | undefined {
  const { sharePpcm, confidenceBp, holeBytes } = message;
  if (sharePpcm === 0 || (sharePpcm ?? 0) > shareUnits) {
    return `share_ppcm is 1 to ${shareUnits}, not ${sharePpcm}`;
  }
  if (confidenceBp === 0 || (confidenceBp ?? 0) > confidenceUnits) {
    return `confidence_bp is 1 to ${confidenceUnits}, not ${confidenceBp}`;
  }
  return holeBytes === 0n ? 'hole_bytes is at least 1, not 0' : undefined;
}

function inUnits(count: number | undefined, units: number): number | undefined {
  return count === undefined ? undefined : count / units;
}

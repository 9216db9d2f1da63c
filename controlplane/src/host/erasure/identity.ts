/**
 * Identifies the machine: compares what the BMC proved at the last verify with what the runner sees
 * in band, before any order to write (DESIGN §5, guard 0).
 */
import { clone, equals } from '@bufbuild/protobuf';
import { judgeIdentity, witnessOfBmc, witnessOfSystem } from '@rackwright/erasure';
import {
  type agent,
  BmcEndpointSchema,
  type BmcIdentity,
  BmcIdentitySchema,
  otherHost,
  type RunFailure,
  type SystemIdentity,
} from '@rackwright/messages';
import { isByHand } from '../bmc/protocols.ts';
import type { Pass, PassView } from '../pass/pass.ts';
import { invalidResult, stepFailure } from '../pass/step-failure.ts';
import { move } from '../pass/transitions.ts';
import { observePower } from './use.ts';

/** Hex of raw identity bytes: the form in which identities are reserved and found. */
export function identityHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** Records the identity that a verify proved, unless another host has it. */
export function recordIdentity(
  pass: Pass,
  observations: agent.Observations | undefined,
): RunFailure | undefined {
  if (isByHand(pass.spec)) return recordNone(pass);
  const identity = observations?.bmcIdentity;
  if (identity === undefined) return invalidResult('the verification brought no BMC identity');
  const owner = ownerOf(pass, identity);
  if (owner !== undefined) {
    yieldIdentity(pass, identity);
    return stepFailure(
      'identityMismatch',
      `the BMC at ${pass.spec.bmc?.address ?? '?'} is the one of ${owner}; ` +
        `correct the BMC address of ${pass.host.name} or of ${owner}`,
      '',
      otherHost(owner),
    );
  }
  const other = otherThanAccepted(pass, identity);
  if (other !== undefined) return other;
  noticeReplacement(pass, identity);
  pass.status.bmcIdentity = identity;
  if (pass.spec.bmc !== undefined)
    pass.record.verifiedBmc = clone(BmcEndpointSchema, pass.spec.bmc);
  if (observations?.poweredOn !== undefined) observePower(pass, observations.poweredOn);
  return undefined;
}

/**
 * Without a BMC nothing identifies the machine before its runner does: the policy decides whether
 * that is enough (guard 0).
 */
function recordNone({ status, spec, record, effects }: Pass): undefined {
  const { guid = new Uint8Array() } = status.bmcIdentity ?? {};
  if (guid.length > 0) effects.push({ kind: 'releaseIdentity', guid });
  if (status.bmcIdentity !== undefined) {
    // The earlier state of a removed BMC is no longer valid.
    delete status.poweredOn;
    move(status, 'otherMachine');
  }
  delete status.bmcIdentity;
  if (spec.bmc !== undefined) record.verifiedBmc = clone(BmcEndpointSchema, spec.bmc);
}

/**
 * A person who accepted a discovered machine meant that particular one. Once its BMC is proved to
 * belong to it, the BMC's statements count for it.
 */
function otherThanAccepted(pass: Pass, identity: BmcIdentity): RunFailure | undefined {
  const { acceptedIdentity } = pass.record;
  if (acceptedIdentity === undefined) return undefined;
  const verdict = judgeIdentity(witnessOfSystem(acceptedIdentity), witnessOfBmc(identity));
  if (verdict.kind === 'proven') delete pass.record.acceptedIdentity;
  if (verdict.kind !== 'mismatch') return undefined;
  return stepFailure(
    'identityMismatch',
    `the BMC at ${pass.spec.bmc?.address ?? '?'} is not that of the machine that was discovered: ` +
      `its ${verdict.witness} is ${verdict.outOfBand}, the machine said ${verdict.inBand}; ` +
      `correct the BMC address of ${pass.host.name}, or delete it when the machine was replaced`,
  );
}

/**
 * The BMC at this address is not the one that was proved here. The reservation of the old identity
 * is released, so that its finder can take it. Otherwise two hosts whose cables were swapped during
 * their verifies would hold each other's identity forever. The proved identity stays in the host's
 * record, and guards work on it.
 */
function yieldIdentity(pass: Pass, identity: BmcIdentity): void {
  const proved = pass.status.bmcIdentity?.guid ?? new Uint8Array();
  if (proved.length === 0 || identityHex(proved) === identityHex(identity.guid)) return;
  pass.effects.push({ kind: 'releaseIdentity', guid: proved });
}

/**
 * The host's name now belongs to another machine: certificates of the old one do not apply to it. A
 * host without a BMC until now may be any machine.
 */
function noticeReplacement(pass: Pass, identity: BmcIdentity): void {
  const before = pass.status.bmcIdentity;
  const { verifiedBmc } = pass.record;
  if (before === undefined && verifiedBmc !== undefined && isByHand({ bmc: verifiedBmc })) {
    move(pass.status, 'otherMachine');
  }
  if (before === undefined || equals(BmcIdentitySchema, before, identity)) return;
  if (
    identityHex(before.guid) === identityHex(identity.guid) &&
    before.serial === identity.serial
  ) {
    return;
  }
  if (before.guid.length > 0) pass.effects.push({ kind: 'releaseIdentity', guid: before.guid });
  move(pass.status, 'otherMachine');
}

/**
 * The BMC's statement, as evidence of the machine. A GUID that may differ is no evidence: a
 * person's confirmation does not make it proof.
 */
export function machineIdentity({ spec, status }: PassView): BmcIdentity | undefined {
  const { bmcIdentity } = status;
  if (bmcIdentity === undefined || !isVouchedFor({ spec })) return bmcIdentity;
  const copy = clone(BmcIdentitySchema, bmcIdentity);
  copy.guid = new Uint8Array();
  return copy;
}

/** Why it is not the machine that a person has confirmed; undefined: it is, or nobody has. */
function notVouchedFor({ spec }: PassView, { uuid }: SystemIdentity): string | undefined {
  const { acceptedUuid = '' } = spec.bmc ?? {};
  if (acceptedUuid === '') return undefined;
  const wanted = { uuid: new Uint8Array(Buffer.from(acceptedUuid, 'hex')), serials: {} };
  if (judgeIdentity({ uuid, serials: {} }, wanted).kind === 'proven') return undefined;
  return (
    `the machine that booted says the UUID ${identityHex(uuid) || 'none'}, and bmc.accepted_uuid ` +
    `is ${acceptedUuid}; correct or remove it`
  );
}

/** The other host that owns this identity. */
export function ownerOf(pass: PassView, identity: BmcIdentity | undefined): string | undefined {
  if (identity === undefined || identity.guid.length === 0) return undefined;
  const owner = pass.snapshot.identityOwners.get(identityHex(identity.guid));
  return owner === pass.host.name ? undefined : owner;
}

/** Guard 0 in the control plane; the runner checks again before its first write. */
export function checkMachine(
  pass: PassView,
  system: SystemIdentity | undefined,
): RunFailure | undefined {
  const bmcIdentity = machineIdentity(pass);
  const stranger = system === undefined ? undefined : notVouchedFor(pass, system);
  if (system !== undefined && stranger !== undefined) return otherMachine(pass, system, stranger);
  if (system === undefined) return unproven(pass, 'its inventory says nothing of the machine');
  const { acceptedIdentity } = pass.record;
  const accepted =
    acceptedIdentity === undefined
      ? undefined
      : judgeIdentity(witnessOfSystem(system), witnessOfSystem(acceptedIdentity));
  if (accepted?.kind === 'mismatch') {
    const message =
      `the machine that booted is not the one that was discovered: its ${accepted.witness} is ` +
      `${accepted.inBand}, that one said ${accepted.outOfBand}`;
    return otherMachine(pass, system, message);
  }
  const owner = ownerOfMachine(pass, system);
  if (bmcIdentity === undefined) {
    const reason = 'the last verify says nothing of the machine';
    return owner === undefined ? unproven(pass, reason) : machineOfOther(pass, system);
  }
  const verdict = judgeIdentity(witnessOfSystem(system), witnessOfBmc(bmcIdentity));
  switch (verdict.kind) {
    case 'proven':
      return isVouchedFor(pass) && owner !== undefined ? machineOfOther(pass, system) : undefined;
    case 'mismatch': {
      const message =
        'the machine that booted is not the one whose BMC was switched on: its ' +
        `${verdict.witness} is ${verdict.inBand}, the BMC says ${verdict.outOfBand}` +
        (verdict.witness === 'uuid' ? '; if both are right, set bmc.accepted_uuid' : '');
      return otherMachine(pass, system, message);
    }
    case 'unproven':
      return owner === undefined ? unproven(pass, verdict.reason) : machineOfOther(pass, system);
  }
}

/** The other host whose BMC reports this machine's identity. */
function ownerOfMachine(pass: PassView, { uuid }: SystemIdentity): string | undefined {
  const owner = pass.snapshot.identityOwners.get(identityHex(uuid));
  return owner === pass.host.name ? undefined : owner;
}

/** Neither a person's confirmation nor a policy moves one host's machine to another. */
function machineOfOther(pass: PassView, system: SystemIdentity): RunFailure {
  const message =
    `the machine that booted is not ${pass.host.name}: the BMC of another host says its UUID ` +
    `${identityHex(system.uuid)}; correct boot_macs or bmc of the two`;
  return otherMachine(pass, system, message);
}

function isVouchedFor({ spec }: Pick<PassView, 'spec'>): boolean {
  return (spec.bmc?.acceptedUuid ?? '') !== '';
}

function otherMachine(pass: PassView, system: SystemIdentity, message: string): RunFailure {
  const owner = ownerOfMachine(pass, system);
  if (owner === undefined) return stepFailure('identityMismatch', message);
  return stepFailure('identityMismatch', `${message}; it is ${owner}`, '', otherHost(owner));
}

function unproven(pass: PassView, reason: string): RunFailure | undefined {
  if (pass.spec.cleaning?.allowUnprovenIdentity === true) return undefined;
  return stepFailure(
    'identityUnproven',
    `nothing proves that the booted machine is ${pass.host.name}: ${reason}; ` +
      'set cleaning.allow_unproven_identity to accept that',
  );
}

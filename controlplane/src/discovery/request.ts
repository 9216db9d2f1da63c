/** The CreateHost request for a discovered machine, and the validation of a finding. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import {
  type Actor,
  type agent,
  type CreateHostRequest,
  CreateHostRequestSchema,
  type HostName,
  type HostSpec,
  HostSpecSchema,
  type RequestId,
  type SystemIdentity,
  systemActor,
} from '@rackwright/messages';
import type { AuditEvent } from '../audit/index.ts';
import { unicastMac } from '../fleet-view/index.ts';
import { createMethod, isByHand } from '../host/index.ts';
import { appliedId, hasApplied } from '../records/index.ts';
import type { Acceptance } from './judge.ts';
import type { KeptMachine } from './kept.ts';
import type { DiscoverySnapshot, KnownHost } from './snapshot.ts';

/** The actor of acceptances without a person. */
export const discoveryActor = systemActor('discovery');

/** The most boot MACs of one host. */
const bootMacsMax = 16;
const addressCharsMax = 64;
const idCharsMax = 64;

/** The origin of an accepted host. */
export interface AcceptedFrom {
  readonly actor: Actor;
  readonly cause: string;
  readonly identity: SystemIdentity | undefined;
  /** "racks/RACK rule NAME"; empty: no rule took it. */
  readonly rule: string;
}

/** The request id with which a rule makes a host of a machine. */
export function machineRequestId(machineUid: string): RequestId {
  return `discovered.${machineUid}`;
}

/** The request id with which the host of a line is made. */
export function lineRequestId(expectedUid: string): RequestId {
  return `expected.${expectedUid}`;
}

/** Whether CreateHost made the host under this id. */
export function isMadeBy(host: KnownHost, requestId: RequestId): boolean {
  return hasApplied(host, appliedId(createMethod, requestId));
}

/** Why a finding is invalid, independent of what is listed. */
export function problemOf({
  id,
  bootMac,
  inventory,
  bmcAddress,
}: agent.Discovered): string | undefined {
  if (id === '' || id.length > idCharsMax) return 'the finding has no usable id';
  if (unicastMac(bootMac) === undefined) return `${JSON.stringify(bootMac)} is no MAC address`;
  if (inventory === undefined) return 'the finding has no inventory';
  return bmcAddress.length > addressCharsMax ? 'the BMC address is too long' : undefined;
}

export function fromOf(
  { machine }: KeptMachine,
  { actor, cause, rule = '' }: { actor: Actor; cause: string; rule?: string | undefined },
): AcceptedFrom {
  return { actor, cause, identity: machine.inventory?.system, rule };
}

export function creationOf(
  kept: KeptMachine,
  { hostId, labels, spec }: Acceptance,
  requestId: RequestId,
  { validateOnly }: { readonly validateOnly: boolean },
): CreateHostRequest {
  return create(CreateHostRequestSchema, {
    hostId,
    host: { labels: { ...labels }, spec: completed(spec, kept) },
    requestId,
    validateOnly,
  });
}

/** The spec, completed with the machine's own report where it has no value. */
function completed(spec: HostSpec | undefined, { machine, traits }: KeptMachine): HostSpec {
  const made = spec === undefined ? create(HostSpecSchema) : clone(HostSpecSchema, spec);
  if (made.rack === '') made.rack = machine.rack;
  if (made.bootMacs.length === 0) {
    const others = traits.macs.filter((mac) => mac !== machine.bootMac);
    made.bootMacs = [machine.bootMac, ...others].slice(0, bootMacsMax);
  }
  if (made.bmc !== undefined && made.bmc.address === '' && !isByHand(made))
    made.bmc.address = machine.bmcAddress;
  return made;
}

/** "racks/RACK rule NAME" or "expectedHosts/LINE" that made this machine the host, if one did. */
export function acceptedBy(
  { machine }: KeptMachine,
  host: KnownHost,
  { expected }: DiscoverySnapshot,
): string | undefined {
  if (isMadeBy(host, machineRequestId(machine.uid))) return host.acceptedByRule || undefined;
  const line = expected.find(({ id }) => id === host.hostId)?.expected;
  if (line === undefined) return undefined;
  return isMadeBy(host, lineRequestId(line.uid)) ? line.name : undefined;
}

/** The audit event for a machine that was accepted without a person. */
export function acceptanceEvent({ machine }: KeptMachine, host: HostName, by: string): AuditEvent {
  return {
    kind: 'acceptance',
    actor: discoveryActor,
    action: 'acceptMachine',
    resource: host,
    outcome: 'ok',
    message: `${machine.name} in ${machine.rack}, by ${by}`,
  };
}

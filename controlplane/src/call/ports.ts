/**
 * What the services need of the rest of the control plane: the host loop behind one interface, so
 * that nothing here can start work or write a host's state by itself.
 */
import {
  type Explanation,
  type HostId,
  type Progress,
  type RackId,
  Role,
  type store as wire,
} from '@rackwright/messages';
import type { Clock, Log, Random } from '@rackwright/platform';
import type { Revision, StateStore } from '@rackwright/store';
import type { Principal } from '../access/index.ts';
import type { BmcReads, ConsoleViews, PrefetchProgress, StepLogs } from '../agents/index.ts';
import type { AuditTrail } from '../audit/index.ts';
import type { Discovery } from '../discovery/index.ts';
import type { FleetView } from '../fleet-view/index.ts';
import type { HostContext, HostRequest, Refusal, Requester, UsualTimes } from '../host/index.ts';
import type { Identity, RackKeys } from '../identity/index.ts';
import type { Pools, ResolveImage } from '../pool/index.ts';
import { appliedId } from '../records/index.ts';
import type { SecretsKeeper } from '../secrets/index.ts';
import type { Batches, Workflows } from '../workflow/index.ts';

export type HostRequestOutcome =
  /** Done, or already done by an earlier request with the same id. */
  | { readonly kind: 'accepted'; readonly record: wire.HostRecord; readonly revision: Revision }
  /** The host is gone: what was asked ended its record at once. */
  | { readonly kind: 'removed' }
  | (Refusal & { readonly kind: 'refused' })
  | { readonly kind: 'notFound' };

/** The host loop. */
export interface HostsPort {
  /** `hostId` as in "hosts/ID"; with `expectedRevision` a changed host refuses with `aborted`. */
  request(
    hostId: HostId,
    request: HostRequest,
    by: Requester,
    expectedRevision?: Revision,
  ): Promise<HostRequestOutcome>;
  /** Something that the host depends on has changed: look again. */
  wake(hostId: HostId): void;
  /** What the host waits for; undefined when there is no such host. */
  explain(hostId: HostId): Promise<Explanation | undefined>;
  /** Computes something of a host from what its next turn would be decided by. */
  consider<T>(
    hostId: HostId,
    of: (record: wire.HostRecord, context: HostContext) => T,
  ): Promise<T | undefined>;
  /** How long runs of the host and their steps usually take. */
  usualOf(hostId: HostId): Promise<UsualTimes>;
  /** Percent of the present step; memory only. */
  progressOf(hostId: HostId): Progress | undefined;
  /** Where the host's run stands in the queue that it waits in, from 1. */
  queuePosition(record: wire.HostRecord): number | undefined;
  agentConnected(rackId: RackId): boolean;
}

/** Machines that were discovered and are no hosts. */
export type DiscoveryPort = Pick<
  Discovery,
  'accept' | 'listedIn' | 'remarksOf' | 'wake' | 'wakeRack'
>;

export interface RpcDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly hosts: HostsPort;
  /** Everything that is asked about more than one host; it shows what is out of scope, too. */
  readonly fleetView: Pick<
    FleetView,
    'candidates' | 'caughtUp' | 'collection' | 'counts' | 'countsBy' | 'idsBy' | 'row' | 'rows'
  >;
  readonly discovery: DiscoveryPort;
  readonly workflows: Pick<Workflows, 'look' | 'inTurn'>;
  readonly batches: Pick<Batches, 'look' | 'openIds'>;
  readonly pools: Pick<Pools, 'look' | 'known'>;
  /** Looks tags up; missing: nobody does. */
  readonly resolve?: ResolveImage;
  /** What agents say of images that they fetch beforehand. */
  readonly prefetched?: Pick<PrefetchProgress, 'of'>;
  readonly identity: Pick<
    Identity,
    | 'adminTokenSha256'
    | 'agentCertificateMs'
    | 'authorities'
    | 'caCertificatePem'
    | 'caSha256'
    | 'issuer'
    | 'erasure'
    | 'secrets'
  >;
  /** Finds the rack of an agent's key. */
  readonly rackKeys: Pick<RackKeys, 'rackOf' | 'wrote'>;
  /** Missing: the key of secrets can be neither looked at nor changed. */
  readonly secretsKeeper?: Pick<SecretsKeeper, 'look' | 'rotate'>;
  /** What steps' programs write, as far as agents are connected here. */
  readonly stepLogs: Pick<StepLogs, 'read' | 'onChange'>;
  /** Asks BMCs through agents that are connected here; missing: none is. */
  readonly bmcReads?: Pick<BmcReads, 'ask'>;
  /** Shows consoles through them. */
  readonly consoles?: Pick<ConsoleViews, 'open'>;
  /** This replica, as rack records name it. */
  readonly replicaId: string;
  /** Records what is asked; without it nothing is recorded. */
  readonly audit?: AuditTrail;
  /** Who calls: "user:NAME", "token:NAME", "oidc:SUBJECT". */
  readonly actor: string;
  readonly principal: Principal;
  /** Somebody who is no token of ours may make tokens, too. */
  readonly otherAdmins?: boolean;
  /** "host:port" at which agents reach their port. */
  readonly agentEndpoint: string;
  /** What is wrong with the certificate authorities, a line each; without it nothing is said. */
  readonly trustFaults?: () => readonly string[];
  /** Of the call (W3C Trace Context); unset: it has none. */
  readonly traceParent?: string;
  /** "host:port" at which they join, as far as that is known. */
  readonly enrolmentEndpoint?: string;
}

/** Who asks, and under which id the record remembers it. */
export function requester(
  {
    actor,
    principal,
    traceParent,
  }: Pick<RpcDependencies, 'actor'> & Partial<Pick<RpcDependencies, 'principal' | 'traceParent'>>,
  method: string,
  requestId = '',
): Requester {
  const applied = appliedId(method, requestId);
  const mayEndOthersUse = principal?.role === Role.ADMIN;
  return {
    ...{ actor, mayEndOthersUse },
    ...(applied === undefined ? {} : { requestId: applied }),
    ...(traceParent === undefined ? {} : { traceParent }),
  };
}

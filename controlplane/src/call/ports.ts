/**
 * What the services need from the rest of the control plane. The host loop is behind one interface,
 * so that no service can start work or write a host's state itself.
 */
import {
  type Actor,
  type Explanation,
  type HostId,
  type Progress,
  type RackId,
  type ReplicaId,
  Role,
  type store as wire,
} from '@rackwright/messages';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import type { StateStore, StoreRevision } from '@rackwright/store';
import type { Principal } from '../access/index.ts';
import type { BmcReads, ConsoleViews, PrefetchProgress, StepLogs } from '../agents/index.ts';
import type { AuditTrail } from '../audit/index.ts';
import type { Discovery } from '../discovery/index.ts';
import type { FleetView } from '../fleet-view/index.ts';
import type {
  HostRequest,
  HostSnapshot,
  Refusal,
  Requester,
  ServedObserver,
  UsualTimes,
} from '../host/index.ts';
import type { Identity, RackKeys } from '../identity/index.ts';
import type { Pools, ResolveImage } from '../pool/index.ts';
import { appliedId } from '../records/index.ts';
import type { SecretsKeeper } from '../secrets/index.ts';
import type { Batches, Workflows } from '../workflow/index.ts';

export type HostRequestOutcome =
  /** Done, or already done by an earlier request with the same id. */
  | {
      readonly kind: 'accepted';
      readonly record: wire.HostRecord;
      readonly revision: StoreRevision;
    }
  /** The host is gone: the request ended its record at once. */
  | { readonly kind: 'removed' }
  | (Refusal & { readonly kind: 'refused' })
  | { readonly kind: 'notFound' };

/** The host loop. */
export interface HostsPort {
  /** `hostId` as in "hosts/ID"; with `expectedRevision`, a changed host refuses with `aborted`. */
  request(
    hostId: HostId,
    request: HostRequest,
    by: Requester,
    expectedRevision?: StoreRevision,
  ): Promise<HostRequestOutcome>;
  /** Something that the host depends on has changed: reconcile it. */
  wake(hostId: HostId): void;
  /** The host was made at this revision and has its addresses: reconcile it, if no pass has yet. */
  wakeCreated(hostId: HostId, revision: StoreRevision): void;
  /** What the host waits for; undefined when there is no such host. */
  explain(hostId: HostId): Promise<Explanation | undefined>;
  /** Computes a value from the same data that the host's next decision would use. */
  consider<T>(
    hostId: HostId,
    of: (record: wire.HostRecord, snapshot: HostSnapshot) => T,
  ): Promise<T | undefined>;
  /** The usual durations of the host's runs and their steps. */
  usualOf(hostId: HostId): Promise<UsualTimes>;
  /** The position of the host's run in its queue, from 1. */
  queuePosition(record: wire.HostRecord): number | undefined;
  /** Percent of the present step; only in memory. */
  progressOf(hostId: HostId): Progress | undefined;
  isAgentConnected(rackId: RackId): boolean;
  /** Tells `observer` what the last two may answer differently now, until it is cancelled. */
  onServedChange(observer: ServedObserver): Cancel;
}

/** Discovered machines that are not hosts. */
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
  /** Queries about more than one host; the view includes hosts out of scope. */
  readonly fleetView: Pick<
    FleetView,
    'candidates' | 'caughtUp' | 'collection' | 'counts' | 'countsBy' | 'idsBy' | 'row' | 'rows'
  >;
  readonly discovery: DiscoveryPort;
  readonly workflows: Pick<Workflows, 'reconcile' | 'oneAtATime'>;
  readonly batches: Pick<Batches, 'reconcile' | 'openIds'>;
  readonly pools: Pick<Pools, 'reconcile' | 'known'>;
  /** Resolves tags; missing: tags are not resolved. */
  readonly resolve?: ResolveImage;
  /** The progress of agents with prefetched images. */
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
  readonly rackKeys: Pick<RackKeys, 'rackOf' | 'noteWritten'>;
  /** Missing: the secrets key can be neither read nor changed. */
  readonly secretsKeeper?: Pick<SecretsKeeper, 'status' | 'rotate'>;
  /** The output of steps' programs, from agents connected to this replica. */
  readonly stepLogs: Pick<StepLogs, 'read' | 'onChange'>;
  /** Asks BMCs through agents connected to this replica; missing: there are none. */
  readonly bmcReads?: Pick<BmcReads, 'ask'>;
  /** Shows consoles through these agents. */
  readonly consoles?: Pick<ConsoleViews, 'open'>;
  /** This replica, as rack records name it. */
  readonly replicaId: ReplicaId;
  /** Records calls; without it nothing is recorded. */
  readonly audit?: AuditTrail;
  /** The caller: "user:NAME", "token:NAME", "oidc:SUBJECT". */
  readonly actor: Actor;
  readonly principal: Principal;
  /** Callers without a token of ours may create tokens, too. */
  readonly otherAdmins?: boolean;
  /** "host:port" of the agents' port. */
  readonly agentEndpoint: string;
  /** Problems of the certificate authorities, a line each; without it none are shown. */
  readonly trustFaults?: () => readonly string[];
  /** The trace parent of the call (W3C Trace Context); unset: none. */
  readonly traceParent?: string;
  /** "host:port" for enrolment, if it is known. */
  readonly enrolmentEndpoint?: string;
}

/** The caller, and the request id under which the record remembers the request. */
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

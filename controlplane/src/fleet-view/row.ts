/** What the view keeps of a host's record. Pure. */
import { fromBinary } from '@bufbuild/protobuf';
import {
  FailureType,
  type Host,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import type { Entry, Revision } from '@rackwright/store';
import { idOfKey, msOf } from '../records/index.ts';

/** A host: only what is asked for of many at once. Empty, 0 and undefined stand for unset. */
export interface HostRow {
  readonly kind: 'host';
  readonly hostId: string;
  readonly revision: Revision;
  readonly uid: string;
  /** "racks/RACK" */
  readonly rack: string;
  /** "credentials/CREDENTIAL" */
  readonly credential: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly bmcAddress: string;
  readonly bootMacs: readonly string[];
  /** As its BMC tells them: of the product, the chassis and the board. */
  readonly serials: readonly string[];
  readonly goal: HostGoal;
  readonly retired: boolean;
  readonly state: HostState;
  readonly dirty: boolean;
  readonly poweredOn: boolean | undefined;
  /** "user:NAME" or "pools/POOL": who uses it. */
  readonly claim: string;
  readonly image: string;
  /** Of the run that holds the host. */
  readonly runKind: RunKind;
  /** What that run waits for: a word of `Waiting.reason`. */
  readonly waiting: string;
  /** Types of its faults. */
  readonly faults: readonly string[];
  /** Of the last failure. */
  readonly failure: FailureType;
  readonly held: boolean;
  readonly deleting: boolean;
  /** Milliseconds since 1970. */
  readonly createMs: number | undefined;
  readonly updateMs: number | undefined;
}

/** A record that this program cannot decode. */
export interface UnreadableRow {
  readonly kind: 'unreadable';
  readonly hostId: string;
  readonly revision: Revision;
  readonly reason: string;
}

export type FleetRow = HostRow | UnreadableRow;

/** How a record is decoded; throws for one that cannot be. */
export type DecodeHost = (entry: Entry) => wire.HostRecord;

const decodeAnew: DecodeHost = ({ value }) => fromBinary(wire.HostRecordSchema, value);

/** The row of a host's record. Never throws. */
export function rowOf(entry: Entry, decode: DecodeHost = decodeAnew): FleetRow {
  const [hostId, { revision }] = [idOfKey(entry.key), entry];
  try {
    const { host, change } = decode(entry);
    return { kind: 'host', hostId, revision, ...partsOf(host), updateMs: msOf(change?.time) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'unreadable', hostId, revision, reason };
  }
}

const noLabels = {};

function partsOf(host: Host | undefined) {
  const { spec, status } = host ?? {};
  const { serial = '', chassisSerial = '', boardSerial = '' } = status?.bmcIdentity ?? {};
  const serials = [serial, chassisSerial, boardSerial].filter((each) => each !== '');
  return {
    uid: host?.uid ?? '',
    rack: spec?.rack ?? '',
    credential: spec?.bmc?.credential ?? '',
    labels: host?.labels ?? noLabels,
    bmcAddress: spec?.bmc?.address ?? '',
    bootMacs: spec?.bootMacs ?? [],
    serials: [...new Set(serials)],
    goal: spec?.goal || HostGoal.AVAILABLE,
    retired: spec?.retired === true,
    createMs: msOf(host?.createTime),
    ...statusOf(status),
  };
}

function statusOf(status: Host['status']) {
  const run = status?.run?.phase === RunPhase.ENDED ? undefined : status?.run;
  return {
    state: status?.state ?? HostState.UNSPECIFIED,
    dirty: status?.dirty === true,
    poweredOn: status?.poweredOn,
    claim: status?.claim?.by ?? '',
    image: status?.image ?? '',
    runKind: run?.kind ?? RunKind.UNSPECIFIED,
    waiting: run?.phase === RunPhase.WAITING ? (run.waiting?.reason ?? '') : '',
    faults: (status?.faults ?? []).map(({ type }) => type),
    failure: status?.lastError?.failure?.type ?? FailureType.UNSPECIFIED,
    held: (status?.holds ?? []).length > 0,
    deleting: status?.deletion !== undefined,
  };
}

/** The part of a host's record that the view keeps. Pure. */
import { fromBinary } from '@bufbuild/protobuf';
import {
  type CredentialName,
  FailureType,
  type Host,
  HostGoal,
  type HostId,
  HostState,
  type HostUid,
  type RackName,
  RunKind,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import type { Entry, StoreRevision } from '@rackwright/store';
import { idOfKey, msOf } from '../records/index.ts';
import { recordKeys } from './traits.ts';

/** A host: only fields for queries about many hosts. Empty, 0 and undefined stand for unset. */
export interface HostRow {
  readonly kind: 'host';
  readonly hostId: HostId;
  readonly revision: StoreRevision;
  readonly uid: HostUid;
  /** "racks/RACK" */
  readonly rack: RackName;
  /** "credentials/CREDENTIAL" */
  readonly credential: CredentialName;
  readonly labels: Readonly<Record<string, string>>;
  readonly bmcAddress: string;
  readonly bootMacs: readonly string[];
  /** As its BMC reports them: of the product, the chassis and the board. */
  readonly serials: readonly string[];
  readonly goal: HostGoal;
  readonly retired: boolean;
  readonly state: HostState;
  readonly dirty: boolean;
  readonly poweredOn: boolean | undefined;
  /** The user of the host: "user:NAME" or "pools/POOL". */
  readonly claim: string;
  readonly image: string;
  /** The kind of the run in progress. */
  readonly runKind: RunKind;
  /** The workflow run that it belongs to: "hosts/HOST/workflows/WORKFLOW/runs/N". */
  readonly workflowRun: string;
  /** Why that run waits: a `Waiting.reason`. */
  readonly waiting: string;
  /** Types of its faults. */
  readonly faults: readonly string[];
  /** The type of the last failure. */
  readonly failure: FailureType;
  readonly held: boolean;
  readonly deleting: boolean;
  /** Uids of removed hosts that fence it off, or did. */
  readonly fences: readonly string[];
  /** "racks/RACK rule NAME" of the rule that accepted it. */
  readonly acceptedByRule: string;
  /** Traits of its machine from its record, except the boot MACs: keys of `traits.ts`. */
  readonly traits: readonly string[];
  /** Milliseconds since 1970. */
  readonly createMs: number | undefined;
  readonly updateMs: number | undefined;
}

/** A record that this program cannot decode. */
export interface UnreadableRow {
  readonly kind: 'unreadable';
  readonly hostId: HostId;
  readonly revision: StoreRevision;
  readonly reason: string;
}

export type FleetRow = HostRow | UnreadableRow;

/** Decodes a record; throws for one that cannot be decoded. */
export type DecodeHost = (entry: Entry) => wire.HostRecord;

const decodeAnew: DecodeHost = ({ value }) => fromBinary(wire.HostRecordSchema, value);

/** Rows of shared records: the watchers of hosts use the row that the view has made. */
const made = new WeakMap<wire.HostRecord, HostRow>();

/** The row of a host's record. Never throws. */
export function rowOf(entry: Entry, decode: DecodeHost = decodeAnew): FleetRow {
  const [hostId, { revision }] = [idOfKey(entry.key), entry];
  try {
    const record = decode(entry);
    const known = made.get(record);
    if (known?.revision === revision && known.hostId === hostId) return known;
    const row = hostRow(hostId, revision, record);
    made.set(record, row);
    return row;
  } catch (error) {
    const reason = errorText(error);
    return { kind: 'unreadable', hostId, revision, reason };
  }
}

function hostRow(hostId: HostId, revision: StoreRevision, record: wire.HostRecord): HostRow {
  const { host, change, fences, acceptedByRule, acceptedIdentity } = record;
  const updateMs = msOf(change?.time);
  const traits = recordKeys(acceptedIdentity, host?.status?.bmcIdentity);
  const own = { fences, acceptedByRule, traits, updateMs };
  return { kind: 'host', hostId, revision, ...partsOf(host), ...own };
}

const noLabels = {};

function partsOf(host: Host | undefined) {
  const { uid = '', labels = noLabels, createTime, spec, status } = host ?? {};
  return { uid, labels, createMs: msOf(createTime), ...specOf(spec), ...statusOf(status) };
}

function specOf(spec: Host['spec']) {
  const { credential = '', address: bmcAddress = '' } = spec?.bmc ?? {};
  return {
    rack: spec?.rack ?? '',
    credential,
    bmcAddress,
    bootMacs: spec?.bootMacs ?? [],
    goal: spec?.goal || HostGoal.AVAILABLE,
    retired: spec?.retired === true,
  };
}

function statusOf(status: Host['status']) {
  const { faults = [], holds = [] } = status ?? {};
  return {
    state: status?.state ?? HostState.UNSPECIFIED,
    dirty: status?.dirty === true,
    poweredOn: status?.poweredOn,
    serials: serialsOf(status),
    claim: status?.claim?.by ?? '',
    image: status?.image ?? '',
    ...runOf(status),
    faults: faults.map(({ type }) => type),
    failure: status?.lastError?.failure?.type ?? FailureType.UNSPECIFIED,
    held: holds.length > 0,
    deleting: status?.deletion !== undefined,
  };
}

function serialsOf(status: Host['status']): readonly string[] {
  const { serial = '', chassisSerial = '', boardSerial = '' } = status?.bmcIdentity ?? {};
  return [...new Set([serial, chassisSerial, boardSerial].filter((each) => each !== ''))];
}

function runOf(status: Host['status']) {
  const run = status?.run;
  if (run === undefined || run.phase === RunPhase.ENDED) {
    return { runKind: RunKind.UNSPECIFIED, workflowRun: '', waiting: '' };
  }
  return {
    runKind: run.kind,
    workflowRun: run.workflowRun,
    waiting: run.phase === RunPhase.WAITING ? (run.waiting?.reason ?? '') : '',
  };
}

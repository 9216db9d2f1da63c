/** What the view keeps of a host's record. Pure. */
import { fromBinary } from '@bufbuild/protobuf';
import { HostState, store as wire } from '@rackwright/api';
import type { Entry, Revision } from '@rackwright/store';
import { idOfKey } from '../records/index.ts';

/** A host: only what is asked for of many at once. */
export interface HostRow {
  readonly kind: 'host';
  readonly hostId: string;
  readonly revision: Revision;
  readonly uid: string;
  /** "racks/RACK"; empty: none. */
  readonly rack: string;
  /** "credentials/CREDENTIAL"; empty: none. */
  readonly credential: string;
  readonly state: HostState;
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
    const { host } = decode(entry);
    const { spec, status } = host ?? {};
    return {
      kind: 'host',
      ...{ hostId, revision, uid: host?.uid ?? '', rack: spec?.rack ?? '' },
      credential: spec?.bmc?.credential ?? '',
      state: status?.state ?? HostState.UNSPECIFIED,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'unreadable', hostId, revision, reason };
  }
}

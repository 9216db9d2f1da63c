/** The events of a change of a rack's record, or of the fleet's. Pure. */
import type { Freeze, store as wire } from '@rackwright/messages';
import { sameMessage } from '../../records/index.ts';
import type { EventContent, EventDraft, RecordChange } from './event-draft.ts';

export function rackEventsOf({
  segments,
  before,
  after,
}: RecordChange<wire.RackRecord>): EventDraft {
  const name = `racks/${segments[1]}`;
  const { uid = '' } = after?.rack ?? before?.rack ?? {};
  const about = { subject: name, rack: name };
  if (after === undefined) {
    return { ...about, contents: [{ case: 'rackRemoved', value: { uid } }] };
  }
  const created: EventContent[] =
    before === undefined ? [{ case: 'rackCreated', value: { uid } }] : [];
  const [was, is] = [before?.rack?.status, after.rack?.status];
  const contents = [
    ...created,
    ...keyEventsOf(before, after),
    ...sessionEventsOf(before, after),
    ...freezeEventsOf(was?.freeze, is?.freeze),
  ];
  const { restoredStore } = is ?? {};
  if (restoredStore !== undefined && was?.restoredStore === undefined) {
    const { seenRevision, revision } = restoredStore;
    contents.push({ case: 'restoredStoreFound', value: { seenRevision, revision } });
  }
  return { ...about, contents };
}

export function fleetEventsOf({ before, after }: RecordChange<wire.FleetRecord>): EventDraft {
  const [was, is] = [before?.fleet?.status?.freeze, after?.fleet?.status?.freeze];
  return { subject: 'fleet', contents: freezeEventsOf(was, is) };
}

function freezeEventsOf(was: Freeze | undefined, is: Freeze | undefined): EventContent[] {
  if (was === undefined && is !== undefined) {
    return [{ case: 'freezeStarted', value: { by: is.by, reason: is.reason } }];
  }
  return was !== undefined && is === undefined ? [{ case: 'freezeEnded', value: {} }] : [];
}

function keyEventsOf(before: wire.RackRecord | undefined, after: wire.RackRecord): EventContent[] {
  const contents: EventContent[] = [];
  const revoked = after.rack?.status?.lastRevoked;
  const revokedBefore = before?.rack?.status?.lastRevoked;
  if (
    revoked !== undefined &&
    (revokedBefore === undefined || !sameMessage(revoked, revokedBefore))
  ) {
    const { keySha256, by, reason, replaced } = revoked;
    contents.push({ case: 'agentRevoked', value: { keySha256, by, reason, replaced } });
  }
  const [was = '', is = ''] = [
    before?.rack?.status?.agentKeySha256,
    after.rack?.status?.agentKeySha256,
  ];
  if (is !== '' && is !== was) contents.push({ case: 'agentJoined', value: { keySha256: is } });
  return contents;
}

/** A session that replaces another one, on any replica, gives the event "connected". */
function sessionEventsOf(
  before: wire.RackRecord | undefined,
  after: wire.RackRecord,
): EventContent[] {
  const [was = '', is] = [before?.sessionReplica, after.sessionReplica];
  const { lastSeenTime, agentVersion = '' } = after.rack?.status ?? {};
  if (is === '') {
    if (was === '') return [];
    const seen = lastSeenTime === undefined ? {} : { lastSeenTime };
    return [{ case: 'agentLost', value: seen }];
  }
  const isSameAgent =
    before?.journal === after.journal ||
    (before?.journal !== undefined &&
      after.journal !== undefined &&
      sameMessage(before.journal, after.journal));
  if (was === is && isSameAgent) return [];
  return [{ case: 'agentConnected', value: { agentVersion } }];
}

/** The events of changes of smaller records. Pure. */
import { type WorkflowRun, WorkflowRunState, type store as wire } from '@rackwright/messages';
import { sameMessage } from '../../records/index.ts';
import type { EventContent, EventDraft, RecordChange } from './event-draft.ts';

export function workflowEventsOf({
  segments,
  before,
  after,
}: RecordChange<wire.WorkflowRecord>): EventDraft {
  const known = new Set(endedRuns(before).map(({ number }) => number));
  const least = before?.workflow?.status?.run?.number ?? 0n;
  const ended = endedRuns(after).filter(({ number }) => number >= least && !known.has(number));
  const contents = ended.map(
    ({ name: workflowRun, state, error }): EventContent => ({
      case: 'workflowRunEnded',
      value: {
        ...{ workflowRun, state },
        ...(error === undefined ? {} : { failure: error.type, message: error.message }),
      },
    }),
  );
  return { subject: `hosts/${segments[1]}`, contents };
}

const openStates: ReadonlySet<WorkflowRunState> = new Set([
  WorkflowRunState.UNSPECIFIED,
  WorkflowRunState.PENDING,
  WorkflowRunState.RUNNING,
]);

/** Oldest first. */
function endedRuns(record: wire.WorkflowRecord | undefined): readonly WorkflowRun[] {
  const run = record?.workflow?.status?.run;
  const runs = [...(record?.earlierRuns ?? []).toReversed(), ...(run === undefined ? [] : [run])];
  return runs.filter(({ state }) => !openStates.has(state));
}

/** A newly listed machine; another observation is no event. */
export function machineEventsOf({
  segments,
  before,
  after,
}: RecordChange<wire.DiscoveredMachineRecord>): EventDraft {
  const machine = `discoveredMachines/${segments[1]}`;
  const { rack = '', firstSeenTime: time } = after?.machine ?? {};
  const isNew = before === undefined && after !== undefined;
  const contents: EventContent[] = isNew ? [{ case: 'machineDiscovered', value: { machine } }] : [];
  return { subject: machine, rack, time, contents };
}

export function certificateEventsOf({
  segments,
  after,
}: RecordChange<wire.CertificateRecord>): EventDraft {
  const { host = '', createTime: time } = after ?? {};
  const certificate = `erasureCertificates/${segments.slice(1).join('-')}`;
  const contents: EventContent[] =
    after === undefined ? [] : [{ case: 'certificateIssued', value: { certificate } }];
  return { subject: host, time, contents };
}

export function documentEventsOf({ after }: RecordChange<wire.ErasureDocumentRecord>): EventDraft {
  const { document } = after ?? {};
  if (document === undefined) return { subject: '', contents: [] };
  const { name, kind, certificates, host: subject, createTime: time } = document;
  const value = { document: name, kind, certificates: [...certificates] };
  return { subject, time, contents: [{ case: 'erasureDocumentIssued', value }] };
}

export function abandonedEventsOf({
  before,
  after,
}: RecordChange<wire.AbandonedRecord>): EventDraft {
  const [was, is] = [before?.resource, after?.resource];
  if (is === undefined) return { subject: '', contents: [] };
  const contents: EventContent[] = [];
  if (was === undefined) {
    const value = { resource: is.name, leftBehind: [...is.leftBehind] };
    contents.push({ case: 'resourceAbandoned', value });
  }
  const { resolution } = is;
  const isResolved =
    resolution !== undefined &&
    (was?.resolution === undefined || !sameMessage(was.resolution, resolution));
  if (isResolved) {
    contents.push({ case: 'abandonedResourceResolved', value: { resource: is.name, resolution } });
  }
  return { subject: is.host, rack: is.rack, contents };
}

/** The events of a change of a host's record. Pure. */
import {
  type GoalBackoff,
  type Hold,
  HoldKind,
  type Host,
  type HostStatus,
  isGivenUp,
  type Run,
  RunPhase,
  type store as wire,
} from '@rackwright/messages';
import { runTrace, traceparentOf } from '@rackwright/trace';
import { partChangeText } from '../../host/index.ts';
import { sameMessage } from '../../records/index.ts';
import { added, type EventContent, type EventDraft, type RecordChange } from './event-draft.ts';

/** The host with its filter fields; for a removed host, as it was. */
export function hostEventsOf({
  segments,
  before,
  after,
}: RecordChange<wire.HostRecord>): EventDraft {
  const host = after?.host ?? before?.host;
  const { uid = '', labels = {} } = host ?? {};
  const { time, actor, cause } = after?.change ?? {};
  const about = {
    ...{ subject: `hosts/${segments[1]}`, rack: host?.spec?.rack ?? '', labels },
    ...{ time, actor, cause, traceParent: traceOf(host) },
  };
  if (after === undefined) {
    return { ...about, contents: [{ case: 'hostRemoved', value: { uid } }] };
  }
  const created: EventContent[] =
    before === undefined ? [{ case: 'hostCreated', value: { uid, labels } }] : [];
  const was = before?.host?.status;
  const is = after.host?.status;
  // The end of a run goes before its consequences, and the begin of the next run after them.
  const runs = runEventsOf(before, after);
  const contents = [
    ...created,
    ...runs.ended,
    ...stateEventsOf(was, is),
    ...useEventsOf(was, is),
    ...troubleEventsOf(was, is, actor ?? ''),
    ...hardwareEventsOf(was, is),
    ...runs.started,
  ];
  return { ...about, contents };
}

/** The trace of the run that the change belongs to. */
function traceOf(host: Host | undefined): string {
  const run = host?.status?.run;
  if (host === undefined || run === undefined) return '';
  return traceparentOf(runTrace(host.uid, run.number, run.traceParent));
}

function stateEventsOf(was: HostStatus | undefined, is: HostStatus | undefined): EventContent[] {
  const contents: EventContent[] = [];
  if (was !== undefined && is !== undefined && was.state !== is.state) {
    contents.push({ case: 'hostStateChanged', value: { from: was.state, to: is.state } });
  }
  if (is?.poweredOn !== undefined && was?.poweredOn !== is.poweredOn) {
    contents.push({ case: 'powerChanged', value: { poweredOn: is.poweredOn } });
  }
  const [from = '', to = ''] = [was?.image, is?.image];
  if (from !== to) contents.push({ case: 'imageChanged', value: { from, to } });
  return contents;
}

function useEventsOf(was: HostStatus | undefined, is: HostStatus | undefined): EventContent[] {
  const contents: EventContent[] = [];
  const [from = '', to = ''] = [was?.claim?.by, is?.claim?.by];
  if (from !== to) {
    const reason = is?.claim?.reason ?? '';
    contents.push({ case: 'claimChanged', value: { from, to, reason } });
  }
  const { deletion } = is ?? {};
  if (deletion !== undefined && was?.deletion?.mode !== deletion.mode) {
    const { mode, by, reason } = deletion;
    contents.push({ case: 'deletionRequested', value: { mode, by, reason } });
  }
  if (deletion === undefined && was?.deletion !== undefined) {
    contents.push({ case: 'deletionWithdrawn', value: {} });
  }
  return contents;
}

function hardwareEventsOf(was: HostStatus | undefined, is: HostStatus | undefined): EventContent[] {
  const { hardwareChange } = is ?? {};
  const known = was?.hardwareChange;
  if (hardwareChange === undefined) return [];
  if (known !== undefined && sameMessage(known, hardwareChange)) return [];
  const { changes, further } = hardwareChange;
  const message = changes.map(partChangeText).join(', ');
  return [{ case: 'hardwareChanged', value: { changes: [...changes], further, message } }];
}

function troubleEventsOf(
  was: HostStatus | undefined,
  is: HostStatus | undefined,
  actor: string,
): EventContent[] {
  const [faultsBefore, faults] = [was?.faults ?? [], is?.faults ?? []];
  const [holdsBefore, holds] = [was?.holds ?? [], is?.holds ?? []];
  const typeOf = ({ type }: { type: string }) => type;
  return [
    ...added(faults, faultsBefore, typeOf).map(
      ({ type: fault }): EventContent => ({ case: 'faultCleared', value: { fault } }),
    ),
    ...added(faultsBefore, faults, typeOf).map(
      ({ type: fault, message, severity, clearedBy }): EventContent => ({
        case: 'faultRaised',
        value: { fault, message, severity, clearedBy },
      }),
    ),
    ...added(holds, holdsBefore, holdOf).map(
      ({ scope, reason }): EventContent => ({
        case: 'holdLifted',
        value: { scope, by: actor, reason },
      }),
    ),
    ...added(holdsBefore, holds, holdOf).map(
      ({ scope, by, reason }): EventContent => ({
        case: 'holdPlaced',
        value: { scope, by, reason },
      }),
    ),
    ...goalEventsOf(was?.backoff, is?.backoff),
  ];
}

/** A person's hold is named by its reason; the system's are told apart by kind and operation. */
function holdOf({ scope, by, reason, kind, operationId }: Hold): string {
  if (kind === HoldKind.UNSPECIFIED) return `${scope} ${by} ${reason}`;
  return `${scope} kind ${kind} ${operationId}`;
}

/** A goal that is given up again after a further failure gives another event. */
function goalEventsOf(was: GoalBackoff | undefined, is: GoalBackoff | undefined): EventContent[] {
  if (is === undefined || !isGivenUp(is)) return [];
  const isSame = was?.failures === is.failures && was.givenUp === is.givenUp;
  return isSame ? [] : [{ case: 'goalGivenUp', value: { reason: is.givenUpReason } }];
}

/** A run that began and ended within this change gives both events. */
function runEventsOf(before: wire.HostRecord | undefined, after: wire.HostRecord) {
  const known = new Map(runsOf(before).map((run) => [run.number, run]));
  const counted = before?.runCount ?? 0n;
  const started: EventContent[] = [];
  const ended: EventContent[] = [];
  for (const run of runsOf(after)) {
    const earlier = known.get(run.number);
    const isNew = earlier === undefined && run.number > counted;
    const hasEnded = run.phase === RunPhase.ENDED;
    // A run that also ended in this change keeps its begin before its end.
    if (isNew) (hasEnded ? ended : started).push(startOf(run));
    if (hasEnded && (isNew || (earlier && earlier.phase !== RunPhase.ENDED))) {
      ended.push(endOf(run));
    }
  }
  return { started, ended };
}

/** Oldest first. */
function runsOf(record: wire.HostRecord | undefined): readonly Run[] {
  const { run } = record?.host?.status ?? {};
  const runs = [...(record?.finishedRuns ?? []), ...(run === undefined ? [] : [run])];
  return runs.toSorted((a, b) => Number(a.number - b.number));
}

function startOf({ kind, number, requestedBy, workflowRun }: Run): EventContent {
  return { case: 'runStarted', value: { kind, number, requestedBy, workflowRun } };
}

function endOf(run: Run): EventContent {
  const { kind, number, outcome, error, startTime, endTime, workflowRun } = run;
  return {
    case: 'runEnded',
    value: {
      ...{ kind, number, outcome, workflowRun },
      ...(error === undefined ? {} : { failure: error.type, message: error.message }),
      ...(startTime === undefined ? {} : { startTime }),
      ...(endTime === undefined ? {} : { endTime }),
    },
  };
}

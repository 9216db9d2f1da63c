/** Words in which the scenarios speak of a host on the bench: what happens, and what is seen. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  explainHost,
  inspected,
  virtioDisk,
} from '@rackwright/controlplane/testing';
import {
  agent,
  type HostStatus,
  RerunClass,
  type Run,
  type RunStep,
  type TransientName,
  transientCauseOf,
  userActor,
} from '@rackwright/messages';

type Effects = ReturnType<Bench['apply']>;
type Request = Parameters<Bench['request']>[0];
type Result = agent.Report['result'];

export function statusOf(host: Bench): HostStatus {
  const status = host.record.host?.status;
  if (status === undefined) throw new Error('the host has no status');
  return status;
}

/** The run that holds the host, or the last one. */
export function runOf(host: Bench): Run {
  const { run } = statusOf(host);
  if (run === undefined) throw new Error('the host has had no run');
  return run;
}

export function stepOf(host: Bench): RunStep | undefined {
  const run = runOf(host);
  return run.steps[run.currentStep];
}

/** Operations that were sent, in order. */
export function sentBy(effects: Effects): agent.Operation[] {
  return effects.flatMap((effect) => (effect.kind === 'send' ? [effect.operation] : []));
}

export function cancelsIn(effects: Effects): string[] {
  return effects.flatMap((effect) => (effect.kind === 'cancel' ? [effect.operationId] : []));
}

/** What the runner is told to do by an operation. */
export function orderOf(operation: agent.Operation): agent.RunStep | undefined {
  return operation.kind.case === 'runStep' ? operation.kind.value : undefined;
}

/** The refusal of a request; fails when it is accepted or changes anything. */
export function refusalOf(host: Bench, request: Request) {
  const before = host.record;
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
  if (outcome.kind !== 'refused') throw new Error(`${request.kind} was accepted`);
  if (host.record !== before) throw new Error(`${request.kind} was refused and changed the host`);
  return outcome.refusal;
}

/** Lets time pass while the agent is there and heard every few seconds. */
export function pass(host: Bench, durationMs: number): Effects {
  host.nowMs += durationMs;
  agentSpeaks(host);
  return host.apply({ kind: 'tick' });
}

export function agentSpeaks(host: Bench): void {
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('the agent is away');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
}

export function agentLeaves(host: Bench): void {
  host.snapshot = { ...host.snapshot, session: undefined };
}

/** The agent is back with the same journal, as after a cut; `begun` are operations it works on. */
export function agentReturns(host: Bench, begun: readonly string[] = []): Effects {
  const journal = create(agent.JournalSchema, { id: 'j1', generation: 1n });
  const session = {
    journal,
    lastMessageMs: host.nowMs,
    openedMs: host.nowMs,
    awaitsReport: false,
  };
  host.snapshot = { ...host.snapshot, session };
  const state = agent.JournalledOperation_State.BEGUN;
  const listed = begun.map((operationId) =>
    create(agent.JournalledOperationSchema, { operationId, hostUid: 'u1', state }),
  );
  return host.apply({ kind: 'hello', journal, listed });
}

/** Facts without an operation, as the agent observes them by itself. */
export function observed(
  host: Bench,
  observations: MessageInitShape<typeof agent.ObservationsSchema>,
): Effects {
  const value = create(agent.HostUpdatedSchema, { observations });
  const result: Result = { case: 'hostUpdated', value };
  const report = create(agent.ReportSchema, { hostUid: 'u1', result });
  return host.apply({ kind: 'report', report });
}

export function conflict(
  message = 'locked',
  delayMs = 0,
  reason: agent.ConflictReason = agent.ConflictReason.LOCKED,
): Result {
  const delay = durationFromMs(delayMs);
  return { case: 'retryAfter', value: create(agent.RetryAfterSchema, { reason, message, delay }) };
}

export function transient(cause: TransientName, message: string = cause): Result {
  return {
    case: 'transientError',
    value: create(agent.TransientErrorSchema, { cause: transientCauseOf(cause), message }),
  };
}

export function continuing(step: string, percent: number): Result {
  const value = create(agent.ContinuingSchema, { step, percent, text: `${percent} %` });
  return { case: 'continuing', value };
}

/** The erase step is done and proved. */
export function erasedWell(host: Bench, devices = [virtioDisk]): Result {
  const evidence = host.evidence(devices.map((device) => erased(device)));
  return { case: 'complete', value: create(agent.CompleteSchema, { evidence }) };
}

/** From new to available, by itself. */
export function driveToAvailable(host: Bench): void {
  driveToErase(host);
  finishClean(host);
}

/** From the start of a run that writes an image to the order to write it. */
export function driveToWrite(host: Bench): void {
  host.report(done);
  driveToInspect(host);
  host.report(inspected());
}

/** From the erase step to the end of a clean. */
export function finishClean(host: Bench): void {
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
}

/** What a runner says it can do; its priority is 0 unless it says another. */
export function runnerStep(name: string, priority = 0): agent.StepDescription {
  const rerunClass = RerunClass.SAFE;
  return create(agent.StepDescriptionSchema, { name, priority, rerunClass });
}

/** The host's last runner has told which steps it has. */
export function runnerOffers(host: Bench, steps: readonly agent.StepDescription[]): void {
  host.snapshot = {
    ...host.snapshot,
    facts: { ...host.snapshot.facts, runnerSteps: [...steps] },
  };
}

export function explained(host: Bench) {
  return explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
}

export function faultsOf(host: Bench): string[] {
  return statusOf(host).faults.map((fault) => fault.type);
}

/**
 * The exclusive operation of a host: creates operations, decides when they may be sent, and
 * interprets an agent's journal for one that was sent before (rules R3, R5, R9).
 */
import { create } from '@bufbuild/protobuf';
import { durationMs, type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRunNumber,
  type HostUid,
  hostWaitOf,
  type OperationId,
  type Run,
  type RunNumber,
  RunPhase,
  store,
} from '@rackwright/messages';
import { asSent, missingAgentStep, noteWriteSent } from '../deployment/deployment.ts';
import { queueTimeoutMs } from '../deployment/image-queue.ts';
import { askForWipeSlot, brakeOn, type SendWait } from '../pass/brake.ts';
import {
  activeRun,
  hasPassed,
  type Pass,
  type PassView,
  stopWaiting,
  timeAfter,
  timeNow,
  waitFor,
  waitForAgent,
} from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import type { HostEffect, SessionSnapshot } from '../pass/types.ts';
import { isDescendantOf, lifeOf } from './lineage.ts';
import { bootWindowMs, confirmationBefore } from './person.ts';
import { orderShutdown } from './shutdown.ts';

/** "<host uid>/<run>/<step>/<attempt>": a unique name for one attempt. */
export function operationId(
  pass: PassView,
  run: RunView,
  stepIndex: number,
  attempt: number,
): OperationId {
  return `${pass.host.uid}/${run.number}/${stepIndex}/${attempt}`;
}

export interface OperationParts {
  readonly runNumber: RunNumber;
  readonly stepIndex: number;
  readonly attempt: number;
}

/** The parts of an id of this host; undefined when it is another's or malformed. */
export function operationParts(hostUid: HostUid, id: OperationId): OperationParts | undefined {
  const [uid, run, index, attempt, ...rest] = id.split('/');
  if (uid !== hostUid || rest.length > 0) return undefined;
  if (![run, index, attempt].every((part) => part !== undefined && /^\d{1,15}$/.test(part))) {
    return undefined;
  }
  return {
    runNumber: asRunNumber(BigInt(run ?? 0)),
    stepIndex: Number(index),
    attempt: Number(attempt),
  };
}

export interface Postponement {
  readonly notBefore?: Timestamp;
  readonly firstConflictTime?: Timestamp;
  readonly transientCount?: number;
  readonly firstTransientTime?: Timestamp;
}

/** Puts a new operation into the record, unsent. */
export function putOperation(
  pass: Pass,
  run: RunView,
  step: StepView,
  kind: agent.Operation['kind'],
  postponement: Postponement = {},
): void {
  const id = operationId(pass, run, run.currentStep, step.attempt);
  pass.record.operation = create(store.OperationRecordSchema, {
    operation: create(agent.OperationSchema, {
      id,
      hostUid: pass.host.uid,
      hostName: pass.host.name,
      kind,
      traceParent: run.traceParent,
    }),
    createTime: timeNow(pass),
    ...postponement,
  });
}

export type SendState =
  /** The journal of this session has it: its report will come. */
  | 'sent'
  /** Something must happen first. */
  | 'waiting'
  /** It was sent to a journal that is lost (R9). */
  | 'lost';

/**
 * Sends the operation in progress if it may be sent now, or says what it waits for. The first
 * sending sets the deadline: the step's clock starts then (R5).
 */
export function ensureSent(pass: Pass, run: Run, timeoutMs: number): SendState {
  const operationRecord = pass.record.operation;
  const { session } = pass.snapshot;
  if (operationRecord?.operation === undefined) return 'waiting';
  const { operation, notBefore, sentTo } = operationRecord;
  if (notBefore !== undefined && !hasPassed(pass, notBefore)) return 'waiting';
  if (session === undefined) {
    waitForAgent(pass, run);
    return 'waiting';
  }
  if (sentTo !== undefined) return present(pass, run, operationRecord, session.journal);
  const wait = sendWaitOf(pass, run, operation, session);
  if (wait !== undefined) {
    if (wait.budget !== undefined) askForWipeSlot(pass, run, wait.budget);
    waitFor(pass, run, wait.reason, wait.message);
    return 'waiting';
  }
  noteSent(pass, operationRecord, session.journal);
  operationRecord.sendTime = timeNow(pass);
  startClock(pass, run, operation, timeoutMs);
  // The wait for a silent BMC lasts until it responds, also during a retry.
  if (hostWaitOf(run.waiting) !== 'bmc' || operationRecord.transientCount === 0)
    stopWaiting(pass, run);
  pass.effects.push({ kind: 'send', operation: asSent(pass.record, operation) });
  return 'sent';
}

/** What the first sending waits for while the agent is connected; undefined: nothing. */
function sendWaitOf(
  pass: PassView,
  run: RunView,
  operation: agent.Operation,
  session: SessionSnapshot,
): SendWait | undefined {
  const unknown = unknownToAgent(pass, operation, session);
  if (unknown !== undefined) {
    const message = `the agent of the rack does not know ${unknown}: it must be updated`;
    return { reason: 'agent', message };
  }
  const brake = brakeOn(pass, run, operation);
  return brake === undefined ? confirmationBefore(pass, run, operation) : brake;
}

/** R8: the part of an operation that the agent has not announced; undefined: none. */
function unknownToAgent(
  pass: PassView,
  operation: agent.Operation,
  { operationKinds }: SessionSnapshot,
): string | undefined {
  const { case: kind = '' } = operation.kind;
  return operationKinds?.includes(kind) === false ? kind : missingOf(pass, operation);
}

/** Sets the deadlines of an operation that is sent now, and of its step (R5). */
function startClock(pass: Pass, run: Run, operation: agent.Operation, timeoutMs: number): void {
  const step = run.steps[run.currentStep];
  const ownMs = ownTimeoutMs(step) ?? timeoutMs;
  const queueMs = step === undefined ? 0 : queueTimeoutMs(step, pass.snapshot.timing);
  // The time of a system's shutdown is not part of the step's own time.
  const waitMs = step === undefined ? 0 : orderShutdown(pass, run, step, operation);
  operation.deadline = timeAfter(pass, queueMs + waitMs + ownMs);
  openGrantFromNow(pass, operation);
  if (step === undefined) return;
  step.deadline = timeAfter(pass, waitMs + ownMs);
  noteWriteSent(pass, step);
}

/** R8: the step of a deployment that the agent has not announced; undefined: none. */
function missingOf(pass: PassView, { kind }: agent.Operation): string | undefined {
  if (kind.case !== 'runStep' || kind.value.deployment === undefined) return undefined;
  const { steps = [] } = activeRun(pass.status) ?? {};
  return missingAgentStep(
    pass.snapshot,
    steps.map(({ name }) => ({ step: name })),
  );
}

/** The time limit for one attempt of a step, where its template sets one. */
export function ownTimeoutMs(step: StepView | undefined): number | undefined {
  return step?.timeout === undefined ? undefined : durationMs(step.timeout);
}

/** A boot grant starts when the order is sent, however long the order had to wait. */
function openGrantFromNow(pass: PassView, { kind }: agent.Operation): void {
  if (kind.case !== 'setPower' || kind.value.grantExpireTime === undefined) return;
  kind.value.grantExpireTime = timeAfter(pass, bootWindowMs(pass));
}

function replicaOf({ replica = '' }: PassView['snapshot']): string {
  return replica;
}

function noteSent(
  { snapshot }: PassView,
  operationRecord: store.OperationRecord,
  journal: agent.Journal,
): void {
  operationRecord.sentTo = lifeOf(journal);
  operationRecord.sentBy = replicaOf(snapshot);
}

/**
 * R9: the state of an operation that was sent before, for the present `journal`. One that another
 * replica stored while the agent moved here may not have reached it, and is sent again. The agent
 * answers an id that it knows from its journal.
 */
function present(
  pass: Pass,
  run: Run,
  operationRecord: store.OperationRecord,
  journal: agent.Journal,
): SendState {
  if (!wasSentTo(operationRecord, journal)) return 'lost';
  const isWaiting = run.phase === RunPhase.WAITING;
  if (isWaiting && hostWaitOf(run.waiting) === 'agent') stopWaiting(pass, run);
  if (mayBeUnsent(pass, operationRecord)) resend(pass, journal);
  return 'sent';
}

/** B2: while the loss of a restored store is not accepted, nothing is sent again either. */
function mayBeUnsent(pass: PassView, { sentBy, operation }: store.OperationRecord): boolean {
  const { snapshot } = pass;
  if (sentBy === replicaOf(snapshot) || snapshot.restored !== undefined) return false;
  return !hasPassed(pass, operation?.deadline);
}

/**
 * Whether the operation was sent to this journal, or to an earlier generation of it (R9).
 */
export function wasSentTo(operationRecord: store.OperationRecord, journal: agent.Journal): boolean {
  const { sentTo } = operationRecord;
  return sentTo !== undefined && isDescendantOf(journal, sentTo);
}

/**
 * After a Hello of the journal that has the operation: sends it again under its old id (R3). The
 * agent answers a known id from its journal. The secret is sent with the operation, because a
 * restarted agent no longer has it. An abort goes first: the operation that it names can then never
 * begin.
 */
export function resend(pass: Pass, journal: agent.Journal): void {
  const operationRecord = pass.record.operation;
  if (operationRecord?.operation === undefined || !wasSentTo(operationRecord, journal)) return;
  noteSent(pass, operationRecord, journal);
  const { operation, cancelId } = operationRecord;
  if (cancelId !== '') pass.effects.push(cancelOf(operation, cancelId));
  pass.effects.push({ kind: 'send', operation: asSent(pass.record, operation) });
}

function cancelOf({ id }: agent.Operation, cancelId: OperationId): HostEffect {
  return { kind: 'cancel', operationId: id, cancelId };
}

/** Asks the agent to stop the operation in progress; its answer ends the run. */
export function cancelOperation(pass: Pass): void {
  const operationRecord = pass.record.operation;
  const { operation, sentTo } = operationRecord ?? {};
  if (operationRecord === undefined || operation === undefined || sentTo === undefined) return;
  if (operationRecord.cancelId !== '') return;
  operationRecord.cancelId = `${operation.id}/cancel`;
  const run = activeRun(pass.status);
  // From here on it waits for its end, and no longer for a slot.
  if (run !== undefined && hostWaitOf(run.waiting) === 'image') stopWaiting(pass, run);
  pass.effects.push(cancelOf(operation, operationRecord.cancelId));
}

/**
 * An abort is emitted in every pass until its operation has ended, because another replica may have
 * written it without a session to send it. The shell sends it once in each session.
 */
export function repeatCancel({ record, snapshot, effects }: Pass): void {
  const operationRecord = record.operation;
  if (operationRecord?.operation === undefined || operationRecord.cancelId === '') return;
  if (snapshot.session === undefined || !wasSentTo(operationRecord, snapshot.session.journal))
    return;
  if (effects.some(({ kind }) => kind === 'cancel')) return;
  effects.push(cancelOf(operationRecord.operation, operationRecord.cancelId));
}

/**
 * The agent may have been unable to forget, or its confirmation is lost: it is asked until it
 * confirms.
 */
export function askToForget({ record, snapshot, effects }: Pass): void {
  if (record.forgetting && snapshot.session !== undefined) effects.push({ kind: 'forget' });
}

/** How long an agent may take to report the result after it stops an order at its deadline. */
export const agentWordMs = 15_000;

/**
 * How long a reconnected agent may take to report what happened in its absence. Longer than the 30
 * s for which it waits for a runner that may have a final report.
 */
export const agentBackMs = 45_000;

/**
 * R5: true when the deadline has passed and silence is not the reason. Either the operation was
 * never sent, or the agent has been heard since and has had time for its report. `agentStops`: the
 * agent keeps this deadline too, if the operation was sent.
 */
export function deadlineFires(
  pass: PassView,
  deadline: Timestamp | undefined,
  { agentStops = false } = {},
): boolean {
  if (deadline === undefined || !hasPassed(pass, deadline)) return false;
  const { session } = pass.snapshot;
  const { operation: operationRecord } = pass.record;
  if (operationRecord !== undefined && operationRecord.sentTo === undefined) return true;
  if (session === undefined || session.awaitsReport) return false;
  const deadlineMs = timestampMs(deadline);
  const ownWordMs = agentStops && operationRecord !== undefined ? agentWordMs : 0;
  const wasAway = session.openedMs > deadlineMs;
  const dueMs = wasAway ? session.openedMs + agentBackMs : deadlineMs + ownWordMs;
  return session.lastMessageMs >= dueMs;
}

/**
 * Calls of webhooks: like operations, they are written into the record before they are made. The
 * shell of the replica that decided a call makes it.
 *
 * Invariants:
 * 1. An id names one attempt of a step. When it is unknown whether a call arrived, it is repeated
 *    under the same id, by which its receiver recognizes it (R3).
 * 2. Only the result of the call in progress moves the run.
 * 3. While the loss of a restored store is not accepted, nothing is called: its numbers may have
 *    been used in the lost history.
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Run, type RunStep, store } from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import {
  activeRun,
  currentStep,
  hasPassed,
  type Pass,
  timeAfter,
  timeNow,
  waitFor,
} from '../pass/pass.ts';
import { operationId, type Postponement } from './operation.ts';

/** After this time another replica repeats the call of a replica that has stopped. */
const takeOverMs = 120_000;

/** The time from which every replica may repeat the call; undefined: it is not in progress. */
export function takeOverAtMs({ call }: store.HostRecord): number | undefined {
  return call?.callTime === undefined ? undefined : timestampMs(call.callTime) + takeOverMs;
}

/** Puts the call of the present attempt into the record; it is not made yet. */
export function putCall(pass: Pass, run: Run, step: RunStep, { notBefore }: Postponement): void {
  pass.record.call = create(store.WebhookCallSchema, {
    id: operationId(pass, run, run.currentStep, step.attempt),
    ...(notBefore === undefined ? {} : { notBefore }),
  });
}

/** Makes the call if its time has come, and waits for its result. */
export function ensureCalled(pass: Pass, run: Run, step: RunStep): void {
  const { call } = pass.record;
  if (call === undefined) return;
  if (call.notBefore !== undefined && !hasPassed(pass, call.notBefore)) return;
  const { restored } = pass.snapshot;
  if (restored !== undefined) return waitFor(pass, run, 'restored', restored);
  waitFor(pass, run, 'webhook', `${receiverOf(step)} has not answered yet`);
  if (call.callTime !== undefined) return;
  call.callTime = timeNow(pass);
  call.caller = pass.snapshot.replica ?? '';
  ask(pass, step, call);
}

/** Its replica may have restarted or stopped. */
export function callAgain(pass: Pass): void {
  const { call } = pass.record;
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (call?.callTime === undefined || step === undefined) return;
  if (pass.snapshot.restored !== undefined) return;
  const isOurs = call.caller === (pass.snapshot.replica ?? '');
  if (isOurs || (takeOverAtMs(pass.record) ?? 0) <= pass.snapshot.nowMs) ask(pass, step, call);
}

function ask({ effects, snapshot, spec }: Pass, step: RunStep, { id }: store.WebhookCall): void {
  const deadlineMs = step.deadline === undefined ? snapshot.nowMs : timestampMs(step.deadline);
  const order = { id, arguments: { ...step.arguments }, deadlineMs, rack: spec.rack };
  effects.push({ kind: 'callWebhook', ...order });
}

/** The result is unknown: repeated later, under the same id, until the step's time is over. */
export function callLater(pass: Pass, run: Run, message: string): void {
  const { call } = pass.record;
  if (call === undefined) return;
  const { retryDelayMs: firstMs, retryDelayMaxMs: delayMsMax } = pass.snapshot.timing;
  call.transientCount += 1;
  call.firstTransientTime ??= timeNow(pass);
  delete call.callTime;
  const key = `${pass.host.uid}/${run.number}/${run.currentStep}`;
  const delayMs = backoffDelayMs({ attempt: call.transientCount, firstMs, delayMsMax, key });
  call.notBefore = timeAfter(pass, delayMs);
  waitFor(pass, run, 'webhook', message, call.firstTransientTime);
}

/** Without path and query, which may be secret. */
function receiverOf({ arguments: given }: RunStep): string {
  return URL.parse(given['url'] ?? '')?.origin ?? 'the webhook';
}

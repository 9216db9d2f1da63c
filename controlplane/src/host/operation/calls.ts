/**
 * Calls of webhooks: written into the record before they are made, as operations are, and made by
 * the shell of the replica that decided it.
 *
 * Invariants:
 * 1. An id names one attempt of a step. A call of which nobody can tell whether it arrived is made
 *    again under the same id, by which its receiver knows it again (R3).
 * 2. Only the result of the call in the slot moves the run.
 * 3. While a store that has lost something is not accepted, nothing is called: its numbers may have
 *    been used in the lost stretch.
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Run, type RunStep, store } from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { activeRun, currentStep, hasPassed, later, now, type Pass, waitFor } from '../pass/pass.ts';
import { operationId, type Postponement } from './operation.ts';

/** What a replica that has made a call and then gone leaves to another one, so much later. */
const takeOverMs = 120_000;

/** Wall time from which on every replica makes the call again; undefined: it is not under way. */
export function takeOverAtMs({ call }: store.HostRecord): number | undefined {
  return call?.callTime === undefined ? undefined : timestampMs(call.callTime) + takeOverMs;
}

/** Puts the call of the present attempt into the slot; it has not been made. */
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
  const { restored } = pass.context;
  if (restored !== undefined) return waitFor(pass, run, 'restored', restored);
  waitFor(pass, run, 'webhook', `${receiverOf(step)} has not answered yet`);
  if (call.callTime !== undefined) return;
  call.callTime = now(pass);
  call.caller = pass.context.replica ?? '';
  ask(pass, step, call);
}

/** Nobody may be at it any more: its replica has started anew, or is gone. */
export function callAgain(pass: Pass): void {
  const { call } = pass.record;
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (call?.callTime === undefined || step === undefined) return;
  if (pass.context.restored !== undefined) return;
  const isOurs = call.caller === (pass.context.replica ?? '');
  if (isOurs || (takeOverAtMs(pass.record) ?? 0) <= pass.context.nowMs) ask(pass, step, call);
}

function ask({ effects, context, spec }: Pass, step: RunStep, { id }: store.WebhookCall): void {
  const deadlineMs = step.deadline === undefined ? context.nowMs : timestampMs(step.deadline);
  const order = { id, arguments: { ...step.arguments }, deadlineMs, rack: spec.rack };
  effects.push({ kind: 'callWebhook', ...order });
}

/** Could not tell: made again later, under the same id, until the step's time is over. */
export function callLater(pass: Pass, run: Run, message: string): void {
  const { call } = pass.record;
  if (call === undefined) return;
  const { retryDelayMs: firstMs, retryDelayMaxMs: longestMs } = pass.context.timing;
  call.transientCount += 1;
  call.firstTransientTime ??= now(pass);
  delete call.callTime;
  const key = `${pass.host.uid}/${run.number}/${run.currentStep}`;
  const delayMs = backoffDelayMs({ attempt: call.transientCount, firstMs, longestMs, key });
  call.notBefore = later(pass, delayMs);
  waitFor(pass, run, 'webhook', message, call.firstTransientTime);
}

/** Without path and query, which may be secrets. */
function receiverOf({ arguments: given }: RunStep): string {
  return URL.parse(given['url'] ?? '')?.origin ?? 'the webhook';
}

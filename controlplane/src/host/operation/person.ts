/**
 * Hosts without a BMC: a person switches them on request, and reports it. Pure.
 *
 * Invariants:
 * 1. Silence means nothing: a host is off, or on, only after a report of a person or of the machine
 *    itself.
 * 2. A person's report ends one request, the one that the run waits for, and is recorded as that
 *    person's statement.
 * 3. That the runner is up needs no report of a person: it reports itself, with the token of this
 *    boot.
 * 4. No request ends by itself: deadlines do not run during the wait for a person.
 */
import { agent, hostWaitOf } from '@rackwright/messages';
import { isByHand } from '../bmc/protocols.ts';
import type { SendWait } from '../pass/brake.ts';
import { activeRun, currentStep, type Pass, type PassView } from '../pass/pass.ts';
import type { DeepReadonly, RunView } from '../pass/read-only.ts';

/** How long a person may take to begin a boot: a grant needs an end. */
const personBootWindowMs = 30 * 24 * 3_600_000;

/** How long after its order a runner may be started on the host. */
export function bootWindowMs({ spec, snapshot }: PassView): number {
  return isByHand(spec) ? personBootWindowMs : snapshot.timing.bootTimeoutMs;
}

/** The requested action that only a person can confirm; undefined: none. */
function askedOf(
  { spec }: PassView,
  { kind }: DeepReadonly<agent.Operation>,
): 'on' | 'off' | undefined {
  if (!isByHand(spec) || kind.case !== 'setPower') return undefined;
  const { on, bootFrom } = kind.value;
  if (on !== true) return 'off';
  const { RUNNER, RESCUE } = agent.BootTarget;
  return bootFrom === RUNNER || bootFrom === RESCUE ? undefined : 'on';
}

/** The agent gets the order only after a person has reported the action; undefined: now. */
export function confirmationBefore(
  pass: PassView,
  run: RunView,
  operation: agent.Operation,
): SendWait | undefined {
  const asked = askedOf(pass, operation);
  if (asked === undefined || currentStep(run)?.word !== undefined) return undefined;
  return { reason: 'person', message: `${wishes[asked]}, and say so when it is` };
}

const wishes = { on: 'switch the host on', off: 'switch the host off' } as const;

/** The report that the run waits for; undefined: none. */
export function confirmationAwaited(pass: PassView): 'on' | 'off' | undefined {
  const run = activeRun(pass.status);
  const operationRecord = pass.record.operation;
  const step = run === undefined ? undefined : currentStep(run);
  if (step === undefined || step.word !== undefined || operationRecord?.sentTo !== undefined)
    return undefined;
  // Also while its agent is away: the person's action in the rack counts.
  const wait = hostWaitOf(run?.waiting);
  if (wait !== 'person' && wait !== 'agent') return undefined;
  return operationRecord?.operation === undefined
    ? undefined
    : askedOf(pass, operationRecord.operation);
}

/** Records that a person has switched the host for this step; there is no other evidence. */
export function notePower(pass: Pass, run: RunView, { on }: { readonly on: boolean }): void {
  pass.status.poweredOn = on;
  const { word } = run.steps[run.currentStep] ?? {};
  if (isByHand(pass.spec) && word !== undefined) pass.status.powerWord = word;
  else delete pass.status.powerWord;
}

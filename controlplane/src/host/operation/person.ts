/**
 * Hosts without a BMC: a person is asked to switch them, and says what they did. Pure.
 *
 * Invariants:
 * 1. Nobody's silence says anything: a host is off, or on, only once a person or the machine itself
 *    has said so.
 * 2. A person's word ends one request, the one that the run waits with, and stands beside what it
 *    says as nothing but their word.
 * 3. That the runner is up needs no word: it says so itself, with the token of this boot.
 * 4. No request ends by itself: no deadline counts while a person is waited for.
 */
import { agent, type Run } from '@rackwright/messages';
import { isByHand } from '../bmc/protocols.ts';
import { activeRun, currentStep, type Pass, waitFor } from '../pass/pass.ts';

/** How long a boot that a person is to begin may be begun: a grant must end some day. */
const personBootWindowMs = 30 * 24 * 3_600_000;

/** How long after its order a runner may be started on the host. */
export function bootWindowMs({ spec, context }: Pass): number {
  return isByHand(spec) ? personBootWindowMs : context.timing.bootTimeoutMs;
}

/** What a person is asked to do, that only their word shows; undefined: nothing. */
function askedOf({ spec }: Pass, { kind }: agent.Operation): 'on' | 'off' | undefined {
  if (!isByHand(spec) || kind.case !== 'setPower') return undefined;
  const { on, bootFrom } = kind.value;
  if (on !== true) return 'off';
  const { RUNNER, RESCUE } = agent.BootTarget;
  return bootFrom === RUNNER || bootFrom === RESCUE ? undefined : 'on';
}

/** Whether the agent is told only after a person has said that it is done. */
export function waitsForWord(pass: Pass, run: Run, operation: agent.Operation): boolean {
  const asked = askedOf(pass, operation);
  if (asked === undefined || currentStep(run)?.word !== undefined) return false;
  waitFor(pass, run, 'person', `${wishes[asked]}, and say so when it is`);
  return true;
}

const wishes = { on: 'switch the host on', off: 'switch the host off' } as const;

/** What the run waits to hear from a person; undefined: nothing. */
export function wordAwaited(pass: Pass): 'on' | 'off' | undefined {
  const run = activeRun(pass.status);
  const slot = pass.record.operation;
  const step = run === undefined ? undefined : currentStep(run);
  if (step === undefined || step.word !== undefined || slot?.sentTo !== undefined) return undefined;
  // Also while its agent is away: what was done in the rack is done.
  const { reason } = run?.waiting ?? {};
  if (reason !== 'person' && reason !== 'agent') return undefined;
  return slot?.operation === undefined ? undefined : askedOf(pass, slot.operation);
}

/** Takes in that the step's person has switched the host; nothing else shows it. */
export function notePower(pass: Pass, run: Run, { on }: { readonly on: boolean }): void {
  pass.status.poweredOn = on;
  const { word } = run.steps[run.currentStep] ?? {};
  if (isByHand(pass.spec) && word !== undefined) pass.status.powerWord = word;
  else delete pass.status.powerWord;
}

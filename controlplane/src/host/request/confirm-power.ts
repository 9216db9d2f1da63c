/**
 * A person reports that they have switched a host without a BMC, as its run requested
 * (`person.ts`).
 */
import { create } from '@bufbuild/protobuf';
import { PersonWordSchema } from '@rackwright/messages';
import { refuseHost } from '../life/refusal.ts';
import { confirmationAwaited } from '../operation/person.ts';
import { activeRun, currentStep, type Pass, recordCause, timeNow } from '../pass/pass.ts';
import type { Refusal, Requester } from '../pass/types.ts';

/**
 * Refused unless exactly this is requested now: a late report is no answer to the present request.
 */
export function confirmPower(
  pass: Pass,
  { on }: { readonly on: boolean },
  by: Requester,
): Refusal | undefined {
  const state = on ? 'on' : 'off';
  const awaited = confirmationAwaited(pass);
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (awaited === undefined || step === undefined) {
    const why = 'no run of it waits to hear that it was switched by hand; see why (explain)';
    return refuseHost(pass, 'nothingToDo', why);
  }
  if (awaited !== state) {
    const why = `its run waits to hear that it is ${awaited}; switch it ${awaited}, and say that`;
    return refuseHost(pass, 'nothingToDo', why);
  }
  step.word = create(PersonWordSchema, { by: by.actor, at: timeNow(pass) });
  recordCause(pass, by.actor, `${by.actor} says that the host is ${state}`);
  return undefined;
}

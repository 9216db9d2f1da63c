/** Orders about the power of a system, decided by what it says of its power right before. */
import { type BmcResult, failed, ok, type PowerState, transient } from '../driver.ts';
import { resetTypeFor } from './choices.ts';
import type { Conversation, Resource } from './conversation.ts';
import { type PowerReading, powerIn, resetFacts, resetTypes } from './system.ts';

export interface PowerOrder {
  readonly action: PowerState | 'softOff';
  /** Set once the BMC may have got it. */
  isSent: boolean;
}

/** `changing`: nothing was sent, and the system has to be read again. */
export type PowerStep = 'holds' | 'sent' | 'changing';

export const stillChanging = transient('busy', 'the system is still being switched on or off');

/** A state on its way never holds: the machine would go on into the other one. */
function firstStep(
  action: PowerOrder['action'],
  { power, isChanging }: PowerReading,
): PowerStep | 'send' {
  switch (action) {
    case 'on':
      // A BMC that is switching off may drop the order.
      if (power === 'on') return isChanging ? 'changing' : 'holds';
      return 'send';
    case 'off':
      return power === 'off' && !isChanging ? 'holds' : 'send';
    case 'softOff':
      if (power === 'off') return isChanging ? 'changing' : 'holds';
      // It stops already, and a second request may disturb that.
      return isChanging ? 'sent' : 'send';
  }
}

/** Sends the order where the power as it was read needs it. */
export async function sendPower(
  system: Resource,
  order: PowerOrder,
  talk: Conversation,
  signal: AbortSignal | undefined,
): Promise<BmcResult<PowerStep>> {
  const before = powerIn(system);
  if (before.kind !== 'ok') return before;
  const step = firstStep(order.action, before.value);
  if (step !== 'send') return ok(step);
  const reset = resetFacts(system);
  if (reset === undefined) {
    return failed('unsupported', 'the BMC offers no way to switch the system');
  }
  let { types } = reset;
  if (types === undefined && reset.actionPath !== undefined) {
    const choices = await talk.get(reset.actionPath, signal);
    if (choices.kind === 'transient') return choices;
    if (choices.kind === 'ok') types = resetTypes(choices.value.body);
  }
  const type = resetTypeFor(order.action, types);
  if (type.kind !== 'ok') return type;
  order.isSent = true;
  const result = await talk.post(reset.path, { ResetType: type.value }, signal);
  return result.kind === 'ok' ? ok('sent') : result;
}

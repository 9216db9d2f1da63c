/**
 * What a host's power should be while no run holds it (HostSpec.power), and what follows when it is
 * otherwise: a fault, or by the rack's policy a run that switches it.
 *
 * Invariants:
 * 1. No power action while a run holds the host, or anybody keeps power from it: what a person
 *    would be refused is not done here either.
 * 2. A host that may hold data of its last use is never booted from its disk by itself, unless that
 *    is what runs there.
 * 3. Each such run waits longer than the one before, until there has been peace for long.
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  FaultSeverity,
  HostPower,
  type HostSpec,
  HostState,
  PowerMismatchPolicy,
  RunKind,
  store,
} from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { hasWhatRunsNeed, wantedRun } from '../life/goal.ts';
import { refusalOf } from '../life/refusal.ts';
import { startRun } from '../run/engine.ts';
import { clearFault, setFault } from '../turn/fault.ts';
import { engineSteps } from '../turn/step-names.ts';
import { activeRun, causedBy, hasPassed, later, type Turn } from '../turn/turn.ts';

export const powerMismatch = 'powerMismatch';
const asker = { actor: 'policy' } as const;

/** Whether the power should be on; undefined: nobody minds. */
export function wantedPower({ power }: HostSpec): boolean | undefined {
  switch (power) {
    case HostPower.ON:
      return true;
    case HostPower.OFF:
      return false;
    default:
      return undefined;
  }
}

/** The power that is wanted and not there; undefined when all is well, or nothing is known. */
function missingPower({ spec, status }: Turn): boolean | undefined {
  const wanted = wantedPower(spec);
  const known = wanted !== undefined && status.poweredOn !== undefined;
  return known && status.poweredOn !== wanted ? wanted : undefined;
}

/** Says what is and what should be, while it differs; judged when no run holds the host. */
export function notePowerMismatch(turn: Turn): void {
  if (activeRun(turn.status) !== undefined) return;
  const wanted = missingPower(turn);
  if (wanted === undefined || turn.status.deletion !== undefined) {
    clearFault(turn, powerMismatch);
    return;
  }
  const words = `its power is ${onOff(!wanted)}, and its spec wants it ${onOff(wanted)}`;
  const kept = enforces(turn) ? reasonNotTo(turn, wanted) : undefined;
  const text = kept === undefined ? words : `${words}; it is not switched by itself: ${kept}`;
  const clearedBy = 'its power as the spec says, or another spec.power';
  setFault(turn, powerMismatch, text, clearedBy, FaultSeverity.WARNING);
}

/** Starts the run that switches the host as its spec says. Whether one was started. */
export function enforcePower(turn: Turn): boolean {
  const { record, context } = turn;
  const wanted = missingPower(turn);
  if (wanted === undefined || !enforces(turn)) return false;
  if (reasonNotTo(turn, wanted) !== undefined || !hasWhatRunsNeed(turn)) return false;
  const { nextTime, runs = 0 } = record.powerEnforcement ?? {};
  if (nextTime !== undefined && !hasPassed(turn, nextTime)) return false;
  const { goalDelayMs: firstMs, goalDelayMaxMs: longestMs } = context.timing;
  const peace = nextTime === undefined || timestampMs(nextTime) + longestMs <= context.nowMs;
  const attempt = peace ? 1 : runs + 1;
  const delayMs = backoffDelayMs({ attempt, firstMs, longestMs, key: turn.host.uid });
  record.powerEnforcement = create(store.PowerEnforcementSchema, {
    runs: attempt,
    nextTime: later(turn, delayMs),
  });
  const step = wanted ? engineSteps.on : engineSteps.off;
  startRun(turn, RunKind.POWER, asker.actor, [{ step, arguments: {} }]);
  causedBy(turn, asker.actor, `switched ${onOff(wanted)}, as its spec wants it`);
  return true;
}

/** What keeps the host from being switched without a person's word. */
function reasonNotTo(turn: Turn, on: boolean): string | undefined {
  const { status, context, record } = turn;
  if (status.inRescue) return 'somebody works on it in rescue';
  if (status.afterFailure !== undefined) return 'a failed clean keeps it in the runner';
  if (record.lookFirstSince !== undefined) return 'the store was restored; see whether it is used';
  const givenUp = (status.backoff?.givenUpReason ?? '') !== '';
  if (wantedRun(turn) !== undefined && !givenUp) {
    return 'other work comes first';
  }
  const usesDisk =
    status.state === HostState.PROVISIONED || status.state === HostState.EXTERNAL || !status.dirty;
  if (on && !usesDisk) return 'it may hold data of its last use, and would boot it';
  if (context.session === undefined) return 'the agent of its rack is not connected';
  const request = on
    ? ({ kind: 'powerOn', bootOldDiskReason: '' } as const)
    : ({ kind: 'powerOff' } as const);
  return refusalOf(turn, request, asker)?.message;
}

function enforces({ context }: Turn): boolean {
  return context.powerMismatch === PowerMismatchPolicy.ENFORCE;
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off';
}

/**
 * The desired power of a host while no run holds it (HostSpec.power), and the reaction when it
 * differs: a fault, or by the rack's policy a run that switches it.
 *
 * Invariants:
 * 1. No power action while a run holds the host, or while a hold prevents it: a command that a
 *    person would be refused is not issued here either.
 * 2. A host that may have data of its last use is never booted from its disk automatically, unless
 *    that is the image in use.
 * 3. Each such run waits longer than the one before, until the power has been stable for long.
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actors,
  FaultSeverity,
  HostPower,
  type HostSpec,
  HostState,
  isGivenUp,
  PowerMismatchPolicy,
  RunKind,
  store,
} from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { noteMissingNeeds, wantedRun } from '../life/goal.ts';
import { refusalOf } from '../life/refusal.ts';
import { clearFault, setFault } from '../pass/fault.ts';
import {
  activeRun,
  hasPassed,
  type Pass,
  type PassView,
  recordCause,
  timeAfter,
} from '../pass/pass.ts';
import type { DeepReadonly } from '../pass/read-only.ts';
import { engineSteps } from '../pass/step-names.ts';
import { startRun } from '../run/engine.ts';

export const powerMismatch = 'powerMismatch';
const asker = { actor: actors.policy } as const;

/** Whether the power should be on; undefined: it does not matter. */
export function shouldBeOn({ power }: DeepReadonly<HostSpec>): boolean | undefined {
  switch (power) {
    case HostPower.ON:
      return true;
    case HostPower.OFF:
      return false;
    default:
      return undefined;
  }
}

/** The desired power that is missing; undefined when all is well, or the power is unknown. */
function neededSwitch({ spec, status }: PassView): boolean | undefined {
  const wanted = shouldBeOn(spec);
  const known = wanted !== undefined && status.poweredOn !== undefined;
  return known && status.poweredOn !== wanted ? wanted : undefined;
}

/**
 * Reports the present and the desired power while they differ; checked when no run holds the host.
 */
export function notePowerMismatch(pass: Pass): void {
  if (activeRun(pass.status) !== undefined) return;
  const wanted = neededSwitch(pass);
  if (wanted === undefined || pass.status.deletion !== undefined) {
    clearFault(pass, powerMismatch);
    return;
  }
  const reason = `its power is ${onOff(!wanted)}, and its spec wants it ${onOff(wanted)}`;
  const kept = enforces(pass) ? obstacleTo(pass, wanted) : undefined;
  const text =
    kept === undefined ? reason : `${reason}; it is not switched by itself: ${kept.text}`;
  setFault(pass, powerMismatch, text, { severity: FaultSeverity.WARNING });
}

/** Starts the run that switches the host as its spec says. True: one was started. */
export function enforcePower(pass: Pass): boolean {
  const { record, snapshot } = pass;
  const wanted = neededSwitch(pass);
  if (wanted === undefined || !enforces(pass)) return false;
  if (obstacleTo(pass, wanted) !== undefined) return false;
  if (noteMissingNeeds(pass) === 'missing') return false;
  const { nextTime, runs = 0 } = record.powerEnforcement ?? {};
  if (nextTime !== undefined && !hasPassed(pass, nextTime)) return false;
  const { goalDelayMs: firstMs, goalDelayMaxMs: delayMsMax } = snapshot.timing;
  const peace = nextTime === undefined || timestampMs(nextTime) + delayMsMax <= snapshot.nowMs;
  const attempt = peace ? 1 : runs + 1;
  const delayMs = backoffDelayMs({ attempt, firstMs, delayMsMax, key: pass.host.uid });
  record.powerEnforcement = create(store.PowerEnforcementSchema, {
    runs: attempt,
    nextTime: timeAfter(pass, delayMs),
  });
  const step = wanted ? engineSteps.on : engineSteps.off;
  startRun(pass, RunKind.POWER, asker.actor, [{ step, arguments: {} }]);
  recordCause(pass, asker.actor, `switched ${onOff(wanted)}, as its spec wants it`);
  return true;
}

interface PowerObstacle {
  /** `refused`: a command of a person would be refused, too. */
  readonly kind:
    | 'rescue'
    | 'afterFailure'
    | 'restored'
    | 'otherWork'
    | 'oldData'
    | 'noAgent'
    | 'refused';
  /** For people. */
  readonly text: string;
}

/** Why the host is not switched without a person's request; undefined: it is. */
function obstacleTo(pass: Pass, on: boolean): PowerObstacle | undefined {
  const { status, snapshot, record } = pass;
  if (status.inRescue) return { kind: 'rescue', text: 'somebody works on it in rescue' };
  if (status.afterFailure !== undefined) {
    return { kind: 'afterFailure', text: 'a failed clean keeps it in the runner' };
  }
  if (record.lookFirstSince !== undefined) {
    return { kind: 'restored', text: 'the store was restored; see whether it is used' };
  }
  if (wantedRun(pass) !== undefined && !isGivenUp(status.backoff)) {
    return { kind: 'otherWork', text: 'other work comes first' };
  }
  const usesDisk =
    status.state === HostState.PROVISIONED || status.state === HostState.EXTERNAL || !status.dirty;
  if (on && !usesDisk) {
    return { kind: 'oldData', text: 'it may hold data of its last use, and would boot it' };
  }
  if (snapshot.session === undefined) {
    return { kind: 'noAgent', text: 'the agent of its rack is not connected' };
  }
  const request = on
    ? ({ kind: 'powerOn', bootOldDiskReason: '' } as const)
    : ({ kind: 'powerOff' } as const);
  const refusal = refusalOf(pass, request, asker);
  return refusal && { kind: 'refused', text: refusal.message };
}

function enforces({ snapshot }: PassView): boolean {
  return snapshot.powerMismatch === PowerMismatchPolicy.ENFORCE;
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off';
}

/**
 * A host whose record contains values that only a newer version knows: a state, a kind of run, a
 * phase. It is not changed, only shown; its forced removal is still possible (R8). Pure.
 */

import {
  DeletionMode,
  HostState,
  type HostStatus,
  type Run,
  RunKind,
  RunPhase,
  StepState,
} from '@rackwright/messages';
import { activeRun, type Pass } from '../pass/pass.ts';
import { move } from '../pass/transitions.ts';
import type { HostDecision, HostEvent } from '../pass/types.ts';
import { recordRemnant } from '../run/forced.ts';

const states = knownOf(HostState);
const kinds = knownOf(RunKind);
const phases = knownOf(RunPhase);
const stepStates = knownOf(StepState);

/** Without 0, the unspecified value. */
function knownOf(values: Readonly<Record<string, number>>): ReadonlySet<number> {
  return new Set(Object.values(values).filter((each) => each !== 0));
}

/** The unknown values of a host, in words; undefined when this version knows all of them. */
export function unknownValueOf(status: HostStatus): string | undefined {
  if (!states.has(status.state)) return `state ${status.state}`;
  const run = activeRun(status);
  return run === undefined ? undefined : whatIsNewerIn(run);
}

function whatIsNewerIn({ kind, phase, steps }: Run): string | undefined {
  if (!kinds.has(kind)) return `run kind ${kind}`;
  if (!phases.has(phase)) return `run phase ${phase}`;
  const step = steps.find(({ state }) => !stepStates.has(state));
  return step === undefined ? undefined : `step state ${step.state} of ${step.name}`;
}

/** The outcome of an event for such a host; undefined: the pass continues normally. */
export function foldNewer(pass: Pass, event: HostEvent): HostDecision | undefined {
  const { status, host, record } = pass;
  const newer = unknownValueOf(status);
  if (newer === undefined) return undefined;
  if (event.kind !== 'request') return { kind: 'kept', record, effects: [] };
  const { request } = event;
  if (request.kind !== 'delete' || request.mode !== DeletionMode.FORCE) {
    const message = `${host.name}: its ${newer} is not known to this version; ${whatToDo}`;
    return {
      kind: 'refused',
      refusal: { code: 'failedPrecondition', reason: 'newerRecord', message },
    };
  }
  recordRemnant(pass, `work: this version does not know the host's ${newer}; it may still go on`);
  // Its owner is not known either.
  move(status, 'notUnderstood');
  delete status.run;
  delete record.operation;
  return undefined;
}

const whatToDo = 'upgrade the control plane, or delete the host by force';

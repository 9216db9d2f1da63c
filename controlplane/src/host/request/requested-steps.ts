/**
 * Checks lists of steps that people write against the abilities of agent and runner, before
 * anything is started. Pure.
 */

import { applyVolumesStep, burnInDiskStep, isErasure, isTemplateOnly } from '@rackwright/messages';
import { argumentProblems, controlSteps, type KnownStep } from '../../steps/index.ts';
import type { PassView } from '../pass/pass.ts';
import type { Refusal, RequestedStep } from '../pass/types.ts';
import { knownSteps } from '../run/known-steps.ts';
import { describe, needsRunner } from '../run/render.ts';

interface Violation {
  readonly field: string;
  readonly description: string;
}

/** Why a list of steps cannot be run: every wrong step, argument and power step. */
export function refusalOfSteps(
  pass: PassView,
  steps: readonly RequestedStep[],
): Refusal | undefined {
  const known = knownSteps(pass.snapshot);
  const fieldViolations = [
    ...steps.flatMap((wanted, index) => violationsOf(wanted, index, known)),
    ...powerViolations(steps, known),
    ...ownViolations(steps, known),
    ...burnInViolations(steps),
    ...volumeViolations(steps),
  ];
  if (fieldViolations.length === 0) return undefined;
  return { code: 'invalidArgument', message: 'the list of steps is not valid', fieldViolations };
}

function violationsOf(
  wanted: RequestedStep,
  index: number,
  known: readonly KnownStep[],
): Violation[] {
  if (isTemplateOnly(wanted.step)) {
    const instead = 'create one, and run it as a workflow';
    const description = `${wanted.step} runs only in a template; ${instead}`;
    return [{ field: `steps[${index}].step`, description }];
  }
  const control = controlSteps.find(({ name }) => name === wanted.step);
  const step = describe(known, wanted.step)?.description ?? control;
  if (step !== undefined) {
    return argumentProblems(step, wanted.arguments).map(({ field, description }) => ({
      field: `steps[${index}].${field}`,
      description,
    }));
  }
  const names = known
    .map(({ description }) => description.name)
    .filter((name) => !isTemplateOnly(name))
    .join(', ');
  const controls = controlSteps.map(({ name }) => name).join(', ');
  const description = `${wanted.step} is no known step: ${names}; control steps: ${controls}`;
  return [{ field: `steps[${index}].step`, description }];
}

/** None of the site's own programs runs on disks that the list has erased (DESIGN §5). */
function ownViolations(steps: readonly RequestedStep[], known: readonly KnownStep[]): Violation[] {
  const erased = steps.findIndex(({ step }) => isErasure(step));
  if (erased === -1) return [];
  return steps.flatMap(({ step }, index) => {
    if (index < erased || describe(known, step)?.source !== 'fleet') return [];
    const why = `could write to what steps[${erased}] has erased`;
    const description = `${step} ${why}; put it before that`;
    return [{ field: `steps[${index}].step`, description }];
  });
}

/** The same list must later erase what a burn-in writes to disks (DESIGN §5). */
function burnInViolations(steps: readonly RequestedStep[]): Violation[] {
  const first = steps.findIndex(({ step }) => isErasure(step));
  return steps.flatMap(({ step }, index) => {
    if (step !== burnInDiskStep || index < first) return [];
    const description = `${step} writes over disks; put it before a step that erases them`;
    return [{ field: `steps[${index}].step`, description }];
  });
}

/** Volumes create new disks: the same list must later erase those (DESIGN §5). */
function volumeViolations(steps: readonly RequestedStep[]): Violation[] {
  const last = steps.findLastIndex(({ step }) => isErasure(step));
  return steps.flatMap(({ step }, index) => {
    if (step !== applyVolumesStep || index < last) return [];
    const description = `${step} makes other disks; put it before a step that erases them`;
    return [{ field: `steps[${index}].step`, description }];
  });
}

/** The runner is up when the list begins; a list without steps in the runner never boots one. */
function powerViolations(steps: readonly RequestedStep[], known: readonly KnownStep[]) {
  const violations: Violation[] = [];
  if (!steps.some(({ step }) => needsRunner(step, known))) return violations;
  let off: number | undefined;
  for (const [index, { step }] of steps.entries()) {
    const problem = powerProblem(step, off, known);
    if (problem !== undefined) {
      violations.push({ field: `steps[${index}].step`, description: problem });
    } else if (step === 'powerOff') off = index;
    else if (step === 'powerOn' || step === 'reboot') off = undefined;
  }
  return violations;
}

function powerProblem(
  step: string,
  off: number | undefined,
  known: readonly KnownStep[],
): string | undefined {
  if (off === undefined) {
    return step === 'powerOn' ? 'powerOn: the runner is up here already; use reboot' : undefined;
  }
  const since = `the host is off since steps[${off}]`;
  if (step === 'powerOff') return `powerOff: ${since} already`;
  if (step === 'powerOn' || step === 'reboot') return undefined;
  const needs = needsRunner(step, known) && describe(known, step) !== undefined;
  return needs ? `${step} needs the runner, and ${since}; put powerOn before it` : undefined;
}

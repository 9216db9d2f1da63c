/**
 * Checks a rendered template against its host and against the permitted targets of templates,
 * before anything is started. Pure.
 *
 * Must not: check the template itself (the package `template` does).
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { applyVolumesStep, RunSchema, type RunStep } from '@rackwright/messages';
import { reachProblem } from '../../steps/index.ts';
import { refuseHost } from '../life/refusal.ts';
import type { PassView } from '../pass/pass.ts';
import type { Refusal, WorkflowRequest, WorkflowStep } from '../pass/types.ts';
import { refusalOfOldDisk } from '../power/pending-power.ts';
import { knownSteps } from '../run/known-steps.ts';
import { describe } from '../run/render.ts';
import { isPlannedToSkip } from '../run/step-parts.ts';
import { workflowSteps } from '../run/template-run.ts';

/** The largest run in a host's record before it begins, in bytes on the wire. */
const runBytesMax = 96 * 1024;

/** Why the run of a workflow cannot be started here, or undefined. */
export function refusalOfWorkflow(pass: PassView, request: WorkflowRequest): Refusal | undefined {
  const steps = request.steps.filter((step) => !isPlannedToSkip(step));
  for (const step of steps) {
    const problem = problemOf(pass, step);
    if (problem !== undefined)
      return refuseHost(pass, 'notAllowed', `step ${step.title}: ${problem}`);
  }
  return refusalOfDisk(pass, steps) ?? refusalOfSize(pass, workflowSteps(pass, request));
}

function problemOf(pass: PassView, step: WorkflowStep): string | undefined {
  if (step.action === 'bmc') return problemOfBmcStep(pass, step);
  return reachProblem(pass.snapshot.fleet?.templates, step);
}

/** R8: only abilities that the rack's agent has announced are used. */
function problemOfBmcStep(
  { snapshot, spec }: PassView,
  { step }: WorkflowStep,
): string | undefined {
  // A run that creates new disks must also erase them.
  if (step === applyVolumesStep) return `${step} is for cleans only, which erase its volumes`;
  const known = knownSteps(snapshot).filter(({ source }) => source === 'agent');
  if (describe(known, step) !== undefined) return undefined;
  const names = known.map(({ description }) => description.name).join(', ') || 'none';
  return `the agent of ${spec.rack} offers no ${step}; it offers: ${names}`;
}

/**
 * A template may boot a disk that it has written itself; an earlier content needs a reason. Whether
 * it has been written is checked again before the boot (`old-disk.ts`).
 */
function refusalOfDisk(pass: PassView, steps: readonly WorkflowStep[]): Refusal | undefined {
  const boot = steps.findIndex(({ step }) => step === 'bootDisk');
  const writes = steps.slice(0, Math.max(0, boot)).some(({ destructive }) => destructive);
  if (boot === -1 || writes) return undefined;
  return refusalOfOldDisk(pass, { kind: 'powerOn', bootOldDiskReason: '' });
}

function refusalOfSize(pass: PassView, steps: RunStep[]): Refusal | undefined {
  const bytes = toBinary(RunSchema, create(RunSchema, { steps })).length;
  if (bytes <= runBytesMax) return undefined;
  const text = `the rendered template has ${bytes} bytes; at most ${runBytesMax} are run`;
  return refuseHost(pass, 'limit', `${text}; move long scripts into an image`);
}

/**
 * Checks a rendered template against the host that shall run it and against what templates may
 * reach, before anything is started. Pure.
 *
 * Must not: check what is wrong with the template by itself (the package `template` does).
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { applyVolumesStep, RunSchema, type RunStep } from '@rackwright/messages';
import { reachProblem } from '../../steps/index.ts';
import { refused } from '../life/refusal.ts';
import type { Pass } from '../pass/pass.ts';
import type { Refusal, WorkflowRequest, WorkflowStep } from '../pass/types.ts';
import { refusalOfOldDisk } from '../power/pending-power.ts';
import { knownSteps } from '../run/known-steps.ts';
import { describe } from '../run/render.ts';
import { workflowSteps } from '../run/template-run.ts';

/** Largest run that a host's record takes before it has begun, in bytes on the wire. */
const runBytesMax = 96 * 1024;

/** Why the run of a workflow cannot be started here, or undefined. */
export function refusalOfWorkflow(pass: Pass, request: WorkflowRequest): Refusal | undefined {
  const steps = request.steps.filter(({ skippedBecause }) => skippedBecause === '');
  for (const step of steps) {
    const problem = problemOf(pass, step);
    if (problem !== undefined) return refused(pass, 'notAllowed', `step ${step.title}: ${problem}`);
  }
  return refusalOfDisk(pass, steps) ?? refusalOfSize(pass, workflowSteps(pass, request));
}

function problemOf(pass: Pass, step: WorkflowStep): string | undefined {
  if (step.action === 'bmc') return problemOfBmcStep(pass, step);
  return reachProblem(pass.context.fleet?.templates, step);
}

/** R8: only what the rack's agent said it can do is asked of it. */
function problemOfBmcStep({ context, spec }: Pass, { step }: WorkflowStep): string | undefined {
  // Whoever makes other disks must erase them in the same run.
  if (step === applyVolumesStep) return `${step} is for cleans only, which erase its volumes`;
  const known = knownSteps(context).filter(({ source }) => source === 'agent');
  if (describe(known, step) !== undefined) return undefined;
  const names = known.map(({ description }) => description.name).join(', ') || 'none';
  return `the agent of ${spec.rack} offers no ${step}; it offers: ${names}`;
}

/**
 * What a template has written itself it may boot; what was there before needs a reason. Whether it
 * has been written is asked again when the disk is about to be booted (`old-disk.ts`).
 */
function refusalOfDisk(pass: Pass, steps: readonly WorkflowStep[]): Refusal | undefined {
  const boot = steps.findIndex(({ step }) => step === 'bootDisk');
  const writes = steps.slice(0, Math.max(0, boot)).some(({ destructive }) => destructive);
  if (boot === -1 || writes) return undefined;
  return refusalOfOldDisk(pass, { kind: 'powerOn', bootOldDiskReason: '' });
}

function refusalOfSize(pass: Pass, steps: RunStep[]): Refusal | undefined {
  const bytes = toBinary(RunSchema, create(RunSchema, { steps })).length;
  if (bytes <= runBytesMax) return undefined;
  const text = `the rendered template has ${bytes} bytes; at most ${runBytesMax} are run`;
  return refused(pass, 'limit', `${text}; move long scripts into an image`);
}

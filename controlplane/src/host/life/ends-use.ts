/**
 * What a person may do manually with a host of a pool: anything that neither ends its use nor
 * writes a disk. The pool leaves a host unchanged that has a run, is in rescue, or was switched
 * off. Pure.
 */

import type { PassView } from '../pass/pass.ts';
import type { HostRequest } from '../pass/types.ts';
import { knownSteps } from '../run/known-steps.ts';
import { newStep } from '../run/render.ts';
import { isPlannedToSkip } from '../run/step-parts.ts';
import { workflowSteps } from '../run/template-run.ts';

/** Whether the request changes the host's content, or may do so. */
export function endsUse(pass: PassView, request: HostRequest): boolean {
  switch (request.kind) {
    case 'abort':
    case 'inspect':
    case 'powerOn':
    case 'powerOff':
    case 'powerReset':
    case 'rescue':
      return false;
    case 'service': {
      const known = knownSteps(pass.snapshot);
      return request.steps.some((wanted) => newStep(known, wanted).destructive);
    }
    case 'workflow':
      return workflowSteps(pass, request).some((step) => {
        return !isPlannedToSkip(step) && (step.destructive || step.handOff);
      });
    default:
      return true;
  }
}

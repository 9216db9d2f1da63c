/** What a plan is asked for, as the request that would start it. */
import { DeletionMode, type PlanRunRequest } from '@rackwright/api';
import type { PlannableRequest } from '../host/index.ts';
import { imageOf, stepsOf } from './host-requests.ts';
import { isKnown } from './names.ts';
import { Violations } from './violations.ts';

/** Throws `invalidArgument` for what says something wrong, or nothing. */
export function requestToPlan({ run }: PlanRunRequest): PlannableRequest {
  switch (run.case) {
    case 'clean':
      return { kind: 'clean', steps: stepsOf(run.value.steps, 'clean.steps') };
    case 'provision':
      return { kind: 'provision', image: imageOf(run.value.image, 'provision.image') };
    case 'delete': {
      const { mode } = run.value;
      const violations = new Violations();
      if (!isKnown(DeletionMode, mode)) {
        violations.add('delete.mode', 'must be normal or force');
      }
      violations.throwIfAny();
      return { kind: 'delete', mode: mode || DeletionMode.NORMAL, reason: '' };
    }
    default: {
      const violations = new Violations();
      violations.add('run', 'is missing; it must be clean, provision, delete or workflow');
      violations.throwIfAny();
      throw new Error('a violation has been thrown');
    }
  }
}

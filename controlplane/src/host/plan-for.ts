/** The plan of a request in the present state, and whether it would be accepted. Pure. */
import { HostRefusal, hostRefusalOf, type PlanRunRequest, type store } from '@rackwright/messages';
import type { PlannableRequest } from './foresee/foresee.ts';
import type { DraftPlan } from './foresee/plan-basis.ts';
import { planNow } from './foresee/plan-check.ts';
import { decideHost } from './machine.ts';
import { beginPass } from './pass/pass.ts';
import type { HostSnapshot, Refusal, Requester } from './pass/types.ts';

/** A draft with the reason why it would be refused now; or the errors of the request. */
export function planFor(
  record: store.HostRecord,
  snapshot: HostSnapshot,
  request: PlannableRequest,
  planRequest: PlanRunRequest | undefined,
  by: Requester,
): DraftPlan | Refusal {
  const draft = planNow(beginPass(record, snapshot), request, planRequest);
  if ('code' in draft) return draft;
  const outcome = decideHost(record, { kind: 'request', request, by }, snapshot);
  if (outcome.kind === 'refused') {
    draft.plan.refused = outcome.refusal.message;
    draft.plan.refusal = kindOf(outcome.refusal);
  }
  return draft;
}

/** The plan is none for a request that is wrong by itself. */
function kindOf(refusal: Refusal): HostRefusal {
  return refusal.code === 'failedPrecondition'
    ? hostRefusalOf(refusal.reason)
    : HostRefusal.PLAN_CHANGED;
}

/** The plan of a request in the present state, and whether it would be accepted. Pure. */
import type { PlanRunRequest, store } from '@rackwright/messages';
import type { PlannableRequest } from './foresee/foresee.ts';
import type { DraftPlan } from './foresee/plan-basis.ts';
import { planNow } from './foresee/plan-check.ts';
import { step } from './machine.ts';
import { beginPass } from './pass/pass.ts';
import type { HostContext, Refusal, Requester } from './pass/types.ts';

/** A draft with the reason why it would be refused now; or the errors of the request. */
export function planFor(
  record: store.HostRecord,
  context: HostContext,
  request: PlannableRequest,
  asked: PlanRunRequest | undefined,
  by: Requester,
): DraftPlan | Refusal {
  const draft = planNow(beginPass(record, context), request, asked);
  if ('code' in draft) return draft;
  const outcome = step(record, { kind: 'request', request, by }, context);
  draft.plan.refused = outcome.kind === 'refused' ? outcome.refusal.message : '';
  return draft;
}

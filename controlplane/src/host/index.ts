/** The hosts' machine and its shell; others import from here, and change hosts through `Hosts`. */
export { accessTo } from './bmc-access.ts';
export {
  awaitImageStep,
  bootImageStep,
  netbootOf,
  netbootProblem,
  writeImageStep,
} from './deployment.ts';
export { displayOf } from './display.ts';
export { explainRack } from './explain-rack.ts';
export { explainEndedRun, howItEnded } from './explain-run.ts';
export { fenceHold } from './fence-hold.ts';
export { changeAbandoned, fencesAround, hostsFencedBy } from './fences.ts';
export { fleetKey, readFleet } from './followed.ts';
export type { PlannableRequest } from './foresee.ts';
export { isWrittenOver } from './foresee-deployment.ts';
export { staysAsItIs } from './foresee-devices.ts';
export { type IndexedHost, rackIdOf } from './host-index.ts';
export { agentStepsOf, offered, planOf } from './known-steps.ts';
export { descends, isSameLife, lifeOf } from './lineage.ts';
export type { DraftPlan } from './plan-basis.ts';
export { planChangedText } from './plan-check.ts';
export { planFor } from './plan-for.ts';
export { placesMax } from './quota.ts';
export { Hosts, type HostsDependencies } from './reconcile.ts';
export { heldBy } from './refusal.ts';
export { createMethod, isCreation, keptIds } from './request-ids.ts';
export {
  confirm,
  type ReserveOutcome,
  release,
  reserve,
  reservedValues,
} from './reservations.ts';
export { credentialVersions, whyNothingDestructive } from './surroundings.ts';
export { defaultTiming, type EngineTiming } from './timing.ts';
export { takeTombstone } from './tombstones.ts';
export type { RequestOutcome, TurnResult } from './turn-result.ts';
export type {
  AnswerVerdict,
  CallOutput,
  CallResult,
  HostContext,
  HostRequest,
  Refusal,
  RequestedStep,
  Requester,
  WorkflowRequest,
  WorkflowStep,
} from './types.ts';
export type { UsualTimes } from './usual.ts';
export type { PendingWait } from './waiting.ts';
export { settleMs } from './wake.ts';
export type { CallWebhook, WebhookOrder } from './webhook-order.ts';

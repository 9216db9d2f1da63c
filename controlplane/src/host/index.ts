/**
 * The hosts' state machine and its shell; others import from here, and change hosts through
 * `Hosts`.
 */
export { accessTo } from './bmc/access.ts';
export { bmcPort, endpointText } from './bmc/endpoint.ts';
export { bmcFaults, bmcUnreachable } from './bmc/health.ts';
export { isByHand, protocolOf } from './bmc/protocols.ts';
export { fenceHold } from './deletion/fence-hold.ts';
export { netbootOf, netbootProblem } from './deployment/deployment.ts';
export { isStillInService } from './deployment/still-in.ts';
export { explainRack } from './explain/rack.ts';
export { isKnownRackFault, rackFaultText } from './explain/rack-faults.ts';
export { explainEndedRun, howItEnded } from './explain/run.ts';
export { bootProfileOf } from './fleet/boot-profile.ts';
export { changeAbandoned, fencesAround, hostsFencedBy } from './fleet/fences.ts';
export { fleetKey, readFleet } from './fleet/followed.ts';
export { type IndexedHost, rackIdOf } from './fleet/host-index.ts';
export {
  confirm,
  type ReservedValue,
  type ReserveResult,
  releaseReserved,
  releaseUnnamed,
  reserve,
  reservedValues,
} from './fleet/reservations.ts';
export { takeTombstone } from './fleet/tombstones.ts';
export type { UsualTimes } from './fleet/usual.ts';
export { isWrittenOver, staysAsItIs } from './foresee/fate.ts';
export type { PlannableRequest } from './foresee/foresee.ts';
export type { DraftPlan } from './foresee/plan-basis.ts';
export { planChangedText } from './foresee/plan-check.ts';
export { partChangeText } from './hardware/changes.ts';
export { comparedParts, gapsOfBmc } from './hardware/compare.ts';
export { reviewReason, wantsAvailable } from './life/goal.ts';
export { occupiedText } from './life/refusal.ts';
export { isInUseOf, useOf } from './life/use-of.ts';
export { isDescendantOf, isSameLife, lifeOf } from './operation/lineage.ts';
export { agentBackMs, agentWordMs } from './operation/operation.ts';
export { shutdownSeconds } from './operation/shutdown.ts';
export { displayOf } from './pass/display.ts';
export type { PassResult, RequestOutcome } from './pass/pass-result.ts';
export { limitHostsMax } from './pass/quota.ts';
export { engineSteps, isOfTemplate, switchesOn } from './pass/step-names.ts';
export { defaultTiming, type EngineTiming } from './pass/timing.ts';
export type {
  Brake,
  CallOutput,
  CallResult,
  HostRequest,
  HostSnapshot,
  LeaseBrakeKind,
  Refusal,
  RefusalOfHost,
  ReportVerdict,
  RequestedStep,
  Requester,
  WorkflowRequest,
  WorkflowStep,
} from './pass/types.ts';
export type { CallWebhook, WebhookOrder } from './pass/webhook-order.ts';
export { planFor } from './plan-for.ts';
export { powerBack } from './power/pending-power.ts';
export { createMethod, isCreation } from './request/request-ids.ts';
export { agentStepsOf, offered, planOf } from './run/known-steps.ts';
export { agentAway, awayFromMs } from './shell/agent-away.ts';
export type { HostsDependencies } from './shell/dependencies.ts';
export type { ServedObserver } from './shell/progress.ts';
export { Hosts } from './shell/reconcile.ts';
export { createSessionRegistry, type LiveSession, type SessionRegistry } from './shell/sessions.ts';
export { credentialVersions, destructionBrake } from './shell/snapshot.ts';
export { settleMs } from './shell/wake.ts';

/**
 * Which actions each role is offered: a table over the methods that buttons call. Pure.
 *
 * Invariants:
 * 1. The server decides; this only hides actions that the server would refuse for every host.
 * 2. Each row is that of the server's own table of rights; a test compares them.
 */
import { Role } from '@rackwright/messages';

interface Offer {
  /** "SERVICE/Method" */
  readonly method: string;
  readonly role: Role;
  /** Concerns every rack: not for a caller with a scope. */
  readonly isFleetWide: boolean;
}

const operator = Role.OPERATOR;
const admin = Role.ADMIN;
const row = (method: string, role: Role, { isFleetWide = false } = {}): Offer => {
  return { method, role, isFleetWide };
};

export const offers = {
  plan: row('PlanService/PlanRun', operator),
  startPlan: row('PlanService/StartPlan', operator),
  verify: row('HostService/VerifyHost', operator),
  inspect: row('HostService/InspectHost', operator),
  abort: row('HostService/AbortRun', operator),
  retry: row('HostService/RetryHost', operator),
  power: row('HostService/SetHostPower', operator),
  release: row('HostService/ReleaseHost', operator),
  hold: row('HostService/HoldHost', operator),
  releaseHold: row('HostService/ReleaseHold', operator),
  resume: row('HostService/ResumeRun', operator),
  skip: row('HostService/SkipStep', operator),
  claim: row('HostService/ClaimHost', operator),
  unclaim: row('HostService/UnclaimHost', operator),
  pausePool: row('PoolService/PausePool', operator),
  resumePool: row('PoolService/ResumePool', operator),
  approvePool: row('PoolService/ApprovePool', operator),
  freezeRack: row('RackService/FreezeRack', operator),
  thawRack: row('RackService/ThawRack', operator),
  freezeFleet: row('FleetService/FreezeFleet', admin, { isFleetWide: true }),
  thawFleet: row('FleetService/ThawFleet', admin, { isFleetWide: true }),
  accept: row('DiscoveryService/AcceptDiscoveredMachine', operator),
  drop: row('DiscoveryService/DeleteDiscoveredMachine', operator),
  runWorkflow: row('WorkflowService/RunWorkflow', operator),
  cancelWorkflow: row('WorkflowService/CancelWorkflow', operator),
} as const satisfies Record<string, Offer>;

export type OfferName = keyof typeof offers;

/** The signed-in person. */
export interface Caller {
  readonly role: Role;
  readonly isScoped: boolean;
}

/** Whether the caller is offered it. */
export function isOffered({ role, isScoped }: Caller, name: OfferName): boolean {
  const { role: least, isFleetWide } = offers[name];
  return role >= least && !(isFleetWide && isScoped);
}

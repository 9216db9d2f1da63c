/**
 * PlanService: a run is shown before it is started, and starts only as it was shown. The state
 * machine that would carry it out computes the plan; this service stores it and starts it.
 */
import { clone } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  type BoundService,
  bind,
  failedPrecondition,
  type Host,
  type HostId,
  HostRefusal,
  hostRefusalOf,
  invalidArgument,
  notFound,
  type Plan,
  type PlanRunRequest,
  PlanSchema,
  PlanService,
  type StartPlanRequest,
  type store as wire,
} from '@rackwright/messages';
import { presentHost, readFacts, readHost } from '../../call/host-view.ts';
import { parseName, requireName } from '../../call/names.ts';
import { answerOf } from '../../call/outcome.ts';
import { type RpcDependencies, requester } from '../../call/ports.ts';
import { checkReason, checkRequestId, timeText } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { addUsualDurations, isExpired, keepPlan, readPlan } from '../../plan/index.ts';
import { hasApplied, idOf } from '../../records/index.ts';
import { startPlanned, wasStartedBy } from '../../workflow/index.ts';
import { type DraftPlan, planChangedText, planFor, type Refusal } from '../index.ts';
import { answeredBefore, lastSeen } from './delete-host.ts';
import { forHost, plainRequest, readPlanRequest, resolvePlan, workflowOf } from './plan-request.ts';

/** The service over these dependencies. */
export function createPlanService(deps: RpcDependencies): BoundService {
  return bind(PlanService, {
    planRun: (request) => planRun(deps, request),
    getPlan: ({ name }) => getPlan(deps, name),
    startPlan: (request) => startPlan(deps, request),
  });
}

async function planRun(deps: RpcDependencies, request: PlanRunRequest): Promise<Plan> {
  const hostId = requireName('hosts', request.parent, 'parent');
  const resolved = await resolvePlan(deps, request);
  const draft = await draftOf(deps, hostId, resolved);
  const plan = await keepPlan(deps, request.parent, draft);
  return withUsualDurations(deps, hostId, plan, resolved);
}

/** The plan for the present state. Throws the errors of the request. */
async function draftOf(
  deps: RpcDependencies,
  hostId: HostId,
  resolved: PlanRunRequest,
): Promise<DraftPlan> {
  const { request, refusal } = await readPlanRequest(deps, resolved);
  const by = { actor: deps.actor };
  const draft = await deps.hosts.consider(hostId, (record, snapshot) => {
    if (record.host === undefined) return undefined;
    return planFor(record, snapshot, request(record.host, snapshot), resolved, by);
  });
  if (draft === undefined) throw notFound(resolved.parent);
  if ('code' in draft) throw wrongRequest(resolved, draft);
  if (refusal !== undefined) {
    draft.plan.refused = refusal.message;
    draft.plan.refusal = hostRefusalOf(refusal.reason);
  }
  return draft;
}

/** The request fields in which a list of steps was given. */
function wrongRequest({ run }: PlanRunRequest, { message, fieldViolations = [] }: Refusal) {
  const violations = fieldViolations.map(({ field, description }) => {
    return { field: `${run.case}.${field}`, description };
  });
  const whole = [{ field: run.case ?? 'run', description: message }];
  return invalidArgument(violations.length > 0 ? violations : whole);
}

async function withUsualDurations(
  deps: RpcDependencies,
  hostId: HostId,
  plan: Plan,
  { parent, run }: PlanRunRequest,
): Promise<Plan> {
  const answer = clone(PlanSchema, plan);
  const manual = run.case === 'clean' && run.value.steps.length > 0;
  const template = run.case === 'workflow' ? idOf(run.value.template) : '';
  const workflowRun = template === '' ? '' : `${parent}/workflows/${template}/runs/0`;
  const usual = await deps.hosts.usualOf(hostId);
  addUsualDurations(answer, usual, { manual, workflowRun });
  return answer;
}

/** The plan as it was made; whether it would be refused is checked again. */
async function getPlan(deps: RpcDependencies, name: string): Promise<Plan> {
  const { hostId, hash } = parsePlanName(name);
  const host = await readHost(deps, hostId);
  const kept = host && (await readPlan(deps, host.host.uid, hash));
  const request = kept?.basis?.request;
  if (kept?.plan === undefined || request === undefined) throw noPlan(name);
  const plan = await withUsualDurations(deps, hostId, kept.plan, request);
  const { refused, refusal } = await refusalOf(deps, hostId, kept, request);
  plan.refused = refused;
  plan.refusal = refusal;
  return plan;
}

async function refusalOf(
  deps: RpcDependencies,
  hostId: HostId,
  kept: wire.PlanRecord,
  request: PlanRunRequest,
): Promise<Pick<Plan, 'refused' | 'refusal'>> {
  const changed = (refused: string) => ({ refused, refusal: HostRefusal.PLAN_CHANGED });
  if (isExpired(kept, deps.clock.nowMs())) return changed(expiredText(kept));
  try {
    const now = await draftOf(deps, hostId, request);
    return now.plan.hash === kept.plan?.hash ? now.plan : changed(planChangedText(kept, now));
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    const { kind } = error.error;
    if (kind === 'invalidArgument' || kind === 'failedPrecondition') return changed(error.message);
    throw error;
  }
}

/**
 * The host loop computes it again in the reconcile that starts it: nothing can change in between.
 */
async function startPlan(
  deps: RpcDependencies,
  { name, reason, requestId }: StartPlanRequest,
): Promise<Host> {
  const violations = new Violations();
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const { hostId, hash } = parsePlanName(name);
  const hostName = `hosts/${hostId}`;
  const by = requester(deps, 'startPlan', requestId);
  const found = await readHost(deps, hostId);
  const gone = found === undefined && (await answeredBefore(deps, hostId, by.requestId));
  if (gone) return gone;
  if (found === undefined) throw notFound(hostName);
  if (hasApplied(found.record, by.requestId)) return found.host;
  const kept = await readPlan(deps, found.host.uid, hash);
  const asked = kept?.basis?.request;
  if (kept === undefined || asked === undefined) {
    const { requestId: id = '' } = by;
    if (id !== '' && (await wasStartedBy(deps, hostId, id))) return found.host;
    throw noPlan(name);
  }
  if (isExpired(kept, deps.clock.nowMs())) {
    throw failedPrecondition('PLAN_EXPIRED', `${name}: ${expiredText(kept)}`, { resource: name });
  }
  if (asked.run.case === 'workflow') {
    const id = workflowOf(asked, asked.run);
    await startPlanned(deps, id, asked.run.value.variables, by, { hash, reason });
    return (await readHost(deps, hostId))?.host ?? lastSeen(deps, hostId, hostName);
  }
  const planned = forHost(plainRequest(asked.run), found.host);
  const request = { ...planned, plan: { record: kept, reason } };
  const outcome = await deps.hosts.request(hostId, request, by);
  if (outcome.kind === 'removed') return lastSeen(deps, hostId, hostName);
  const { record, revision } = answerOf(outcome, hostName);
  return presentHost(deps, record, revision, await readFacts(deps, hostId));
}

function expiredText({ plan }: wire.PlanRecord): string {
  const at = timeText(plan?.expireTime ?? timestampFromMs(0));
  return `the plan has expired at ${at}; plan again`;
}

function noPlan(name: string): ApiFailure {
  return new ApiFailure({
    kind: 'notFound',
    message:
      `${name} does not exist. Plans are kept for a day, the last 8 of each host, ` +
      'and go with their host; plan again.',
    reason: 'RESOURCE_NOT_FOUND',
    metadata: { resource: name },
  });
}

function parsePlanName(name: string): { readonly hostId: HostId; readonly hash: string } {
  const [, host = '', hash] = /^(hosts\/[^/]+)\/plans\/([0-9a-f]{64})$/.exec(name) ?? [];
  const hostId = parseName('hosts', host);
  if (hostId !== undefined && hash !== undefined) return { hostId, hash };
  const description = 'must name a plan, as in "hosts/h1/plans/HASH" with the whole hash';
  throw invalidArgument([{ field: 'name', description }]);
}

/** Requests about the use of a host: its user, its image, and its holds. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { chooseTarget, isKeptDisk } from '@rackwright/disk-image';
import {
  applyVolumesStep,
  asRunNumber,
  burnInDiskStep,
  ClaimSchema,
  type DeploySpec,
  HoldSchema,
  HoldScope,
  HostState,
  isErasure,
  isPoolClaim,
  ownPrefix,
  RunKind,
} from '@rackwright/messages';
import { deploymentOf, missingAgentStep } from '../deployment/deployment.ts';
import { kindOfDeployment, takeDeployment, wantedDeploy } from '../deployment/take-deployment.ts';
import { decideToWrite } from '../erasure/device-plan.ts';
import { claimedText } from '../life/claim.ts';
import { refuseHost } from '../life/refusal.ts';
import { isInUseOf } from '../life/use-of.ts';
import { activeRun, type Pass, type PassView, recordCause, timeNow } from '../pass/pass.ts';
import type { HostRequest, Refusal, RequestedStep, Requester } from '../pass/types.ts';
import { dropSystemPower } from '../power/pending-power.ts';
import { startRun } from '../run/engine.ts';
import { deploySteps } from '../run/skeletons.ts';
import { startWorkflow } from '../run/template-run.ts';
import { isSetAgain } from './named-hold.ts';
import { refusalOfSteps } from './requested-steps.ts';
import { refusalOfWorkflow } from './requested-workflow.ts';

function invalid(field: string, description: string): Refusal {
  const message = `${field} ${description}`;
  return { code: 'invalidArgument', message, fieldViolations: [{ field, description }] };
}

/** Steps besides the automatic cleaning; the host's use does not change. */
export function requestService(
  pass: Pass,
  steps: readonly RequestedStep[],
  by: Requester,
): Refusal | undefined {
  if (steps.length === 0) return invalid('steps', 'is empty; name at least one step');
  const refusal =
    refusalOfErasures(pass, steps) ?? refusalOfOwn(steps) ?? refusalOfSteps(pass, steps);
  if (refusal === undefined) startRun(pass, RunKind.SERVICE, by.actor, steps);
  return refusal;
}

/** A rendered template; the host's use does not change. */
export function requestWorkflow(
  pass: Pass,
  request: Extract<HostRequest, { kind: 'workflow' }>,
  by: Requester,
): Refusal | undefined {
  if (request.steps.length === 0) return invalid('steps', 'is empty; name at least one step');
  if (request.use !== undefined && !isInUseOf(pass.record, request.use)) {
    return refuseHost(pass, 'changedHands', 'it has changed hands since this run was asked for');
  }
  const refusal = refusalOfWorkflow(pass, request);
  if (refusal !== undefined) return refusal;
  startWorkflow(pass, request, by.actor);
  recordCause(pass, by.actor, request.workflowRun);
  return undefined;
}

/** A service does not change the host's use: only a clean erases it. */
function refusalOfErasures(pass: PassView, steps: readonly RequestedStep[]): Refusal | undefined {
  const isKept = (step: string): boolean => step === burnInDiskStep || step === applyVolumesStep;
  const index = steps.findIndex(({ step }) => isErasure(step) || isKept(step));
  if (index === -1) return undefined;
  const first = pass.status.state === HostState.PROVISIONED ? 'release it first, then' : 'for that';
  const description = `is ${steps[index]?.step}, which writes over disks; ${first} ask for a clean`;
  return invalid(`steps[${index}].step`, description);
}

/**
 * The site's own programs are part of cleans; on a host in use only a template may run programs.
 */
function refusalOfOwn(steps: readonly RequestedStep[]): Refusal | undefined {
  const index = steps.findIndex(({ step }) => step.startsWith(ownPrefix));
  if (index === -1) return undefined;
  const description = `is ${steps[index]?.step}, which runs in cleans only; run a template instead`;
  return invalid(`steps[${index}].step`, description);
}

/** Only the holder of the claim deploys another image on a host in use. */
export function requestDeployment(
  pass: Pass,
  request: Extract<HostRequest, { image: string }>,
  by: Requester,
): Refusal | undefined {
  const { record, status, snapshot } = pass;
  const lacks = missingAgentStep(
    snapshot,
    deploySteps({ image: request.image, deploy: wantedDeploy(pass, request) }),
  );
  if (lacks !== undefined) {
    const { rack } = pass.spec;
    return refuseHost(
      pass,
      'agentTooOld',
      `the agent of ${rack} does not know ${lacks}; update it first`,
    );
  }
  const boots = refusalOfOldDisk(pass, request);
  if (boots !== undefined) return refuseHost(pass, 'oldData', boots);
  const claimedBy = status.claim?.by;
  if (request.kind === 'reimage' && claimedBy !== by.actor) {
    const holder = claimedBy === undefined ? 'nobody' : claimedBy;
    return refuseHost(
      pass,
      'claimed',
      `only who holds its claim may reimage it (${holder}); claim it first`,
    );
  }
  takeDeployment(pass, request);
  const deployment = deploymentOf(pass, { number: asRunNumber(record.runCount + 1n) });
  if (deployment.kind === 'refused') return invalid('image', deployment.problem);
  delete status.backoff;
  startRun(pass, kindOfDeployment(request), by.actor);
  return undefined;
}

/** The host's firmware would start the old content of the disk at any unplanned start. */
function refusalOfOldDisk(
  pass: PassView,
  request: Extract<HostRequest, { image: string }>,
): string | undefined {
  if (request.kind !== 'reimage') return undefined;
  const wanted = wantedDeploy(pass, request);
  const { image: runs, deploy } = pass.status;
  if (deploy?.netboot === true) return undefined;
  const boots = `may still boot ${runs || 'what was written there'} whenever the host restarts`;
  if (wanted.netboot) {
    return `its disk ${boots}; release it, let it be cleaned, and provision it with netboot then`;
  }
  const disks = diskLeft(pass, wanted);
  if (disks === undefined) return undefined;
  const { left, chosen } = disks;
  return (
    `its image would come onto disk ${chosen}, and disk ${left} ${boots}; ` +
    `name that by --root-disk, or release the host, let it be cleaned, and provision it then`
  );
}

/**
 * The disk with the present image, if the new one goes onto another: by the inventory, as in the
 * runner.
 */
function diskLeft({ snapshot, spec, status }: PassView, { keepDisks }: DeploySpec) {
  const { inventory } = snapshot.facts;
  const { disk: left = '', whole = false } = status.writtenDisk ?? {};
  if (inventory === undefined || left === '' || !whole) return undefined;
  const decisions = decideToWrite(inventory, spec.cleaning);
  const found = chooseTarget(decisions, spec.rootDisk, keepDisks);
  const isThere = decisions.some(({ device }) => isKeptDisk(device, [left]));
  if (found.kind !== 'disk' || !isThere || isKeptDisk(found.device, [left])) return undefined;
  return { left, chosen: found.device.serial || found.device.wwn };
}

/** Ends the use of a host; a clean follows by its goal. */
export function requestRelease(pass: Pass, reason: string, by: Requester): undefined {
  delete pass.status.backoff;
  startRun(pass, RunKind.RELEASE, by.actor);
  if (reason !== '') recordCause(pass, by.actor, `released: ${reason}`);
}

/**
 * Into the runner, which touches nothing; the content of the disks stays. The goal leaves the host
 * unchanged from here on, even when the boot fails: a host to be rescued must not be erased.
 */
export function requestRescue(pass: Pass, reason: string, by: Requester): undefined {
  startRun(pass, RunKind.RESCUE, by.actor);
  pass.status.inRescue = true;
  if (reason !== '') recordCause(pass, by.actor, `rescue: ${reason}`);
}

/**
 * Adopts a running host: the result depends on what the person says it is. It is an intent: until
 * it has succeeded, or the person requests other work, the goal does nothing else.
 */
export function requestAdoption(pass: Pass, to: HostState, by: Requester): Refusal | undefined {
  if (to !== HostState.EXTERNAL && to !== HostState.PROVISIONED) {
    return invalid('to', 'must be external or provisioned');
  }
  pass.record.adoptTo = to;
  delete pass.status.backoff;
  if (activeRun(pass.status) === undefined) startRun(pass, RunKind.ADOPT, by.actor);
  return undefined;
}

/** A host has at most one claim; its holder may change the reason. */
export function requestClaim(pass: Pass, reason: string, by: Requester): Refusal | undefined {
  const { status } = pass;
  if (status.claim !== undefined && status.claim.by !== by.actor) {
    return refuseHost(pass, 'claimed', claimedText(status.claim));
  }
  if (status.deletion !== undefined) {
    return refuseHost(
      pass,
      'deleting',
      'it is to be deleted; take that back first (cancel-delete)',
    );
  }
  status.claim = create(ClaimSchema, {
    by: by.actor,
    reason,
    at: status.claim?.at ?? timeNow(pass),
  });
  return undefined;
}

export function requestUnclaim(pass: Pass, reason: string, by: Requester): Refusal | undefined {
  const { claim } = pass.status;
  if (claim === undefined)
    return refuseHost(pass, 'nothingToDo', 'nobody claims it; there is nothing to give up');
  const isOthers = claim.by !== by.actor && !isPoolClaim(claim);
  if (isOthers && by.mayEndOthersUse !== true) {
    const text = `${claimedText(claim)}: by ${claim.by}, or by an administrator`;
    return refuseHost(pass, 'claimed', text);
  }
  delete pass.status.claim;
  recordCause(pass, by.actor, `claim given up: ${reason}`);
  return undefined;
}

/** The most holds of a host. */
const holdsMax = 32;
/** The latest expiry of a hold: much later times do not even have a text form. */
const holdMsMax = 10 * 365 * 86_400_000;

/** Sets a hold, or sets one again. */
export function requestHold(
  pass: Pass,
  request: Extract<HostRequest, { kind: 'hold' }>,
  by: Requester,
): Refusal | undefined {
  const { scope, reason, untilMs } = request;
  if (reason === '') return invalid('reason', 'is empty; say why the host is held');
  if (untilMs !== undefined && untilMs <= pass.snapshot.nowMs) {
    return invalid('until', 'is over already; give a time that lies ahead');
  }
  if (untilMs !== undefined && untilMs > pass.snapshot.nowMs + holdMsMax) {
    return invalid('until', 'is more than ten years ahead; leave it out to hold for good');
  }
  const { status } = pass;
  const same = { scope, reason, by: by.actor };
  const others = status.holds.filter((each) => !isSetAgain(each, same));
  if (others.length >= holdsMax) {
    return refuseHost(
      pass,
      'limit',
      `it has ${others.length} holds, as many as are kept; lift one first`,
    );
  }
  status.holds = others;
  status.holds.push(
    create(HoldSchema, {
      ...same,
      since: timeNow(pass),
      ...(untilMs === undefined ? {} : { until: timestampFromMs(untilMs) }),
    }),
  );
  if (scope !== HoldScope.RELEASE) dropSystemPower(pass, `${by.actor} holds the host`);
  return undefined;
}

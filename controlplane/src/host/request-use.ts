/** Requests about what a host is used for: who uses it, what runs on it, what is kept from it. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ClaimSchema, HoldSchema, HostState, RunKind } from '@rackwright/api';
import { startRun } from './engine.ts';
import { refusalOfSteps } from './requested-steps.ts';
import { causedBy, now, type Turn } from './turn.ts';
import type { HostRequest, Refusal, RequestedStep, Requester } from './types.ts';

function refused(turn: Turn, message: string): Refusal {
  return { code: 'failedPrecondition', message: `${turn.host.name}: ${message}` };
}

function invalid(field: string, description: string): Refusal {
  const message = `${field} ${description}`;
  return { code: 'invalidArgument', message, fieldViolations: [{ field, description }] };
}

/** Steps beside the automatic cleaning; the host stays what it is used for. */
export function service(
  turn: Turn,
  steps: readonly RequestedStep[],
  by: Requester,
): Refusal | undefined {
  if (steps.length === 0) return invalid('steps', 'is empty; name at least one step');
  const refusal = refusalOfSteps(turn, steps);
  if (refusal === undefined) startRun(turn, RunKind.SERVICE, by.actor, steps);
  return refusal;
}

/** Only the holder of the claim puts another image on a host that is in use. */
export function image(
  turn: Turn,
  request: Extract<HostRequest, { image: string }>,
  by: Requester,
): Refusal | undefined {
  if (!turn.context.imagesSupported) return refused(turn, 'no image support yet');
  const claimedBy = turn.status.claim?.by;
  if (request.kind === 'reimage' && claimedBy !== by.actor) {
    const holder = claimedBy === undefined ? 'nobody' : claimedBy;
    return refused(turn, `only who holds its claim may reimage it (${holder}); claim it first`);
  }
  turn.record.image = request.image;
  startRun(turn, request.kind === 'provision' ? RunKind.PROVISION : RunKind.REIMAGE, by.actor);
  return undefined;
}

/** Gives a host back; a clean follows by its goal. */
export function release(turn: Turn, reason: string, by: Requester): Refusal | undefined {
  const { claim: claimed } = turn.status;
  if (claimed !== undefined && claimed.by !== by.actor) {
    return refused(
      turn,
      `claimed by ${claimed.by} (${claimed.reason}); it must be unclaimed first`,
    );
  }
  startRun(turn, RunKind.RELEASE, by.actor);
  if (reason !== '') causedBy(turn, by.actor, `released: ${reason}`);
  return undefined;
}

/** Into the runner, which touches nothing; what was on the disks stays. */
export function rescue(turn: Turn, by: Requester): undefined {
  startRun(turn, RunKind.RESCUE, by.actor);
}

/** Takes in a host that runs already: what comes of it depends on what the person says it is. */
export function adopt(turn: Turn, to: HostState, by: Requester): Refusal | undefined {
  if (to !== HostState.EXTERNAL && to !== HostState.PROVISIONED) {
    return invalid('to', 'must be external or provisioned');
  }
  turn.record.adoptTo = to;
  startRun(turn, RunKind.ADOPT, by.actor);
  return undefined;
}

/** A host has at most one claim; who holds it may say another reason. */
export function claim(turn: Turn, reason: string, by: Requester): Refusal | undefined {
  const { status } = turn;
  if (status.claim !== undefined && status.claim.by !== by.actor) {
    return refused(turn, `claimed by ${status.claim.by}: ${status.claim.reason}`);
  }
  if (status.deletion !== undefined) return refused(turn, 'it is to be deleted');
  status.claim = create(ClaimSchema, { by: by.actor, reason, at: status.claim?.at ?? now(turn) });
  return undefined;
}

export function unclaim(turn: Turn, reason: string, by: Requester): Refusal | undefined {
  if (turn.status.claim === undefined) return refused(turn, 'nobody claims it');
  delete turn.status.claim;
  causedBy(turn, by.actor, `claim given up: ${reason}`);
  return undefined;
}

/** Holds of a person are told apart by their reasons. */
export function hold(
  turn: Turn,
  request: Extract<HostRequest, { kind: 'hold' }>,
  by: Requester,
): Refusal | undefined {
  const { scope, reason, untilMs } = request;
  if (reason === '') return invalid('reason', 'is empty; say why the host is held');
  if (untilMs !== undefined && untilMs <= turn.context.nowMs) {
    return invalid('until', 'is over already; give a time that lies ahead');
  }
  const { status } = turn;
  status.holds = status.holds.filter((each) => each.reason !== reason || each.scope !== scope);
  status.holds.push(
    create(HoldSchema, {
      scope,
      by: by.actor,
      reason,
      since: now(turn),
      ...(untilMs === undefined ? {} : { until: timestampFromMs(untilMs) }),
    }),
  );
  return undefined;
}

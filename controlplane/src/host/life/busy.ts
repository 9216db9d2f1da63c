/**
 * Busy: what prevents the deletion of a host, for every caller and mode (DESIGN §4, §7). Pure.
 *
 * Must not: count work of the deletion itself, or work that no party can do any more (`stuck.ts`).
 */
import { toJson } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { HoldScope, isPoolClaim, type Run, RunKind } from '@rackwright/messages';
import { activeRun, hasPassed, type Pass, type PassView, runName } from '../pass/pass.ts';
import { stepPosition } from '../run/step-parts.ts';
import { endOfClaim } from './claim.ts';
import { isAgentGone, isStuck } from './stuck.ts';

/** Who holds the host, since when, and what would end that. */
export interface Busy {
  /** "claimed by user:ann (database)", "clean 3 holds the host (at deploy.erase_devices)". */
  readonly holder: string;
  readonly since: Timestamp | undefined;
  /** What a person can do about it. */
  readonly instead: string;
}

const work: ReadonlySet<RunKind> = new Set([
  RunKind.CLEAN,
  RunKind.PROVISION,
  RunKind.REIMAGE,
  RunKind.SERVICE,
  RunKind.WORKFLOW,
]);

/** What makes the host busy now; undefined when nothing does. A claim goes first. */
export function busyWith(pass: Pass): Busy | undefined {
  const { claim, holds } = pass.status;
  if (claim !== undefined && !isClaimVoid(pass)) {
    const holder = `claimed by ${claim.by} (${claim.reason || 'no reason given'})`;
    return { holder, since: claim.at, instead: endOfClaim(claim) };
  }
  const hold = holds.find(({ scope, until }) => {
    return scope === HoldScope.RELEASE && !hasPassed(pass, until);
  });
  if (hold !== undefined) {
    const holder = `kept from release by ${hold.by}: ${hold.reason}`;
    return { holder, since: hold.since, instead: 'lift the hold first' };
  }
  const run = activeRun(pass.status);
  if (run === undefined || !work.has(run.kind) || isStuck(pass, run)) return undefined;
  // Once a deletion is requested, each run is its own, or is being aborted for it.
  return pass.status.deletion === undefined ? busyRun(run) : undefined;
}

/**
 * A pool keeps a host, selected or not, until its own run has ended. If the agent is gone for good,
 * the run never ends: then the claim protects work that no party can do.
 */
function isClaimVoid(pass: PassView): boolean {
  const { claim } = pass.status;
  const run = activeRun(pass.status);
  if (claim === undefined || run === undefined || !isPoolClaim(claim)) return false;
  return run.requestedBy === claim.by && isAgentGone(pass, run);
}

/** "busy: clean 3 holds the host (at X) since 2026-01-01T00:00:00Z; wait for its end or …". */
export function busyText({ holder, since, instead }: Busy): string {
  const from = since === undefined ? '' : ` since ${toJson(TimestampSchema, since)}`;
  return `busy: ${holder}${from}; ${instead}`;
}

function busyRun(run: Run): Busy {
  const at = stepPosition(run);
  const holder = `${runName(run)} holds the host (at ${at})`;
  return { holder, since: run.startTime, instead: 'wait for its end or abort it' };
}

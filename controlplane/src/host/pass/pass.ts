/**
 * One pass of the host's state machine: the draft that a step works on, and small functions to read
 * and change it. The draft is a private copy, so that `decideHost` is pure for its callers.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { deviceIdentity } from '@rackwright/erasure';
import {
  type Actor,
  type agent,
  type Host,
  type HostSpec,
  type HostStatus,
  type HostWait,
  hostWaitOf,
  type Inventory,
  type Run,
  RunPhase,
  StepState,
  store,
  WaitingSchema,
} from '@rackwright/messages';
import { copyOf } from '../../records/index.ts';
import type { DeepReadonly, RunView, StepView } from './read-only.ts';
import { messageMax, truncate } from './step-failure.ts';
import type { HostEffect, HostSnapshot } from './types.ts';

export interface Pass {
  readonly record: store.HostRecord;
  readonly host: Host;
  /** Always the host's present one, also after an update in the same pass. */
  readonly spec: HostSpec;
  readonly status: HostStatus;
  readonly snapshot: HostSnapshot;
  readonly effects: HostEffect[];
  /** The run that ended in this pass and has not landed yet. */
  ended: Run | undefined;
  /** The runner that an inspection has left up in this pass, and the name of that inspection. */
  leftUp: { readonly runner: agent.RunnerReady; readonly by: string } | undefined;
  /** Runs that ended in this pass and are no longer the host's run. */
  readonly displaced: Run[];
  /** The number of the run that had ended before this pass; 0: there was none. */
  readonly endedBefore: bigint;
  /** Set when the record is to be removed. */
  removed: boolean;
  /** Whether this pass has named its cause. */
  caused: boolean;
}

/** Fields whose own types are read-only already. */
type Apart = 'snapshot' | 'leftUp';

/**
 * A pass for functions that only decide. The type of the parameter says whether a function writes.
 */
export type PassView = DeepReadonly<Omit<Pass, Apart | 'effects'>> &
  Readonly<Pick<Pass, Apart>> & { readonly effects: readonly Pass['effects'][number][] };

/** Throws when the record lacks what every host has: then the store contains something else. */
export function beginPass(record: DeepReadonly<store.HostRecord>, snapshot: HostSnapshot): Pass {
  // The copy is this pass's own, and may change.
  const draft = copyOf(record) as store.HostRecord;
  const { host } = draft;
  if (host?.spec === undefined || host.status === undefined) {
    throw new Error('a host record without host, spec or status is not one of ours');
  }
  const { status } = host;
  return {
    record: draft,
    host,
    get spec() {
      return host.spec as HostSpec;
    },
    status,
    snapshot,
    effects: [],
    ended: undefined,
    leftUp: undefined,
    displaced: [],
    endedBefore: status.run?.phase === RunPhase.ENDED ? status.run.number : 0n,
    removed: false,
    caused: false,
  };
}

export function timeNow(pass: PassView): Timestamp {
  return timestampFromMs(pass.snapshot.nowMs);
}

export function timeAfter(pass: PassView, delayMs: number): Timestamp {
  return timestampFromMs(pass.snapshot.nowMs + delayMs);
}

/** True when `time` is set and not in the future. */
export function hasPassed(pass: PassView, time: Timestamp | undefined): boolean {
  return time !== undefined && timestampMs(time) <= pass.snapshot.nowMs;
}

/** The run that holds the host, or undefined. */
export function activeRun<R extends RunView>({
  run,
}: {
  readonly run?: R | undefined;
}): R | undefined {
  return run !== undefined && run.phase !== RunPhase.ENDED ? run : undefined;
}

/** The present or next step; undefined when all have ended. */
export function currentStep<S extends StepView>({
  steps,
  currentStep: at,
}: Pick<Run, 'currentStep'> & { readonly steps: readonly S[] }): S | undefined {
  return steps[at];
}

/**
 * Records who and what caused this revision. When a pass has several causes, the first gives the
 * actor and the request or operation; the texts are listed in order.
 */
export function recordCause(pass: Pass, actor: Actor, cause: string, requestId = ''): void {
  const first = pass.caused ? pass.record.change : undefined;
  pass.caused = true;
  pass.record.change = create(store.ChangeSchema, {
    actor: first?.actor ?? actor,
    cause: first === undefined ? cause : `${first.cause}; ${cause}`,
    requestId: first?.requestId || requestId,
    operationId: first?.operationId || (pass.record.operation?.operation?.id ?? ''),
    time: timeNow(pass),
  });
}

/**
 * The run waits for something; the start of the wait is kept. `began`: the start, where it is known
 * more precisely.
 */
export function waitFor(
  pass: PassView,
  run: Run,
  reason: HostWait,
  message: string,
  began?: Timestamp,
): void {
  const isSame = hostWaitOf(run.waiting) === reason;
  if (!isSame) giveBack(pass, run);
  const since = began ?? (isSame ? run.waiting?.since : undefined);
  run.phase = RunPhase.WAITING;
  const text = truncate(message, messageMax);
  run.waiting = create(WaitingSchema, { reason, message: text, since: since ?? timeNow(pass) });
}

/**
 * Only the replica with the agent's stream records this: two replicas must not overwrite each
 * other.
 */
export function waitForAgent(pass: PassView, run: Run): void {
  if (pass.snapshot.sessionElsewhere) return;
  waitFor(pass, run, 'agent', 'the agent of the rack is not connected');
}

export function stopWaiting(pass: PassView, run: Run): void {
  if (run.phase !== RunPhase.WAITING) return;
  giveBack(pass, run);
  run.phase = RunPhase.RUNNING;
  delete run.waiting;
}

/** Whether a wait is not the run's own: for a person, a brake, a slot. */
const isForOthers: { readonly [W in HostWait]: boolean } = {
  hold: true,
  wait: true,
  person: true,
  freeze: true,
  capacity: true,
  image: true,
  wipeBudget: true,
  restored: true,
  agent: false,
  runner: false,
  bmc: false,
  registry: false,
  conflict: false,
  retry: false,
  webhook: false,
};

/** Whether the elapsed time is not the run's own: its deadline does not run then (R5). */
export function waitsForOthers({ waiting }: RunView): boolean {
  const wait = hostWaitOf(waiting);
  return wait !== undefined && isForOthers[wait];
}

/** The end of such a wait: the deadline moves by its duration. */
function giveBack({ snapshot }: PassView, run: Run): void {
  const since = run.waiting?.since;
  if (!waitsForOthers(run) || since === undefined || run.deadline === undefined) return;
  const waitedMs = Math.max(0, snapshot.nowMs - timestampMs(since));
  run.deadline = timestampFromMs(timestampMs(run.deadline) + waitedMs);
}

/** "clean 3": the name of a run for people and in errors. */
export function runName({ kind, number }: RunView): string {
  return `${runKindName(kind)} ${number}`;
}

/**
 * "workflow 5 (burn-in/runs/2)": the name of a run in the timeline; its record may be deleted
 * later.
 */
export function runNameForEver(run: RunView): string {
  const [, own] = run.workflowRun.split('/workflows/');
  return own === undefined ? runName(run) : `${runName(run)} (${own})`;
}

const runKindNames: Readonly<Record<number, string>> = {
  1: 'verify',
  2: 'inspect',
  3: 'clean',
  4: 'delete',
  5: 'power',
  6: 'provision',
  7: 'reimage',
  8: 'service',
  9: 'workflow',
  10: 'release',
  11: 'rescue',
  12: 'adopt',
};

export function runKindName(kind: number): string {
  return runKindNames[kind] ?? `run kind ${kind}`;
}

export function isStepOver(step: StepView): boolean {
  switch (step.state) {
    case StepState.SUCCEEDED:
    case StepState.FAILED:
    case StepState.SKIPPED:
      return true;
    default:
      return false;
  }
}

/** The host has been used since: a failed clean cannot be resumed. */
export function forgetFailure({ status, record }: Pass): void {
  delete status.afterFailure;
  delete record.failedRun;
}

/** The last inventory, also if it came in this pass. */
export function inventoryNow({ effects, snapshot }: PassView): Inventory | undefined {
  const facts = effects.flatMap((effect) =>
    effect.kind === 'facts' && effect.facts.inventory !== undefined ? [effect.facts.inventory] : [],
  );
  return facts.at(-1) ?? snapshot.facts.inventory;
}

/** The present disks of the host, by identities that do not depend on their slots. */
export function identitiesNow(pass: PassView): ReadonlySet<string> {
  const { devices = [] } = inventoryNow(pass) ?? {};
  return new Set(devices.map((device) => deviceIdentity(device)));
}

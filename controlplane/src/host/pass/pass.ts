/**
 * One pass of the host machine: the draft that a step works on, and small words to read and change
 * it with. The draft is a private copy, so that `step` stays pure seen from outside.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { deviceIdentity } from '@rackwright/erasure';
import {
  type agent,
  type Host,
  type HostSpec,
  type HostStatus,
  type Inventory,
  type Run,
  RunPhase,
  type RunStep,
  StepState,
  store,
  WaitingSchema,
} from '@rackwright/messages';
import { copyOf } from '../../records/index.ts';
import { cut, messageMax } from './step-failure.ts';
import type { HostContext, HostEffect } from './types.ts';
import type { HostWait } from './waiting.ts';

/** Who acts, or asks, where neither a person nor a pool does. */
export const system = 'system';

/** Who asks for what leads a host to its goal. */
export const goal = 'goal';

export interface Pass {
  readonly record: store.HostRecord;
  readonly host: Host;
  /** Always the host's present one, also after an update in the same pass. */
  readonly spec: HostSpec;
  readonly status: HostStatus;
  readonly context: HostContext;
  readonly effects: HostEffect[];
  /** The run that ended in this pass and has not landed yet. */
  ended: Run | undefined;
  /** The runner that an inspection has left up in this pass, and the name of that inspection. */
  leftUp: { readonly runner: agent.RunnerReady; readonly by: string } | undefined;
  /** Runs that ended in this pass and are the host's run no more. */
  readonly displaced: Run[];
  /** The number of the run that had ended before this pass; 0: none had. */
  readonly endedBefore: bigint;
  /** Set when the record is to be removed. */
  removed: boolean;
  /** Whether this pass has said what caused it. */
  caused: boolean;
}

/** Throws when the record lacks what every host has: then the store holds something else. */
export function beginPass(record: store.HostRecord, context: HostContext): Pass {
  const draft = copyOf(record);
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
    context,
    effects: [],
    ended: undefined,
    leftUp: undefined,
    displaced: [],
    endedBefore: status.run?.phase === RunPhase.ENDED ? status.run.number : 0n,
    removed: false,
    caused: false,
  };
}

export function now(pass: Pass): Timestamp {
  return timestampFromMs(pass.context.nowMs);
}

export function later(pass: Pass, delayMs: number): Timestamp {
  return timestampFromMs(pass.context.nowMs + delayMs);
}

/** True when `time` is set and not in the future. */
export function hasPassed(pass: Pass, time: Timestamp | undefined): boolean {
  return time !== undefined && timestampMs(time) <= pass.context.nowMs;
}

/** The run that holds the host, or undefined. */
export function activeRun(status: HostStatus): Run | undefined {
  return status.run !== undefined && status.run.phase !== RunPhase.ENDED ? status.run : undefined;
}

/** The step under way or next; undefined when all have ended. */
export function currentStep(run: Run): RunStep | undefined {
  return run.steps[run.currentStep];
}

/**
 * Says who and what caused this revision. Of several causes in one pass the first says who, and by
 * which request or operation; what happened is told one after the other.
 */
export function causedBy(pass: Pass, actor: string, cause: string, requestId = ''): void {
  const first = pass.caused ? pass.record.change : undefined;
  pass.caused = true;
  pass.record.change = create(store.ChangeSchema, {
    actor: first?.actor ?? actor,
    cause: first === undefined ? cause : `${first.cause}; ${cause}`,
    requestId: first?.requestId || requestId,
    operationId: first?.operationId || (pass.record.operation?.operation?.id ?? ''),
    time: now(pass),
  });
}

/**
 * The run cannot go on before something comes; the moment it began to wait is kept. `began`: when
 * that was, where a better answer is known.
 */
export function waitFor(
  pass: Pass,
  run: Run,
  reason: HostWait,
  message: string,
  began?: Timestamp,
): void {
  if (run.waiting?.reason !== reason) giveBack(pass, run);
  const since = began ?? (run.waiting?.reason === reason ? run.waiting.since : undefined);
  run.phase = RunPhase.WAITING;
  const said = cut(message, messageMax);
  run.waiting = create(WaitingSchema, { reason, message: said, since: since ?? now(pass) });
}

/**
 * The replica that holds the agent's stream says so itself: two must not write against each other.
 */
export function waitForAgent(pass: Pass, run: Run): void {
  if (pass.context.sessionElsewhere) return;
  waitFor(pass, run, 'agent', 'the agent of the rack is not connected');
}

export function stopWaiting(pass: Pass, run: Run): void {
  if (run.phase !== RunPhase.WAITING) return;
  giveBack(pass, run);
  run.phase = RunPhase.RUNNING;
  delete run.waiting;
}

/** What a run waits for that is not its own: a person, a brake, its turn. */
const notItsOwn: ReadonlySet<string> = new Set<HostWait>([
  'hold',
  'wait',
  'person',
  'freeze',
  'capacity',
  'image',
  'wipeBudget',
  'restored',
]);

/** Whether the time that passes is not the run's: its deadline does not count meanwhile (R5). */
export function waitsForOthers({ waiting }: Run): boolean {
  return waiting !== undefined && notItsOwn.has(waiting.reason);
}

/** The end of such a wait: the deadline moves by what it took. */
function giveBack({ context }: Pass, run: Run): void {
  const since = run.waiting?.since;
  if (!waitsForOthers(run) || since === undefined || run.deadline === undefined) return;
  const waitedMs = Math.max(0, context.nowMs - timestampMs(since));
  run.deadline = timestampFromMs(timestampMs(run.deadline) + waitedMs);
}

/** "clean 3", the way people and errors name a run. */
export function runName({ kind, number }: Run): string {
  return `${runKindName(kind)} ${number}`;
}

/** "workflow 5 (burn-in/runs/2)": the way the timeline names a run, which may be swept later. */
export function runNameForEver(run: Run): string {
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

export function isStepOver(step: RunStep): boolean {
  switch (step.state) {
    case StepState.SUCCEEDED:
    case StepState.FAILED:
    case StepState.SKIPPED:
      return true;
    default:
      return false;
  }
}

/** The host has been used since: nothing of a clean that failed can be gone on with. */
export function forgetFailure({ status, record }: Pass): void {
  delete status.afterFailure;
  delete record.failedRun;
}

/** The last inventory, also one that has come in this very pass. */
export function inventoryNow({ effects, context }: Pass): Inventory | undefined {
  const told = effects.flatMap((effect) =>
    effect.kind === 'facts' && effect.facts.inventory !== undefined ? [effect.facts.inventory] : [],
  );
  return told.at(-1) ?? context.facts.inventory;
}

/** The disks that the host has now, by what names a disk wherever it is plugged in. */
export function identitiesNow(pass: Pass): ReadonlySet<string> {
  const { devices = [] } = inventoryNow(pass) ?? {};
  return new Set(devices.map((device) => deviceIdentity(device)));
}

/**
 * One turn of the host machine: the draft that a step works on, and small words to read and change
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

export interface Turn {
  readonly record: store.HostRecord;
  readonly host: Host;
  /** Always the host's present one, also after an update in the same turn. */
  readonly spec: HostSpec;
  readonly status: HostStatus;
  readonly context: HostContext;
  readonly effects: HostEffect[];
  /** The run that ended in this turn and has not landed yet. */
  ended: Run | undefined;
  /** The runner that an inspection has left up in this turn, and the name of that inspection. */
  leftUp: { readonly runner: agent.RunnerReady; readonly by: string } | undefined;
  /** Runs that ended in this turn and are the host's run no more. */
  readonly displaced: Run[];
  /** The number of the run that had ended before this turn; 0: none had. */
  readonly endedBefore: bigint;
  /** Set when the record is to be removed. */
  removed: boolean;
  /** Whether this turn has said what caused it. */
  caused: boolean;
}

/** Throws when the record lacks what every host has: then the store holds something else. */
export function beginTurn(record: store.HostRecord, context: HostContext): Turn {
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

export function now(turn: Turn): Timestamp {
  return timestampFromMs(turn.context.nowMs);
}

export function later(turn: Turn, delayMs: number): Timestamp {
  return timestampFromMs(turn.context.nowMs + delayMs);
}

/** True when `time` is set and not in the future. */
export function hasPassed(turn: Turn, time: Timestamp | undefined): boolean {
  return time !== undefined && timestampMs(time) <= turn.context.nowMs;
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
 * Says who and what caused this revision. Of several causes in one turn the first says who, and by
 * which request or operation; what happened is told one after the other.
 */
export function causedBy(turn: Turn, actor: string, cause: string, requestId = ''): void {
  const first = turn.caused ? turn.record.change : undefined;
  turn.caused = true;
  turn.record.change = create(store.ChangeSchema, {
    actor: first?.actor ?? actor,
    cause: first === undefined ? cause : `${first.cause}; ${cause}`,
    requestId: first?.requestId || requestId,
    operationId: first?.operationId || (turn.record.operation?.operation?.id ?? ''),
    time: now(turn),
  });
}

/**
 * The run cannot go on before something comes; the moment it began to wait is kept. `began`: when
 * that was, where a better answer is known.
 */
export function waitFor(
  turn: Turn,
  run: Run,
  reason: HostWait,
  message: string,
  began?: Timestamp,
): void {
  if (run.waiting?.reason !== reason) giveBack(turn, run);
  const since = began ?? (run.waiting?.reason === reason ? run.waiting.since : undefined);
  run.phase = RunPhase.WAITING;
  const said = cut(message, messageMax);
  run.waiting = create(WaitingSchema, { reason, message: said, since: since ?? now(turn) });
}

/**
 * The replica that holds the agent's stream says so itself: two must not write against each other.
 */
export function waitForAgent(turn: Turn, run: Run): void {
  if (turn.context.sessionElsewhere) return;
  waitFor(turn, run, 'agent', 'the agent of the rack is not connected');
}

export function stopWaiting(turn: Turn, run: Run): void {
  if (run.phase !== RunPhase.WAITING) return;
  giveBack(turn, run);
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
function giveBack({ context }: Turn, run: Run): void {
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
export function forgetFailure({ status, record }: Turn): void {
  delete status.afterFailure;
  delete record.failedRun;
}

/** The last inventory, also one that has come in this very turn. */
export function inventoryNow({ effects, context }: Turn): Inventory | undefined {
  const told = effects.flatMap((effect) =>
    effect.kind === 'facts' && effect.facts.inventory !== undefined ? [effect.facts.inventory] : [],
  );
  return told.at(-1) ?? context.facts.inventory;
}

/** The disks that the host has now, by what names a disk wherever it is plugged in. */
export function identitiesNow(turn: Turn): ReadonlySet<string> {
  const { devices = [] } = inventoryNow(turn) ?? {};
  return new Set(devices.map((device) => deviceIdentity(device)));
}

/**
 * A power command that waits for the end of a verify, or for a hold to be lifted. The conditions at
 * its acceptance may no longer hold when it begins, so it is checked again. Pure.
 *
 * Must not: decide when it begins (`machine.ts`).
 */
import { create } from '@bufbuild/protobuf';
import {
  type Actor,
  actors,
  HostState,
  type HostStatus,
  isBySystem,
  isSystem,
  RunKind,
  RunOutcome,
  RunPhase,
  readActor,
  store,
} from '@rackwright/messages';
import { refusalOf } from '../life/refusal.ts';
import { type Pass, type PassView, recordCause } from '../pass/pass.ts';
import type { DeepReadonly } from '../pass/read-only.ts';
import { engineSteps, isBootStep, switchesOn } from '../pass/step-names.ts';
import type { HostRequest, Refusal } from '../pass/types.ts';
import { startRun } from '../run/engine.ts';

type PowerRequest = Extract<HostRequest, { kind: 'powerOn' | 'powerOff' | 'powerReset' }>;

const stepsOf: Readonly<Record<PowerRequest['kind'], readonly string[]>> = {
  powerOff: [engineSteps.off],
  powerOn: [engineSteps.on],
  powerReset: [engineSteps.off, engineSteps.on],
};

/** Starts as soon as no run holds the host: at once, or after the verify in progress. */
export function keepPower(pass: Pass, request: PowerRequest, by: Actor): void {
  // A host in the runner is already on, and is to boot its disk.
  const isReset = request.kind === 'powerOn' && staysInRunner(pass.record);
  const kind = isReset ? 'powerReset' : request.kind;
  const shutdown = request.kind === 'powerOn' ? undefined : request.shutdown;
  pass.record.pendingPower = create(store.PendingPowerSchema, {
    steps: [...stepsOf[kind]],
    by,
    bootOldDiskReason: request.kind === 'powerOff' ? '' : request.bootOldDiskReason,
    ...(shutdown === undefined ? {} : { shutdown }),
  });
}

/** A person's permission to boot the old data of a disk. */
interface OldDiskPermission {
  /** For people. */
  readonly reason: string;
}

/** The request's permission; undefined: it gives none. The wire has only the reason. */
export function oldDiskPermission(request: PowerRequest): OldDiskPermission | undefined {
  if (request.kind === 'powerOff' || request.bootOldDiskReason === '') return undefined;
  return { reason: request.bootOldDiskReason };
}

/** Old data must not be booted unnoticed: a dirty host boots its disk only for a reason. */
export function refusalOfOldDisk(
  { status, host }: PassView,
  request: PowerRequest,
): Refusal | undefined {
  if (request.kind === 'powerOff' || oldDiskPermission(request) !== undefined) return undefined;
  if (status.state !== HostState.MANAGEABLE || !status.dirty) return undefined;
  const message =
    `${host.name} may hold data of its last use, and would boot it; ` +
    'clean it first, boot it into rescue (the runner, which touches nothing), ' +
    'or give boot_old_disk_reason';
  return { code: 'failedPrecondition', reason: 'oldData', message };
}

/** A command that restores the power after a failed run. */
function isOwn(pending: { readonly by: string } | undefined): boolean {
  return pending !== undefined && isBySystem(pending.by);
}

/** The state of the power that a failed run has to restore. */
export type PowerBack = 'done' | 'owed' | 'failed';

/** `done` also where no run has to restore it. */
export function powerBack({ host, pendingPower }: DeepReadonly<store.HostRecord>): PowerBack {
  if (isOwn(pendingPower)) return 'owed';
  const run = host?.status?.run;
  if (host?.status !== undefined && isLeftInRunner(host.status)) return 'failed';
  if (run?.kind !== RunKind.POWER || !isBySystem(run.requestedBy)) return 'done';
  if (run.phase !== RunPhase.ENDED) return 'owed';
  return run.outcome === RunOutcome.SUCCEEDED ? 'done' : 'failed';
}

/** Its restart is pending, or was dropped for a person who handled the host since. */
function staysInRunner({ host, pendingPower }: DeepReadonly<store.HostRecord>): boolean {
  if (isOwn(pendingPower) && pendingPower?.steps.includes(engineSteps.on)) return true;
  return host?.status !== undefined && isLeftInRunner(host.status);
}

/** In use, its last run failed in the runner, and no run has booted its image since. */
function isLeftInRunner({ state, run, poweredOn }: DeepReadonly<HostStatus>): boolean {
  if (state !== HostState.PROVISIONED || poweredOn === false) return false;
  if (run?.phase !== RunPhase.ENDED || run.outcome === RunOutcome.SUCCEEDED) return false;
  const last = run.steps.findLast(({ name, attempt }) => {
    return attempt > 0 && (name === engineSteps.off || switchesOn(name));
  });
  return last !== undefined && isBootStep(last.name);
}

/** Begins the waiting command, or drops it when it would be refused now. True: it began. */
export function startPower(pass: Pass, pending: store.PendingPower): boolean {
  const { steps, shutdown } = pending;
  const requester = readActor(pending.by);
  const request = requestOf(pending);
  const refusal = isSystem(requester)
    ? undefined
    : (refusalOf(pass, request, { actor: requester }) ?? refusalOfOldDisk(pass, request));
  if (refusal !== undefined) {
    dropPower(pass, refusal.message);
    return false;
  }
  delete pass.record.pendingPower;
  const listed = steps.map((step) => ({ step, arguments: {} }));
  startRun(pass, RunKind.POWER, requester, listed, shutdown);
  return true;
}

function requestOf({ steps, bootOldDiskReason }: store.PendingPower): PowerRequest {
  if (!steps.includes(engineSteps.on)) return { kind: 'powerOff' };
  return { kind: steps.length > 1 ? 'powerReset' : 'powerOn', bootOldDiskReason };
}

/** The timeline records why an accepted command was dropped. */
export function dropPower(pass: Pass, why: string): void {
  const { pendingPower } = pass.record;
  if (pendingPower === undefined) return;
  delete pass.record.pendingPower;
  const stepsText = `${pendingPower.steps.join(', ')} for ${pendingPower.by}`;
  recordCause(pass, actors.system, `dropped before it began (${stepsText}): ${why}`);
}

/** The restored power is for a host that nobody has handled since: otherwise its holder decides. */
export function dropSystemPower(pass: Pass, why: string): void {
  if (isOwn(pass.record.pendingPower)) dropPower(pass, why);
}

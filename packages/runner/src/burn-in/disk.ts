/**
 * The step `burnin.disk`: writes a pattern over a share of every disk of the plan, and reads it
 * back. It destroys, so it has the guards of erasures.
 *
 * Invariants:
 * 1. Nothing is written before every guard has passed: this is the right machine (guard 0), and the
 *    devices are exactly those of the order, each held before the first write to any.
 * 2. Nothing is dismantled or written before the agent has said that it may begin, for each device
 *    again (R11).
 * 3. Everything that was written is read back, at each end of the writing, unless the disk is lost.
 */
import { deviceIdentity, type HealthFacts } from '@rackwright/erasure';
import { BurnInKind, burnInDiskStep, cleanSteps } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { FailedAttempt } from '@rackwright/results';
import { type HeldTarget, holdTargets, releaseTargets } from '../erase/held-targets.ts';
import { seedProblem } from '../erase/on-devices.ts';
import { prepareDevices } from '../erase/prepare.ts';
import { Slots } from '../erase/slots.ts';
import { findTargets, type Target } from '../erase/targets.ts';
import type { DeviceListing } from '../machine/block-devices.ts';
import { guardIdentity } from '../steps/guard.ts';
import type { Step, StepContext, StepResult } from '../steps/step.ts';
import { readNumbers } from './arguments.ts';
import { type DiskFindings, type DiskLimits, workDisk } from './disk-work.ts';
import { TemperatureMonitor } from './heat.ts';
import { type BurnInPartInit, endOf, failedResult, perSecond, stateText } from './result.ts';

/** Disks at work at the same time: each has transfers of its own in memory. */
const disksAtOnceMax = 16;

export const burnInDisk: Step = {
  description: cleanSteps[burnInDiskStep],
  run: async (context) => {
    const { order, devices } = context;
    if (order.mode !== agent.StepMode.RUN) {
      return failedResult('invalidArgument', 'mode must be RUN: it always begins anew');
    }
    const badSeed = seedProblem('challenge_seed', order.challengeSeed);
    if (badSeed !== undefined) return failedResult('invalidArgument', badSeed);
    const read = readNumbers(cleanSteps[burnInDiskStep], order.arguments);
    if (read.kind === 'bad') return failedResult('invalidArgument', read.problem);
    const guard = await guardIdentity(context);
    if (guard.kind === 'failed') return guard.end;
    const may = await context.requestBegin();
    if (may.kind === 'aborted') return failedResult('cancelled', 'cancelled before it began');
    if (may.kind === 'over') return failedResult('cancelled', `not begun: ${may.reason}`);
    const prepared = await preparedAsPlanned(context);
    if (prepared.kind === 'failed') return prepared.end;
    const found = findTargets(order.devices, prepared.listing, 'overwrite');
    if (found.kind === 'changed')
      return failedResult('deviceChanged', found.differences.join('; '));
    if (found.kind === 'none') return failedResult('noDevices', 'the order names no disk to work');
    const heldTargets = await holdTargets(devices, found.targets, 'write');
    try {
      return (
        notHeld(heldTargets) ?? (await workAll(context, heldTargets.filter(isHeld), read.value))
      );
    } finally {
      await releaseTargets(heldTargets);
    }
  },
};

/** The devices after their preparation, which only begins when they are those of the order. */
async function preparedAsPlanned(
  context: StepContext,
): Promise<
  | { readonly kind: 'ready'; readonly listing: DeviceListing }
  | { readonly kind: 'failed'; readonly end: StepResult }
> {
  const present = await context.devices.list();
  const planned = findTargets(context.order.devices, present, 'overwrite');
  if (planned.kind === 'changed') {
    const end = failedResult('deviceChanged', planned.differences.join('; '));
    return { kind: 'failed', end };
  }
  const prepared = await prepareDevices(context, present, 'write');
  if (prepared.kind === 'ready') return prepared;
  return { kind: 'failed', end: failedResult(prepared.type, prepared.message) };
}

type OpenTarget = HeldTarget & { readonly kind: 'held' };

function isHeld(heldTarget: HeldTarget): heldTarget is OpenTarget {
  return heldTarget.kind === 'held';
}

/** Why nothing begins: a disk that cannot be held. */
function notHeld(heldTargets: readonly HeldTarget[]): StepResult | undefined {
  const problems = heldTargets.flatMap((heldTarget) => {
    if (heldTarget.kind === 'held') return [];
    const reason = heldTarget.kind === 'refused' ? heldTarget.reason : heldTarget.error.message;
    return [`${heldTarget.target.identity} (${heldTarget.target.device.name}): ${reason}`];
  });
  if (problems.length === 0) return undefined;
  const refused = heldTargets.some(({ kind }) => kind === 'refused');
  return failedResult(refused ? 'deviceRefused' : 'ioError', problems.join('; '));
}

async function workAll(
  context: StepContext,
  heldTargets: readonly OpenTarget[],
  numbers: Readonly<Record<string, number>>,
): Promise<StepResult> {
  const { duration = 0, share = 0, rate_min: rateMin = 0 } = numbers;
  const startMs = context.clock.nowMs();
  const heat = new TemperatureMonitor(context, context.machine.burnIn, numbers['celsius_max'] ?? 0);
  const limits: DiskLimits = { share, writeMsMax: (duration * 1_000) / 2, heat };
  const broken = new AbortController();
  const inner = { ...context, signal: AbortSignal.any([context.signal, broken.signal]) };
  const slots = new Slots(disksAtOnceMax);
  const progress = new Progress(context, heldTargets.length, heat);
  const outcomes = await Promise.all(
    heldTargets.map(async ({ target, held }, index) => {
      try {
        return await slots.run(() =>
          workDisk(inner, { target, held, limits, tell: (done) => progress.tell(index, done) }),
        );
      } catch (error) {
        // No failure of a disk: nothing writes any more when it is thrown on.
        broken.abort(error);
        return undefined;
      }
    }),
  );
  if (broken.signal.aborted) throw broken.signal.reason;
  const notBegun = outcomes.find((each) => each?.kind === 'notBegun');
  if (notBegun?.kind === 'notBegun' && !outcomes.some((each) => (each?.found.errors ?? 0) > 0)) {
    return failedResult('cancelled', `not begun: ${notBegun.reason}`);
  }
  const after = await context.devices.list();
  const leastRate = context.signal.aborted ? 0 : rateMin * 1_000_000;
  const judged = heldTargets.flatMap(({ target }, index) => {
    const work = outcomes[index]?.found;
    return work === undefined ? [] : [judge(target, work, after, { heat, leastRate })];
  });
  return endOf(context, {
    ...{ kind: BurnInKind.DISK, startMs, heat, parts: judged.map(({ part }) => part) },
    problems: judged.flatMap(({ problems }) => problems),
    ...typeOf(judged.map(({ loss }) => loss)),
  });
}

/** A lost disk outranks findings on others: a reader looks for it first. */
function typeOf(losses: readonly DiskFindings['loss'][]): {
  readonly type?: FailedAttempt['type'];
} {
  if (losses.includes('changed')) return { type: 'deviceChanged' };
  return losses.includes('vanished') ? { type: 'deviceVanished' } : {};
}

interface JudgedDisk {
  readonly part: BurnInPartInit;
  /** None: the disk passes. */
  readonly problems: readonly string[];
  readonly loss: DiskFindings['loss'];
}

function judge(
  { identity, device }: Target,
  work: DiskFindings,
  after: DeviceListing,
  { heat, leastRate }: { readonly heat: TemperatureMonitor; readonly leastRate: number },
): JudgedDisk {
  const now = after.devices.find((each) => deviceIdentity(each) === identity);
  heat.note(now?.health?.temperatureCelsius);
  const { wrote, read, errors } = work;
  const loss = work.loss ?? (now === undefined ? ('vanished' as const) : undefined);
  const rates = [perSecond(wrote.bytes, wrote.ms), perSecond(read.bytes, read.ms)] as const;
  const findings = [
    ...(work.first === undefined ? [] : [work.first.text]),
    ...(loss === 'vanished' && work.first === undefined ? ['it is gone'] : []),
    ...worse(device.health, now?.health),
    ...(Number(rates[0]) < leastRate ? [`writes ${rates[0] / 1_000_000n} MB/s`] : []),
    ...(Number(rates[1]) < leastRate ? [`reads ${rates[1] / 1_000_000n} MB/s`] : []),
  ];
  const finding = findings.join(', ');
  const part = {
    ...{ name: identity, bytes: BigInt(wrote.bytes), passes: 1n, errors: BigInt(errors), finding },
    ...{ writtenPerSecond: rates[0], readPerSecond: rates[1] },
  };
  const problems = findings.length === 0 ? [] : [`disk ${identity} (${device.name}): ${finding}`];
  return { part, problems, loss };
}

/** A disk's health values that got worse during the burn-in. */
export function worse(before: HealthFacts | undefined, after: HealthFacts | undefined): string[] {
  const grown = (
    [
      ['reallocatedSectors', 'reallocated sectors'],
      ['pendingSectors', 'pending sectors'],
      ['mediaErrors', 'media errors'],
    ] as const
  ).flatMap(([field, text]) => {
    const [was, is] = [before?.[field], after?.[field]];
    return was !== undefined && is !== undefined && is > was ? [`${was} → ${is} ${text}`] : [];
  });
  return after?.passed === false ? [...grown, 'it says that it fails'] : grown;
}

/** Progress of all disks together, reported with the last one's activity. */
class Progress {
  readonly #context: StepContext;
  readonly #heat: TemperatureMonitor;
  readonly #fractions: number[];
  readonly #errors: number[];

  constructor(context: StepContext, disks: number, heat: TemperatureMonitor) {
    this.#context = context;
    this.#heat = heat;
    this.#fractions = Array.from({ length: disks }, () => 0);
    this.#errors = Array.from({ length: disks }, () => 0);
  }

  tell(index: number, done: { fraction: number; errors: number; text: string }): void {
    this.#fractions[index] = done.fraction;
    this.#errors[index] = done.errors;
    const sum = this.#fractions.reduce((all, each) => all + each, 0);
    const errors = this.#errors.reduce((all, each) => all + each, 0);
    const percent = Math.min(99, Math.floor((100 * sum) / this.#fractions.length));
    this.#context.reportProgress(percent, `${done.text}, ${stateText(errors, this.#heat)}`);
  }
}

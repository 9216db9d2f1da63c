/** A clean of such a machine: plan, erasure, power cycle, reading again; and its outcome. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  decideScope,
  methodToWire,
  type ScopeDecision,
  signGaps,
  storageDeviceOf,
  type Verification,
  verificationToWire,
} from '@rackwright/erasure';
import { BmcIdentitySchema, SystemIdentitySchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { Clock } from '@rackwright/platform';
import { quietLog } from '@rackwright/platform/testing';
import { eraseDevices } from '../erase/step.ts';
import { verifyErased } from '../erase/verify-erased.ts';
import { switchOffFileDisks } from '../linux/file-disk-undo.ts';
import { type DiskMemory, fileDisks } from '../linux/file-disks.ts';
import type { BlockDevices } from '../machine/block-devices.ts';
import type { Machine } from '../machine/machine.ts';
import type { Step, StepContext, StepResult } from '../steps/step.ts';
import { devicesWithout, type LabCheck, stepWithout } from '../steps/without-checks.ts';

const guid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
/** From power off to the next boot of the runner, milliseconds. */
const powerCycleMs = 300_000;

/** The method of the clean. */
export interface Site {
  readonly seed: Uint8Array;
  readonly verification: Verification;
  /** The delay until a discarded or formatted device is read again; 0: it is not. */
  readonly rereadDelayMs: number;
  /** False: nobody reads again after the power cycle. */
  readonly readsAfterPowerCycle: boolean;
  /** The wrapper between the steps and the disks. */
  readonly wrap: (devices: BlockDevices) => BlockDevices;
  readonly change: Partial<StepContext>;
  /** Checks that are taken away as the laboratory takes them away. */
  readonly without: ReadonlySet<LabCheck>;
}

export function siteOf(seed: number): Site {
  return {
    seed: new Uint8Array(32).fill(seed % 251).fill(Math.floor(seed / 251) % 251, 16),
    verification: { level: 'full' },
    rereadDelayMs: 120_000,
    readsAfterPowerCycle: true,
    wrap: (devices) => devices,
    change: {},
    without: new Set(),
  };
}

export interface CleanEnd {
  /** Serials of the disks that got a certificate that stands. */
  readonly certified: readonly string[];
  /** Serials of the disks that were in the plan with a method. */
  readonly planned: readonly string[];
  /** Why it ended without certificates; empty when it did not. */
  readonly text: string;
  /** The queries and operations of the disks. */
  readonly memory: DiskMemory;
  /** The reported serials of the devices that are there at the end. */
  readonly present: readonly string[];
}

/** Time that jumps to the next awaited moment. */
function hastyClock(): Clock & { pass(ms: number): void } {
  let nowMs = 1_700_000_000_000;
  return {
    nowMs: () => nowMs,
    suspendAwareMs: () => nowMs,
    after: (delayMs, callback) => {
      const immediate = setImmediate(() => {
        nowMs += delayMs;
        callback();
      });
      return () => clearImmediate(immediate);
    },
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

/** Cleans the machine in `folder` as the control plane orders it. */
export async function clean(folder: string, site: Site): Promise<CleanEnd> {
  const clock = hastyClock();
  const memory: DiskMemory = new Map();
  const boot = (): BlockDevices =>
    devicesWithout(site.wrap(fileDisks(folder, clock, memory)), site.without);
  const listing = await boot().list();
  const decisions = decideScope(listing.devices).filter(({ kind }) => kind !== 'listed');
  const refusals = [
    ...decisions.flatMap((each) =>
      each.kind === 'refused' ? [`${each.device.serial} ${each.reason}`] : [],
    ),
    ...signGaps(listing.signs, listing.devices).map(({ sign, reason }) => `${sign.name} ${reason}`),
  ];
  const planned = refusals.length > 0 ? [] : decisions.map(({ device }) => device.serial);
  const text = refusals.join('; ') || (await cleanPlanned(boot, clock, folder, decisions, site));
  const after = await fileDisks(folder, clock, memory).list();
  const present = after.devices.map(({ serial }) => serial);
  return { certified: text === '' ? planned : [], planned, text, memory, present };
}

/** Answers why it is not clean; empty: it is. */
async function cleanPlanned(
  boot: () => BlockDevices,
  clock: ReturnType<typeof hastyClock>,
  folder: string,
  decisions: readonly ScopeDecision[],
  site: Site,
): Promise<string> {
  const plans = decisions.map((decision) => ({
    device: storageDeviceOf(decision.device),
    ...(decision.kind === 'inScope' ? { method: methodToWire(decision.method) } : {}),
    verification: verificationToWire(site.verification),
    ...(site.rereadDelayMs > 0 && decision.kind === 'inScope' && decision.method !== 'overwrite'
      ? { rereadDelay: durationFromMs(site.rereadDelayMs) }
      : {}),
  }));
  const ordered = { expectedIdentity: create(BmcIdentitySchema, { guid }), devices: plans };
  const order = create(agent.RunStepSchema, {
    step: eraseDevices.description.name ?? '',
    mode: agent.StepMode.RUN,
    challengeSeed: site.seed,
    ...ordered,
  });
  const erased = await runStep(eraseDevices, order, boot(), clock, site);
  clock.pass(powerCycleMs);
  switchOffFileDisks(folder, clock.nowMs());
  if (erased.result.kind !== 'complete') return textOf(erased);
  if (!site.readsAfterPowerCycle) return '';
  const again = create(agent.RunStepSchema, {
    step: verifyErased.description.name ?? '',
    mode: agent.StepMode.CHECK,
    challengeSeed: site.seed.map((byte) => byte ^ 0xff),
    ...ordered,
    devices: plans.map((plan) => ({ ...plan, erasedSeed: site.seed, certificate: 'c' })),
  });
  const proved = await runStep(verifyErased, again, boot(), clock, site);
  return proved.result.kind === 'complete' ? '' : textOf(proved);
}

async function runStep(
  step: Step,
  order: agent.RunStep,
  devices: BlockDevices,
  clock: Clock,
  { change, without }: Site,
): Promise<StepResult> {
  return await stepWithout(step, without).run({
    operationId: 'u/1/1/1',
    order,
    devices,
    machine,
    clock,
    log: quietLog,
    crashPoint: () => {},
    signal: new AbortController().signal,
    reportProgress: () => {},
    recordStage: async () => {},
    requestBegin: async () => ({ kind: 'granted' }),
    verdictSwitchedOff: false,
    reportOutput: () => {},
    hostName: 'h',
    imageEndpoint: '',
    secretEnvironment: {},
    runnerVersion: '0.1.0',
    ...change,
  });
}

function textOf({ result }: StepResult): string {
  return 'message' in result ? result.message : result.kind;
}

const machine: Machine = {
  identity: async () => create(SystemIdentitySchema, { uuid: guid, bmcGuid: guid }),
  hardware: async () => ({ cpus: [], memoryBytes: 0n, interfaces: [] }),
  bmcAddress: async () => '',
  bootId: async () => 'boot',
  uptimeMs: async () => 0,
  toolVersions: async () => ({}),
};

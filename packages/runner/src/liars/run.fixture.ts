/** A clean of such a machine: plan, erasure, power cycle, reading again; and what it came to. */
import { create } from '@bufbuild/protobuf';
import { agent, BmcIdentitySchema, SystemIdentitySchema } from '@rackwright/api';
import { decideScope, methodToWire, signGaps, storageDeviceOf } from '@rackwright/erasure';
import type { Clock } from '@rackwright/platform';
import { eraseDevices } from '../erase/step.ts';
import { switchOffFileDisks } from '../linux/file-disk-medium.ts';
import { type DiskMemory, fileDisks } from '../linux/file-disks.ts';
import type { Machine } from '../machine.ts';
import { formatProgress } from '../progress-text.ts';
import type { StepContext, StepEnd } from '../step.ts';
import { silentLog } from '../test-agent.ts';

const guid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const seed = new Uint8Array(32).fill(7);
/** From power off to the next boot of the runner, milliseconds. */
const powerCycleMs = 300_000;

export interface CleanEnd {
  /** Serials of the disks that got a certificate that stands. */
  readonly certified: readonly string[];
  /** Serials of the disks that were in the plan with a method. */
  readonly planned: readonly string[];
  /** Why it ended without certificates; empty when it did not. */
  readonly words: string;
}

/** Time that jumps to whatever is waited for. */
export function hastyClock(startMs = 1_700_000_000_000): Clock & { pass(ms: number): void } {
  let nowMs = startMs;
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
export async function clean(folder: string, change: Partial<StepContext> = {}): Promise<CleanEnd> {
  const clock = hastyClock();
  const memory: DiskMemory = new Map();
  const listing = await fileDisks(folder, clock, memory).list();
  const decisions = decideScope(listing.devices).filter(({ kind }) => kind !== 'listed');
  const planned = decisions.flatMap((decision) =>
    decision.kind === 'inScope' ? [decision.device.serial] : [],
  );
  const refusals = [
    ...decisions.flatMap((decision) =>
      decision.kind === 'refused' ? [`${decision.device.serial} ${decision.reason}`] : [],
    ),
    ...signGaps(listing.signs, listing.devices).map(({ sign, reason }) => `${sign.name} ${reason}`),
  ];
  if (refusals.length > 0) return { certified: [], planned: [], words: refusals.join('; ') };
  const devices = decisions.map((decision) => ({
    device: storageDeviceOf(decision.device),
    ...(decision.kind === 'inScope' ? { method: methodToWire(decision.method) } : {}),
  }));
  const order = create(agent.RunStepSchema, {
    step: 'deploy.erase_devices',
    mode: agent.StepMode.RUN,
    challengeSeed: seed,
    expectedIdentity: create(BmcIdentitySchema, { guid }),
    devices,
  });
  const erased = await runIn(folder, clock, memory, order, change);
  if (erased.result.kind !== 'complete') return { certified: [], planned, words: wordsOf(erased) };
  clock.pass(powerCycleMs);
  switchOffFileDisks(folder, clock.nowMs());
  const lastProgress = formatProgress(new Map(planned.map((serial) => [serial, 'erased'])), seed);
  const again = { ...order, mode: agent.StepMode.CHECK, arguments: { lastProgress } };
  const proved = await runIn(folder, clock, memory, again, change);
  const stands = proved.result.kind === 'complete';
  return { certified: stands ? planned : [], planned, words: stands ? '' : wordsOf(proved) };
}

async function runIn(
  folder: string,
  clock: Clock,
  memory: DiskMemory,
  order: agent.RunStep,
  change: Partial<StepContext>,
): Promise<StepEnd> {
  return await eraseDevices.run({
    operationId: 'u/1/1/1',
    order,
    devices: fileDisks(folder, clock, memory),
    machine,
    clock,
    log: silentLog,
    crashPoint: () => {},
    signal: new AbortController().signal,
    progress: () => {},
    stage: async () => {},
    mayBegin: async () => ({ kind: 'granted' }),
    verdictSwitchedOff: false,
    output: () => {},
    hostName: 'h',
    imageEndpoint: '',
    secretEnvironment: {},
    runnerVersion: '0.1.0',
    ...change,
  });
}

function wordsOf({ result }: StepEnd): string {
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

/** A machine with file disks whose steps over devices are run. Its folder lives for one test. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { decideScope, methodToWire, storageDeviceOf } from '@rackwright/erasure';
import { BmcIdentitySchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { nodeClock } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import { fileMachine } from '../linux/file-machine.ts';
import type { BlockDevices, HeldDevice, OpenRegion } from '../machine/block-devices.ts';
import { changed } from '../machine/held.fixture.ts';
import { formatProgress } from '../steps/progress-text.ts';
import type { DeviceStage, StepContext, StepResult } from '../steps/step.ts';
import { eraseDevices } from './step.ts';

export const clock = nodeClock();
export const guid = '00112233445566778899aabbccddeeff';
export const mib = 1024 * 1024;
export let folder = '';

/** Gives each test of the file that calls it a folder of its own. */
export function useFolder(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rackwright-erase-'));
    writeFileSync(join(folder, 'dmi'), JSON.stringify({ uuid: guid, serial: 'HOST-1' }));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
}

/** A disk full of a pattern that must be gone afterwards. */
export function addDisk(
  name: string,
  description: object = {},
  regions = [name],
  sizeBytes = 2 * mib,
) {
  const text = JSON.stringify({ serial: `S-${name}`, ...description });
  writeFileSync(join(folder, `${name}.json`), text);
  for (const region of regions) {
    writeFileSync(join(folder, `${region}.img`), Buffer.alloc(sizeBytes, 'PATTERN!'));
  }
}

export function image(region: string): Buffer {
  return readFileSync(join(folder, `${region}.img`));
}

export function deviceLog(name: string): { kind: string; phase: string; outcome?: string }[] {
  const text = readFileSync(join(folder, `${name}.log`), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

export function logExists(name: string): boolean {
  try {
    return deviceLog(name).length > 0;
  } catch {
    return false;
  }
}

export interface Change {
  order?: Partial<agent.RunStep>;
  context?: Partial<StepContext>;
  step?: typeof eraseDevices;
  /** What the host looks like when the step runs, after it was planned. */
  afterPlan?: () => void;
}

export async function run(change: Change = {}): Promise<StepResult & { stages: string[] }> {
  const devices = fileDisks(folder, clock);
  const decisions = decideScope((await devices.list()).devices);
  const order = create(agent.RunStepSchema, {
    step: 'deploy.erase_devices',
    mode: agent.StepMode.RUN,
    challengeSeed: new Uint8Array(32).fill(9),
    expectedIdentity: create(BmcIdentitySchema, { guid: Buffer.from(guid, 'hex') }),
    devices: decisions
      .filter((decision) => decision.kind !== 'listed')
      .map((decision) => ({
        device: storageDeviceOf(decision.device),
        ...(decision.kind === 'inScope' ? { method: methodToWire(decision.method) } : {}),
      })),
  });
  Object.assign(order, change.order);
  change.afterPlan?.();
  const stages: string[] = [];
  const end = await (change.step ?? eraseDevices).run({
    operationId: 'u/1/1/1',
    order,
    devices,
    machine: fileMachine(join(folder, 'dmi'), clock),
    clock,
    log: quietLog,
    crashPoint: () => {},
    signal: new AbortController().signal,
    reportProgress: () => {},
    recordStage: async (identity, stage) => {
      stages.push(`${identity} ${stage}`);
    },
    requestBegin: async () => ({ kind: 'granted' }),
    verdictSwitchedOff: false,
    reportOutput: () => {},
    hostName: 'h',
    imageEndpoint: '',
    secretEnvironment: {},
    runnerVersion: '0.1.0',
    ...change.context,
  });
  return { ...end, stages };
}

export function verdicts(end: StepResult): (agent.VerdictKind | undefined)[] {
  return (end.evidence?.devices ?? []).map((outcome) => outcome.verdict);
}

/** What an interrupted attempt of `run` leaves behind as its last progress. */
export function progressText(stage: DeviceStage, identity: string): string {
  return formatProgress(new Map([[identity, stage]]), new Uint8Array(32).fill(9));
}

export function checkAfter(stage: DeviceStage, identity: string): Partial<agent.RunStep> {
  const lastProgress = progressText(stage, identity);
  return { mode: agent.StepMode.CHECK, arguments: { lastProgress } };
}

export const nvme = { transport: 'nvme', nvme: { formatSupported: true } };

/** File disks whose held device is changed by `change`, by the name of the device. */
export function heldAs(
  change: (held: HeldDevice, name: string) => Partial<HeldDevice>,
): BlockDevices {
  const devices = fileDisks(folder, clock);
  return {
    ...devices,
    hold: async (device, access) => {
      const held = await devices.hold(device, access);
      return changed(held, change(held, device.name));
    },
  };
}

/** The regions of a device with some of their calls changed. */
export function regionsAs(held: HeldDevice, change: (open: OpenRegion) => Partial<OpenRegion>) {
  return {
    regions: held.regions.map((open): OpenRegion => {
      const whole: OpenRegion = {
        read: (offset, length) => open.read(offset, length),
        readInto: (offset, target) => open.readInto(offset, target),
        write: (offset, bytes) => open.write(offset, bytes),
        writeZeros: (offset, length) => open.writeZeros(offset, length),
        discard: (offset, length) => open.discard(offset, length),
        flush: () => open.flush(),
      };
      return { ...whole, ...change(whole) };
    }),
  };
}

/** Empty where the step did not fail. */
export function messageOf({ result }: StepResult): string {
  return 'message' in result ? result.message : '';
}

/** A step as the runner runs it, in a folder of a test. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { SystemIdentitySchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { nodeClock, nodeDisk } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { linuxPrograms } from '../linux/programs.ts';
import type { BlockDevices } from '../machine/block-devices.ts';
import type { Machine } from '../machine/machine.ts';
import type { ScriptParts } from './script.ts';
import type { Step, StepContext, StepResult } from './step.ts';

export const guid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');

export const noDevices: BlockDevices = {
  list: async () => ({ devices: [], signs: [] }),
  hold: () => Promise.reject(new Error('no device')),
  dismantle: () => Promise.reject(new Error('no device')),
  unhide: () => Promise.reject(new Error('no device')),
};

/** Absent: what burn-ins need. */
export const machine: Machine = {
  identity: async () => create(SystemIdentitySchema, { uuid: guid, bmcGuid: guid }),
  hardware: async () => ({ cpus: [], memoryBytes: 0n, interfaces: [] }),
  bmcAddress: async () => '',
  bootId: async () => 'boot',
  uptimeMs: async () => 0,
  toolVersions: async () => ({}),
};

/** The working folder of the test's programs. */
export async function placeIn(folder: string): Promise<ScriptParts> {
  const disk = nodeDisk();
  const programs = await linuxPrograms({
    disk,
    clock: nodeClock(),
    log: quietLog,
    bootId: 'boot',
    markPath: `${folder}/program.json`,
    procRoot: '/proc',
    kill: (target, signal) => {
      try {
        process.kill(target, signal);
      } catch {
        // It has ended.
      }
    },
  });
  const path = '/usr/bin:/bin';
  const interpreters = new Map([['/usr/bin/node', process.execPath]]);
  return { programs, disk, privateFolder: folder, workingFolder: folder, path, interpreters };
}

export interface StepRun {
  readonly end: Promise<StepResult>;
  readonly stop: () => void;
  readonly output: () => string;
}

/** Orders the step with these arguments; by default the order destroys nothing. */
export function runStep(
  step: Step,
  given: Record<string, string>,
  order: MessageInitShape<typeof agent.RunStepSchema> = { destructive: false },
  change: Partial<StepContext> = {},
): StepRun {
  const controller = new AbortController();
  const pieces: Uint8Array[] = [];
  const end = step.run({
    operationId: 'uid/7/3/1',
    order: create(agent.RunStepSchema, {
      step: step.description.name ?? '',
      mode: agent.StepMode.RUN,
      arguments: given,
      ...order,
    }),
    devices: noDevices,
    machine,
    clock: nodeClock(),
    log: quietLog,
    crashPoint: () => {},
    signal: controller.signal,
    reportProgress: () => {},
    recordStage: () => Promise.resolve(),
    reportOutput: (piece) => pieces.push(piece),
    requestBegin: async () => ({ kind: 'granted' }),
    verdictSwitchedOff: false,
    runnerVersion: '0',
    hostName: 'h1',
    imageEndpoint: '',
    secretEnvironment: {},
    ...change,
  });
  return {
    end,
    stop: () => controller.abort(),
    output: () => Buffer.concat(pieces).toString(),
  };
}

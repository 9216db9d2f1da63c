/** An order to erase what is there, and what a runner has besides it. */
import { create } from '@bufbuild/protobuf';
import { quietLog } from '@rackwright/agent/testing';
import { type ErasureMethod, methodToWire, storageDeviceOf } from '@rackwright/erasure';
import { agent, SystemIdentitySchema } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import type { BlockDevices, Machine, Step, StepContext, StepResult } from '@rackwright/runner';

const guid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');

const machine: Machine = {
  architecture: 'amd64',
  identity: async () => create(SystemIdentitySchema, { uuid: guid, bmcGuid: guid }),
  hardware: async () => ({ cpus: [], memoryBytes: 0n, interfaces: [] }),
  bmcAddress: async () => '',
  bootId: async () => 'boot',
  uptimeMs: async () => 0,
  toolVersions: async () => ({}),
};

/** Erases everything that `devices` lists, by one method, and reads all of it back. */
export async function eraseEverything(
  step: Step,
  devices: BlockDevices,
  method: ErasureMethod,
  change: Partial<StepContext> = {},
): Promise<StepResult> {
  const listing = await devices.list();
  const order = create(agent.RunStepSchema, {
    step: step.description.name ?? '',
    mode: agent.StepMode.RUN,
    challengeSeed: new Uint8Array(32).fill(9),
    expectedIdentity: { guid },
    devices: listing.devices.map((device) => ({
      device: storageDeviceOf(device),
      method: methodToWire(method),
    })),
  });
  return await step.run({
    ...{ operationId: 'u/1/1/1', order, devices, machine, clock: nodeClock(), log: quietLog },
    ...{ crashPoint: () => {}, signal: new AbortController().signal, reportProgress: () => {} },
    ...{
      recordStage: async () => {},
      reportOutput: () => {},
      requestBegin: async () => ({ kind: 'granted' }),
    },
    ...{ verdictSwitchedOff: false, runnerVersion: '0.0.0', hostName: 'h', imageEndpoint: '' },
    secretEnvironment: {},
    ...change,
  });
}

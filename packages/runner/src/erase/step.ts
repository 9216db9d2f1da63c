/** The steps that erase: `deploy.erase_devices` and `deploy.erase_devices_metadata`. */
import { eraseMetadataStep, eraseStep, RerunClass } from '@rackwright/api';
import { parseProgress } from '../progress-text.ts';
import type { Step, StepContext } from '../step.ts';
import { eraseDevice } from './device.ts';
import { type DeviceTask, runOnDevices } from './on-devices.ts';
import type { DeviceResult } from './outcome.ts';

export const eraseDevices: Step = {
  description: {
    name: eraseStep,
    priority: 10,
    rerunClass: RerunClass.CHECK_FIRST,
    destructive: true,
    abortable: true,
    description: 'Erases every disk of the host and proves it by reading back.',
    arguments: {},
  },
  run: (context) => runOnDevices(context, { access: 'write', handle: erase }),
};

export const eraseDevicesMetadata: Step = {
  description: {
    name: eraseMetadataStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: true,
    abortable: true,
    description: 'Overwrites partition tables and signatures only: a weaker level, not an erasure.',
    arguments: {},
  },
  run: (context) => {
    return runOnDevices(context, { access: 'write', onlyMethod: 'metadataOnly', handle: erase });
  },
};

/** Erases, or checks by what an interrupted attempt has left as its last progress. */
async function erase(context: StepContext, task: DeviceTask): Promise<DeviceResult> {
  const { arguments: asked, challengeSeed } = context.order;
  const lastProgress = parseProgress(asked['lastProgress'] ?? '', challengeSeed);
  const stage = lastProgress.get(task.grip.target.identity);
  const challengeProved = stage !== undefined && stage !== 'begun';
  return await eraseDevice(context, { ...task, challengeProved });
}

/** The steps that erase: `deploy.erase_devices` and `deploy.erase_devices_metadata`. */
import { cleanSteps, eraseMetadataStep, eraseStep } from '@rackwright/messages';
import { parseProgress } from '../steps/progress-text.ts';
import type { Step, StepContext } from '../steps/step.ts';
import { eraseDevice } from './device.ts';
import { type DeviceTask, runOnDevices } from './on-devices.ts';
import type { DeviceResult } from './outcome.ts';

export const eraseDevices: Step = {
  description: cleanSteps[eraseStep],
  run: (context) => runOnDevices(context, { access: 'write', handle: erase }),
};

export const eraseDevicesMetadata: Step = {
  description: cleanSteps[eraseMetadataStep],
  run: (context) => {
    return runOnDevices(context, { access: 'write', onlyMethod: 'metadataOnly', handle: erase });
  },
};

/** Erases, or checks by the last progress of an interrupted attempt. */
async function erase(context: StepContext, task: DeviceTask): Promise<DeviceResult> {
  const { arguments: stepArguments, challengeSeed } = context.order;
  const lastProgress = parseProgress(stepArguments['lastProgress'] ?? '', challengeSeed);
  const stage = lastProgress.get(task.heldTarget.target.identity);
  const challengeProved = stage !== undefined && stage !== 'begun';
  return await eraseDevice(context, { ...task, challengeProved });
}

/**
 * The stages of an interrupted step, as the text that travels in `last_progress` and comes back in
 * the argument `lastProgress` of a check. Pure.
 */
import type { DeviceStage } from './step.ts';

const stages: readonly string[] = ['begun', 'challenged', 'erased', 'verified'];
/** Devices beyond this are not recorded. */
const devicesMax = 1024;

export type StagesByDevice = ReadonlyMap<string, DeviceStage>;

export function formatProgress(stagesByDevice: StagesByDevice): string {
  return JSON.stringify({ devices: Object.fromEntries(stagesByDevice) });
}

/** Anything that is not such a text tells nothing: the map is empty then. */
export function parseProgress(text: string): StagesByDevice {
  const found = new Map<string, DeviceStage>();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return found;
  }
  if (typeof value !== 'object' || value === null || !('devices' in value)) return found;
  const devices: unknown = value.devices;
  if (typeof devices !== 'object' || devices === null) return found;
  for (const [identity, stage] of Object.entries(devices).slice(0, devicesMax)) {
    if (isStage(stage)) found.set(identity, stage);
  }
  return found;
}

function isStage(value: unknown): value is DeviceStage {
  return typeof value === 'string' && stages.includes(value);
}

/**
 * The stages of an interrupted step, as the text in `last_progress` that a check gets back in its
 * argument `lastProgress`. Pure.
 *
 * The text names the seed of its challenge: a challenge from another seed has other places, and
 * says nothing about those that a check reads.
 */
import { parsedJson } from '@rackwright/platform';
import type { DeviceStage } from './step.ts';

const stages: readonly string[] = ['begun', 'challenged', 'erased', 'verified'];
/** Devices that do not fit are left out: nothing is known of them then. */
export const progressCharactersMax = 6 * 1024;

export type StagesByDevice = ReadonlyMap<string, DeviceStage>;

export function formatProgress(stagesByDevice: StagesByDevice, challengeSeed: Uint8Array): string {
  const devices: Record<string, DeviceStage> = {};
  const text = (): string => JSON.stringify({ seed: hex(challengeSeed), devices });
  let characters = text().length;
  for (const [identity, stage] of stagesByDevice) {
    characters += JSON.stringify({ [identity]: stage }).length;
    if (characters > progressCharactersMax) break;
    devices[identity] = stage;
  }
  return text();
}

/** Anything that is not such a text about this challenge tells nothing: the map is empty then. */
export function parseProgress(text: string, challengeSeed: Uint8Array): StagesByDevice {
  const found = new Map<string, DeviceStage>();
  if (text.length > progressCharactersMax) return found;
  const value = parsedJson(text);
  if (typeof value !== 'object' || value === null || !('devices' in value)) return found;
  if (!('seed' in value) || value.seed !== hex(challengeSeed)) return found;
  const devices: unknown = value.devices;
  if (typeof devices !== 'object' || devices === null) return found;
  for (const [identity, stage] of Object.entries(devices)) {
    if (isStage(stage)) found.set(identity, stage);
  }
  return found;
}

function isStage(value: unknown): value is DeviceStage {
  return typeof value === 'string' && stages.includes(value);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

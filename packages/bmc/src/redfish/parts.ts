/** The parts of a Redfish driver, and its options. */
import type { Clock, HttpClient, HttpsLimits } from '@rackwright/platform';
import type { GovernedCalls } from '../governor.ts';
import type { ReadBackTimings } from '../read-back.ts';
import type { RestartTimings } from '../restart.ts';
import type { BootPreferences } from './choices.ts';
import type { RedfishTarget } from './conversation.ts';
import type { UpdateTimings } from './firmware-update.ts';
import type { ExpectedSystem } from './system.ts';
import type { VolumeTimings } from './volumes.ts';

export interface RedfishOptions extends BootPreferences {
  readonly limits: HttpsLimits;
  /** Plain URLs below which BMCs may fetch firmware; empty: none is updated. */
  readonly firmwareUrls: readonly string[];
}

export const defaultRedfishOptions: RedfishOptions = {
  networkBoot: 'pxe',
  bootMode: 'asFound',
  firmwareUrls: [],
  limits: {
    connectTimeoutMs: 5_000,
    // BMCs were seen to take 20 s for one resource.
    requestTimeoutMs: 25_000,
    bodyBytesMax: 1_048_576,
    headerBytesMax: 16_384,
  },
};

export interface RedfishDriverParts {
  readonly target: RedfishTarget;
  readonly governor: GovernedCalls;
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly options: RedfishOptions;
  readonly readBack: ReadBackTimings;
  /** Unset: `defaultRestartTimings`. */
  readonly restart?: RestartTimings;
  /** How long a boot may take to apply settings. Unset: `defaultSettleTimings`. */
  readonly settle?: ReadBackTimings;
  /** Unset: `defaultUpdateTimings`. */
  readonly update?: UpdateTimings;
  /** Unset: `defaultVolumeTimings`. */
  readonly volumes?: VolumeTimings;
  /** For BMCs of several systems. */
  readonly expected?: ExpectedSystem;
}

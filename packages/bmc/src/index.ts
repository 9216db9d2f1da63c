/**
 * BMCs: one driver interface, and the governor of every call. The drivers are an entry of their
 * own, `./drivers`: a program that reads a configuration needs none of them yet.
 */
export {
  type BeforeOrder,
  type BiosSettings,
  type BmcAssertion,
  type BmcConsole,
  type BmcDrive,
  type BmcDriver,
  type BmcFailed,
  type BmcFailureType,
  type BmcFirmwareVersion,
  type BmcIdentity,
  type BmcInterface,
  type BmcInventory,
  type BmcMemoryModule,
  type BmcPart,
  type BmcPowerAndHealth,
  type BmcProcessor,
  type BmcReadings,
  type BmcResult,
  type BmcTransient,
  type BmcTransientReason,
  type BootDevice,
  type BootOverride,
  type Firmware,
  type FirmwareOrder,
  failed,
  type OnConsoleOutput,
  type OnUpdateProgress,
  type PowerState,
  type RaidType,
  raidTypes,
  type SoftOff,
  transient,
  type VolumeOrder,
  type WantedVolume,
} from './driver.ts';
export {
  type GovernedCalls,
  Governor,
  Governors,
  type PreemptibleUse,
  type Rest,
  type RestAfter,
} from './governor.ts';
export { type BmcHealth, defaultGovernorLimits, type GovernorLimits } from './governor-state.ts';
export type { IpmiTarget } from './ipmi/ipmitool.ts';
export { defaultIpmitoolOptions, type IpmitoolOptions } from './ipmi/options.ts';
export { defaultReadBackTimings, type ReadBackTimings } from './read-back.ts';
export {
  type BmcBios,
  type BmcBootOrder,
  type BmcFirmware,
  type BmcLog,
  type BmcLogEntry,
  type BmcSensor,
  type BmcSensors,
  type FirmwareComponent,
  type HardwareHealth,
  type HealthLevel,
  logEntriesMax,
  type SensorKind,
} from './readings.ts';
export type { RedfishTarget } from './redfish/conversation.ts';
export {
  defaultRedfishOptions,
  type RedfishDriverParts,
  type RedfishOptions,
} from './redfish/parts.ts';
export { isPlainUrl } from './redfish/plain-url.ts';
export type { ExpectedSystem } from './redfish/system.ts';
export type { PowerCalls } from './webhook/calls.ts';

/**
 * Reads of a BMC beside power, boot and identity. Every value is the BMC's: nothing here is a
 * decision, and every list is bounded.
 */

/** DSP0268 `Health`, worst last. */
export type HealthLevel = 'ok' | 'warning' | 'critical';

/** A BMC's report about the hardware of its machine as a whole. */
export interface HardwareHealth {
  readonly level: HealthLevel;
  /** The problems, for people; empty when there is none. */
  readonly text: string;
}

export type SensorKind =
  | 'temperature'
  | 'fan'
  | 'voltage'
  | 'current'
  | 'power'
  /** All other sensors of a BMC. */
  | 'other';

export interface BmcSensor {
  readonly name: string;
  readonly kind: SensorKind;
  /** Undefined: it measures nothing now, or is no number. */
  readonly reading?: number;
  /** The BMC's unit: "degrees C", "RPM", "Cel"; empty: unreported. */
  readonly unit: string;
  /** Undefined: the BMC does not judge it. */
  readonly health?: HealthLevel;
}

export interface BmcSensors {
  /** The machine's health; undefined: unreported. */
  readonly health?: HardwareHealth;
  readonly sensors: readonly BmcSensor[];
  /** False: there were more than we ask for, or some could not be read. */
  readonly complete: boolean;
}

export interface BmcLogEntry {
  readonly id: string;
  /** The BMC's text, by its own clock; empty: unreported. */
  readonly time: string;
  readonly severity?: HealthLevel;
  readonly message: string;
}

export interface BmcLog {
  /** The newest first. */
  readonly entries: readonly BmcLogEntry[];
  /** False: the log has more, or some could not be read. */
  readonly complete: boolean;
}

export interface FirmwareComponent {
  /** The BMC's name, which an update uses as well: "BIOS". */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Undefined: unreported. */
  readonly updateable?: boolean;
}

export interface BmcFirmware {
  readonly components: readonly FirmwareComponent[];
  readonly complete: boolean;
}

/** One setting of a machine's firmware. Values are texts: "Enabled", "4", "true"; empty: none. */
export interface BiosSetting {
  readonly name: string;
  readonly current: string;
  /** The value after the next boot; undefined: the present one. */
  readonly pending?: string;
}

export interface BmcBios {
  /** By name. A password has no value here. */
  readonly settings: readonly BiosSetting[];
  readonly complete: boolean;
}

/** An option that a machine may boot from by itself. */
export interface BootOption {
  /** The name in the order: "Boot0003". */
  readonly id: string;
  readonly name: string;
}

export interface BmcBootOrder {
  /** The first is tried first. */
  readonly options: readonly BootOption[];
  readonly complete: boolean;
}

/** Most that is kept of one list. */
export const sensorsMax = 256;
export const logEntriesMax = 200;
export const firmwareComponentsMax = 128;
export const biosSettingsMax = 1_024;
export const bootOptionsMax = 64;

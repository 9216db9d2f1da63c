/**
 * The agent's interface to a BMC, for every protocol.
 *
 * Invariants of every implementation (the conformance suite holds them):
 * 1. `ok` means observed: the state was read back from the BMC, an accepted command is not enough.
 *    Only `softOff` asks another party, the running system, and observes nothing of its answer.
 * 2. Acts assert a state and may be repeated; asserting the power state that already holds sends no
 *    switch.
 * 3. Every call ends within a bound of its own, and early when its signal is aborted.
 * 4. No result, message or log line carries the password.
 * 5. A soft off never switches a machine on: it is sent only right after the power was read as on.
 *
 * It must not decide what a host may do: that is the control plane's business.
 */
import type {
  BmcBios,
  BmcBootOrder,
  BmcFirmware,
  BmcLog,
  BmcSensors,
  HardwareHealth,
} from './readings.ts';

export type PowerState = 'on' | 'off';

/**
 * Which firmware reads the override: IPMI carries it as a flag. Redfish has a mode, which a driver
 * may leave as it finds it, because the BMC knows how its firmware is set up.
 */
export type Firmware = 'bios' | 'uefi';

/**
 * The source of the next boot. `network` is what starts the runner, a rescue system or a network
 * image: which of them is the boot snapshot's decision, not the BMC's. `cd`: the drive for CDs,
 * which virtual media feed.
 */
export type BootDevice = 'network' | 'disk' | 'cd' | 'none';

/** The override for the next boot only; `none` removes one. */
export interface BootOverride {
  readonly device: BootDevice;
  readonly firmware: Firmware;
}

/**
 * The BMC's identity as it reports it. Absent: the BMC does not report the value. Texts are
 * unchanged, filler words ("Default string") included: guard 0 judges them (DESIGN §5).
 */
export interface BmcIdentity {
  /** System GUID, 32 lower-case hex digits in the order of the wire: the byte order is open. */
  readonly guidHex?: string;
  /** IANA enterprise number of the BMC's maker. */
  readonly manufacturerId?: number;
  /** FRU product area, or Redfish System. */
  readonly manufacturer?: string;
  readonly product?: string;
  readonly serial?: string;
  /** Further serials, for the record and for a witness when `serial` is missing. */
  readonly boardSerial?: string;
  readonly chassisSerial?: string;
  /** Redfish: SHA-256 of the certificate that it showed (DER), lower-case hex. */
  readonly certificateSha256?: string;
}

/** Why a call is refused for good: repeating it unchanged would fail in the same way. */
export type BmcFailureType =
  /** User or password is wrong, or the lock-out guard prevents another try. */
  | 'authentication'
  /** The BMC has locked the account. */
  | 'lockedOut'
  /** The user may sign in but may not do this. */
  | 'privilege'
  /** No common cipher suite or protocol version. */
  | 'cipherSuite'
  /** The address cannot be used: unknown name, bad form. */
  | 'address'
  /** The credential cannot be expressed in this protocol (too long, control characters). */
  | 'invalidCredential'
  /** The BMC accepted and the state did not follow within the read-back window. */
  | 'notApplied'
  /** The BMC does not know the command. */
  | 'unsupported'
  /** The BMC refused the command. */
  | 'rejected'
  /** The BMC's answer could not be read. */
  | 'malformed'
  /** The device there does not speak this protocol. */
  | 'protocol'
  /** It shows another certificate than the pinned one; no credential was sent. */
  | 'certificate'
  /** It manages several systems, and nothing says which of them is meant. */
  | 'ambiguous'
  /** The BMC refused to insert a medium into its virtual drive, or to eject it. */
  | 'mediaRefused'
  /** The BMC has no virtual drive for CDs. */
  | 'mediaMissing'
  /** The BMC, or its own list of allowed values, refuses a setting of the firmware. */
  | 'settingRefused'
  /** The firmware has no setting of this name. */
  | 'settingUnknown'
  /** The BMC refused an update of firmware, or its task failed. */
  | 'updateFailed'
  /** The BMC or its storage controller refused a change of RAID volumes, or its task failed. */
  | 'volumesRefused'
  /** The agent's configuration forbids it. */
  | 'notAllowed'
  /** No boot has taken settings within the window, or an update of firmware has not ended. */
  | 'stillPending'
  /** The program that speaks the protocol is missing on this agent. */
  | 'toolMissing';

/** Why the result of the call is unknown. */
export type BmcTransientReason =
  /** No answer in time. */
  | 'unreachable'
  /** The BMC reports that it is busy or out of sessions: it may be asked again later. */
  | 'busy'
  /** The BMC answers that it failed: whether it has carried out the request is open. */
  | 'trouble'
  /** Too many silent calls in a row; nothing is sent until the breaker tries again. */
  | 'breakerOpen'
  /** More calls wait for this BMC than its queue holds. */
  | 'queueFull'
  /** The caller gave up. */
  | 'cancelled';

export type BmcFailed = {
  readonly kind: 'failed';
  readonly type: BmcFailureType;
  /** What is wrong and what would be right, for a person. */
  readonly message: string;
  /** The words of the BMC or the tool, verbatim, without secrets; bounded. */
  readonly backendText: string;
  /** Of `certificate`: SHA-256 of the shown certificate, 64 lower-case hexadecimal digits. */
  readonly shownCertificateSha256?: string;
  /** It got a request that changes something, and no refusal of it could be read. */
  readonly afterSending?: true;
};

export type BmcTransient = {
  readonly kind: 'transient';
  readonly reason: BmcTransientReason;
  readonly message: string;
  readonly backendText: string;
  /** The delay that the BMC asks for, milliseconds from now. */
  readonly retryAfterMs?: number;
};

export type BmcResult<T> = { readonly kind: 'ok'; readonly value: T } | BmcFailed | BmcTransient;

/** The result of one read. */
export interface BmcPowerAndHealth {
  readonly power: PowerState;
  /** Undefined: unreported. */
  readonly health?: HardwareHealth;
}

/** The result of an assertion: whether the BMC had to be changed at all. */
export interface BmcAssertion {
  readonly changed: boolean;
  /** Deviations that the vendor table allows, in words; empty when there were none. */
  readonly notes: readonly string[];
}

/** The result of a soft off: whether the system was asked at all. */
export interface SoftOff {
  /** False: the power was off, so the system was not asked. */
  readonly wasRequested: boolean;
}

export interface BmcProcessor {
  readonly manufacturer?: string;
  readonly model?: string;
  readonly cores?: number;
  readonly threads?: number;
}

export interface BmcMemoryModule {
  readonly capacityMiB: number;
  readonly serial?: string;
  /** The BMC's name of its slot: "DIMM A1". */
  readonly slot?: string;
  readonly manufacturer?: string;
  /** Part number. */
  readonly model?: string;
}

export interface BmcInterface {
  /** The BMC's name: "NIC.Slot.1". */
  readonly name?: string;
  /** In the BMC's notation. */
  readonly mac: string;
  readonly speedMbps?: number;
  readonly linkUp?: boolean;
}

/** Firmware that is part of other reads, beside the list of `readFirmware`. */
export interface BmcFirmwareVersion {
  readonly name: 'BIOS' | 'BMC';
  readonly version: string;
}

export interface BmcDrive {
  /** The BMC's name: "Disk Bay 3". */
  readonly name?: string;
  readonly manufacturer?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly capacityBytes?: number;
  /** "HDD", "SSD" and so on, as the BMC says it. */
  readonly media?: string;
  /** "NVMe", "SATA" and so on. */
  readonly protocol?: string;
  /** Version of its firmware. */
  readonly firmware?: string;
}

export interface BmcInventory {
  readonly processors: readonly BmcProcessor[];
  readonly memory: readonly BmcMemoryModule[];
  readonly drives: readonly BmcDrive[];
  readonly interfaces: readonly BmcInterface[];
  readonly firmware: readonly BmcFirmwareVersion[];
  /** False: there were more parts than we ask for, or some could not be read. */
  readonly complete: boolean;
}

export type BmcPart = 'processors' | 'memory' | 'drives' | 'interfaces' | 'firmware';

/**
 * Reads that not every protocol, and not every BMC, has. An absent method is `unsupported`; so is a
 * read that a BMC does not offer.
 */
export interface BmcReadings {
  readSensors?(signal?: AbortSignal): Promise<BmcResult<BmcSensors>>;
  /** At most `entriesMax` of the newest entries. */
  readLog?(entriesMax: number, signal?: AbortSignal): Promise<BmcResult<BmcLog>>;
  readFirmware?(signal?: AbortSignal): Promise<BmcResult<BmcFirmware>>;
  readBios?(signal?: AbortSignal): Promise<BmcResult<BmcBios>>;
  readBootOrder?(signal?: AbortSignal): Promise<BmcResult<BmcBootOrder>>;
}

/** A serial console that is open. */
export interface BmcConsole {
  /** Ends the console session, also on the BMC. */
  close(): void;
  /** Settles when the session is over, for every cause. */
  readonly ended: Promise<void>;
}

/** Receives the machine's output on its serial port: any bytes. Must be quick. */
export type OnConsoleOutput = (bytes: Uint8Array) => void;

/** Settings of the firmware by name, as text: "Enabled", "4", "true". */
export type BiosSettings = ReadonlyMap<string, string>;

export interface FirmwareOrder {
  /** The name in the list of firmware. */
  readonly component: string;
  /** The version that has to be read afterwards. */
  readonly version: string;
  /** The URI at which the BMC fetches the image. */
  readonly uri: string;
  /** It was ordered before: wait for the version, and order nothing. */
  readonly checkOnly: boolean;
}

/**
 * RAID types that can be requested (DSP0268, Volume, `RAIDType`), and the minimum number of drives
 * of each.
 */
export const raidTypes = {
  RAID0: 1,
  RAID1: 2,
  RAID5: 3,
  RAID6: 3,
  RAID10: 4,
  RAID50: 6,
  RAID60: 6,
} as const;
export type RaidType = keyof typeof raidTypes;

/** A volume over the whole of its drives, which belong to no other one. */
export interface WantedVolume {
  readonly raidType: RaidType;
  /** The BMC's names (`Id`): "Disk.Bay.0:Enclosure.Internal.0-1:RAID.Integrated.1-1". */
  readonly drives: readonly string[];
}

export interface VolumeOrder {
  /** The BMC's name (`Id` of its storage). */
  readonly controller: string;
  /** All that it is to hold; empty: none. */
  readonly volumes: readonly WantedVolume[];
  /** It was ordered before: look for the volumes, and order nothing. */
  readonly checkOnly: boolean;
}

/** Hears how far an order is that takes its time, 0–100. Must be quick. */
export type OnUpdateProgress = (percent: number, state: string) => void;

/**
 * Called right before each order that destroys data. It throws when the order must not be sent, and
 * the call ends with that error. It returns why the order must not be sent yet: then it is called
 * again later. `seen`: the identity of the BMC that would get the order. `done`: the changes that
 * were made before, in words.
 */
export type BeforeOrder = (seen: BmcIdentity, done: readonly string[]) => BmcTransient | undefined;

export interface VolumeHooks {
  readonly onProgress: OnUpdateProgress;
  readonly beforeOrder: BeforeOrder;
}

/** One BMC under one credential. */
export interface BmcDriver extends BmcReadings {
  /** Reads identity live, proving address and credential by doing so. */
  readIdentity(signal?: AbortSignal): Promise<BmcResult<BmcIdentity>>;
  powerState(signal?: AbortSignal): Promise<BmcResult<PowerState>>;
  /** Power, and the hardware's health from the same answer. */
  readPowerAndHealth(signal?: AbortSignal): Promise<BmcResult<BmcPowerAndHealth>>;
  /**
   * Sets the override for the next boot and reads it back. Absent: the device switches power and
   * nothing else, so the machine boots by its own order.
   */
  setBootOverride?(override: BootOverride, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /** Asserts a power state (off is immediate, not a request to the system) and reads it back. */
  setPower(state: PowerState, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /**
   * Asks the running system to shut down (soft off: DSP2046 `GracefulShutdown`, IPMI 2.0 §28.3
   * option 5) and does not wait for it. `ok` means that the BMC has taken the order; the system may
   * take its time, or ignore it. `failed: unsupported` means that the BMC has no soft off, and
   * `failed: rejected` that it refused this one. A second one may disturb a system that shuts down.
   */
  softOff(signal?: AbortSignal): Promise<BmcResult<SoftOff>>;
  /**
   * Empties the event log and reads back that it is empty. One entry may be left: many BMCs log
   * the clearing itself.
   */
  clearEventLog(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /**
   * The wanted parts as the BMC lists them; other lists stay empty. Absent: the protocol has no
   * such lists.
   */
  readInventory?(parts: readonly BmcPart[], signal?: AbortSignal): Promise<BmcResult<BmcInventory>>;
  /**
   * Puts the CD at `url` (http://, fetched by the BMC) into the virtual drive, in place of another,
   * and reads back that it is in. Asserting a medium that is in changes nothing. Absent, as are the
   * two that follow: the protocol has no virtual media.
   */
  insertMedia?(url: string, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /** Empties the virtual drive and reads back that it is; `ok` also where there is none. */
  ejectMedia?(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /** The URL of the medium in the virtual drive; undefined: none. */
  readMedia?(signal?: AbortSignal): Promise<BmcResult<string | undefined>>;
  /**
   * Lights the lamp by which people find the machine, or puts it out. Read back where the protocol
   * can; a note says where it cannot.
   */
  setIndicator(lit: boolean, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /**
   * Restarts the BMC itself, which leaves the machine as it is, and waits until it answers again
   * after it has been silent. `notApplied`: it went on answering.
   */
  resetBmc(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /**
   * Has the firmware take these settings at its next boot. They are checked against the BMC's own
   * list of settings first, where it has one. Not `changed`: all of them hold already and nothing
   * else waits. Absent, as are the two that follow: the protocol has no such settings.
   */
  stageBios?(wanted: BiosSettings, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /** Waits until the settings hold, after a boot. `notApplied`: they were dropped. */
  checkBios?(wanted: BiosSettings, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /**
   * Puts these boot options first in the persistent boot order; the others follow in their order.
   * A note says where the next boot takes it only.
   */
  setBootOrder?(first: readonly string[], signal?: AbortSignal): Promise<BmcResult<BmcAssertion>>;
  /**
   * Brings a component of the firmware to a version, and reads that back; a BMC that restarts
   * meanwhile is waited for. Not `changed`: it has that version. Nothing after the order is
   * transient: whether it works may be open, but it is not to be ordered again by itself. Absent:
   * the protocol has no updates.
   */
  updateFirmware?(
    order: FirmwareOrder,
    onProgress: OnUpdateProgress,
    signal?: AbortSignal,
  ): Promise<BmcResult<BmcAssertion>>;
  /**
   * Makes a storage controller hold these RAID volumes and no others. A volume that has the wanted
   * RAID type and drives stays; others are deleted, and their data is lost. All is checked before
   * that against what the BMC lists. Nothing after the first order is transient. Absent: the
   * protocol has no volumes.
   */
  applyVolumes?(
    order: VolumeOrder,
    hooks: VolumeHooks,
    signal?: AbortSignal,
  ): Promise<BmcResult<BmcAssertion>>;
  /**
   * Opens the serial console, to hear it only. A BMC has one session of it: while another client
   * has it the answer is `busy`, and that session stays. An open console does not delay other
   * calls. Absent: the protocol has none.
   */
  openConsole?(hear: OnConsoleOutput, signal?: AbortSignal): Promise<BmcResult<BmcConsole>>;
}

export function ok<T>(value: T): BmcResult<T> {
  return { kind: 'ok', value };
}

export function failed(type: BmcFailureType, message: string, backendText = ''): BmcFailed {
  return { kind: 'failed', type, message, backendText: backendText };
}

export function transient(
  reason: BmcTransientReason,
  message: string,
  backendText = '',
): BmcTransient {
  return { kind: 'transient', reason, message, backendText: backendText };
}

/** The properties of a simulated Redfish BMC, its behaviour, and its faults. */

import type { RedfishJsonObject } from './messages.ts';

/** The order that the machine gets with its power-on. */
export interface PowerOnBoot {
  /** `none`: as its firmware is set up. */
  readonly device: 'none' | 'pxe' | 'uefiHttp' | 'disk' | 'cd';
  readonly mode: 'legacy' | 'uefi';
}

/**
 * The machine behind the BMC: it is really switched, and `PowerState` is its state. A call that
 * throws or rejects leaves the machine as it is; `onMachineError` gets the error.
 */
export interface SwitchedMachine {
  powerOn(boot: PowerOnBoot): void | Promise<void>;
  /** At once, without asking the system. */
  powerOff(): void | Promise<void>;
  /** Asks the system to shut down, which may ignore it; unset: it always stops at once. */
  softOff?(): void | Promise<void>;
  isOn(): boolean;
  /**
   * What its virtual drive for CDs holds from now on: a URL, or undefined for nothing. A call that
   * throws or rejects leaves the drive empty. Unset: nothing to do.
   */
  medium?(url: string | undefined): void | Promise<void>;
}

export interface RedfishIdentity {
  /** Canonical form, as SMBIOS type 1 of the same machine. */
  readonly uuid: string;
  readonly serial: string;
  readonly manufacturer: string;
  readonly model: string;
  /** The chassis' own; left out when unset. */
  readonly chassisSerial?: string;
  /** Dell keeps the service tag here. */
  readonly sku?: string;
}

export interface RedfishAdapter {
  readonly id: string;
  /** One without a speed has no link. */
  readonly ports: readonly {
    readonly id: string;
    readonly speedMbps?: number;
    readonly macs?: readonly string[];
  }[];
  /** Unset: it lists none. */
  readonly functions?: readonly {
    readonly mac: string;
    /** Id of its port. */
    readonly port: string;
    readonly type?: 'Ethernet' | 'iSCSI' | 'Disabled';
  }[];
}

export interface RedfishInventory {
  readonly processors?: readonly {
    readonly model: string;
    readonly manufacturer: string;
    readonly cores: number;
    readonly threads: number;
  }[];
  readonly memory?: readonly { readonly capacityMiB: number; readonly serial: string }[];
  readonly drives?: readonly {
    readonly serial: string;
    readonly model: string;
    readonly manufacturer: string;
    readonly capacityBytes: number;
    readonly media: 'SSD' | 'HDD';
    readonly protocol: 'NVMe' | 'SATA' | 'SAS';
    readonly firmware?: string;
  }[];
  /** One without a speed has no link. Unset: it lists none. */
  readonly interfaces?: readonly { readonly mac: string; readonly speedMbps?: number }[];
  /** Network adapters, beside the interfaces or instead of them. */
  readonly adapters?: readonly RedfishAdapter[];
  /** Bays that are listed after the drives, as absent. */
  readonly emptyBays?: number;
}

export type RedfishHealth = 'OK' | 'Warning' | 'Critical';

/** The machine's measurements; an unset reading is none. */
export interface RedfishSensors {
  readonly temperatures?: readonly RedfishSensor[];
  readonly fans?: readonly RedfishSensor[];
}

export interface RedfishSensor {
  readonly name: string;
  readonly reading?: number;
  readonly health?: RedfishHealth;
}

export const bootTargets = ['None', 'Pxe', 'Hdd', 'UefiHttp', 'Cd'] as const;
export type RedfishBootTarget = (typeof bootTargets)[number];

/** Differences of this BMC from others that are equally valid. */
export interface RedfishHabits {
  /** A switch is carried out, and seen, this long after it was accepted: least and most, ms. */
  readonly powerDelayMs: readonly [number, number];
  /** Some report `Continuous` although they boot from it once. */
  readonly onceReadsBackAs: 'Once' | 'Continuous';
  /** Which boot sources it offers. */
  readonly bootTargets: readonly RedfishBootTarget[];
  /** The mode that its firmware is set up for; undefined: unreported. */
  readonly mode: 'Legacy' | 'UEFI' | undefined;
  /** Its reaction to unknown values: refuse them, or answer 204 without effect. */
  readonly unknownValues: 'refused' | 'ignored';
  /** PATCH of the boot override without a target is refused (400), as by sushy-tools. */
  readonly needsBootTarget: boolean;
  readonly etags: 'strong' | 'weak' | 'none';
  /** PATCH without If-Match is refused (428). */
  readonly needsIfMatch: boolean;
  /** Weak tags are handed out, and only their strong form is accepted. */
  readonly comparesStrongly: boolean;
  /** Against the standard, some require a sign-in even for the service root. */
  readonly guardsRoot: boolean;
  /** 0: there are no sessions, and only basic authentication works. */
  readonly sessionsMax: number;
  readonly sessionIdleMs: number;
  /** Where the values of ResetType are: in the system, or in a resource of their own. */
  readonly resetTypesIn: 'system' | 'actionInfo';
  readonly resetTypes: readonly string[];
  /** After so many refused sign-ins in a row nobody gets in for a while. */
  readonly lockOut: { readonly failuresMax: number; readonly forMs: number };
  /** Power on is refused with 409 for so long after power off. */
  readonly restMs: number;
  /** Where sensors are: all in two answers, or each in one. */
  readonly sensorsIn: 'thermal' | 'collection';
  /** Whether a list of log entries has them, or references to them. */
  readonly logEntriesAre: 'whole' | 'references';
  /** Which end of a log its list begins with. */
  readonly logBeginsWith: 'oldest' | 'newest';
  /** How its lamp is set; undefined: it has none. */
  readonly indicator: 'LocationIndicatorActive' | 'IndicatorLED' | undefined;
  /** The resource that has its virtual drives; undefined: it has none. */
  readonly virtualMedia: 'system' | 'manager' | undefined;
  /** How media are inserted: by an action, by an action that takes the image alone, or by PATCH. */
  readonly mediaBy: 'action' | 'imageAlone' | 'patch';
  /** An update of firmware takes so long, and is answered by its task, its place, or nothing. */
  readonly updateMs: number;
  readonly updateAnswers: 'task' | 'location' | 'nothing';
  /** The place of its adapters beside the chassis, and the type of their ports. */
  readonly adaptersIn: 'system' | 'chassis';
  readonly adapterPorts: 'Ports' | 'NetworkPorts';
  /** A change of RAID volumes takes so long, and is answered so. */
  readonly volumeMs: number;
  readonly volumeAnswers: 'task' | 'location' | 'nothing';
  /** Whether a new volume has a name. */
  readonly volumeNames: 'free' | 'needed' | 'refused';
  /** Every list comes in pages of so many. */
  readonly membersPerPage: number;
  /** It says so while a switch waits for its time: `PoweringOn`, `PoweringOff`. */
  readonly showsTransitions: boolean;
  /**
   * Where its persistent boot order is set: in the system, or in the settings for the next boot.
   */
  readonly bootOrderIn: 'system' | 'settings';
  /** A restart of the BMC keeps it silent for so long; undefined: it cannot be restarted. */
  readonly restartMs: number | undefined;
}

export const defaultHabits: RedfishHabits = {
  powerDelayMs: [500, 2_000],
  onceReadsBackAs: 'Once',
  bootTargets,
  mode: 'UEFI',
  unknownValues: 'refused',
  needsBootTarget: false,
  etags: 'strong',
  needsIfMatch: false,
  comparesStrongly: false,
  guardsRoot: false,
  sessionsMax: 8,
  sessionIdleMs: 300_000,
  resetTypesIn: 'system',
  resetTypes: ['On', 'ForceOff', 'GracefulShutdown', 'ForceRestart', 'PowerCycle', 'Nmi'],
  lockOut: { failuresMax: 5, forMs: 30_000 },
  restMs: 0,
  sensorsIn: 'thermal',
  logEntriesAre: 'references',
  logBeginsWith: 'oldest',
  indicator: 'LocationIndicatorActive',
  virtualMedia: 'system',
  mediaBy: 'action',
  bootOrderIn: 'system',
  updateMs: 1_000,
  updateAnswers: 'task',
  adaptersIn: 'system',
  adapterPorts: 'Ports',
  volumeMs: 400,
  volumeAnswers: 'task',
  volumeNames: 'free',
  membersPerPage: 1_000,
  showsTransitions: false,
  restartMs: 2_000,
};

/** Its faults, on demand. */
export type RedfishFault =
  | { readonly kind: 'none' }
  /** It no longer knows the password that it was started with. */
  | { readonly kind: 'wrongPassword' }
  /** `hang`: accepts and never answers; `drop`: closes each connection at once. */
  | { readonly kind: 'silent'; readonly how: 'hang' | 'drop' }
  /** Every answer is a page for browsers. */
  | { readonly kind: 'rubbish' }
  /** Accepts every command and carries out none. */
  | { readonly kind: 'yesButNothing' }
  /** Refuses every medium. */
  | { readonly kind: 'mediaRefused' }
  /** Takes a medium, shows it in this many readings, and has lost it then. */
  | { readonly kind: 'mediaLost'; readonly afterReadings: number }
  /** Carries out each change, and drops the connection instead of an answer. */
  | { readonly kind: 'dropsHalfway' }
  /** Carries out each change, and its answer says neither yes nor no. */
  | { readonly kind: 'answersOddly'; readonly by: 'redirect' | 'tooManyBytes' | 'gatewayTimeout' }
  /** Refuses every setting of the firmware. */
  | { readonly kind: 'biosRefused' }
  /** Takes all settings, and at the boot leaves this one as it was. */
  | { readonly kind: 'biosIgnores'; readonly attribute: string }
  /** At the next boot this attribute returns to its first value. */
  | { readonly kind: 'biosDefaults'; readonly attribute: string }
  /** An update, or a change of volumes, restarts the BMC half-way, and its task is gone. */
  | { readonly kind: 'updateRestarts' }
  /** The task of an update ends well, and nothing was updated; or it ends badly. */
  | { readonly kind: 'updateLies' | 'updateFails' }
  /** Half-way the path of its task is that of another one, which is over. */
  | { readonly kind: 'tasksReordered' }
  /** Refuses every change of RAID volumes; or its task ends well without one, or badly. */
  | { readonly kind: 'volumesRefused' | 'volumesLie' | 'volumesFail' }
  /** A new volume does not report its drives, which may be any. */
  | { readonly kind: 'volumesElsewhere' }
  /** No boot takes what waits. */
  | { readonly kind: 'settingsStayPending' }
  /** Every answer comes this much later. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Nobody gets in for this long. */
  | { readonly kind: 'lockedOut'; readonly forMs: number };

/** Settings of the firmware of its machine, as they are at first. */
export interface RedfishBios {
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Entries of its AttributeRegistry. */
  readonly registry?: readonly RedfishJsonObject[];
  /** In the order that they boot in. */
  readonly bootOptions?: readonly { readonly id: string; readonly name: string }[];
}

export interface RedfishFirmware {
  readonly id: string;
  readonly version: string;
}

/** A storage controller that makes volumes of the drives of the inventory. */
export interface RedfishRaid {
  /** Drives by their number, from 1. */
  readonly volumes?: readonly { readonly raidType: string; readonly drives: readonly number[] }[];
  /** Unset: RAID 0, 1, 5 and 10. */
  readonly raidTypes?: readonly string[];
  /** When it changes volumes; unset: unreported. */
  readonly applyTimes?: readonly ('Immediate' | 'OnReset')[];
}

export interface RedfishServiceOptions {
  readonly user: string;
  readonly password: string;
  readonly identity: RedfishIdentity;
  readonly machine: SwitchedMachine;
  /** A function where parts come and go: called for each answer. */
  readonly inventory?: RedfishInventory | (() => RedfishInventory);
  /** Entries that its event log begins with; unset: none. */
  readonly logEntries?: number;
  readonly sensors?: RedfishSensors;
  /** The health of the machine as a whole; unset: OK. */
  readonly health?: RedfishHealth;
  /** Components of its firmware beside the BMC's own; unset: none. */
  readonly firmware?: readonly RedfishFirmware[];
  /** Unset: its storage has no volumes. */
  readonly raid?: RedfishRaid;
  /** Unset: it lets nobody see its settings. */
  readonly bios?: RedfishBios;
  /** Habits that are not named are `defaultHabits`. */
  readonly habits?: Partial<RedfishHabits>;
  readonly fault?: RedfishFault;
  /** Seeds delays, tags and tokens. */
  readonly seed?: number;
  readonly onMachineError?: (error: unknown) => void;
}

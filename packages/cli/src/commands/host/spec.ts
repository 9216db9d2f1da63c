/** Flags that say what a host is, for `host create` and `host update`. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type BmcProtocolId,
  bmcPorts,
  CleaningMethod,
  type HostSpecSchema,
  isBmcProtocolId,
  ShutdownMode,
} from '@rackwright/messages';
import { UsageError } from '../../failure.ts';
import {
  labelChange,
  labelChangeFlag,
  parseMapChange,
  parsePriorities,
  parseWhole,
  resourceName,
} from '../../flags.ts';
import { enumValue } from '../../output/enum-name.ts';
import { parseRootDisk, rootDiskFlag } from './root-disk.ts';
import { parseVerification, verificationFlag } from './verification-spec.ts';

const text = { kind: 'parsed', parse: String, optional: true } as const;
const yesNo = { kind: 'boolean', optional: true } as const;

/** What `--bmc-protocol` takes. */
const bmcProtocols: readonly BmcProtocolId[] = Object.keys(bmcPorts).filter(isBmcProtocolId);

/** How long a system may take to shut down; the control plane knows the bounds. */
const timeoutFlag = {
  kind: 'parsed',
  parse: parseWhole,
  optional: true,
  placeholder: 'seconds',
} as const;

/** What `--erasure-method` takes; the first gives the choice back to the devices. */
const cleaningMethods = [
  'strongest',
  'nvme-format',
  'nvme-format-crypto',
  'discard',
  'overwrite',
  'sanitize-crypto',
  'sanitize-block',
  'sanitize-overwrite',
  'ata-secure-erase',
  'ata-enhanced-erase',
] as const;

function methodOf(word: SpecFlags['erasureMethod']): number | undefined {
  if (word === 'strongest') return CleaningMethod.UNSPECIFIED;
  return word && enumValue('CleaningMethod', word);
}

/** The first gives the choice back to what is usual. */
const shutdownModes = {
  usual: ShutdownMode.UNSPECIFIED,
  graceful: ShutdownMode.GRACEFUL,
  force: ShutdownMode.FORCE,
} as const;

/** Flags of the spec. */
export const specFlags = {
  bmc: { ...text, brief: 'BMC: ADDRESS, ADDRESS:PORT or [IPV6]:PORT', placeholder: 'address' },
  credential: { ...text, brief: 'Credential of the BMC', placeholder: 'id' },
  cipherSuite: {
    kind: 'parsed',
    parse: parseWhole,
    optional: true,
    brief: 'IPMI cipher suite, usually 3 or 17',
    placeholder: 'number',
  },
  bmcProtocol: {
    kind: 'enum',
    values: bmcProtocols,
    optional: true,
    brief: 'Protocol of the BMC; without it IPMI',
  },
  bmcCertificate: {
    ...text,
    brief: 'Redfish: SHA-256 of the BMC’s certificate, in hex; without it the first one seen',
    placeholder: 'sha256',
  },
  mac: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'MAC address that the host boots from; may be repeated',
    placeholder: 'mac',
  },
  goal: {
    kind: 'enum',
    values: ['available', 'manageable'],
    optional: true,
    brief: 'State that it is led to by itself',
  },
  power: {
    kind: 'enum',
    values: ['on', 'off', 'unmanaged'],
    optional: true,
    brief: 'What its power should be while no run holds it',
  },
  shutdown: {
    kind: 'enum',
    values: ['usual', 'graceful', 'force'],
    optional: true,
    brief: 'How power is taken from its system; usual: graceful where somebody’s system runs',
  },
  shutdownTimeout: {
    ...timeoutFlag,
    brief: 'Seconds that its system may take to shut down before it is forced off',
  },
  erasure: {
    kind: 'enum',
    values: ['full', 'metadata-only'],
    optional: true,
    brief: 'How much a clean removes',
  },
  priority: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief:
      'INTERFACE.STEP=NUMBER in place of the step’s own, 0 disables; INTERFACE.STEP- undoes it',
    placeholder: 'step=number',
  },
  allowDiskless: { ...yesNo, brief: 'Accept a host without any disk as clean' },
  allowUnprovenIdentity: { ...yesNo, brief: 'Accept a host without any proof of its identity' },
  ...verificationFlag,
  powerCycleCheck: {
    kind: 'enum',
    values: ['immediate', 'next-boot'],
    optional: true,
    brief: 'When erased disks are read again after a power cycle',
  },
  hiddenAreas: {
    kind: 'enum',
    values: ['refuse', 'remove'],
    optional: true,
    brief: 'What becomes of a disk that hides a part of its capacity',
  },
  usbDisks: {
    kind: 'enum',
    values: ['refuse', 'erase', 'leave'],
    optional: true,
    brief: 'What becomes of disks on USB',
  },
  raidDrives: {
    kind: 'enum',
    values: ['refuse', 'accept'],
    optional: true,
    brief: 'Whether drives that only the BMC lists are parts of RAID volumes',
  },
  erasureMethod: {
    kind: 'enum',
    values: cleaningMethods,
    optional: true,
    brief: 'How every disk is erased; a disk that does not offer it is refused',
  },
  movedDisk: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'Serial or WWN of a disk that was moved here from another host; may be repeated',
    placeholder: 'serial',
  },
  bootMedium: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'Medium that the host boots from, by SHA-256 and size in bytes; may be repeated',
    placeholder: 'sha256:bytes',
  },
  ...rootDiskFlag,
  retired: { ...yesNo, brief: 'End every clean in manageable' },
  deleteKeepsPower: { ...yesNo, brief: 'A deletion leaves the power as it is' },
  deleteKeepsData: { ...yesNo, brief: 'A deletion does not erase a host that ran an image' },
  ...labelChangeFlag,
} as const;

export interface SpecFlags {
  readonly bmc?: string;
  readonly credential?: string;
  readonly cipherSuite?: number;
  readonly bmcProtocol?: BmcProtocolId;
  readonly bmcCertificate?: string;
  readonly mac?: readonly string[];
  readonly goal?: 'available' | 'manageable';
  readonly power?: 'on' | 'off' | 'unmanaged';
  readonly erasure?: 'full' | 'metadata-only';
  readonly priority?: readonly string[];
  readonly allowDiskless?: boolean;
  readonly allowUnprovenIdentity?: boolean;
  readonly verification?: readonly string[];
  readonly powerCycleCheck?: 'immediate' | 'next-boot';
  readonly hiddenAreas?: 'refuse' | 'remove';
  readonly usbDisks?: 'refuse' | 'erase' | 'leave';
  readonly raidDrives?: 'refuse' | 'accept';
  readonly erasureMethod?: (typeof cleaningMethods)[number];
  readonly movedDisk?: readonly string[];
  readonly bootMedium?: readonly string[];
  readonly rootDisk?: readonly string[];
  readonly retired?: boolean;
  readonly shutdown?: 'usual' | 'graceful' | 'force';
  readonly shutdownTimeout?: number;
  readonly deleteKeepsPower?: boolean;
  readonly deleteKeepsData?: boolean;
  readonly label?: readonly string[];
}

type SpecInit = MessageInitShape<typeof HostSpecSchema>;

/** What flags say of a host: the fields of an update, and the paths that it replaces. */
interface SpecSaid {
  readonly spec: SpecInit & object;
  readonly labels: Readonly<Record<string, string>>;
  readonly paths: string[];
}

/** The spec that the flags describe, and the paths of what they set. Throws `UsageError`. */
export function specFrom(flags: SpecFlags): SpecSaid {
  const labels = labelChange(flags.label);
  const priorities = parseMapChange(
    '--priority',
    'spec.cleaning.priority_overrides',
    flags.priority,
    (texts) => parsePriorities('--priority', texts),
  );
  const endpoint = flags.bmc === undefined ? {} : parseEndpoint(flags.bmc);
  const bmc = {
    ...endpoint,
    ...set('credential', flags.credential && resourceName('credentials', flags.credential)),
    ...set('cipherSuite', flags.cipherSuite),
    ...set('protocol', flags.bmcProtocol && enumValue('BmcProtocol', flags.bmcProtocol)),
    ...set('certificateSha256', flags.bmcCertificate?.toLowerCase().replaceAll(':', '')),
  };
  const cleaning = cleaningOf(flags, priorities.set);
  const deletion = {
    ...set('keepPower', flags.deleteKeepsPower),
    ...set('keepData', flags.deleteKeepsData),
  };
  const shutdown = {
    ...set('mode', flags.shutdown && shutdownModes[flags.shutdown]),
    ...set('timeoutSeconds', flags.shutdownTimeout),
  };
  const spec = {
    ...(Object.keys(bmc).length > 0 ? { bmc } : {}),
    ...set(
      'bootMacs',
      flags.mac?.map((mac) => mac.toLowerCase().replaceAll('-', ':')),
    ),
    ...set('goal', flags.goal && enumValue('HostGoal', flags.goal)),
    ...set('power', flags.power && enumValue('HostPower', flags.power)),
    ...(Object.keys(cleaning).length > 0 ? { cleaning } : {}),
    ...(Object.keys(deletion).length > 0 ? { deletion } : {}),
    ...(Object.keys(shutdown).length > 0 ? { shutdown } : {}),
    ...set('rootDisk', flags.rootDisk && parseRootDisk(flags.rootDisk)),
    ...set('retired', flags.retired),
  };
  // A new address without a port means the usual port, so the old one must go.
  const paths = [
    ...Object.keys(bmc).map((key) => `spec.bmc.${snake(key)}`),
    ...(flags.bmc !== undefined && !('port' in endpoint) ? ['spec.bmc.port'] : []),
    ...Object.keys(cleaning)
      .filter((key) => key !== 'priorityOverrides')
      .map((key) => `spec.cleaning.${snake(key)}`),
    ...priorities.paths,
    ...Object.keys(deletion).map((key) => `spec.deletion.${snake(key)}`),
    ...Object.keys(shutdown).map((key) => `spec.shutdown.${snake(key)}`),
    ...Object.keys(spec)
      .filter((key) => !['bmc', 'cleaning', 'deletion', 'shutdown'].includes(key))
      .map((key) => `spec.${snake(key)}`),
    ...(flags.rootDisk?.join() === 'none' ? ['spec.root_disk'] : []),
    ...(flags.verification?.join() === 'none' ? ['spec.cleaning.verification'] : []),
    ...labels.paths,
  ];
  return { spec: spec as SpecInit & object, labels: labels.set, paths };
}

function cleaningOf(flags: SpecFlags, priorities: Readonly<Record<string, number>>) {
  return {
    ...set('level', flags.erasure && enumValue('ErasureLevel', flags.erasure)),
    ...set('priorityOverrides', flags.priority && priorities),
    ...set('allowDiskless', flags.allowDiskless),
    ...set('allowUnprovenIdentity', flags.allowUnprovenIdentity),
    ...set('verification', flags.verification && parseVerification(flags.verification)),
    ...set(
      'powerCycleCheck',
      flags.powerCycleCheck && enumValue('PowerCycleCheck', flags.powerCycleCheck),
    ),
    ...set('hiddenAreas', flags.hiddenAreas && enumValue('HiddenAreas', flags.hiddenAreas)),
    ...set('usbDisks', flags.usbDisks && enumValue('UsbDisks', flags.usbDisks)),
    ...set('raidDrives', flags.raidDrives && enumValue('RaidDrives', flags.raidDrives)),
    ...set('method', methodOf(flags.erasureMethod)),
    ...set('movedDisks', flags.movedDisk),
    ...set('bootMedia', flags.bootMedium && parseBootMedia(flags.bootMedium)),
  };
}

/** The media of "SHA256:BYTES"; none of "none". Throws `UsageError`. */
export function parseBootMedia(given: readonly string[]): { sha256: string; sizeBytes: bigint }[] {
  if (given.join() === 'none') return [];
  return given.map((text) => {
    const [, sha256, bytes] = /^([0-9a-f]{64}):(\d{1,15})$/i.exec(text) ?? [];
    if (sha256 === undefined || bytes === undefined) {
      const wanted = 'its SHA-256 in hex, a colon and its size in bytes, or none';
      throw new UsageError(`--boot-medium ${text}: give ${wanted}`);
    }
    return { sha256: sha256.toLowerCase(), sizeBytes: BigInt(bytes) };
  });
}

/** Address and port of "10.0.0.1", "10.0.0.1:623", "[fe80::1]:623" or "fe80::1". */
export function parseEndpoint(given: string): { address: string; port?: number } {
  const bracketed = /^\[(.+)\](?::(\d{1,5}))?$/.exec(given);
  const plain = bracketed ?? /^([^:]*)(?::(\d{1,5}))?$/.exec(given);
  const [, address = given, port] = plain ?? [];
  return port === undefined ? { address } : { address, port: Number(port) };
}

function set<K extends string, T>(key: K, value: T | undefined | ''): { [P in K]?: T } {
  return value === undefined || value === '' ? {} : ({ [key]: value } as { [P in K]?: T });
}

function snake(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

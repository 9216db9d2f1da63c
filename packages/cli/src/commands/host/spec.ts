/** Flags of a host's fields, for `host create` and `host update`. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  bmcProtocolIds,
  CleaningMethod,
  type HostSpecSchema,
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
  textFlag,
} from '../../flags.ts';
import { enumValue } from '../../output/enum-name.ts';
import { field, flagsOf, givenBy, setField, type ValuesOf } from '../frame/fields.ts';
import { parseRootDisk, rootDiskFlag } from './root-disk.ts';
import { parseVerification, verificationFlag } from './verification-spec.ts';

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

/** The first returns to the default. */
const shutdownModes = {
  usual: ShutdownMode.UNSPECIFIED,
  graceful: ShutdownMode.GRACEFUL,
  force: ShutdownMode.FORCE,
} as const;

/** The word of a flag as a value of the enumeration. */
const enumOf = (name: Parameters<typeof enumValue>[0]) => (word: string) => enumValue(name, word);
const yesNoFlag = (brief: string) => ({ kind: 'boolean', optional: true, brief }) as const;
const wordFlag = <const Words extends readonly string[]>(values: Words, brief: string) =>
  ({ kind: 'enum', values, optional: true, brief }) as const;
const listFlag = (brief: string, placeholder: string) =>
  ({ ...textFlag(brief, placeholder), variadic: true }) as const;

/** Each field of a host that a person sets: its flag, its path, and its conversion. */
const fields = {
  bmc: field(
    textFlag('BMC: ADDRESS, ADDRESS:PORT or [IPV6]:PORT', 'address'),
    'bmc.address',
    (given) => parseEndpoint(given).address,
  ),
  credential: field(textFlag('Credential of the BMC', 'id'), 'bmc.credential', (id) =>
    resourceName('credentials', id),
  ),
  cipherSuite: field(
    {
      kind: 'parsed',
      parse: parseWhole,
      optional: true,
      brief: 'IPMI cipher suite, usually 3 or 17',
      placeholder: 'number',
    },
    'bmc.cipherSuite',
  ),
  bmcProtocol: field(
    wordFlag(bmcProtocolIds, 'Protocol of the BMC; without it IPMI; manual: a person switches it'),
    'bmc.protocol',
    enumOf('BmcProtocol'),
  ),
  bmcCertificate: field(
    textFlag(
      'Redfish: SHA-256 of the BMC’s certificate, in hex; without it the first one seen',
      'sha256',
    ),
    'bmc.certificateSha256',
    (hex) => hex.toLowerCase().replaceAll(':', ''),
  ),
  acceptedUuid: field(
    textFlag('UUID that the machine says rightly, although its BMC says another', 'uuid'),
    'bmc.acceptedUuid',
    (uuid) => uuid.toLowerCase().replaceAll('-', ''),
  ),
  wakeOnLan: field(
    yesNoFlag('Send magic packets to its MACs when it is switched on (webhook, manual)'),
    'bmc.wakeOnLan',
  ),
  webhookOn: field(textFlag('Webhook: path that switches it on', 'path'), 'bmc.webhook.onPath'),
  webhookOff: field(textFlag('Webhook: path that switches it off', 'path'), 'bmc.webhook.offPath'),
  webhookState: field(
    textFlag('Webhook: path that says its state', 'path'),
    'bmc.webhook.statePath',
  ),
  webhookMethod: field(
    wordFlag(['GET', 'POST', 'PUT'], 'Webhook: method of on and off; without it POST'),
    'bmc.webhook.method',
  ),
  webhookField: field(
    textFlag('Webhook: where the state stands in the JSON, as relays.0.on', 'field'),
    'bmc.webhook.stateField',
  ),
  webhookHeader: field(
    textFlag('Webhook: header for the password; without it Basic', 'header'),
    'bmc.webhook.secretHeader',
  ),
  webhookPlainHttp: field(
    yesNoFlag('Webhook: plain HTTP; anybody on the way reads the password'),
    'bmc.webhook.plainHttp',
  ),
  erasure: field(
    wordFlag(['full', 'metadata-only'], 'How much a clean removes'),
    'cleaning.level',
    enumOf('ErasureLevel'),
  ),
  allowDiskless: field(
    yesNoFlag('Accept a host without any disk as clean'),
    'cleaning.allowDiskless',
  ),
  allowUnprovenIdentity: field(
    yesNoFlag('Accept a host without any proof of its identity'),
    'cleaning.allowUnprovenIdentity',
  ),
  verification: field(verificationFlag.verification, 'cleaning.verification', parseVerification),
  powerCycleCheck: field(
    wordFlag(['immediate', 'next-boot'], 'When erased disks are read again after a power cycle'),
    'cleaning.powerCycleCheck',
    enumOf('PowerCycleCheck'),
  ),
  hiddenAreas: field(
    wordFlag(['refuse', 'remove'], 'What becomes of a disk that hides a part of its capacity'),
    'cleaning.hiddenAreas',
    enumOf('HiddenAreas'),
  ),
  usbDisks: field(
    wordFlag(['refuse', 'erase', 'leave'], 'What becomes of disks on USB'),
    'cleaning.usbDisks',
    enumOf('UsbDisks'),
  ),
  raidDrives: field(
    wordFlag(
      ['refuse', 'accept'],
      'Whether drives that only the BMC lists are parts of RAID volumes',
    ),
    'cleaning.raidDrives',
    enumOf('RaidDrives'),
  ),
  failingDisks: field(
    wordFlag(['accept', 'refuse'], 'Whether a disk that says it is failing keeps it from use'),
    'cleaning.failingDisks',
    enumOf('FailingDisks'),
  ),
  erasureMethod: field(
    wordFlag(cleaningMethods, 'How every disk is erased; a disk that does not offer it is refused'),
    'cleaning.method',
    (word) =>
      word === 'strongest' ? CleaningMethod.UNSPECIFIED : enumValue('CleaningMethod', word),
  ),
  movedDisk: field(
    listFlag(
      'Serial or WWN of a disk that was moved here from another host; may be repeated',
      'serial',
    ),
    'cleaning.movedDisks',
  ),
  bootMedium: field(
    listFlag(
      'Medium that the host boots from, by SHA-256 and size in bytes; may be repeated',
      'sha256:bytes',
    ),
    'cleaning.bootMedia',
    parseBootMedia,
  ),
  deleteKeepsPower: field(yesNoFlag('A deletion leaves the power as it is'), 'deletion.keepPower'),
  deleteKeepsData: field(
    yesNoFlag('A deletion does not erase a host that ran an image'),
    'deletion.keepData',
  ),
  shutdown: field(
    wordFlag(
      ['usual', 'graceful', 'force'],
      'How power is taken from its system; usual: graceful where somebody’s system runs',
    ),
    'shutdown.mode',
    (word) => shutdownModes[word],
  ),
  shutdownTimeout: field(
    {
      ...timeoutFlag,
      brief: 'Seconds that its system may take to shut down before it is forced off',
    },
    'shutdown.timeoutSeconds',
  ),
  bootMethod: field(
    wordFlag(
      ['network', 'virtual-media'],
      'How it comes into the runner: virtual-media by Redfish',
    ),
    'boot.method',
    enumOf('BootMethod'),
  ),
  mac: field(
    listFlag('MAC address that the host boots from; may be repeated', 'mac'),
    'bootMacs',
    (macs) => macs.map((mac) => mac.toLowerCase().replaceAll('-', ':')),
  ),
  goal: field(
    wordFlag(['available', 'manageable'], 'State that it is led to by itself'),
    'goal',
    enumOf('HostGoal'),
  ),
  power: field(
    wordFlag(['on', 'off', 'unmanaged'], 'What its power should be while no run holds it'),
    'power',
    enumOf('HostPower'),
  ),
  rootDisk: field(rootDiskFlag.rootDisk, 'rootDisk', parseRootDisk),
  retired: field(yesNoFlag('End every clean in manageable'), 'retired'),
} as const;

/** Flags of the spec. */
export const specFlags = {
  ...flagsOf(fields),
  priority: listFlag(
    'INTERFACE.STEP=NUMBER in place of the step’s own, 0 disables; INTERFACE.STEP- undoes it',
    'step=number',
  ),
  ...labelChangeFlag,
} as const;

/** Values of `specFlags`. */
export interface SpecFlags extends ValuesOf<typeof fields> {
  readonly priority?: readonly string[];
  readonly label?: readonly string[];
}

type SpecInit = MessageInitShape<typeof HostSpecSchema>;

/** A host's fields in the flags: the fields of an update, and the paths that it replaces. */
interface GivenSpec {
  readonly spec: SpecInit & object;
  readonly labels: Readonly<Record<string, string>>;
  readonly paths: string[];
}

/**
 * The spec that the flags describe, and the paths of the fields that they set. Throws `UsageError`.
 */
export function specFrom(flags: SpecFlags): GivenSpec {
  const labels = labelChange(flags.label);
  const priorities = parseMapChange(
    '--priority',
    'spec.cleaning.priority_overrides',
    flags.priority,
    (texts) => parsePriorities('--priority', texts),
  );
  const given = givenBy(fields, flags);
  // A new address without a port means the usual port, so the old one must go.
  if (flags.bmc !== undefined) {
    setField(given, 'bmc.port', parseEndpoint(flags.bmc).port);
  }
  const spec = { ...given.spec };
  if (flags.priority !== undefined) {
    spec['cleaning'] = {
      ...(spec['cleaning'] as object | undefined),
      priorityOverrides: priorities.set,
    };
  }
  const paths = [...given.paths, ...priorities.paths, ...labels.paths];
  return { spec, labels: labels.set, paths };
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

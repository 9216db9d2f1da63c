/** Validation of a whole host spec: every problem is reported, with what is right. */
import { isIPv4, isIPv6 } from 'node:net';
import { bootMediumBytesMax, verificationPolicyProblem } from '@rackwright/erasure';
import {
  type BmcEndpoint,
  BmcProtocol,
  BootMethod,
  type BootPolicy,
  CleaningMethod,
  type CleaningPolicy,
  ErasureLevel,
  FailingDisks,
  HiddenAreas,
  HostGoal,
  HostPower,
  type HostSpec,
  PowerCycleCheck,
  RaidDrives,
  ShutdownMode,
  type ShutdownPolicy,
  UsbDisks,
  type VerificationPolicy,
} from '@rackwright/messages';
import { nameProblem } from '../../call/names.ts';
import { quote, type Violations } from '../../call/violations.ts';
import { protocolOf, shutdownSeconds } from '../index.ts';
import { checkRootDisk } from './root-disk.ts';
import { checkWebhook } from './webhook-spec.ts';

const bootMacsMax = 16;
const mac = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;
const dnsName =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
/** Four numbers with dots are meant as an IPv4 address, even if they are not valid. */
const ipv4Like = /^[0-9.]+$/;
const portMax = 65_535;
const cipherSuiteMax = 255;
const stepName = /^[a-z]+\.[a-z][a-z0-9_]*$/;
const overridesMax = 64;
const priorityMax = 1_000;

/** Adds every violation in `spec`, its fields below `path` ("host.spec"). */
export function checkHostSpec(path: string, spec: HostSpec, violations: Violations): void {
  violations.addIf(`${path}.rack`, nameProblem('racks', spec.rack));
  if (spec.bmc === undefined) {
    violations.add(`${path}.bmc`, 'is missing; give the address and credential of its BMC');
  } else {
    checkBmc(`${path}.bmc`, spec.bmc, violations);
  }
  checkMacs(`${path}.boot_macs`, spec.bootMacs, violations);
  checkEnum(`${path}.goal`, HostGoal, spec.goal, violations);
  checkEnum(`${path}.power`, HostPower, spec.power, violations);
  if (spec.cleaning !== undefined) checkCleaning(`${path}.cleaning`, spec.cleaning, violations);
  if (spec.shutdown !== undefined) checkShutdown(`${path}.shutdown`, spec.shutdown, violations);
  if (spec.boot !== undefined) checkBoot(`${path}.boot`, spec.boot, spec.bmc, violations);
  if (spec.rootDisk !== undefined) checkRootDisk(`${path}.root_disk`, spec.rootDisk, violations);
}

/** Virtual media are a feature of the BMC: its protocol must have it. */
function checkBoot(
  path: string,
  { method }: BootPolicy,
  bmc: BmcEndpoint | undefined,
  violations: Violations,
): void {
  checkEnum(`${path}.method`, BootMethod, method, violations);
  const { name, hasVirtualMedia } = protocolOf(bmc?.protocol);
  if (method !== BootMethod.VIRTUAL_MEDIA || bmc === undefined || hasVirtualMedia) return;
  const right = 'use BOOT_METHOD_NETWORK, or Redfish as bmc.protocol';
  violations.add(`${path}.method`, `is VIRTUAL_MEDIA, which ${name} does not have; ${right}`);
}

/** How a running system is switched off, for a host or for one request. */
export function checkShutdown(path: string, policy: ShutdownPolicy, violations: Violations): void {
  checkEnum(`${path}.mode`, ShutdownMode, policy.mode, violations);
  const { timeoutSeconds: seconds } = policy;
  const { shortest, longest, usual } = shutdownSeconds;
  if (seconds === undefined || (seconds >= shortest && seconds <= longest)) return;
  const wanted = `it must be from ${shortest} to ${longest}, or unset for ${usual}`;
  violations.add(`${path}.timeout_seconds`, `is ${seconds}; ${wanted}`);
}

/** What is wrong with a MAC address; undefined when a host can boot from it. */
export function macProblem(text: string): string | undefined {
  if (!mac.test(text)) {
    const digits = text.toLowerCase().replaceAll(/[^0-9a-f]/g, '');
    const written = digits.match(/../g)?.join(':') ?? '';
    const hint = mac.test(written) ? `; write it as ${quote(written)}` : '';
    return `is ${quote(text)}; it must be like "52:54:00:12:34:56"${hint}`;
  }
  const isGroup = (Number.parseInt(text.slice(0, 2), 16) & 1) === 1;
  if (isGroup) return `is ${quote(text)}, a group address; give the interface's own address`;
  return text === '00:00:00:00:00:00'
    ? 'is all zeros; give the interface’s own address'
    : undefined;
}

/** What is wrong with a BMC's address; undefined when it could be reachable. */
export function addressProblem(text: string): string | undefined {
  if (isIPv4(text) || isIPv6(text)) return undefined;
  const wanted = 'must be an IPv4 or IPv6 address or a lower-case DNS name';
  if (text === '') return `is missing; it ${wanted}`;
  if (dnsName.test(text) && !ipv4Like.test(text)) return undefined;
  const hint = /^[a-z]+:\/\//i.test(text) || /:\d+$/.test(text) ? '; the port goes into port' : '';
  return `is ${quote(text)}; it ${wanted}${hint}`;
}

/** A person has no address, and needs no password. */
function checkByHand(path: string, bmc: BmcEndpoint, violations: Violations): void {
  const { address, credential, port } = bmc;
  const given = {
    address: address !== '',
    credential: credential !== '',
    port: port !== undefined,
  };
  for (const [field, isGiven] of Object.entries(given)) {
    if (isGiven) violations.add(`${path}.${field}`, 'belongs to a BMC; leave it out by hand');
  }
}

function checkBmc(path: string, bmc: BmcEndpoint, violations: Violations): void {
  if (protocolOf(bmc.protocol).isByHand) {
    checkByHand(path, bmc, violations);
    checkProtocol(path, bmc, violations);
    return;
  }
  violations.addIf(`${path}.address`, addressProblem(bmc.address));
  violations.addIf(`${path}.credential`, nameProblem('credentials', bmc.credential));
  if (bmc.port !== undefined && (bmc.port < 1 || bmc.port > portMax)) {
    violations.add(`${path}.port`, `is ${bmc.port}; it must be from 1 to ${portMax}, or unset`);
  }
  if (bmc.cipherSuite !== undefined && bmc.cipherSuite > cipherSuiteMax) {
    violations.add(
      `${path}.cipher_suite`,
      `is ${bmc.cipherSuite}; it must be an IPMI cipher suite number, usually 3 or 17, or unset`,
    );
  }
  checkProtocol(path, bmc, violations);
}

function checkAcceptedUuid(path: string, bmc: BmcEndpoint, violations: Violations): void {
  const { acceptedUuid, protocol } = bmc;
  if (acceptedUuid === '') return;
  const field = `${path}.accepted_uuid`;
  if (protocolOf(protocol).isByHand) violations.add(field, 'belongs to a BMC; leave it empty');
  if (/^[0-9a-f]{32}$/.test(acceptedUuid)) return;
  violations.add(field, `is ${quote(acceptedUuid)}; give 32 lower-case hex digits`);
}

/** A field of one protocol is not silently ignored with another. */
function checkProtocol(path: string, bmc: BmcEndpoint, violations: Violations): void {
  checkEnum(`${path}.protocol`, BmcProtocol, bmc.protocol, violations);
  checkWebhook(path, bmc, violations);
  checkAcceptedUuid(path, bmc, violations);
  const { name, hasCipherSuite, hasCertificate } = protocolOf(bmc.protocol);
  if (!hasCipherSuite && bmc.cipherSuite !== undefined) {
    violations.add(`${path}.cipher_suite`, `does not belong to ${name}; leave it unset`);
  }
  if (bmc.certificateSha256 === '') return;
  const field = `${path}.certificate_sha256`;
  if (!hasCertificate) violations.add(field, `does not belong to ${name}; leave it empty`);
  if (!/^[0-9a-f]{64}$/.test(bmc.certificateSha256)) {
    violations.add(field, 'must be the SHA-256 of the BMC’s certificate, 64 lower-case hex digits');
  }
}

function checkMacs(path: string, macs: readonly string[], violations: Violations): void {
  if (macs.length === 0) {
    violations.add(
      path,
      'is empty; give the MAC address of each interface that the host boots from',
    );
  }
  if (macs.length > bootMacsMax) {
    violations.add(path, `has ${macs.length} addresses; at most ${bootMacsMax} are kept`);
    return;
  }
  for (const [index, each] of macs.entries()) {
    const problem = macProblem(each);
    violations.addIf(`${path}[${index}]`, problem);
    const first = macs.indexOf(each);
    if (problem === undefined && first < index) {
      violations.add(
        `${path}[${index}]`,
        `repeats ${quote(each)}, which is boot_macs[${first}] too`,
      );
    }
  }
}

const movedDisksMax = 64;
const diskNameCharactersMax = 128;

function checkMovedDisks(path: string, disks: readonly string[], violations: Violations): void {
  if (disks.length > movedDisksMax) {
    violations.add(path, `names ${disks.length} disks; at most ${movedDisksMax} are kept`);
  }
  for (const [index, { length }] of disks.entries()) {
    if (length >= 1 && length <= diskNameCharactersMax) continue;
    const wanted = `a serial or WWN of 1 to ${diskNameCharactersMax} characters`;
    violations.add(`${path}[${index}]`, `has ${length} characters; give ${wanted}`);
  }
}

const bootMediaMax = 8;

function checkBootMedia(
  path: string,
  media: CleaningPolicy['bootMedia'],
  violations: Violations,
): void {
  if (media.length > bootMediaMax) {
    violations.add(path, `names ${media.length} media; at most ${bootMediaMax} are kept`);
  }
  for (const [index, { sha256, sizeBytes }] of media.entries()) {
    if (!/^[0-9a-f]{64}$/.test(sha256)) {
      const wanted = '64 lower-case hex digits, as sha256sum prints them';
      violations.add(`${path}[${index}].sha256`, `is ${quote(sha256)}; give ${wanted}`);
    }
    if (sizeBytes === 0n || sizeBytes > bootMediumBytesMax) {
      const wanted = `the size of the whole medium, 1 to ${bootMediumBytesMax}`;
      violations.add(`${path}[${index}].size_bytes`, `is ${sizeBytes}; give ${wanted}`);
    }
  }
}

function checkCleaning(path: string, cleaning: CleaningPolicy, violations: Violations): void {
  checkEnum(`${path}.level`, ErasureLevel, cleaning.level, violations);
  checkOverrides(`${path}.priority_overrides`, cleaning.priorityOverrides, violations);
  checkEnum(`${path}.power_cycle_check`, PowerCycleCheck, cleaning.powerCycleCheck, violations);
  checkEnum(`${path}.hidden_areas`, HiddenAreas, cleaning.hiddenAreas, violations);
  checkEnum(`${path}.usb_disks`, UsbDisks, cleaning.usbDisks, violations);
  checkEnum(`${path}.raid_drives`, RaidDrives, cleaning.raidDrives, violations);
  checkEnum(`${path}.failing_disks`, FailingDisks, cleaning.failingDisks, violations);
  checkEnum(`${path}.method`, CleaningMethod, cleaning.method, violations);
  checkBootMedia(`${path}.boot_media`, cleaning.bootMedia, violations);
  checkMovedDisks(`${path}.moved_disks`, cleaning.movedDisks, violations);
  checkVerification(`${path}.verification`, cleaning.verification, violations);
}

/** How disks are read back, for a host or the fleet. */
export function checkVerification(
  path: string,
  policy: VerificationPolicy | undefined,
  violations: Violations,
): void {
  if (policy === undefined) return;
  violations.addIf(path, verificationPolicyProblem(policy));
}

/** Priorities by step, for a host, a pool or the fleet. */
export function checkOverrides(
  path: string,
  byStep: Readonly<Record<string, number>>,
  violations: Violations,
): void {
  const overrides = Object.entries(byStep);
  if (overrides.length > overridesMax) {
    violations.add(path, `has ${overrides.length} entries; at most ${overridesMax} are kept`);
  }
  for (const [step, priority] of overrides.slice(0, overridesMax)) {
    const field = `${path}[${quote(step)}]`;
    if (!stepName.test(step)) {
      violations.add(field, 'must be named "interface.step", as ListCleanSteps does');
    }
    if (priority > priorityMax) {
      violations.add(field, `is ${priority}; it must be from 0 (disabled) to ${priorityMax}`);
    }
  }
}

/** An unknown enum value is never taken for a known one (R8). */
export function checkEnum(
  field: string,
  known: Readonly<Record<string, number | string>>,
  value: number,
  violations: Violations,
): void {
  const numbers = Object.entries(known).filter(([, each]) => typeof each === 'number');
  if (numbers.some(([, each]) => each === value)) return;
  const names = numbers.filter(([, each]) => each !== 0).map(([name]) => name);
  violations.add(field, `is ${value}, which this version does not know; use ${names.join(' or ')}`);
}

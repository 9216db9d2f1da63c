/** Validation of a whole deployment: every problem is reported, with what is right. */
import { toBinary } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  DeployProof,
  type DeploySpec,
  DeploySpecSchema,
  type FirstBoot,
  FirstBootFormat,
} from '@rackwright/messages';
import { errorText, invalid, type Read, valid } from '@rackwright/platform';
import { parse } from 'yaml';
import { quote, type Violations } from '../../call/violations.ts';
import { checkEnum } from './host-spec.ts';
import { diskNameProblem } from './root-disk.ts';

/** A host's record has two of them, of the present and of the next image, besides all else. */
const specBytesMax = 96 * 1024;
const userTextBytesMax = 64 * 1024;
const networkConfigBytesMax = 16 * 1024;
/** Of a host that boots over the network: all of a rack's are sent to its agent in one message. */
const netbootSpecBytesMax = 16 * 1024;
const netbootUserTextBytesMax = 8 * 1024;
const netbootNetworkConfigBytesMax = 4 * 1024;
const metaEntriesMax = 64;
const metaValueBytesMax = 1024;
const metaKey = /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/;
const ownMetaKeys: ReadonlySet<string> = new Set(['instance-id', 'local-hostname']);
const keepDisksMax = 64;
const proofTimeoutMsMin = 60_000;
const proofTimeoutMsMax = 24 * 3_600_000;
/** YAML with aliases may expand without bound when it is parsed. */
const yamlAliasesMax = 100;

const { NO_CLOUD, CONFIG_DRIVE, NONE, UNSPECIFIED } = FirstBootFormat;

/** Adds every violation in `deploy`, its fields below `path` ("deploy"). */
export function checkDeploySpec(path: string, deploy: DeploySpec, violations: Violations): void {
  const { firstBoot, proof, proofTimeout, keepDisks, netboot } = deploy;
  checkEnum(`${path}.proof`, DeployProof, proof, violations);
  if (firstBoot !== undefined) {
    checkFirstBoot(`${path}.first_boot`, firstBoot, deploy, violations);
  }
  if (firstBoot?.format === NONE && proof !== DeployProof.POWER_ON) {
    const why = 'is none: the image is not told where to phone home';
    violations.add(`${path}.first_boot.format`, `${why}; set proof to power on, or use NoCloud`);
  }
  const timeoutMs = proofTimeout === undefined ? undefined : durationMs(proofTimeout);
  if (
    timeoutMs !== undefined &&
    !(timeoutMs >= proofTimeoutMsMin && timeoutMs <= proofTimeoutMsMax)
  ) {
    violations.add(
      `${path}.proof_timeout`,
      'must be from 1 minute to 24 hours, or unset for 20 minutes',
    );
  }
  checkKeepDisks(`${path}.keep_disks`, keepDisks, violations);
  checkBytes(path, deploy, violations);
  if (!netboot) return;
  if (keepDisks.length > 0) {
    violations.add(`${path}.keep_disks`, 'has disks, and netboot writes to none; leave it out');
  }
  if (deploy.grow !== undefined) {
    violations.add(`${path}.grow`, 'is set, and netboot writes no partition; leave it out');
  }
}

function checkBytes(path: string, deploy: DeploySpec, violations: Violations): void {
  const bytes = toBinary(DeploySpecSchema, deploy).byteLength;
  const bytesMax = deploy.netboot ? netbootSpecBytesMax : specBytesMax;
  if (bytes <= bytesMax) return;
  const how = deploy.netboot ? ' of a host that boots over the network' : '';
  violations.add(path, `takes ${bytes} bytes in all; at most ${bytesMax}${how} are kept`);
}

function checkKeepDisks(field: string, disks: readonly string[], violations: Violations): void {
  if (disks.length > keepDisksMax) {
    violations.add(field, `names ${disks.length} disks; at most ${keepDisksMax} are kept`);
    return;
  }
  disks.forEach((disk, index) => {
    const problem = diskNameProblem(disk);
    violations.addIf(`${field}[${index}]`, problem);
    if (problem === undefined && disks.indexOf(disk) < index) {
      violations.add(`${field}[${index}]`, `repeats ${quote(disk)}`);
    }
  });
}

function checkFirstBoot(
  path: string,
  firstBoot: FirstBoot,
  { netboot, proof }: DeploySpec,
  violations: Violations,
): void {
  const calls = proof !== DeployProof.POWER_ON;
  const { format, userData, metaData, networkConfig } = firstBoot;
  checkEnum(`${path}.format`, FirstBootFormat, format, violations);
  if (netboot && format === CONFIG_DRIVE) {
    const why = 'is a config drive, which is a partition, and netboot writes to no disk';
    violations.add(`${path}.format`, `${why}; use NoCloud or none`);
  }
  checkMeta(`${path}.meta_data`, metaData, violations);
  const given = { user_data: userData, network_config: networkConfig };
  const limits = netboot
    ? { user_data: netbootUserTextBytesMax, network_config: netbootNetworkConfigBytesMax }
    : { user_data: userTextBytesMax, network_config: networkConfigBytesMax };
  for (const name of ['user_data', 'network_config'] as const) {
    violations.addIf(`${path}.${name}`, textProblem(given[name], limits[name]));
    if (format === NONE && given[name] !== '') {
      violations.add(`${path}.${name}`, 'is given, and the format is none: nobody would read it');
    }
  }
  if (format === NONE && Object.keys(metaData).length > 0) {
    violations.add(`${path}.meta_data`, 'is given, and the format is none: nobody would read it');
  }
  if (format === CONFIG_DRIVE) {
    violations.addIf(`${path}.user_data`, ignitionProblem(userData, calls));
    if (networkConfig !== '') {
      const why = 'is cloud-init’s own, which no config drive has';
      violations.add(`${path}.network_config`, `${why}; use NoCloud, or put it into user_data`);
    }
  }
  if (format === NO_CLOUD || format === UNSPECIFIED) {
    violations.addIf(`${path}.user_data`, noCloudProblem(userData, calls));
    violations.addIf(`${path}.network_config`, networkProblem(networkConfig));
  }
}

function checkMeta(
  field: string,
  metaData: Readonly<Record<string, string>>,
  violations: Violations,
): void {
  const entries = Object.entries(metaData);
  if (entries.length > metaEntriesMax) {
    violations.add(field, `has ${entries.length} entries; at most ${metaEntriesMax} are kept`);
    return;
  }
  for (const [key, value] of entries) {
    const at = `${field}[${quote(key)}]`;
    if (ownMetaKeys.has(key)) violations.add(at, 'is always set by Rackwright; leave it out');
    else if (!metaKey.test(key)) {
      violations.add(at, 'must be named by 1 to 63 of letters, digits, "_", "." and "-"');
    }
    violations.addIf(at, textProblem(value, metaValueBytesMax));
  }
}

function textProblem(text: string, bytesMax: number): string | undefined {
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) return `has ${bytes} bytes; at most ${bytesMax} are taken`;
  return text.includes('\0') ? 'has a zero byte; it must be text' : undefined;
}

/** A document of Ignition, recognized by its first character. */
function isLikelyJson(text: string): boolean {
  return text.trimStart().startsWith('{');
}

function ignitionProblem(userData: string, calls: boolean): string | undefined {
  if (!isLikelyJson(userData)) return cloudConfigProblem(userData, calls);
  try {
    const document: unknown = JSON.parse(userData);
    const { ignition } = document as { ignition?: { version?: unknown } };
    if (typeof ignition?.version === 'string' && ignition.version !== '') return undefined;
    return 'is JSON without "ignition": {"version": "…"}, which no first boot reads';
  } catch (error) {
    return `begins like an Ignition document and is no JSON: ${firstLine(error)}`;
  }
}

function noCloudProblem(userData: string, calls: boolean): string | undefined {
  if (isLikelyJson(userData)) {
    return 'is JSON: an Ignition document comes by the format config drive, and NoCloud reads YAML';
  }
  return cloudConfigProblem(userData, calls);
}

/** `calls`: the host proves itself by calling us. */
function cloudConfigProblem(userData: string, calls: boolean): string | undefined {
  if (!isCloudConfig(userData)) return undefined;
  const read = readYaml(userData);
  if (read.kind === 'bad') return `begins with "#cloud-config" and is no YAML: ${read.problem}`;
  const config = read.value;
  if (config === null) return undefined;
  if (typeof config !== 'object' || Array.isArray(config)) {
    return 'begins with "#cloud-config" and is no mapping of names to values';
  }
  return calls ? silenceProblem(config) : undefined;
}

/** As cloud-init recognizes it: by its beginning, in any case; an archive is something else. */
function isCloudConfig(userData: string): boolean {
  return /^\s*#cloud-config(?!-)/i.test(userData);
}

/** What would keep the host from phoning home: a later setting of cloud-init overrides ours. */
function silenceProblem(config: object): string | undefined {
  const instead = 'leave it out, or set proof to power on';
  if ('phone_home' in config) {
    const why = 'has a phone_home of its own, which would take the place of the one that proves';
    return `${why} that the host runs; ${instead}`;
  }
  if ('vendor_data' in config && switchesOff(config.vendor_data)) {
    const why = 'turns vendor_data off, by which the host is told where to phone home';
    return `${why}; ${instead}`;
  }
  if ('cloud_final_modules' in config && !runsPhoneHome(config.cloud_final_modules)) {
    const why = 'has cloud_final_modules without phone_home, by which the host proves that it runs';
    return `${why}; add it, or set proof to power on`;
  }
  return undefined;
}

/** As in cloud-init: everything but true is false. */
function switchesOff(vendorData: unknown): boolean {
  if (typeof vendorData !== 'object' || vendorData === null) return false;
  const { enabled = true } = vendorData as { enabled?: unknown };
  return !['true', '1', 'on', 'yes'].includes(String(enabled).toLowerCase());
}

/** A module is listed by its name, or with its frequency. */
function runsPhoneHome(modules: unknown): boolean {
  if (!Array.isArray(modules)) return false;
  return modules.flat().some((name) => name === 'phone_home' || name === 'phone-home');
}

function networkProblem(text: string): string | undefined {
  if (text === '') return undefined;
  const read = readYaml(text);
  if (read.kind === 'bad') return `is no YAML: ${read.problem}`;
  const whole = read.value as { version?: unknown; network?: { version?: unknown } } | null;
  const version = whole?.network?.version ?? whole?.version;
  if (version === 1 || version === 2) return undefined;
  return 'must be a network configuration of cloud-init with "version: 1" or "version: 2"';
}

function readYaml(text: string): Read<unknown> {
  try {
    return valid(parse(text, { maxAliasCount: yamlAliasesMax, logLevel: 'error' }));
  } catch (error) {
    return invalid(firstLine(error));
  }
}

/** The first line has the position. */
function firstLine(error: unknown): string {
  const [line = ''] = errorText(error).split('\n', 1);
  return line.slice(0, 200);
}

/** Validation of a rack's discovery policy and of a line of the manifest. */
import { clone, create } from '@bufbuild/protobuf';
import { meaningfulSerial } from '@rackwright/erasure';
import {
  type AcceptanceRule,
  type DiscoveryPolicy,
  type ExpectedHost,
  type HostSpec,
  HostSpecSchema,
  type MachineMatch,
} from '@rackwright/messages';
import { idProblem } from '../call/names.ts';
import { checkLabels, controlCharacters } from '../call/texts.ts';
import { quote, type Violations } from '../call/violations.ts';
import { isByHand } from '../host/index.ts';
import { addressProblem, checkHostSpec, macProblem } from '../host/spec/host-spec.ts';
import { networkProblem } from '../secrets/index.ts';

const machinesMaxRange = { least: 1, most: 10_000 } as const;
const rulesMax = 64;
const networksMax = 64;
const hostsMaxRange = { least: 1, most: 10_000 } as const;
const patternCharsMax = 128;
const disksMinMost = 256;
/** The placeholders of an id pattern. */
const placeholders = ['{serial}', '{mac}', '{product}'] as const;

/** Placeholder values for the machine's own report; never stored. */
const anyMac = '02:00:00:00:00:01';
const anyAddress = '192.0.2.1';

export function checkDiscoveryPolicy(
  path: string,
  { machinesMax, rules, bmcNetworks }: DiscoveryPolicy,
  violations: Violations,
): void {
  const { least, most } = machinesMaxRange;
  if (machinesMax !== undefined && (machinesMax < least || machinesMax > most)) {
    const wanted = `from ${least} to ${most}, or unset for 256`;
    violations.add(`${path}.machines_max`, `is ${machinesMax}; it must be ${wanted}`);
  }
  if (bmcNetworks.length > networksMax) {
    const text = `has ${bmcNetworks.length} networks; at most ${networksMax} are kept`;
    violations.add(`${path}.bmc_networks`, text);
    return;
  }
  for (const [index, network] of bmcNetworks.entries()) {
    violations.addIf(`${path}.bmc_networks[${index}]`, networkProblem(network));
  }
  if (rules.length > rulesMax) {
    violations.add(`${path}.rules`, `has ${rules.length} rules; at most ${rulesMax} are kept`);
    return;
  }
  for (const [index, rule] of rules.entries()) {
    checkRule(`${path}.rules[${index}]`, rule, violations);
    const first = rules.findIndex(({ name }) => name === rule.name);
    if (rule.name === '' || first === index) continue;
    const repeated = `repeats ${quote(rule.name)}, the name of rules[${first}]`;
    violations.add(`${path}.rules[${index}].name`, repeated);
  }
}

function checkRule(path: string, rule: AcceptanceRule, violations: Violations): void {
  violations.addIf(`${path}.name`, idProblem(rule.name));
  for (const field of ['manufacturer', 'product', 'serial'] as const) {
    violations.addIf(`${path}.${field}`, textProblem(rule[field]));
  }
  if (rule.disksMin > disksMinMost) {
    const wanted = `from 0 to ${disksMinMost}`;
    violations.add(`${path}.disks_min`, `is ${rule.disksMin}; it must be ${wanted}`);
  }
  const { hostsMax } = rule;
  const { least, most } = hostsMaxRange;
  if (hostsMax !== undefined && (hostsMax < least || hostsMax > most)) {
    const wanted = `from ${least} to ${most}, or unset for 256`;
    violations.add(`${path}.hosts_max`, `is ${hostsMax}; it must be ${wanted}`);
  }
  violations.addIf(`${path}.host_id`, patternProblem(rule.hostId));
  checkLabels(`${path}.labels`, rule.labels, violations);
  checkPartialSpec(`${path}.spec`, rule.spec, { isRule: true }, violations);
}

/** A rule must not give two machines the same name. */
function patternProblem(pattern: string): string | undefined {
  const filled = placeholders.reduce((text, each) => text.replaceAll(each, '1'), pattern);
  const problem = idProblem(filled);
  if (pattern === '' || problem !== undefined) {
    const wanted = `must be an id with ${placeholders.join(', ')}, as "node-{serial}"`;
    return `is ${quote(pattern)}; it ${wanted}`;
  }
  if (pattern.includes('{serial}') || pattern.includes('{mac}')) return undefined;
  return `is ${quote(pattern)}; it must have {serial} or {mac}, so that each machine gets its own`;
}

/** A line of the manifest. */
export function checkExpectedHost(
  path: string,
  { match, labels, spec }: ExpectedHost,
  violations: Violations,
): void {
  if (match === undefined || isEmpty(match)) {
    const wanted = 'give at least one of serial, mac and bmc_address';
    violations.add(`${path}.match`, `names no machine; ${wanted}`);
  } else {
    checkMatch(`${path}.match`, match, violations);
  }
  checkLabels(`${path}.labels`, labels, violations);
  checkPartialSpec(`${path}.spec`, spec, { isRule: false }, violations);
}

function isEmpty({ serial, mac, bmcAddress }: MachineMatch): boolean {
  return serial.trim() === '' && mac === '' && bmcAddress === '';
}

function checkMatch(
  path: string,
  { serial, mac, bmcAddress }: MachineMatch,
  violations: Violations,
): void {
  violations.addIf(`${path}.serial`, textProblem(serial) ?? fillerProblem(serial));
  if (mac !== '') violations.addIf(`${path}.mac`, macProblem(mac));
  if (bmcAddress !== '') violations.addIf(`${path}.bmc_address`, addressProblem(bmcAddress));
}

/** A value that many boards share does not identify a machine. */
function fillerProblem(serial: string): string | undefined {
  if (serial === '' || meaningfulSerial(serial) !== undefined) return undefined;
  return `is ${quote(serial)}, which stands for none; give the machine’s own, or its MAC or BMC`;
}

function textProblem(text: string): string | undefined {
  if (text.length <= patternCharsMax && !controlCharacters.test(text)) return undefined;
  return `must have at most ${patternCharsMax} characters without control characters`;
}

/** Fields that the machine reports may be missing; a rule also gets the rack from elsewhere. */
function checkPartialSpec(
  path: string,
  spec: HostSpec | undefined,
  { isRule }: { readonly isRule: boolean },
  violations: Violations,
): void {
  const whole = spec === undefined ? create(HostSpecSchema) : clone(HostSpecSchema, spec);
  if (isRule && whole.rack !== '') {
    const wanted = 'a rule takes machines of its own rack';
    violations.add(`${path}.rack`, `is ${quote(whole.rack)}; leave it empty: ${wanted}`);
  }
  if (isRule) whole.rack = 'racks/r';
  if (whole.bootMacs.length === 0) whole.bootMacs = [anyMac];
  else if (isRule) violations.add(`${path}.boot_macs`, 'must be empty: they are the machine’s own');
  if (whole.bmc !== undefined && whole.bmc.address === '' && !isByHand(whole))
    whole.bmc.address = anyAddress;
  checkHostSpec(path, whole, violations);
}

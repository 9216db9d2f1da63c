/**
 * What becomes of a discovered machine. Pure: machine and world in, decision out.
 *
 * J1 What is a host already, by one of its MACs or by its identity, is never listed or accepted.
 * J2 Lines of the manifest go before rules. A line takes a machine only when all that it names
 *    fits; one that fits in part, or fits together with another, takes none and says why.
 * J3 The first rule that fits takes the machine, or says what it lacks.
 */

import { create } from '@bufbuild/protobuf';
import {
  type AcceptanceRule,
  BmcIdentitySchema,
  type DiscoveredMachine,
  type ExpectedHost,
  type HostSpec,
  type SystemIdentity,
  Transport,
} from '@rackwright/api';
import { judgeIdentity, witnessOfBmc, witnessOfSystem } from '@rackwright/erasure';
import { isSameMachine } from './traits.ts';
import type { KeptExpected, KeptMachine, KnownHost, World } from './world.ts';

/** Who takes a machine, and as what. */
export interface Acceptance {
  readonly hostId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: HostSpec | undefined;
  /** For the timeline: "expectedHosts/h1", "rule small". */
  readonly by: string;
  /** Uid of the line that takes it. */
  readonly expectedUid?: string;
}

export type Decision =
  | { readonly kind: 'host'; readonly host: KnownHost; readonly words: string }
  | { readonly kind: 'accept'; readonly acceptance: Acceptance }
  | { readonly kind: 'wait'; readonly words: string };

/** Whose machine it is, or who takes it. */
export function judge(kept: KeptMachine, world: World): Decision {
  const known = hostOf(kept, world.hosts);
  if (known !== undefined) return { kind: 'host', ...known };
  const lines = world.expected.filter(({ expected }) => expected.host === '');
  const fitting = lines.filter((line) => matchOf(line.expected, kept).kind === 'fits');
  const [line] = fitting;
  if (fitting.length > 1) {
    const names = fitting.map(({ expected }) => expected.name).join(', ');
    return {
      kind: 'wait',
      words: `${names} all fit it; say in each what tells it from the others`,
    };
  }
  if (line !== undefined) return byLine(line.expected, kept, world);
  const partly = lines.filter((each) => matchOf(each.expected, kept).kind === 'partly');
  if (partly.length > 0) {
    const names = partly.map(({ expected }) => expected.name).join(', ');
    return { kind: 'wait', words: `it fits ${names} in part only; see what is said there` };
  }
  return byRules(kept, world);
}

/** The host that the machine is already (J1), and how it is known. */
export function hostOf(
  { machine, traits }: KeptMachine,
  hosts: readonly KnownHost[],
): { readonly host: KnownHost; readonly words: string } | undefined {
  for (const host of hosts) {
    const shared = traits.macs.find((mac) => host.bootMacs.includes(mac));
    const isIt =
      shared !== undefined ||
      (host.traits !== undefined && isSameMachine(traits, host.traits)) ||
      (host.traits === undefined && isProvedBy(machine.inventory?.system, host));
    if (!isIt) continue;
    return { host, words: wordsOf(machine, host) };
  }
  return undefined;
}

function wordsOf({ bootMac, rack }: DiscoveredMachine, host: KnownHost): string {
  if (!host.bootMacs.includes(bootMac)) {
    return (
      `it is ${host.name}, whose boot MACs lack ${bootMac}: add that with ` +
      `\`rackwright host update ${host.hostId}\`, or let the machine boot from another interface`
    );
  }
  return host.rack === rack ? `it is ${host.name}` : `it is ${host.name} of ${host.rack}`;
}

/** Whether the agent of this rack should have known the machine by its MAC. */
export function isKnownBoot({ bootMac, rack }: DiscoveredMachine, host: KnownHost): boolean {
  return host.rack === rack && host.bootMacs.includes(bootMac);
}

function isProvedBy(system: SystemIdentity | undefined, { bmcIdentity }: KnownHost): boolean {
  if (system === undefined || bmcIdentity === undefined) return false;
  const bmc = create(BmcIdentitySchema, bmcIdentity);
  return judgeIdentity(witnessOfSystem(system), witnessOfBmc(bmc)).kind === 'proven';
}

type Match =
  | { readonly kind: 'fits' }
  | { readonly kind: 'partly'; readonly fits: string; readonly differs: string }
  | { readonly kind: 'other' };

/** How a line of the manifest fits a machine. */
export function matchOf({ match }: ExpectedHost, { machine, traits }: KeptMachine): Match {
  const serial = machine.inventory?.system?.serial.trim() ?? '';
  const bmc = machine.bmcAddress;
  const { serial: wantedSerial = '', mac = '', bmcAddress = '' } = match ?? {};
  const asked = [
    {
      what: `serial ${wantedSerial}`,
      wanted: wantedSerial !== '',
      fits: wantedSerial.trim().toUpperCase() === serial.toUpperCase(),
      says: `the serial ${serial || 'nothing'}`,
    },
    {
      what: `MAC ${mac}`,
      wanted: mac !== '',
      fits: traits.macs.includes(mac),
      says: `the MACs ${traits.macs.slice(0, namedMax).join(' ')}`,
    },
    {
      what: `BMC ${bmcAddress}`,
      wanted: bmcAddress !== '',
      fits: bmcAddress === bmc,
      says: bmc === '' ? 'no BMC address that could be read in band' : `the BMC ${bmc}`,
    },
  ].filter(({ wanted }) => wanted);
  const fits = asked.filter((each) => each.fits);
  const differs = asked.filter((each) => !each.fits);
  if (fits.length === 0) return { kind: 'other' };
  if (differs.length === 0) return { kind: 'fits' };
  const words = differs.map(({ what, says }) => `not ${what}: it has ${says}`).join(', ');
  return { kind: 'partly', fits: fits.map(({ what }) => what).join(', '), differs: words };
}

/** Things of one kind that are named in words. */
const namedMax = 4;

/** What a line that has taken nothing yet says of machines that fit it in part, or of rivals. */
export function conflictOf(line: KeptExpected, world: World): string {
  const said: string[] = [];
  if (world.hosts.some(({ hostId }) => hostId === line.id)) {
    said.push(`hosts/${line.id} exists already and was not made of this line`);
  }
  for (const kept of world.machines) {
    const match = matchOf(line.expected, kept);
    const { name } = kept.machine;
    if (match.kind === 'partly') said.push(`${name} has ${match.fits}, but ${match.differs}`);
    if (match.kind !== 'fits') continue;
    const rivals = world.expected.filter(({ id, expected }) => {
      return id !== line.id && expected.host === '' && matchOf(expected, kept).kind === 'fits';
    });
    const names = rivals.slice(0, namedMax).map(({ expected }) => expected.name);
    if (names.length > 0) said.push(`${name} fits ${names.join(', ')} as well`);
    const elsewhere = elsewhereWords(line.expected, kept);
    if (elsewhere !== undefined) said.push(elsewhere);
  }
  return bounded(said.slice(0, namedMax).join('; '));
}

const wordsCharsMax = 1_000;

/** Words as they are kept. */
export function bounded(words: string): string {
  return words.length <= wordsCharsMax ? words : `${words.slice(0, wordsCharsMax)}…`;
}

function elsewhereWords({ spec }: ExpectedHost, { machine }: KeptMachine): string | undefined {
  const wanted = spec?.rack ?? '';
  if (wanted === '' || wanted === machine.rack) return undefined;
  return `${machine.name} is in ${machine.rack}, not in ${wanted}`;
}

function byLine(expected: ExpectedHost, kept: KeptMachine, world: World): Decision {
  const hostId = expected.name.replace('expectedHosts/', '');
  const elsewhere = elsewhereWords(expected, kept);
  if (elsewhere !== undefined) return { kind: 'wait', words: `${expected.name}: ${elsewhere}` };
  if (world.hosts.some((host) => host.hostId === hostId)) {
    const words = `${expected.name} fits, but hosts/${hostId} exists already`;
    return { kind: 'wait', words };
  }
  const { labels, spec, uid, name } = expected;
  return { kind: 'accept', acceptance: { hostId, labels, spec, by: name, expectedUid: uid } };
}

function byRules(kept: KeptMachine, world: World): Decision {
  const { rules = [], enabled } = world.racks.get(kept.machine.rack)?.spec?.discovery ?? {};
  const rule = enabled === true ? rules.find((each) => ruleFits(each, kept)) : undefined;
  if (rule === undefined) {
    return { kind: 'wait', words: 'no expected host and no rule of its rack fits it' };
  }
  const hostId = hostIdBy(rule.hostId, kept);
  const by = `rule ${rule.name}`;
  if (world.hosts.some((host) => host.hostId === hostId)) {
    return { kind: 'wait', words: `${by} fits, but hosts/${hostId} exists already` };
  }
  return { kind: 'accept', acceptance: { hostId, labels: rule.labels, spec: rule.spec, by } };
}

/** Whether a rule takes machines that look so. */
export function ruleFits(rule: AcceptanceRule, { machine }: KeptMachine): boolean {
  const { system, memoryBytes = 0n, devices = [] } = machine.inventory ?? {};
  const disks = devices.filter(({ transport }) => !noDisks.has(transport));
  return (
    textFits(rule.manufacturer, system?.manufacturer) &&
    textFits(rule.product, system?.product) &&
    textFits(rule.serial, system?.serial) &&
    memoryBytes >= rule.memoryBytesMin &&
    disks.length >= rule.disksMin
  );
}

const noDisks: ReadonlySet<Transport> = new Set([
  Transport.OPTICAL,
  Transport.VIRTUAL_MEDIA,
  Transport.KERNEL,
  Transport.MMC_BOOT,
  Transport.USB,
]);

/** Case does not count; "*" stands for any text, also in the middle. */
function textFits(pattern: string, text = ''): boolean {
  if (pattern === '') return true;
  const [first = '', ...rest] = pattern.toLowerCase().split('*');
  const last = rest.pop();
  let left = text.trim().toLowerCase();
  if (last === undefined) return left === first;
  if (!left.startsWith(first)) return false;
  left = left.slice(first.length);
  for (const part of rest) {
    const at = left.indexOf(part);
    if (at < 0) return false;
    left = left.slice(at + part.length);
  }
  return left.endsWith(last);
}

/** The host's id by a rule's pattern; whether it is one is looked at when the host is made. */
export function hostIdBy(pattern: string, { machine, traits }: KeptMachine): string {
  const { system } = machine.inventory ?? {};
  const word = (text: string): string =>
    text
      .trim()
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '');
  const mac = (machine.bootMac || (traits.macs[0] ?? '')).replaceAll(':', '');
  return pattern
    .replaceAll('{serial}', word(system?.serial ?? ''))
    .replaceAll('{product}', word(system?.product ?? ''))
    .replaceAll('{mac}', mac);
}

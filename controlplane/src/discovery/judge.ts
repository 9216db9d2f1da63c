/**
 * Decides about a discovered machine. Pure: machine and snapshot in, decision out.
 *
 * J1 A machine that is already a host, by one of its MACs or by its identity, is never listed or
 *    accepted.
 * J2 Lines of the manifest go before rules. A line takes a machine only when everything that it
 *    names matches. A line that matches in part, or together with another line, takes none and says
 *    why.
 * J3 The first rule that matches takes the machine, or says what is missing.
 * J4 A BMC's credential is sent only where a person has permitted it: to an address in the line or
 *    rule, or to an address that the machine reports and that lies in a network of its rack.
 * J5 Only a host of its own rack removes a machine from the list and learns its inventory. For
 *    hosts of other racks only the boot MACs count, because a person gave them; the reports of
 *    their agents do not count.
 */

import { create } from '@bufbuild/protobuf';
import {
  judgeIdentity,
  meaningfulSerial,
  witnessOfBmc,
  witnessOfSystem,
} from '@rackwright/erasure';
import {
  type AcceptanceRule,
  BmcIdentitySchema,
  counted,
  type DiscoveredMachine,
  type ExpectedHost,
  type HostId,
  type HostSpec,
  type SystemIdentity,
  Transport,
} from '@rackwright/messages';
import { isByHand } from '../host/index.ts';
import { idOf } from '../records/index.ts';
import { liesWithin } from '../secrets/index.ts';
import type { KeptExpected, KeptMachine } from './kept.ts';
import { hostsNear, linesNear } from './lookup.ts';
import type { DiscoverySnapshot, KnownHost } from './snapshot.ts';
import { isSameMachine } from './traits.ts';

/** Why and as what a machine is accepted. */
export interface Acceptance {
  readonly hostId: HostId;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: HostSpec | undefined;
  /** For the timeline: "expectedHosts/h1", "rule small". */
  readonly by: string;
  /** Uid of the line that takes it. */
  readonly expectedUid?: string;
  /** "racks/RACK rule NAME" of the rule that takes it. */
  readonly rule?: string;
}

export type MachineDecision =
  | { readonly kind: 'host'; readonly host: KnownHost; readonly text: string }
  | { readonly kind: 'accept'; readonly acceptance: Acceptance }
  /** `fits`: a line or a rule matches it, and something keeps that from taking it. */
  | { readonly kind: 'wait'; readonly text: string; readonly fits: boolean };

/** The host that the machine already is, or the line or rule that takes it. */
export function judge(kept: KeptMachine, snapshot: DiscoverySnapshot): MachineDecision {
  const { rack } = kept.machine;
  const known = hostOf(kept, snapshot.hosts, (host) => {
    return host.rack === rack || bootMacOf(kept, host) !== undefined;
  });
  if (known !== undefined) {
    return known.host.rack === rack ? { kind: 'host', ...known } : waiting(known.text);
  }
  const near = linesNear(kept, snapshot.expected);
  const fitting = near.filter((line) => matchOf(line.expected, kept).kind === 'fits');
  const [line] = fitting;
  if (fitting.length > 1) {
    return waiting(`${named(fitting)} all fit it; say in each what tells it from the others`);
  }
  if (line !== undefined) return byLine(line.expected, kept, snapshot);
  if (near.length > 0) {
    return waiting(`it fits ${named(near)} in part only; see what is said there`);
  }
  return byRules(kept, snapshot);
}

function waiting(text: string): MachineDecision {
  return { kind: 'wait', text: bounded(text), fits: true };
}

function named(lines: readonly KeptExpected[]): string {
  const more = lines.length > namedMax ? ` and ${lines.length - namedMax} more` : '';
  const names = lines.slice(0, namedMax).map(({ expected }) => expected.name);
  return `${names.join(', ')}${more}`;
}

/**
 * The host that the machine already is (J1), and how it is recognized; among the hosts that count.
 */
export function hostOf(
  kept: KeptMachine,
  hosts: readonly KnownHost[],
  counts: (host: KnownHost) => boolean = () => true,
): { readonly host: KnownHost; readonly text: string } | undefined {
  const { machine, traits } = kept;
  for (const host of hostsNear(kept, hosts)) {
    const isIt =
      bootMacOf(kept, host) !== undefined ||
      (host.traits !== undefined && isSameMachine(traits, host.traits)) ||
      (host.traits === undefined && isProvedBy(machine.inventory?.system, host));
    if (!isIt || !counts(host)) continue;
    return { host, text: textOf(machine, host) };
  }
  return undefined;
}

/** A boot MAC of the host that the machine has. */
function bootMacOf({ traits }: KeptMachine, { bootMacs }: KnownHost): string | undefined {
  return traits.macs.find((mac) => bootMacs.includes(mac));
}

function textOf({ bootMac, rack }: DiscoveredMachine, host: KnownHost): string {
  if (host.rack !== rack) return `it is ${host.name} of ${host.rack}`;
  if (!host.bootMacs.includes(bootMac)) {
    // The flag replaces all of them: a MAC that is not repeated would be lost.
    const macs = [...host.bootMacs, bootMac].map((mac) => `--mac ${mac}`).join(' ');
    return (
      `it is ${host.name}, whose boot MACs lack ${bootMac}: add that with ` +
      `\`rackwright host update ${host.hostId} ${macs}\`, ` +
      'or let the machine boot from another interface'
    );
  }
  return `it is ${host.name}`;
}

/** Whether the agent of this rack should have recognized the machine by its MAC. */
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

/** How well a line of the manifest matches a machine. */
export function matchOf({ match }: ExpectedHost, { machine, traits }: KeptMachine): Match {
  const serial = traits.serial ?? '';
  const bmc = machine.bmcAddress;
  const { serial: wantedSerial = '', mac = '', bmcAddress = '' } = match ?? {};
  const criteria = [
    {
      property: `serial ${wantedSerial}`,
      wanted: wantedSerial !== '',
      fits: serial !== '' && meaningfulSerial(wantedSerial) === serial,
      says: `the serial ${serial || 'nothing'}`,
    },
    {
      property: `MAC ${mac}`,
      wanted: mac !== '',
      fits: traits.macs.includes(mac),
      says: `the MACs ${traits.macs.slice(0, namedMax).join(' ')}`,
    },
    {
      property: `BMC ${bmcAddress}`,
      wanted: bmcAddress !== '',
      fits: bmcAddress === bmc,
      says: bmc === '' ? 'no BMC address that could be read in band' : `the BMC ${bmc}`,
    },
  ].filter(({ wanted }) => wanted);
  const fits = criteria.filter((each) => each.fits);
  const differs = criteria.filter((each) => !each.fits);
  if (fits.length === 0) return { kind: 'other' };
  if (differs.length === 0) return { kind: 'fits' };
  const text = differs.map(({ property, says }) => `not ${property}: it has ${says}`).join(', ');
  return { kind: 'partly', fits: fits.map(({ property }) => property).join(', '), differs: text };
}

/** The most names of one kind in a message. */
const namedMax = 4;

/** What an unused line says of machines that match it in part, or of rival lines. */
export function conflictOf({ id, expected }: KeptExpected, snapshot: DiscoverySnapshot): string {
  const texts = snapshot.isHost(id)
    ? [`hosts/${id} exists already and was not made of this line`]
    : [];
  const ofMachines = textsOfMachines.get(snapshot) ?? conflictsOf(snapshot);
  textsOfMachines.set(snapshot, ofMachines);
  texts.push(...(ofMachines.get(expected.uid) ?? []));
  return bounded(texts.slice(0, namedMax).join('; '));
}

/** Computed once for each snapshot: by the uid of the line. */
const textsOfMachines = new WeakMap<DiscoverySnapshot, ReadonlyMap<string, readonly string[]>>();

function conflictsOf(snapshot: DiscoverySnapshot): ReadonlyMap<string, readonly string[]> {
  const textsById = new Map<string, string[]>();
  const say = ({ expected }: KeptExpected, text: string): void => {
    textsById.set(expected.uid, [...(textsById.get(expected.uid) ?? []), text].slice(0, namedMax));
  };
  for (const kept of snapshot.machines) {
    const { name } = kept.machine;
    const near = linesNear(kept, snapshot.expected);
    const fitting = near.filter((line) => matchOf(line.expected, kept).kind === 'fits');
    for (const line of near) {
      const match = matchOf(line.expected, kept);
      if (match.kind === 'partly') say(line, `${name} has ${match.fits}, but ${match.differs}`);
      if (match.kind !== 'fits') continue;
      const rivals = fitting.filter((each) => each !== line);
      if (rivals.length > 0) say(line, `${name} fits ${named(rivals)} as well`);
      const obstacle = elsewhere(line.expected, kept);
      if (obstacle !== undefined) say(line, obstacle.text);
    }
  }
  return textsById;
}

const textCharsMax = 1_000;

/** The text, shortened to the stored length. */
export function bounded(text: string): string {
  return text.length <= textCharsMax ? text : `${text.slice(0, textCharsMax)}…`;
}

/** What keeps a line or a rule that matches a machine from taking it. */
interface TakeObstacle {
  readonly kind: /** The machine is in another rack. */
    | 'elsewhere'
    /** The machine reports no address of its BMC. */
    | 'bmcUnread'
    /** That address lies in no BMC network of its rack. */
    | 'bmcOutside';
  /** For people. */
  readonly text: string;
}

function elsewhere({ spec }: ExpectedHost, { machine }: KeptMachine): TakeObstacle | undefined {
  const wanted = spec?.rack ?? '';
  if (wanted === '' || wanted === machine.rack) return undefined;
  const text = `${machine.name} is in ${machine.rack}, not in ${wanted}`;
  return { kind: 'elsewhere', text };
}

function byLine(
  expected: ExpectedHost,
  kept: KeptMachine,
  snapshot: DiscoverySnapshot,
): MachineDecision {
  const hostId = idOf(expected.name);
  const obstacle = elsewhere(expected, kept);
  if (obstacle !== undefined) return waiting(`${expected.name}: ${obstacle.text}`);
  if (snapshot.isHost(hostId)) {
    return waiting(`${expected.name} fits, but hosts/${hostId} exists already`);
  }
  // The BMC address of the line matches, or this code is not reached; a person wrote it.
  const isWritten = (expected.match?.bmcAddress ?? '') !== '';
  const unsafe = isWritten ? undefined : unsafeAddress(expected.spec, kept, snapshot);
  if (unsafe !== undefined) return waiting(`${expected.name} fits, but ${unsafe.text}`);
  const { labels, spec, uid, name } = expected;
  return { kind: 'accept', acceptance: { hostId, labels, spec, by: name, expectedUid: uid } };
}

function byRules(kept: KeptMachine, snapshot: DiscoverySnapshot): MachineDecision {
  const { rules = [], enabled } = snapshot.racks.get(kept.machine.rack)?.spec?.discovery ?? {};
  const rule = enabled === true ? rules.find((each) => ruleFits(each, kept)) : undefined;
  if (rule === undefined) {
    const text = 'no expected host and no rule of its rack fits it';
    return { kind: 'wait', text, fits: false };
  }
  const by = `rule ${rule.name}`;
  const ruleName = `${kept.machine.rack} ${by}`;
  const hostId = hostIdBy(rule.hostId, kept);
  if (hostId === undefined) {
    return waiting(`${by} fits, but the machine has no serial number of its own to be named by`);
  }
  if (snapshot.isHost(hostId)) {
    return waiting(`${by} fits, but hosts/${hostId} exists already`);
  }
  const most = rule.hostsMax ?? hostsMaxDefault;
  const made = snapshot.madeByRule(ruleName);
  if (made >= most) {
    return waiting(
      `${by} fits, but has made ${counted(made, 'host')} already, of ${most}: see its hostsMax`,
    );
  }
  const unsafe = unsafeAddress(rule.spec, kept, snapshot);
  if (unsafe !== undefined) return waiting(`${by} fits, but ${unsafe.text}`);
  const { labels, spec } = rule;
  return { kind: 'accept', acceptance: { hostId, labels, spec, by, rule: ruleName } };
}

/** The most hosts of one rule, where the rule names no maximum. */
const hostsMaxDefault = 256;

/** J4: why the credential is not sent to the BMC address that the machine reports. */
function unsafeAddress(
  spec: HostSpec | undefined,
  { machine: { rack, bmcAddress } }: KeptMachine,
  snapshot: DiscoverySnapshot,
): TakeObstacle | undefined {
  if (spec?.bmc === undefined || spec.bmc.address !== '' || isByHand(spec)) return undefined;
  if (bmcAddress === '') {
    const text = 'the address of its BMC could not be read in band: accept it by hand, or give it';
    return { kind: 'bmcUnread', text };
  }
  const networks = snapshot.racks.get(rack)?.spec?.discovery?.bmcNetworks ?? [];
  if (liesWithin(bmcAddress, networks)) return undefined;
  const flags = [...networks, 'NETWORK'].map((each) => `--bmc-network ${each}`).join(' ');
  const id = idOf(rack);
  const text =
    `its BMC says ${bmcAddress}, which lies in no BMC network of ${rack}: accept it by hand, or ` +
    `name the network by \`rackwright rack update ${id} ${flags}\``;
  return { kind: 'bmcOutside', text };
}

/** Whether a rule accepts such machines. */
export function ruleFits(rule: AcceptanceRule, { machine, traits }: KeptMachine): boolean {
  const { system, memoryBytes = 0n, devices = [] } = machine.inventory ?? {};
  const disks = devices.filter(({ transport }) => !noDisks.has(transport));
  return (
    textFits(rule.manufacturer, system?.manufacturer) &&
    textFits(rule.product, system?.product) &&
    textFits(rule.serial, traits.serial) &&
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

/**
 * The host's id by a rule's pattern; CreateHost validates it. Undefined: the pattern needs a serial
 * number that the machine lacks.
 */
export function hostIdBy(pattern: string, { machine, traits }: KeptMachine): HostId | undefined {
  const { system } = machine.inventory ?? {};
  const word = (text: string): string =>
    text
      .trim()
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '');
  const mac = (machine.bootMac || (traits.macs[0] ?? '')).replaceAll(':', '');
  const serial = word(traits.serial ?? '');
  if (serial === '' && pattern.includes('{serial}')) return undefined;
  return pattern
    .replaceAll('{serial}', serial)
    .replaceAll('{product}', word(system?.product ?? ''))
    .replaceAll('{mac}', mac);
}

/**
 * What a person can do about each kind of failure. Each line is one action; a command in it works
 * as it stands once the words in capitals are filled in.
 */
import {
  BmcProtocol,
  eraseStep,
  HostState,
  type Run,
  RunKind,
  type RunStep,
  type store,
} from '@rackwright/api';
import { readImageName } from '../../images/index.ts';
import { idOf } from '../../records/index.ts';
import { tooWeakFor } from '../erasure/device-plan.ts';
import { isPool } from '../life/claim.ts';
import { isEngineStep } from '../run/steps.ts';
import { engineSteps } from '../turn/step-names.ts';
import { activeRun } from '../turn/turn.ts';
import { hostId } from './told.ts';

/** What the lines name: as people type it. */
interface Named {
  readonly host: string;
  readonly credential: string;
  /** Address and port, with the protocol, for reading. */
  readonly place: string;
  /** How `--bmc` is given for this host: with a port where the present one is not the usual. */
  readonly endpoint: string;
  /** Its deletion is what goes on. */
  readonly isDeleted: boolean;
  /** A clean by its policy would erase nothing, and is refused until that is another. */
  readonly isTooWeak: boolean;
  /** The command that starts again what failed. */
  readonly again: string;
  /** Another certificate than the pinned one, when the failure shows one. */
  readonly shownCertificate: string;
  /** "host:port" of the registry that the image comes from. */
  readonly registry: string;
  /** The host whose identity was met instead, when the failure names it; else empty. */
  readonly owner: string;
}

type Advice = (named: Named) => readonly string[];

const retriedByItself = 'it is then tried again at once by itself';
const updateBmc = ({ host, endpoint }: Named) => `rackwright host update ${host} --bmc ${endpoint}`;
const verify = (host: string) => `rackwright host verify ${host}`;
const updateCredential = ({ credential }: Named) =>
  `rackwright credential update ${credential} --username USER`;

const otherCredential = ({ host }: Named) => `rackwright host update ${host} --credential ID`;

const replaceDisk: Advice = ({ again }) => [
  'take the disk that is named out of the host, or replace it',
  `then: ${again}`,
];

const otherImage: Advice = ({ again }) => [
  'have the image made or pushed anew, or name another one',
  `then: ${again}`,
];

const advice: Readonly<Record<string, Advice>> = {
  authentication: (named) => [
    `correct user name and password: ${updateCredential(named)}`,
    retriedByItself,
  ],
  lockedOut: (named) => [
    'wait until the BMC lets the account in again, or unlock it there',
    `then store the credential again: ${updateCredential(named)}`,
    retriedByItself,
  ],
  credentialUnusable: (named) => [
    `give its password again: ${updateCredential(named)}`,
    `or, when it may not go there, give the host another one: ${otherCredential(named)}`,
    retriedByItself,
  ],
  unreachable: (named) => [
    `see that the BMC at ${named.place} has power and network; it is tried again by itself`,
    `or correct its address: ${updateBmc(named)}`,
  ],
  protocol: (named) => [
    `see what answers at ${named.place}: it does not speak the protocol of a BMC`,
    `correct address or protocol: ${updateBmc(named)}`,
  ],
  invalidArgument: (named) => [
    `correct where its BMC is: ${updateBmc(named)}`,
    `or how it is spoken to: ${updateCredential(named)}`,
    retriedByItself,
  ],
  certificateMismatch: ({ host, shownCertificate }) => [
    'find out why the BMC shows another certificate than the pinned one',
    `if it is right: rackwright host update ${host} --bmc-certificate ${shownCertificate}`,
  ],
  notApplied: ({ place, again }) => [
    `the BMC at ${place} says yes and does nothing: reset or replace it`,
    `then: ${again}`,
  ],
  identityMismatch: (named) => [
    'find out which of the two hosts has the wrong BMC address (or cable)',
    `correct it: ${updateBmc(named)}`,
    ...(named.owner === '' ? [] : [`if that is the other one’s: ${verify(named.owner)}`]),
    // Whatever failed: only a verify says anew whose BMC answers there.
    `then: ${verify(named.host)}`,
  ],
  identityUnproven: ({ host, again }) => [
    'give the machine a serial number in SMBIOS and FRU',
    `or accept it as it is: rackwright host update ${host} --allow-unproven-identity`,
    `then: ${again}`,
  ],
  dataReturned: ({ host }) => [
    'the disk that is named does not keep an erasure: take it out of the host, or replace it',
    `then have its disks erased, and read again after a power cycle: rackwright host clean ${host}`,
  ],
  noDevices: ({ host, again }) => [
    `see why no disk is there, or accept it: rackwright host update ${host} --allow-diskless`,
    `then: ${again}`,
  ],
  notCertified: ({ host, again, isTooWeak }) => {
    const erase =
      'let a clean erase, if its policy keeps it from that: ' +
      `rackwright host update ${host} --priority ${eraseStep}=10`;
    return isTooWeak ? [erase] : [erase, `or erase what has been added since: ${again}`];
  },
  planChanged: ({ host, again, isDeleted }) => [
    'find out why other disks are there than the plan has named',
    ...(isDeleted
      ? [
          `then plan the deletion anew, and start that: rackwright host plan delete ${host}`,
          `or take it back, and delete the host anew: rackwright host cancel-delete ${host}`,
        ]
      : [
          `then erase what is there: ${again}`,
          `or plan it anew, and start that: rackwright host plan clean ${host}`,
        ]),
  ],
  imageNotFound: ({ registry, again }) => [
    `see that ${registry} has the image, and that its name is right; or name another image`,
    `then: ${again}`,
  ],
  imageDigestMismatch: otherImage,
  imageTruncated: otherImage,
  badImage: otherImage,
  notBootable: otherImage,
  wrongArchitecture: otherImage,
  registryUnauthorized: ({ registry, again }) => [
    `give the registry a credential: rackwright fleet registry set ${registry} --credential ID`,
    `then: ${again}`,
  ],
  registryUnreachable: ({ registry, again }) => [
    `see that ${registry} answers the agent of its rack`,
    `or say how it is asked: rackwright fleet registry set ${registry} --authority FILE`,
    `then: ${again}`,
  ],
  noSpace: ({ again }) => [
    'make room on the disk of the agent, or let its cache of images be larger in its configuration',
    `then: ${again}`,
  ],
  imageTooLarge: ({ host, again }) => [
    `name a larger disk: rackwright host update ${host} --root-disk min-size=SIZE`,
    'or use a smaller image',
    `then: ${again}`,
  ],
  keepDisk: ({ host, again }) => [
    `name another disk for the image: rackwright host update ${host} --root-disk serial=SERIAL`,
    'or keep that disk no longer',
    `then: ${again}`,
  ],
  noRootDisk: ({ host, again }) => [
    `say which disk the image comes onto: rackwright host update ${host} --root-disk serial=SERIAL`,
    `then: ${again}`,
  ],
  notProved: ({ host, again }) => [
    `look at the console of hosts/${host}: whether it boots, has an address on the provisioning ` +
      'network, and runs cloud-init to the end',
    `then: ${again}`,
  ],
  queueTimeout: ({ again }) => [
    'let the agent of its rack serve more hosts at once (imagesAtOnceMax in its configuration), ' +
      'or ask for fewer at a time',
    `then: ${again}`,
  ],
  writeError: replaceDisk,
  notErased: replaceDisk,
  unverified: replaceDisk,
  ioError: replaceDisk,
  deviceRefused: replaceDisk,
  deviceChanged: replaceDisk,
};

/** Lines for a failure's type; never empty. */
export function adviceFor(type: string, record: store.HostRecord): string[] {
  const named = namesOf(record);
  const words = record.host?.status?.lastError?.failure?.message ?? '';
  const locked = type === 'authentication' && words.includes('locked the account');
  const lines = advice[locked ? 'lockedOut' : type]?.(named);
  if (lines === undefined) return [`see to the cause, then: ${named.again}`];
  const { status } = record.host ?? {};
  const run = status === undefined ? undefined : activeRun(status);
  // A host that is being removed takes no change; between two attempts it does.
  if (run?.kind !== RunKind.DELETE) return [...lines];
  return lines.filter((line) => !line.includes('rackwright host update '));
}

function namesOf(record: store.HostRecord): Named {
  const bmc = record.host?.spec?.bmc;
  const host = hostId(record);
  const redfish = bmc?.protocol === BmcProtocol.REDFISH;
  const port = bmc?.port ?? (redfish ? 443 : 623);
  return {
    host,
    credential: bmc === undefined ? 'CREDENTIAL' : idOf(bmc.credential),
    place: `${bmc?.address ?? '?'}:${port} (${redfish ? 'Redfish' : 'IPMI'})`,
    endpoint: bmc?.port === undefined ? 'ADDRESS' : `ADDRESS:${bmc.port}`,
    again: `rackwright ${failedCommand(record, host)}`,
    shownCertificate: shownCertificate(record),
    registry: registryOfImage(record.image),
    isDeleted: record.host?.status?.deletion !== undefined,
    owner: ownerNamed(record),
    isTooWeak: isTooWeak(record),
  };
}

function isTooWeak({ host }: store.HostRecord): boolean {
  const run = host?.status?.run;
  if (host?.spec === undefined || run?.kind !== RunKind.CLEAN) return false;
  return tooWeakFor(host.spec, run) !== undefined;
}

function registryOfImage(image: string): string {
  const read = readImageName(image);
  return read.kind === 'ok' ? read.name.registry : 'REGISTRY';
}

/** As `recordIdentity` and `checkMachine` name it. */
function ownerNamed(record: store.HostRecord): string {
  const message = record.host?.status?.lastError?.failure?.message ?? '';
  return /(?:is the one of|it is) hosts\/([a-z0-9-]+)/.exec(message)?.[1] ?? '';
}

/** The command that starts what failed last. */
function failedCommand(record: store.HostRecord, host: string): string {
  const { lastError, run, deletion, claim, state } = record.host?.status ?? {};
  const retry = `host retry ${host}`;
  // What was asked for last is what goes on, not the work that failed on the way to it.
  if (deletion !== undefined || record.adoptTo !== HostState.UNSPECIFIED) return retry;
  const kind = lastError?.run.split(' ')[0] ?? '';
  const isWritten = kind === 'reimage' || (kind === 'provision' && state === HostState.AVAILABLE);
  if (claim !== undefined && isPool(claim.by)) {
    // Only the pool writes it or has it cleaned, and its goal leads it there.
    if (isWritten) return `pool explain ${idOf(claim.by)}`;
    if (kind === 'clean' || kind === 'provision') return retry;
  }
  if (isWritten) return `host ${kind} ${host} ${record.image || 'IMAGE'}`;
  switch (kind) {
    case 'verify':
    case 'inspect':
    case 'clean':
    case 'release':
    case 'rescue':
      return `host ${kind} ${host}`;
    case 'provision':
      return `host clean ${host}`;
    case 'service':
      return `host service ${host} ${stepFlags(run)}`;
    case 'power':
      return `host power ${powerAction(run)} ${host}`;
    default:
      return retry;
  }
}

/** The steps of the service that failed, as long as no other run has come after it. */
function stepFlags(run: Run | undefined): string {
  const steps = run?.kind === RunKind.SERVICE ? run.steps : [];
  const flags = steps
    .filter(({ name }) => !isEngineStep(name))
    .map((step) => `--step ${[step.name, ...pairsOf(step)].join(',')}`);
  return flags.join(' ') || '--step STEP';
}

function pairsOf({ arguments: given }: RunStep): string[] {
  return Object.entries(given).map(([name, value]) => `${name}=${value}`);
}

function powerAction(run: Run | undefined): string {
  const names = run?.steps.map(({ name }) => name) ?? [];
  if (!names.includes(engineSteps.on)) return 'off';
  // A host that is on already boots its disk only when it is switched off before.
  return names.includes(engineSteps.off) || run?.error?.type === 'conflict' ? 'reset' : 'on';
}

/** The fingerprint in the failure's words that is not the pinned one. */
function shownCertificate(record: store.HostRecord): string {
  const failure = record.host?.status?.lastError?.failure;
  const words = `${failure?.message ?? ''} ${failure?.detail ?? ''}`;
  const pinned = [
    record.host?.spec?.bmc?.certificateSha256,
    record.host?.status?.bmcIdentity?.certificateSha256,
  ];
  const shown = [...words.matchAll(/\b[0-9a-f]{64}\b/g)].map(([text]) => text);
  return shown.find((text) => !pinned.includes(text)) ?? 'SHA256';
}

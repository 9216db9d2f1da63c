/**
 * What a person can do about each kind of failure. Each line is one action; a command in it works
 * as written once the words in capitals are filled in.
 */

import {
  BootStepKind,
  type CredentialName,
  type DisabledStep,
  eraseStep,
  type FailureName,
  hasFault,
  PriorityPlace,
  RunKind,
  type store,
} from '@rackwright/messages';
import { readImageName } from '../../images/index.ts';
import { idOf } from '../../records/index.ts';
import { protocolOf } from '../bmc/protocols.ts';
import { isDisabledByHost } from '../erasure/device-plan.ts';
import { activeRun } from '../pass/pass.ts';
import { adviceOnBoot } from './boot-advice.ts';
import { hostId } from './explanation-draft.ts';
import { change, inspect, type Line, start } from './lines.ts';
import { type RepeatCommand, repeatCommandOf } from './repeat-command.ts';

/** The names in the lines, in the form for commands. */
interface AdviceNames {
  readonly host: string;
  readonly credential: CredentialName;
  /** Address and port, with the protocol, for reading. */
  readonly location: string;
  /** The value of `--bmc` for this host: with the port where it differs from the default. */
  readonly endpoint: string;
  /** Whether the work in progress is its deletion. */
  readonly isDeleted: boolean;
  /**
   * A clean would erase nothing under the present policy, and is refused until the policy changes.
   */
  readonly isCleanRefused: boolean;
  /** What disables the erasing step in cleans, where the failure names it. */
  readonly disabled: DisabledStep | undefined;
  /** Its BMC has refused the present credential: it is not asked with that again. */
  readonly isCredentialRefused: boolean;
  /** The command that repeats the failed work, or shows what does. */
  readonly repeatCommand: RepeatCommand;
  /** Another certificate than the pinned one, when the failure shows one. */
  readonly shownCertificate: string;
  /** "host:port" of the registry that the image comes from. */
  readonly registry: string;
  /** The boot step that was not reached, where the failure names it. */
  readonly missing: BootStepKind;
  /** Its boot MACs, and its rack without "racks/". */
  readonly macs: readonly string[];
  readonly rack: string;
  /** The owner of a foreign identity, when the failure names it; otherwise empty. */
  readonly owner: string;
}

type Advice = (named: AdviceNames) => readonly Line[];

/** Repeats the failed work. */
const again = ({ repeatCommand: { command, kind } }: AdviceNames, then = 'then'): Line => ({
  kind,
  text: `${then}: ${command}`,
});

const retriedByItself = inspect('it is then tried again at once by itself');
const updateBmc = ({ host, endpoint }: AdviceNames) =>
  `rackwright host update ${host} --bmc ${endpoint}`;
const verify = (host: string) => `rackwright host verify ${host}`;
const updateCredential = ({ credential }: AdviceNames) =>
  `rackwright credential update ${credential} --username USER`;

const overNetwork = ({ host }: AdviceNames) =>
  change(`or boot it over the network: rackwright host update ${host} --boot-method network`);
const otherCredential = ({ host }: AdviceNames) => `rackwright host update ${host} --credential ID`;

const replaceDisk: Advice = (named) => [
  inspect('take the disk that is named out of the host, or replace it'),
  again(named),
];

const seeSettings: Advice = (named) => [
  inspect(`see what holds and what still waits for a boot: rackwright host bmc bios ${named.host}`),
  again(named, 'correct the step, then'),
];

const otherImage: Advice = (named) => [
  inspect('have the image made or pushed anew, or name another one'),
  again(named),
];

const history = ({ host }: AdviceNames) => `rackwright host history ${host}`;
const bmcLog = ({ host }: AdviceNames) =>
  inspect(`see in the log of its BMC why it refused: rackwright host bmc log ${host}`);

/** A failure of a type that this version does not know. */
const seeHistory: Advice = (named) => [
  inspect(`see what failed, and in which step: ${history(named)}`),
  again(named),
];

/** It stopped before its end, and no cause is known. */
const justAgain: Advice = (named) => [again(named, 'start it again')];

/** A fault of agent or runner, not of the host. */
const reportIt: Advice = (named) => [
  inspect('look at the logs of the agent of its rack, and see that its version fits this one'),
  again(named),
];

/** An unreachable BMC is a fault, and no failed run. */
const unreachable: Advice = (named) => [
  inspect(
    `see that the BMC at ${named.location} has power and network; it is tried again by itself`,
  ),
  change(`or correct its address: ${updateBmc(named)}`),
];

/** A fault of an inspection, whether or not a run failed. */
const diskKnownElsewhere: Advice = (named) => [
  inspect('find out which of the two hosts has the disk that is named, and whether both see it'),
  inspect('if it was moved: inspect the other host again, or delete it if it is gone'),
  change(`or vouch for it: rackwright host update ${named.host} --moved-disk SERIAL`),
  again(named),
];

/** Only a verify finds that the BMC is the host's own, and a host that is to go gets none. */
const cancelDeletionToVerify = ({ host }: AdviceNames): Line =>
  change(
    'if the BMC that answers is its own, take the deletion back, so that it can be verified: ' +
      `rackwright host cancel-delete ${host}`,
  );

const correctCredential = (named: AdviceNames): Line =>
  inspect(`correct user name and password: ${updateCredential(named)}`);

const advice: Readonly<Record<FailureName, Advice>> = {
  authentication: (named) => [correctCredential(named), retriedByItself],
  lockedOut: (named) => [
    inspect('wait until the BMC lets the account in again, or unlock it there'),
    inspect(`then store the credential again: ${updateCredential(named)}`),
    retriedByItself,
  ],
  credentialUnusable: (named) => [
    inspect(`give its password again: ${updateCredential(named)}`),
    change(`or, when it may not go there, give the host another one: ${otherCredential(named)}`),
    retriedByItself,
  ],
  protocol: (named) => [
    inspect(`see what answers at ${named.location}: it does not speak the protocol of a BMC`),
    change(`correct address or protocol: ${updateBmc(named)}`),
  ],
  invalidArgument: (named) => [
    inspect('correct the argument that the message names, in the step or in its template'),
    again(named),
  ],
  invalidBootSettings: (named) => [
    change(
      'correct what the message names: the label boot of the host ' +
        `(rackwright host update ${named.host} --label boot=PROFILE), or its agent’s configuration`,
    ),
    overNetwork(named),
    again(named),
  ],
  invalidBmcAccess: (named) => [
    change(`correct where its BMC is: ${updateBmc(named)}`),
    inspect(`or how it is spoken to: ${updateCredential(named)}`),
    retriedByItself,
  ],
  certificateMismatch: ({ host, shownCertificate }) => [
    inspect('find out why the BMC shows another certificate than the pinned one'),
    change(`if it is right: rackwright host update ${host} --bmc-certificate ${shownCertificate}`),
  ],
  privilege: (named) => [
    inspect('give the user the right that is missing: on most BMCs the role of an administrator'),
    change(`or give the host a credential of another user: ${otherCredential(named)}`),
    again(named),
  ],
  bmcRefused: (named) => [
    bmcLog(named),
    inspect('correct the step, if the message names one of its arguments'),
    again(named),
  ],
  toolMissing: (named) => [
    inspect('install the program that is named on the agent of its rack'),
    again(named),
  ],
  exchangeFailed: (named) => [
    inspect('see the network between the host and the agent of its rack, and the log of the agent'),
    again(named),
  ],
  notApplied: (named) => [
    inspect(`the BMC at ${named.location} says yes and does nothing: reset or replace it`),
    again(named),
  ],
  settingRefused: seeSettings,
  settingUnknown: seeSettings,
  stillPending: seeSettings,
  updateFailed: (named) => [
    bmcLog(named),
    inspect(`see which components it lists: rackwright host bmc firmware ${named.host}`),
    again(named, 'correct component, version and uri of the step, then'),
  ],
  volumesRefused: (named) => [
    bmcLog(named),
    inspect('correct controller and drives of the step: the message says what the BMC lists'),
    again(named),
  ],
  hardwareDefect: (named) => [
    inspect(`see what the burn-in has found: rackwright host get ${named.host}`),
    inspect('replace the part that is named, or improve its cooling'),
    again(named),
  ],
  mediaRefused: (named) => [
    inspect(
      `see that the BMC at ${named.location} can fetch from the agent, and has a licence for it`,
    ),
    overNetwork(named),
    again(named),
  ],
  mediaMissing: (named) => [
    inspect(
      `see that the BMC at ${named.location} has a virtual drive for CDs, and the agent media`,
    ),
    overNetwork(named),
    again(named),
  ],
  identityMismatch: (named) => [
    inspect('find out which of the two hosts has the wrong BMC address (or cable)'),
    ...(named.isDeleted ? [cancelDeletionToVerify(named)] : []),
    change(`correct it: ${updateBmc(named)}`),
    ...(named.owner === '' ? [] : [start(`if that is the other one’s: ${verify(named.owner)}`)]),
    // After any failure: only a verify checks again whose BMC responds there.
    ...(named.isDeleted ? [] : [start(`then: ${verify(named.host)}`)]),
  ],
  identityUnproven: (named) => [
    inspect('give the machine a serial number in SMBIOS and FRU'),
    change(`or accept it as it is: rackwright host update ${named.host} --allow-unproven-identity`),
    again(named),
  ],
  dataReturned: ({ host }) => [
    inspect(
      'the disk that is named does not keep an erasure: take it out of the host, or replace it',
    ),
    start(
      'then have its disks erased, and read again after a power cycle: ' +
        `rackwright host clean ${host}`,
    ),
  ],
  noDevices: (named) => [
    change(
      'see why no disk is there, or accept it: ' +
        `rackwright host update ${named.host} --allow-diskless`,
    ),
    again(named),
  ],
  notCertified: (named) => {
    const erase = letErase(named);
    return named.isCleanRefused
      ? erase
      : [...erase, again(named, 'or erase what has been added since')];
  },
  planChanged: (named) => [
    inspect('find out why other disks are there than the plan has named'),
    ...(named.isDeleted
      ? [
          inspect(
            'then plan the deletion anew, and start that: ' +
              `rackwright host plan delete ${named.host}`,
          ),
          inspect(
            'or take it back, and delete the host anew: ' +
              `rackwright host cancel-delete ${named.host}`,
          ),
        ]
      : [
          again(named, 'then erase what is there'),
          inspect(`or plan it anew, and start that: rackwright host plan clean ${named.host}`),
        ]),
  ],
  imageNotFound: (named) => [
    inspect(
      `see that ${named.registry} has the image, and that its name is right; or name another image`,
    ),
    again(named),
  ],
  imageDigestMismatch: otherImage,
  imageTruncated: otherImage,
  badImage: otherImage,
  notBootable: otherImage,
  wrongArchitecture: otherImage,
  // Of a command: its registry need not be the one of the host's image.
  imageUnusable: (named) => [
    inspect(
      'correct what the message names: the name of the image, the credential or the address of ' +
        'its registry (rackwright fleet registry list), or the image itself',
    ),
    again(named),
  ],
  registryUnauthorized: (named) => [
    inspect(
      'give the registry a credential: ' +
        `rackwright fleet registry set ${named.registry} --credential ID`,
    ),
    again(named),
  ],
  registryUnreachable: (named) => [
    inspect(`see that ${named.registry} answers the agent of its rack`),
    inspect(
      'or say how it is asked: ' +
        `rackwright fleet registry set ${named.registry} --authority FILE`,
    ),
    again(named),
  ],
  noSpace: (named) => [
    inspect('make room on the disk of the agent, or let its cache of images be larger'),
    again(named),
  ],
  imageTooLarge: (named) => [
    change(`name a larger disk: rackwright host update ${named.host} --root-disk min-size=SIZE`),
    inspect('or use a smaller image'),
    again(named),
  ],
  keepDisk: (named) => [
    change(
      'name another disk for the image: ' +
        `rackwright host update ${named.host} --root-disk serial=SERIAL`,
    ),
    inspect('or keep that disk no longer'),
    again(named),
  ],
  noRootDisk: (named) => [
    change(
      'say which disk the image comes onto: ' +
        `rackwright host update ${named.host} --root-disk serial=SERIAL`,
    ),
    again(named),
  ],
  notProved: (named) => [
    inspect(
      `look at the console of hosts/${named.host}: whether it boots, has an address on the ` +
        'provisioning network, and runs cloud-init to the end',
    ),
    again(named),
  ],
  queueTimeout: (named) => [
    inspect(
      'let the agent of its rack serve more hosts at once (imagesAtOnceMax in its ' +
        'configuration), or ask for fewer at a time',
    ),
    again(named),
  ],
  writeError: replaceDisk,
  notErased: replaceDisk,
  unverified: replaceDisk,
  ioError: replaceDisk,
  deviceRefused: replaceDisk,
  deviceChanged: replaceDisk,
  deviceVanished: (named) => [
    inspect('see that the disk that is named is in its slot'),
    again(named),
  ],
  hiddenArea: (named) => [
    inspect('the disk that is named hides capacity: let the policy remove it, or replace the disk'),
    again(named),
  ],
  runnerLost: (named) => [
    inspect(
      `look at the console of hosts/${named.host}, and at its link to the provisioning network`,
    ),
    again(named),
  ],
  tooLate: (named) => [
    inspect(`see what the host waited for until the window closed: ${history(named)}`),
    inspect('wait for the next window of its pool, or give the pool a longer one'),
    again(named),
  ],
  exitCode: (named) => [inspect('read what the program wrote; correct the step'), again(named)],
  refused: (named) => [inspect('see why the webhook refuses'), again(named)],
  notAllowed: (named) => [
    inspect('find out from the message which setting forbids the step, and what it forbids'),
    inspect('or permit an internal address: rackwright fleet update --internal-address ADDRESS'),
    inspect('or permit a URL of firmware: redfishFirmwareUrls in the configuration of its agent'),
    again(named, 'correct the step or that setting, then'),
  ],
  conflict: (named) => [
    // Only the BMC shows that the other work has ended with its host.
    ...(named.isCredentialRefused ? [correctCredential(named)] : []),
    inspect(`see what else was at work on the host or its BMC: ${history(named)}`),
    inspect('wait until that has ended, or end it; if the host was on already, reset it instead'),
    again(named),
  ],
  unsupported: (named) => [
    inspect('leave the step out, if the message names the BMC or its protocol'),
    inspect('or see that the versions of agent and runner fit this one'),
    again(named),
  ],
  invalidResult: reportIt,
  internal: reportIt,
  cancelled: (named) => [
    inspect(`see who or what ended it, and why: ${history(named)}`),
    again(named, 'once that reason is gone, then'),
  ],
  deadline: (named) => [
    ...(named.missing === BootStepKind.UNSPECIFIED
      ? [inspect(`see which step took the time, and give it a longer timeout: ${history(named)}`)]
      : []),
    ...adviceOnBoot(named.missing, named),
    again(named),
  ],
  interrupted: justAgain,
  lost: (named) => [inspect('look what became of the host'), again(named)],
  pendingTimeout: ({ host }) => [
    inspect(`see what the workflow waited for: rackwright workflow explain ${host} TEMPLATE`),
    inspect(
      'or let it wait for longer: ' +
        `rackwright workflow update ${host} TEMPLATE --pending-timeout 4h`,
    ),
    start(`once that is over: rackwright workflow run ${host} TEMPLATE`),
  ],
  restored: (named) => [inspect('check whether the host is in use'), again(named)],
};

/** The problem: a failure, or a BMC that does not respond. */
export type AdviceKey = FailureName | 'unreachable' | 'diskKnownElsewhere';

/** Lines about the present problem; never empty unless all of them would be refused. */
export function adviceFor(key: AdviceKey | undefined, record: store.HostRecord): string[] {
  return linesFor(key, record).map(({ text }) => text);
}

/** The same during a run: without commands that start another run. */
export function adviceDuringRun(key: AdviceKey | undefined, record: store.HostRecord): string[] {
  const lines = linesFor(key, record).filter(({ kind }) => kind !== 'start');
  return lines.map(({ text }) => text);
}

function linesFor(key: AdviceKey | undefined, record: store.HostRecord): readonly Line[] {
  const named = namesOf(record);
  const own = adviceOf(key)(named);
  // A failed clean may have begun under another policy; the present one refuses the next clean.
  const isRefused = named.repeatCommand.isClean && named.isCleanRefused;
  const lines = isRefused && key !== 'notCertified' ? [...letErase(named), ...own] : own;
  const { status } = record.host ?? {};
  const run = status === undefined ? undefined : activeRun(status);
  // A host that is being removed accepts no change; between two attempts it does.
  if (run?.kind !== RunKind.DELETE) return lines;
  return lines.filter(({ kind }) => kind !== 'change');
}

function adviceOf(key: AdviceKey | undefined): Advice {
  if (key === undefined) return seeHistory;
  if (key === 'diskKnownElsewhere') return diskKnownElsewhere;
  return key === 'unreachable' ? unreachable : advice[key];
}

function namesOf(record: store.HostRecord): AdviceNames {
  const bmc = record.host?.spec?.bmc;
  const host = hostId(record);
  const protocol = protocolOf(bmc?.protocol);
  const port = bmc?.port ?? protocol.port;
  return {
    host,
    credential: bmc === undefined ? 'CREDENTIAL' : idOf(bmc.credential),
    location: `${bmc?.address ?? '?'}:${port} (${protocol.name})`,
    endpoint: bmc?.port === undefined ? 'ADDRESS' : `ADDRESS:${bmc.port}`,
    repeatCommand: repeatCommandOf(record, host),
    shownCertificate: shownCertificateOf(record),
    registry: registryOfImage(record.image),
    isDeleted: record.host?.status?.deletion !== undefined,
    owner: ownerNamed(record),
    macs: record.host?.spec?.bootMacs ?? [],
    rack: idOf(record.host?.spec?.rack),
    missing: missingOf(record),
    isCleanRefused: isCleanRefused(record),
    disabled: disabledIn(record),
    isCredentialRefused: isCredentialRefused(record),
  };
}

function isCredentialRefused({ host }: store.HostRecord): boolean {
  return hasFault(host?.status?.faults ?? [], 'bmcAuthentication');
}

function disabledIn(record: store.HostRecord): DisabledStep | undefined {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'disabledStep' ? kind.value : undefined;
}

/** Ways to permit the erasing step: where it was disabled, or for this host alone. */
function letErase({ host, disabled }: AdviceNames): Line[] {
  const step = disabled?.step ?? eraseStep;
  const here = `rackwright host update ${host} --priority ${step}=10`;
  switch (disabled?.by) {
    case PriorityPlace.FLEET:
      return [
        change(`let cleans of every host erase: rackwright fleet update --priority ${step}-`),
        change(`or of this host alone: ${here}`),
      ];
    case PriorityPlace.POOL: {
      const undo = `rackwright fleet update --pool-priority ${disabled.pool}:${step}-`;
      return [
        change(`let cleans of the hosts with its label pool erase: ${undo}`),
        change(`or of this host alone: ${here}`),
      ];
    }
    case PriorityPlace.HOST:
      return [change(`let its cleans erase: rackwright host update ${host} --priority ${step}-`)];
    default:
      return [change(`let a clean erase, if its policy keeps it from that: ${here}`)];
  }
}

function missingOf(record: store.HostRecord): BootStepKind {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'bootStalled' ? kind.value.missing : BootStepKind.UNSPECIFIED;
}

/** The host's record lacks the fleet's settings; the failure names them. */
function isCleanRefused(record: store.HostRecord): boolean {
  const by = disabledIn(record)?.by;
  if (by === PriorityPlace.FLEET || by === PriorityPlace.POOL) return true;
  return isDisabledByHost(record.host?.spec ?? {});
}

function registryOfImage(image: string): string {
  const read = readImageName(image);
  return read.kind === 'ok' ? read.name.registry : 'REGISTRY';
}

/** Without "hosts/"; empty where the failure does not name it. */
function ownerNamed(record: store.HostRecord): string {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'otherHost' ? idOf(kind.value.name) : '';
}

/** From the failure. */
function shownCertificateOf(record: store.HostRecord): string {
  const { kind } = record.host?.status?.lastError?.failure?.details ?? {};
  return kind?.case === 'shownCertificate' ? kind.value.sha256 : 'SHA256';
}

/**
 * What a person can do about each kind of failure. Each line is one action; a command in it works
 * as written once the words in capitals are filled in.
 */

import { BootStepKind, eraseStep, type FailureName, PriorityPlace } from '@rackwright/messages';
import type { AdviceNames } from './advice-names.ts';
import { adviceOnBoot } from './boot-advice.ts';
import { changeLine, inspectLine, type Line, startLine } from './lines.ts';

export type Advice = (named: AdviceNames) => readonly Line[];

/** Repeats the failed work. */
const again = ({ repeatCommand: { command, kind } }: AdviceNames, then = 'then'): Line => ({
  kind,
  text: `${then}: ${command}`,
});

const retriedByItself = inspectLine('it is then tried again at once by itself');
const updateBmc = ({ host, endpoint }: AdviceNames) =>
  `rackwright host update ${host} --bmc ${endpoint}`;
const verify = (host: string) => `rackwright host verify ${host}`;
const updateCredential = ({ credential }: AdviceNames) =>
  `rackwright credential update ${credential} --username USER`;

const overNetwork = ({ host }: AdviceNames) =>
  changeLine(`or boot it over the network: rackwright host update ${host} --boot-method network`);
const otherCredential = ({ host }: AdviceNames) => `rackwright host update ${host} --credential ID`;

const replaceDisk: Advice = (named) => [
  inspectLine('take the disk that is named out of the host, or replace it'),
  again(named),
];

const seeSettings: Advice = (named) => [
  inspectLine(
    `see what holds and what still waits for a boot: rackwright host bmc bios ${named.host}`,
  ),
  again(named, 'correct the step, then'),
];

const otherImage: Advice = (named) => [
  inspectLine('have the image made or pushed anew, or name another one'),
  again(named),
];

const history = ({ host }: AdviceNames) => `rackwright host history ${host}`;
const bmcLog = ({ host }: AdviceNames) =>
  inspectLine(`see in the log of its BMC why it refused: rackwright host bmc log ${host}`);

/** A failure of a type that this version does not know. */
export const seeHistory: Advice = (named) => [
  inspectLine(`see what failed, and in which step: ${history(named)}`),
  again(named),
];

/** It stopped before its end, and no cause is known. */
const justAgain: Advice = (named) => [again(named, 'start it again')];

/** A fault of agent or runner, not of the host. */
const reportIt: Advice = (named) => [
  inspectLine('look at the logs of the agent of its rack, and see that its version fits this one'),
  again(named),
];

/** An unreachable BMC is a fault, and no failed run. */
export const unreachable: Advice = (named) => [
  inspectLine(
    `see that the BMC at ${named.location} has power and network; it is tried again by itself`,
  ),
  changeLine(`or correct its address: ${updateBmc(named)}`),
];

/** A fault of an inspection, whether or not a run failed. */
export const diskKnownElsewhere: Advice = (named) => [
  inspectLine(
    'find out which of the two hosts has the disk that is named, and whether both see it',
  ),
  inspectLine('if it was moved: inspect the other host again, or delete it if it is gone'),
  changeLine(`or vouch for it: rackwright host update ${named.host} --moved-disk SERIAL`),
  again(named),
];

/** Only a verify finds that the BMC is the host's own, and a host that is to go gets none. */
const cancelDeletionToVerify = ({ host }: AdviceNames): Line =>
  changeLine(
    'if the BMC that answers is its own, take the deletion back, so that it can be verified: ' +
      `rackwright host cancel-delete ${host}`,
  );

const correctCredential = (named: AdviceNames): Line =>
  inspectLine(`correct user name and password: ${updateCredential(named)}`);

export const failureAdvice: Readonly<Record<FailureName, Advice>> = {
  authentication: (named) => [correctCredential(named), retriedByItself],
  lockedOut: (named) => [
    inspectLine('wait until the BMC lets the account in again, or unlock it there'),
    inspectLine(`then store the credential again: ${updateCredential(named)}`),
    retriedByItself,
  ],
  credentialUnusable: (named) => [
    inspectLine(`give its password again: ${updateCredential(named)}`),
    changeLine(
      `or, when it may not go there, give the host another one: ${otherCredential(named)}`,
    ),
    retriedByItself,
  ],
  protocol: (named) => [
    inspectLine(`see what answers at ${named.location}: it does not speak the protocol of a BMC`),
    changeLine(`correct address or protocol: ${updateBmc(named)}`),
  ],
  invalidArgument: (named) => [
    inspectLine('correct the argument that the message names, in the step or in its template'),
    again(named),
  ],
  invalidBootSettings: (named) => [
    changeLine(
      'correct what the message names: the label boot of the host ' +
        `(rackwright host update ${named.host} --label boot=PROFILE), or its agent’s configuration`,
    ),
    overNetwork(named),
    again(named),
  ],
  invalidBmcAccess: (named) => [
    changeLine(`correct where its BMC is: ${updateBmc(named)}`),
    inspectLine(`or how it is spoken to: ${updateCredential(named)}`),
    retriedByItself,
  ],
  certificateMismatch: ({ host, shownCertificate }) => [
    inspectLine('find out why the BMC shows another certificate than the pinned one'),
    changeLine(
      `if it is right: rackwright host update ${host} --bmc-certificate ${shownCertificate}`,
    ),
  ],
  privilege: (named) => [
    inspectLine(
      'give the user the right that is missing: on most BMCs the role of an administrator',
    ),
    changeLine(`or give the host a credential of another user: ${otherCredential(named)}`),
    again(named),
  ],
  bmcRefused: (named) => [
    bmcLog(named),
    inspectLine('correct the step, if the message names one of its arguments'),
    again(named),
  ],
  toolMissing: (named) => [
    inspectLine('install the program that is named on the agent of its rack'),
    again(named),
  ],
  exchangeFailed: (named) => [
    inspectLine(
      'see the network between the host and the agent of its rack, and the log of the agent',
    ),
    again(named),
  ],
  notApplied: (named) => [
    inspectLine(`the BMC at ${named.location} says yes and does nothing: reset or replace it`),
    again(named),
  ],
  settingRefused: seeSettings,
  settingUnknown: seeSettings,
  stillPending: seeSettings,
  updateFailed: (named) => [
    bmcLog(named),
    inspectLine(`see which components it lists: rackwright host bmc firmware ${named.host}`),
    again(named, 'correct component, version and uri of the step, then'),
  ],
  volumesRefused: (named) => [
    bmcLog(named),
    inspectLine('correct controller and drives of the step: the message says what the BMC lists'),
    again(named),
  ],
  hardwareDefect: (named) => [
    inspectLine(`see what the burn-in has found: rackwright host get ${named.host}`),
    inspectLine('replace the part that is named, or improve its cooling'),
    again(named),
  ],
  mediaRefused: (named) => [
    inspectLine(
      `see that the BMC at ${named.location} can fetch from the agent, and has a licence for it`,
    ),
    overNetwork(named),
    again(named),
  ],
  mediaMissing: (named) => [
    inspectLine(
      `see that the BMC at ${named.location} has a virtual drive for CDs, and the agent media`,
    ),
    overNetwork(named),
    again(named),
  ],
  identityMismatch: (named) => [
    inspectLine('find out which of the two hosts has the wrong BMC address (or cable)'),
    ...(named.isDeleted ? [cancelDeletionToVerify(named)] : []),
    changeLine(`correct it: ${updateBmc(named)}`),
    ...(named.owner === ''
      ? []
      : [startLine(`if that is the other one’s: ${verify(named.owner)}`)]),
    // After any failure: only a verify checks again whose BMC responds there.
    ...(named.isDeleted ? [] : [startLine(`then: ${verify(named.host)}`)]),
  ],
  identityUnproven: (named) => [
    inspectLine('give the machine a serial number in SMBIOS and FRU'),
    changeLine(
      `or accept it as it is: rackwright host update ${named.host} --allow-unproven-identity`,
    ),
    again(named),
  ],
  dataReturned: ({ host }) => [
    inspectLine(
      'the disk that is named does not keep an erasure: take it out of the host, or replace it',
    ),
    startLine(
      'then have its disks erased, and read again after a power cycle: ' +
        `rackwright host clean ${host}`,
    ),
  ],
  noDevices: (named) => [
    changeLine(
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
    inspectLine('find out why other disks are there than the plan has named'),
    ...(named.isDeleted
      ? [
          inspectLine(
            'then plan the deletion anew, and start that: ' +
              `rackwright host plan delete ${named.host}`,
          ),
          inspectLine(
            'or take it back, and delete the host anew: ' +
              `rackwright host cancel-delete ${named.host}`,
          ),
        ]
      : [
          again(named, 'then erase what is there'),
          inspectLine(`or plan it anew, and start that: rackwright host plan clean ${named.host}`),
        ]),
  ],
  imageNotFound: (named) => [
    inspectLine(
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
    inspectLine(
      'correct what the message names: the name of the image, the credential or the address of ' +
        'its registry (rackwright fleet registry list), or the image itself',
    ),
    again(named),
  ],
  registryUnauthorized: (named) => [
    inspectLine(
      'give the registry a credential: ' +
        `rackwright fleet registry set ${named.registry} --credential ID`,
    ),
    again(named),
  ],
  registryUnreachable: (named) => [
    inspectLine(`see that ${named.registry} answers the agent of its rack`),
    inspectLine(
      'or say how it is asked: ' +
        `rackwright fleet registry set ${named.registry} --authority FILE`,
    ),
    again(named),
  ],
  noSpace: (named) => [
    inspectLine('make room on the disk of the agent, or let its cache of images be larger'),
    again(named),
  ],
  imageTooLarge: (named) => [
    changeLine(
      `name a larger disk: rackwright host update ${named.host} --root-disk min-size=SIZE`,
    ),
    inspectLine('or use a smaller image'),
    again(named),
  ],
  keepDisk: (named) => [
    changeLine(
      'name another disk for the image: ' +
        `rackwright host update ${named.host} --root-disk serial=SERIAL`,
    ),
    inspectLine('or keep that disk no longer'),
    again(named),
  ],
  noRootDisk: (named) => [
    changeLine(
      'say which disk the image comes onto: ' +
        `rackwright host update ${named.host} --root-disk serial=SERIAL`,
    ),
    again(named),
  ],
  notProved: (named) => [
    inspectLine(
      `look at the console of hosts/${named.host}: whether it boots, has an address on the ` +
        'provisioning network, and runs cloud-init to the end',
    ),
    again(named),
  ],
  queueTimeout: (named) => [
    inspectLine(
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
    inspectLine('see that the disk that is named is in its slot'),
    again(named),
  ],
  hiddenArea: (named) => [
    inspectLine(
      'the disk that is named hides capacity: let the policy remove it, or replace the disk',
    ),
    again(named),
  ],
  runnerLost: (named) => [
    inspectLine(
      `look at the console of hosts/${named.host}, and at its link to the provisioning network`,
    ),
    again(named),
  ],
  tooLate: (named) => [
    inspectLine(`see what the host waited for until the window closed: ${history(named)}`),
    inspectLine('wait for the next window of its pool, or give the pool a longer one'),
    again(named),
  ],
  exitCode: (named) => [inspectLine('read what the program wrote; correct the step'), again(named)],
  refused: (named) => [inspectLine('see why the webhook refuses'), again(named)],
  notAllowed: (named) => [
    inspectLine('find out from the message which setting forbids the step, and what it forbids'),
    inspectLine(
      'or permit an internal address: rackwright fleet update --internal-address ADDRESS',
    ),
    inspectLine(
      'or permit a URL of firmware: redfishFirmwareUrls in the configuration of its agent',
    ),
    again(named, 'correct the step or that setting, then'),
  ],
  conflict: (named) => [
    // Only the BMC shows that the other work has ended with its host.
    ...(named.isCredentialRefused ? [correctCredential(named)] : []),
    inspectLine(`see what else was at work on the host or its BMC: ${history(named)}`),
    inspectLine(
      'wait until that has ended, or end it; if the host was on already, reset it instead',
    ),
    again(named),
  ],
  unsupported: (named) => [
    inspectLine('leave the step out, if the message names the BMC or its protocol'),
    inspectLine('or see that the versions of agent and runner fit this one'),
    again(named),
  ],
  invalidResult: reportIt,
  internal: reportIt,
  cancelled: (named) => [
    inspectLine(`see who or what ended it, and why: ${history(named)}`),
    again(named, 'once that reason is gone, then'),
  ],
  deadline: (named) => [
    ...(named.missing === BootStepKind.UNSPECIFIED
      ? [
          inspectLine(
            `see which step took the time, and give it a longer timeout: ${history(named)}`,
          ),
        ]
      : []),
    ...adviceOnBoot(named.missing, named),
    again(named),
  ],
  interrupted: justAgain,
  lost: (named) => [inspectLine('look what became of the host'), again(named)],
  pendingTimeout: ({ host }) => [
    inspectLine(`see what the workflow waited for: rackwright workflow explain ${host} TEMPLATE`),
    inspectLine(
      'or let it wait for longer: ' +
        `rackwright workflow update ${host} TEMPLATE --pending-timeout 4h`,
    ),
    startLine(`once that is over: rackwright workflow run ${host} TEMPLATE`),
  ],
  restored: (named) => [inspectLine('check whether the host is in use'), again(named)],
};

/** Ways to permit the erasing step: where it was disabled, or for this host alone. */
export function letErase({ host, disabled }: AdviceNames): Line[] {
  const step = disabled?.step ?? eraseStep;
  const here = `rackwright host update ${host} --priority ${step}=10`;
  switch (disabled?.by) {
    case PriorityPlace.FLEET:
      return [
        changeLine(`let cleans of every host erase: rackwright fleet update --priority ${step}-`),
        changeLine(`or of this host alone: ${here}`),
      ];
    case PriorityPlace.POOL: {
      const undo = `rackwright fleet update --pool-priority ${disabled.pool}:${step}-`;
      return [
        changeLine(`let cleans of the hosts with its label pool erase: ${undo}`),
        changeLine(`or of this host alone: ${here}`),
      ];
    }
    case PriorityPlace.HOST:
      return [
        changeLine(`let its cleans erase: rackwright host update ${host} --priority ${step}-`),
      ];
    default:
      return [changeLine(`let a clean erase, if its policy keeps it from that: ${here}`)];
  }
}

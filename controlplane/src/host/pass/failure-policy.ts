/**
 * How a host's life reacts to each kind of failure. A kind without a row does not compile. What a
 * person can do about it is in `explain/failure-advice.ts`.
 */
import { type FailureName, type FailureType, failureNameOf } from '@rackwright/messages';

export interface FailurePolicy {
  /** `person`: no retry can fix it, so the goal is given up until a person acts. */
  readonly goal: 'retry' | 'person';
  /** `responds`: only a BMC that responds can cause it. */
  readonly bmc: 'responds' | 'unknown';
  /** What it shows of erased disks whose second reading it ends. */
  readonly reading: 'nothing' | 'unproved' | 'dataLeft';
  /** `fail`: nothing more may be done to this machine, whatever the template says. */
  readonly template: 'policy' | 'fail';
}

/** Also of a failure that this version does not know: it proves nothing of the disks. */
const usual: FailurePolicy = {
  goal: 'retry',
  bmc: 'unknown',
  reading: 'unproved',
  template: 'policy',
};

const policies: Readonly<Record<FailureName, FailurePolicy>> = {
  authentication: { ...usual, goal: 'person', bmc: 'responds' },
  lockedOut: { ...usual, goal: 'person', bmc: 'responds' },
  credentialUnusable: usual,
  protocol: usual,
  certificateMismatch: usual,
  notApplied: { ...usual, bmc: 'responds' },
  mediaRefused: { ...usual, bmc: 'responds' },
  mediaMissing: usual,
  settingRefused: { ...usual, bmc: 'responds' },
  settingUnknown: { ...usual, bmc: 'responds' },
  stillPending: { ...usual, bmc: 'responds' },
  updateFailed: { ...usual, bmc: 'responds' },
  volumesRefused: { ...usual, bmc: 'responds' },
  invalidBmcAccess: { ...usual, reading: 'nothing' },
  invalidBootSettings: { ...usual, reading: 'nothing' },
  privilege: { ...usual, goal: 'person', bmc: 'responds' },
  bmcRefused: { ...usual, bmc: 'responds' },
  toolMissing: usual,
  identityMismatch: {
    ...usual,
    goal: 'person',
    bmc: 'responds',
    reading: 'nothing',
    template: 'fail',
  },
  identityUnproven: { ...usual, goal: 'person', reading: 'nothing', template: 'fail' },
  runnerLost: usual,
  notProved: usual,
  tooLate: usual,
  hardwareDefect: usual,
  exchangeFailed: usual,
  noDevices: { ...usual, goal: 'person' },
  deviceRefused: { ...usual, goal: 'person' },
  deviceChanged: usual,
  deviceVanished: usual,
  planChanged: { ...usual, goal: 'person' },
  hiddenArea: usual,
  notErased: { ...usual, goal: 'person', reading: 'dataLeft' },
  unverified: usual,
  notCertified: usual,
  dataReturned: { ...usual, goal: 'person', reading: 'dataLeft' },
  ioError: usual,
  imageDigestMismatch: usual,
  imageTruncated: usual,
  imageNotFound: usual,
  registryUnreachable: usual,
  registryUnauthorized: usual,
  noSpace: usual,
  wrongArchitecture: usual,
  imageTooLarge: usual,
  badImage: usual,
  notBootable: usual,
  writeError: usual,
  keepDisk: usual,
  noRootDisk: usual,
  queueTimeout: usual,
  imageUnusable: usual,
  exitCode: usual,
  cancelled: { ...usual, reading: 'nothing' },
  deadline: { ...usual, reading: 'nothing' },
  interrupted: { ...usual, reading: 'nothing' },
  unsupported: { ...usual, reading: 'nothing', template: 'fail' },
  invalidArgument: { ...usual, reading: 'nothing' },
  conflict: usual,
  notAllowed: usual,
  invalidResult: usual,
  refused: usual,
  restored: usual,
  internal: { ...usual, reading: 'nothing' },
  lost: usual,
  pendingTimeout: usual,
};

export function policyOfFailure(type: FailureType): FailurePolicy {
  const name = failureNameOf(type);
  return name === undefined ? usual : policies[name];
}

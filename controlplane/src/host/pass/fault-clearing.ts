/**
 * What clears each fault: the runs whose success shows that it is over, and the texts for people. A
 * fault without a text does not compile.
 */
import {
  type Fault,
  FaultClearing,
  type HostFault,
  type RunFault,
  RunKind,
} from '@rackwright/messages';
import { runKindName } from './pass.ts';
import { type KnownRunKind, provisionFailed, verifyFailed } from './transitions.ts';

/** The kinds of run whose success shows that a fault is over. */
const recoveries: { readonly [F in RunFault]: readonly KnownRunKind[] } = {
  [verifyFailed]: [RunKind.VERIFY, RunKind.ADOPT],
  inspectFailed: [RunKind.INSPECT, RunKind.CLEAN],
  cleanFailed: [RunKind.CLEAN],
  // Cleans do not clear it: the requested image still does not run.
  [provisionFailed]: [RunKind.PROVISION, RunKind.ADOPT],
  reimageFailed: [RunKind.REIMAGE, RunKind.RELEASE],
  serviceFailed: [RunKind.SERVICE, RunKind.CLEAN, RunKind.REIMAGE],
  workflowFailed: [RunKind.WORKFLOW, RunKind.CLEAN, RunKind.REIMAGE],
  releaseFailed: [RunKind.RELEASE],
  powerFailed: [RunKind.POWER, RunKind.CLEAN, RunKind.REIMAGE],
  rescueFailed: [RunKind.RESCUE, RunKind.CLEAN, RunKind.REIMAGE],
  adoptFailed: [RunKind.ADOPT, RunKind.CLEAN],
};

/** The faults that are over once a run of this kind has succeeded. */
export function faultsHealedBy(kind: KnownRunKind): RunFault[] {
  const faults = Object.keys(recoveries) as RunFault[];
  return faults.filter((fault) => recoveries[fault].includes(kind));
}

/** "a provision or clean run that succeeds" */
function recoveryOf(fault: RunFault): string {
  const names = recoveries[fault].map(runKindName);
  return `a ${names.join(' or ')} run that succeeds`;
}

function isOfRun(type: HostFault): type is RunFault {
  return Object.hasOwn(recoveries, type);
}

const bmcAnswers = 'the BMC’s next answer';
const callWorks = 'the next call that works';
const byInspection = 'an inspection';

/** For people, of the faults that no run leaves behind. */
const otherClearings: { readonly [F in Exclude<HostFault, RunFault>]: string } = {
  bmcUnreachable: bmcAnswers,
  bmcBusy: bmcAnswers,
  bmcAuthentication: callWorks,
  bmcLockedOut: callWorks,
  bmcIdentityMismatch: callWorks,
  bmcCertificate: callWorks,
  bmcProtocol: callWorks,
  bmcPrivilege: callWorks,
  bmcAccess: callWorks,
  bmcToolMissing: callWorks,
  notUnique: 'an update of boot_macs or bmc',
  noCredential: 'its creation',
  runnerAway: 'the runner’s next word, or the end of the run',
  registryUnreachable: 'the arrival of the image, or the end of the run',
  netbootImageAccess: 'a way to the image',
  hardwareCritical: 'the BMC, when it says that the hardware is well',
  hardwareChanged: byInspection,
  bootMacUnknown: `${byInspection} that finds it, or another boot MAC`,
  diskKnownElsewhere: 'an inspection whose disks no other host is known to have',
  dataReturned: 'a clean whose disks still are erased after a power cycle',
  powerMismatch: 'its power as the spec says, or another spec.power',
};

/** What clears the fault, for people. */
export function clearingText(type: HostFault, clearing: FaultClearing): string {
  if (clearing === FaultClearing.ANY_RUN) return 'the next run that succeeds, whatever it does';
  return isOfRun(type) ? recoveryOf(type) : otherClearings[type];
}

/** Whether the success of any run clears it. */
export function isClearedByAnyRun({ clearing }: Pick<Fault, 'clearing'>): boolean {
  return clearing === FaultClearing.ANY_RUN;
}

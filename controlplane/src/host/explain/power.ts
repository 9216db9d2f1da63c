/** Explains a host whose only problem is its BMC or its power, from polls without a run. Pure. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type BmcFault,
  type Fault,
  FaultSeverity,
  faultOfType,
  HoldScope,
  HostState,
  type HostStatus,
  type store,
} from '@rackwright/messages';
import { displayOf } from '../pass/display.ts';
import { powerMismatch } from '../power/power-policy.ts';
import { type AdviceKey, adviceDuringRun, adviceFor } from './advice.ts';
import { type ExplanationDraft, hostId } from './explanation-draft.ts';

/** The text, and the failure whose advice helps. */
interface Trouble {
  readonly says: string;
  readonly advice: AdviceKey;
}

/** A busy BMC needs no advice: it answers. */
const troubles: { readonly [F in Exclude<BmcFault, 'bmcBusy'>]: Trouble } = {
  bmcUnreachable: { says: 'its BMC does not answer', advice: 'unreachable' },
  bmcAuthentication: { says: 'its BMC refuses the password', advice: 'authentication' },
  bmcLockedOut: { says: 'its BMC has locked the account', advice: 'lockedOut' },
  bmcIdentityMismatch: { says: 'its BMC is another machine’s', advice: 'identityMismatch' },
  bmcCertificate: { says: 'its BMC shows another certificate', advice: 'certificateMismatch' },
  bmcProtocol: { says: 'its BMC makes no sense', advice: 'protocol' },
  bmcPrivilege: { says: 'the user of its BMC lacks a right', advice: 'privilege' },
  bmcAccess: { says: 'the access to its BMC cannot be used', advice: 'invalidBmcAccess' },
  bmcToolMissing: { says: 'its agent lacks a program', advice: 'toolMissing' },
};
const troublesByType: ReadonlyMap<string, Trouble> = new Map(Object.entries(troubles));

/** The problem of the host's BMC, in words; undefined without one. */
export function troubleOf({ faults }: HostStatus): string | undefined {
  return firstTrouble(faults)?.trouble.says;
}

/** The first fault of the BMC. */
function firstTrouble(faults: readonly Fault[]) {
  for (const fault of faults) {
    const trouble = troublesByType.get(fault.type);
    if (trouble !== undefined) return { fault, trouble };
  }
  return undefined;
}

/**
 * The problem of the BMC while a step is under way. Only the BMC shows that a runner that is not
 * connected has ended with its host.
 */
export function explainBmcDuringRun(
  record: store.HostRecord,
): Partial<ExplanationDraft> | undefined {
  const first = firstTrouble(record.host?.status?.faults ?? []);
  if (first === undefined) return undefined;
  const { fault, trouble } = first;
  return {
    causes: [{ text: `${trouble.says}: ${fault.message}`, since: fault.since }],
    blocker: 'the step under way; its BMC cannot be asked',
    unblock: adviceDuringRun(trouble.advice, record),
  };
}

/** Undefined when BMC and power are in order. */
export function explainPower(record: store.HostRecord): ExplanationDraft | undefined {
  const status = record.host?.status;
  if (status === undefined) return undefined;
  const first = firstTrouble(status.faults);
  if (first !== undefined) return explainTrouble(record, first.fault, first.trouble);
  const mismatch = faultOfType(status.faults, powerMismatch);
  if (mismatch === undefined) return undefined;
  return {
    headline: `${displayOf(status)}: its power is not what its spec says`,
    causes: [{ text: mismatch.message, since: mismatch.since }],
    blocker: 'its power',
    since: mismatch.since,
    nextAttemptTime: nextTime(record),
    unblock: mismatchAdvice(record, status),
  };
}

/** Each line is one action; a power command is named only where it is accepted. */
function mismatchAdvice(record: store.HostRecord, status: HostStatus): string[] {
  const host = hostId(record);
  const leave = `leave it as it is: rackwright host update ${host} --power unmanaged`;
  const wantsOn = status.poweredOn !== true;
  if (wantsOn && status.state === HostState.AVAILABLE) return [leave];
  if (status.holds.some(({ scope }) => scope === HoldScope.POWER)) {
    return [`once its reason is gone: rackwright host release-hold ${host}`, `or ${leave}`];
  }
  const reason = wantsOn && status.dirty ? ' --boot-old-disk REASON' : '';
  const action = wantsOn ? 'on' : 'off';
  return [`switch it: rackwright host power ${action} ${host}${reason}`, `or ${leave}`];
}

function explainTrouble(
  record: store.HostRecord,
  { message, since, severity }: Fault,
  { says, advice }: Trouble,
): ExplanationDraft {
  const status = record.host?.status;
  const grave = severity === FaultSeverity.WARNING ? '' : '; until then it cannot be switched';
  return {
    headline: `${status === undefined ? '' : displayOf(status)}: ${says}${grave}`,
    causes: [{ text: message, since }],
    blocker: 'the BMC',
    since,
    unblock: adviceFor(advice, record),
  };
}

function nextTime(record: store.HostRecord): Timestamp | undefined {
  return record.powerEnforcement?.nextTime;
}

/**
 * Whether the control plane can communicate with the host's BMC, as faults from polls and
 * operations.
 *
 * Invariants:
 * 1. Each fault is cleared only by evidence that it is over: silence by any answer, the others by a
 *    successful call.
 * 2. The start time of a fault is kept while it lasts, whichever source reports it again.
 */
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actors,
  agent,
  type BmcFault,
  FailureType,
  FaultSeverity,
  faultOfType,
  hasFault,
  TransientCause,
} from '@rackwright/messages';
import { policyOfFailure } from '../pass/failure-policy.ts';
import { clearFault, setFault } from '../pass/fault.ts';
import { type Pass, type PassView, recordCause } from '../pass/pass.ts';

export const bmcUnreachable = 'bmcUnreachable' satisfies BmcFault;
/** The next message of the runner clears it; the end of a run clears it, too. */
const runnerAway = 'runnerAway';
/** The arrival of the image clears it; the end of a run clears it, too. */
const registryUnreachable = 'registryUnreachable';
const bmcBusy = 'bmcBusy';

const byTrouble: Readonly<Record<number, BmcFault>> = {
  // It answers, but not like a usable BMC.
  [agent.BmcTrouble.UNSPECIFIED]: 'bmcProtocol',
  [agent.BmcTrouble.UNREACHABLE]: bmcUnreachable,
  [agent.BmcTrouble.AUTHENTICATION]: 'bmcAuthentication',
  [agent.BmcTrouble.LOCKED_OUT]: 'bmcLockedOut',
  [agent.BmcTrouble.IDENTITY_MISMATCH]: 'bmcIdentityMismatch',
  [agent.BmcTrouble.PROTOCOL]: 'bmcProtocol',
  [agent.BmcTrouble.CERTIFICATE]: 'bmcCertificate',
  [agent.BmcTrouble.PRIVILEGE]: 'bmcPrivilege',
  [agent.BmcTrouble.ACCESS]: 'bmcAccess',
  [agent.BmcTrouble.TOOL_MISSING]: 'bmcToolMissing',
};
/** A newer agent may name a trouble that is unknown here. */
function faultOf(trouble: agent.BmcTrouble): BmcFault {
  return byTrouble[trouble] ?? 'bmcProtocol';
}

const types: readonly BmcFault[] = [...new Set([...Object.values(byTrouble), bmcBusy] as const)];

/** Faults of a host's BMC: while one lasts, the host can carry out no request. */
export const bmcFaults: ReadonlySet<string> = new Set(types);

/** A silent BMC is a warning at first, and an error after this time. */
export const silenceErrorMs = 10 * 60_000;

/** The result of a poll. `readTime` is from the agent's clock, like `health.since`. */
export function foldBmcHealth(
  pass: Pass,
  health: agent.BmcHealth,
  readTime: Timestamp | undefined,
): void {
  if (health.reachable === undefined) return;
  if (health.reachable && health.trouble === agent.BmcTrouble.UNSPECIFIED) {
    bmcWorked(pass);
    return;
  }
  const type = faultOf(health.trouble);
  if (type !== bmcUnreachable) bmcAnswered(pass);
  setBmcFault(pass, type, health.message, sinceOf(pass, health, readTime));
}

/** Failures that would also stop every later call. */
const lastingTroubles: ReadonlyMap<FailureType, agent.BmcTrouble> = new Map([
  [FailureType.AUTHENTICATION, agent.BmcTrouble.AUTHENTICATION],
  [FailureType.LOCKED_OUT, agent.BmcTrouble.LOCKED_OUT],
]);

/** A failed operation of the agent on the BMC. */
export function foldBmcFailure(pass: Pass, type: FailureType, message: string): void {
  if (policyOfFailure(type).bmc === 'responds') bmcAnswered(pass);
  const trouble = lastingTroubles.get(type);
  if (trouble !== undefined) setBmcFault(pass, faultOf(trouble), message);
}

/** A state was unknown for so long that people should know. */
export function foldSilence(
  pass: Pass,
  cause: TransientCause,
  message: string,
  since: Timestamp,
): void {
  if (cause === TransientCause.RUNNER_AWAY) {
    setFault(pass, runnerAway, message, { severity: FaultSeverity.WARNING, since });
  } else if (cause === TransientCause.REGISTRY) {
    setFault(pass, registryUnreachable, message, { severity: FaultSeverity.WARNING, since });
  } else
    setBmcFault(pass, cause === TransientCause.BUSY ? bmcBusy : bmcUnreachable, message, since);
}

/** The work in the runner has ended: the run no longer waits for runner or image. */
export function clearInBand(pass: Pass): void {
  clearFault(pass, runnerAway);
  clearFault(pass, registryUnreachable);
}

/** The BMC carried out the request: all its faults are cleared. */
export function bmcWorked(pass: Pass): void {
  for (const type of types) endFault(pass, type);
}

/** A BMC that stays silent becomes an error; once. */
export function raiseFaults(pass: Pass): void {
  for (const fault of pass.status.faults) {
    const { type, severity, since } = fault;
    if (type !== bmcUnreachable || severity !== FaultSeverity.WARNING) continue;
    if (since === undefined || timestampMs(since) + silenceErrorMs > pass.snapshot.nowMs) continue;
    fault.severity = FaultSeverity.ERROR;
  }
}

function bmcAnswered(pass: Pass): void {
  endFault(pass, bmcUnreachable);
}

function setBmcFault(pass: Pass, type: BmcFault, message: string, since?: Timestamp): void {
  const present = faultOfType(pass.status.faults, type);
  const passing = type === bmcUnreachable || type === bmcBusy;
  const severity = present?.severity ?? FaultSeverity[passing ? 'WARNING' : 'ERROR'];
  setFault(pass, type, message, { severity, since });
  if (present === undefined) recordCause(pass, actors.agent, `${type}: ${message}`);
}

function endFault(pass: Pass, type: BmcFault): void {
  if (!hasFault(pass.status.faults, type)) return;
  clearFault(pass, type);
  recordCause(pass, actors.agent, `${type} is over`);
}

/** In our own time: the agent's clock may differ, but the duration does not. */
function sinceOf(
  { snapshot }: PassView,
  { since }: agent.BmcHealth,
  readTime: Timestamp | undefined,
): Timestamp {
  if (since === undefined || readTime === undefined) return timestampFromMs(snapshot.nowMs);
  const lastedMs = Math.max(timestampMs(readTime) - timestampMs(since), 0);
  return timestampFromMs(snapshot.nowMs - lastedMs);
}

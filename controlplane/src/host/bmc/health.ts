/**
 * Whether the host's BMC can be talked with, as faults: what looks and operations find out.
 *
 * Invariants:
 * 1. Each fault is cleared only by what shows that it is over: silence by any answer, the rest by a
 *    call that worked.
 * 2. Since when one stands is kept while it lasts, whoever finds it again.
 */
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, FailureType, FaultSeverity, TransientCause } from '@rackwright/messages';
import { clearFault, setFault } from '../pass/fault.ts';
import { causedBy, type Pass } from '../pass/pass.ts';

export const bmcUnreachable = 'bmcUnreachable';
/** Its recovery is the runner's next word; a run that ends waits for it no longer. */
const runnerAway = 'runnerAway';
/** Its recovery is the image's arrival; the same holds of a run that ends. */
const registryUnreachable = 'registryUnreachable';
const bmcBusy = 'bmcBusy';

const byTrouble: Readonly<Record<number, string>> = {
  // It answers, and not as a BMC that can be worked with does.
  [agent.BmcTrouble.UNSPECIFIED]: 'bmcProtocol',
  [agent.BmcTrouble.UNREACHABLE]: bmcUnreachable,
  [agent.BmcTrouble.AUTHENTICATION]: 'bmcAuthentication',
  [agent.BmcTrouble.LOCKED_OUT]: 'bmcLockedOut',
  [agent.BmcTrouble.IDENTITY_MISMATCH]: 'bmcIdentityMismatch',
  [agent.BmcTrouble.PROTOCOL]: 'bmcProtocol',
  [agent.BmcTrouble.CERTIFICATE]: 'bmcCertificate',
};
/** A newer agent may name a trouble that is not known here. */
function faultOf(trouble: agent.BmcTrouble): string {
  return byTrouble[trouble] ?? 'bmcProtocol';
}

const types = [...new Set([...Object.values(byTrouble), bmcBusy])];

/** Faults of a host's BMC: while one stands, nothing can be asked of the host. */
export const bmcFaults: ReadonlySet<string> = new Set(types);

/** A silent BMC is a warning first, and an error when it has been silent for this long. */
export const silenceErrorMs = 10 * 60_000;

/** What a look found. `toldAt` is the agent's clock, as `health.since` is. */
export function foldBmcHealth(
  pass: Pass,
  health: agent.BmcHealth,
  toldAt: Timestamp | undefined,
): void {
  if (health.reachable === undefined) return;
  if (health.reachable && health.trouble === agent.BmcTrouble.UNSPECIFIED) {
    bmcWorked(pass);
    return;
  }
  const type = faultOf(health.trouble);
  if (type !== bmcUnreachable) bmcAnswered(pass);
  setBmcFault(pass, type, health.message, sinceOf(pass, health, toldAt));
}

/** Failures that only a BMC that answers can cause; the others are found before or without it. */
const answeredTypes: ReadonlySet<FailureType> = new Set([
  FailureType.AUTHENTICATION,
  FailureType.LOCKED_OUT,
  FailureType.IDENTITY_MISMATCH,
  FailureType.NOT_APPLIED,
]);

/** What keeps every later call from working, too. */
const lastingTroubles: ReadonlyMap<FailureType, agent.BmcTrouble> = new Map([
  [FailureType.AUTHENTICATION, agent.BmcTrouble.AUTHENTICATION],
  [FailureType.LOCKED_OUT, agent.BmcTrouble.LOCKED_OUT],
]);

/** What an operation of the agent on the BMC failed by. */
export function foldBmcFailure(pass: Pass, type: FailureType, message: string): void {
  if (answeredTypes.has(type)) bmcAnswered(pass);
  const trouble = lastingTroubles.get(type);
  if (trouble !== undefined) setBmcFault(pass, faultOf(trouble), message);
}

/** Something could not be told for so long that people should know. */
export function foldSilence(
  pass: Pass,
  cause: TransientCause,
  message: string,
  since: Timestamp,
): void {
  if (cause === TransientCause.RUNNER_AWAY) {
    const clearedBy = 'the runner’s next word, or the end of the run';
    setFault(pass, runnerAway, message, clearedBy, FaultSeverity.WARNING, since);
  } else if (cause === TransientCause.REGISTRY) {
    const clearedBy = 'the arrival of the image, or the end of the run';
    setFault(pass, registryUnreachable, message, clearedBy, FaultSeverity.WARNING, since);
  } else
    setBmcFault(pass, cause === TransientCause.BUSY ? bmcBusy : bmcUnreachable, message, since);
}

/** What is done in the runner has come to an end: nobody waits for runner or image any more. */
export function clearInBand(pass: Pass): void {
  clearFault(pass, runnerAway);
  clearFault(pass, registryUnreachable);
}

/** The BMC did what it was asked: nothing stands in the way. */
export function bmcWorked(pass: Pass): void {
  for (const type of types) endFault(pass, type);
}

/** A silent BMC that stays silent is an error; once. */
export function raiseFaults(pass: Pass): void {
  for (const fault of pass.status.faults) {
    const { type, severity, since } = fault;
    if (type !== bmcUnreachable || severity !== FaultSeverity.WARNING) continue;
    if (since === undefined || timestampMs(since) + silenceErrorMs > pass.context.nowMs) continue;
    fault.severity = FaultSeverity.ERROR;
  }
}

function bmcAnswered(pass: Pass): void {
  endFault(pass, bmcUnreachable);
}

function setBmcFault(pass: Pass, type: string, message: string, since?: Timestamp): void {
  const standing = pass.status.faults.find((fault) => fault.type === type);
  const passing = type === bmcUnreachable || type === bmcBusy;
  const severity = standing?.severity ?? FaultSeverity[passing ? 'WARNING' : 'ERROR'];
  const clearedBy = passing ? 'the BMC’s next answer' : 'the next call that works';
  setFault(pass, type, message, clearedBy, severity, since);
  if (standing === undefined) causedBy(pass, 'agent', `${type}: ${message}`);
}

function endFault(pass: Pass, type: string): void {
  if (!pass.status.faults.some((fault) => fault.type === type)) return;
  clearFault(pass, type);
  causedBy(pass, 'agent', `${type} is over`);
}

/** Told in our own time: the agent's clock may differ, but how long it lasted does not. */
function sinceOf(
  { context }: Pass,
  { since }: agent.BmcHealth,
  toldAt: Timestamp | undefined,
): Timestamp {
  if (since === undefined || toldAt === undefined) return timestampFromMs(context.nowMs);
  const lastedMs = Math.max(timestampMs(toldAt) - timestampMs(since), 0);
  return timestampFromMs(context.nowMs - lastedMs);
}

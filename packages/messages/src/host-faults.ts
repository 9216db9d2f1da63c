/** The closed list of what may be wrong with a host for long: the values of `Fault.type`. */
import type { Fault } from './gen/rackwright/v1/host_pb.ts';

/** What a run leaves behind that has failed. */
export type RunFault =
  | 'verifyFailed'
  | 'inspectFailed'
  | 'cleanFailed'
  | 'provisionFailed'
  | 'reimageFailed'
  | 'serviceFailed'
  | 'workflowFailed'
  | 'releaseFailed'
  | 'powerFailed'
  | 'rescueFailed'
  | 'adoptFailed';

/** What keeps the host's BMC from carrying out requests. */
export type BmcFault =
  | 'bmcUnreachable'
  | 'bmcBusy'
  | 'bmcAuthentication'
  | 'bmcLockedOut'
  | 'bmcIdentityMismatch'
  | 'bmcCertificate'
  | 'bmcProtocol'
  | 'bmcPrivilege'
  | 'bmcAccess'
  | 'bmcToolMissing';

export type HostFault =
  | RunFault
  | BmcFault
  | 'notUnique'
  | 'noCredential'
  | 'runnerAway'
  | 'registryUnreachable'
  | 'netbootImageAccess'
  | 'hardwareCritical'
  | 'hardwareChanged'
  | 'bootMacUnknown'
  | 'diskKnownElsewhere'
  | 'dataReturned'
  | 'powerMismatch';

/** The host's fault of this type, if it has one. */
export function faultOfType<F extends Pick<Fault, 'type'>>(
  faults: readonly F[],
  type: HostFault,
): F | undefined {
  return faults.find((fault) => fault.type === type);
}

export function hasFault(faults: readonly Pick<Fault, 'type'>[], type: HostFault): boolean {
  return faultOfType(faults, type) !== undefined;
}

/** Faults of a machine on demand, by their names on the command line. */
import type { RedfishFault } from '@rackwright/sim/redfish';

/** A fault of the BMC, of the password that the control plane was given, of a disk, of the boot. */
export type DemoFault =
  | { readonly kind: 'bmc'; readonly bmc: RedfishFault }
  | { readonly kind: 'credential' }
  | { readonly kind: 'disk'; readonly disk: object }
  /** Further words on the kernel's command line. */
  | { readonly kind: 'boot'; readonly kernelArgs: string };

export const faultNames = [
  'wrong-password',
  'silent',
  'rubbish',
  'yes-but-nothing',
  'slow',
  'locked-out',
  'disk-io-error',
  'disk-lies',
  'no-runner',
] as const;

export type FaultName = (typeof faultNames)[number];

/** An order to a BMC is some ten requests. */
const slowAnswerMs = 300;
const lockOutMs = 60_000;

export const faults: Readonly<Record<FaultName, DemoFault>> = {
  'wrong-password': { kind: 'credential' },
  silent: { kind: 'bmc', bmc: { kind: 'silent', how: 'hang' } },
  rubbish: { kind: 'bmc', bmc: { kind: 'rubbish' } },
  'yes-but-nothing': { kind: 'bmc', bmc: { kind: 'yesButNothing' } },
  slow: { kind: 'bmc', bmc: { kind: 'slow', delayMs: slowAnswerMs } },
  'locked-out': { kind: 'bmc', bmc: { kind: 'lockedOut', forMs: lockOutMs } },
  'disk-io-error': {
    kind: 'disk',
    disk: { kind: 'ioError', operation: 'write', offset: 1_048_576, length: 4_096 },
  },
  'disk-lies': { kind: 'disk', disk: { kind: 'lying', operation: 'write' } },
  // It boots, and trusts no agent that there is.
  'no-runner': { kind: 'boot', kernelArgs: `rackwright.fingerprint=${'0'.repeat(64)}` },
};

export function isFaultName(text: string): text is FaultName {
  return faultNames.some((name) => name === text);
}

/** Whether a host with it can become available all the same. */
export function canBecomeAvailableWith(name: FaultName): boolean {
  return name === 'slow';
}

import type { agent, BmcIdentity as WireBmcIdentity } from '@rackwright/api';
import type { BmcDriver, BmcFailed, BmcIdentity, BmcTransient, Firmware } from '@rackwright/bmc';
import type { Failed, FailureType, FinalResult } from '@rackwright/results';
import { AttemptEnd, type Credential, type OperationContext } from '../session/index.ts';

/** One BMC as an operation names it, with its secret. */
export interface BmcEndpoint {
  readonly address: string;
  readonly port: number;
  /** Undefined: the best that the BMC names. */
  readonly cipherSuite: number | undefined;
  readonly credential: Credential;
}

/** The BMCs of the rack: drivers share one governor per address. */
export interface BmcDrivers {
  driver(endpoint: BmcEndpoint): BmcDriver;
  /** Drops what is remembered about a BMC. */
  forget(address: string, port: number): void;
  /** Which firmware's flag a boot override carries. */
  readonly firmware: Firmware;
}

/** RMCP+'s port. */
const defaultPort = 623;

/** Where the BMC of `access` is, without its secret. */
export function bmcAddress(access: agent.BmcAccess): { address: string; port: number } {
  return { address: access.address.toLowerCase(), port: access.port ?? defaultPort };
}

/** The driver for `access`; waits for the credential. Rejects with AttemptEnd. */
export async function openBmc(
  drivers: BmcDrivers,
  access: agent.BmcAccess | undefined,
  context: OperationContext,
): Promise<BmcDriver> {
  if (access === undefined || access.address === '') {
    throw new AttemptEnd(failure('invalidArgument', 'the operation names no BMC'));
  }
  // Operations of before the field existed meant IPMI.
  if (access.protocol !== '' && access.protocol !== 'ipmi') {
    const message = `this agent does not speak ${access.protocol} with BMCs`;
    throw new AttemptEnd(failure('unsupported', message));
  }
  const credential = await context.credential(access.credential, access.credentialVersion);
  const { cipherSuite } = access;
  return drivers.driver({ ...bmcAddress(access), cipherSuite, credential });
}

export function failure(type: FailureType, message: string, detail = ''): Failed {
  return { kind: 'failed', type, message, ...(detail === '' ? {} : { detail }) };
}

const failureTypes: Readonly<Record<BmcFailed['type'], FailureType>> = {
  authentication: 'authentication',
  privilege: 'authentication',
  cipherSuite: 'invalidArgument',
  address: 'invalidArgument',
  invalidCredential: 'invalidArgument',
  notApplied: 'notApplied',
  unsupported: 'unsupported',
  rejected: 'notApplied',
  malformed: 'notApplied',
  toolMissing: 'internal',
};

/** What a BMC call that did not work means for the attempt. */
export function resultOfBmc(result: BmcFailed | BmcTransient): FinalResult {
  if (result.kind === 'failed') {
    return failure(failureTypes[result.type], result.message, result.backendWords);
  }
  const words = result.backendWords === '' ? '' : ` (${result.backendWords})`;
  const message = `${result.message}${words}`;
  switch (result.reason) {
    case 'unreachable':
    case 'breakerOpen':
      return { kind: 'transientError', cause: 'unreachable', message };
    case 'busy':
    case 'queueFull':
      return { kind: 'transientError', cause: 'busy', message };
    case 'cancelled':
      return failure('cancelled', message);
  }
}

/** The identity as facts carry it. */
export function identityToWire(identity: BmcIdentity): Omit<WireBmcIdentity, '$typeName'> {
  return {
    guid: new Uint8Array(Buffer.from(identity.guidHex ?? '', 'hex')),
    serial: identity.serial ?? '',
    manufacturer: identity.manufacturer ?? '',
    product: identity.product ?? '',
    firmwareVersion: '',
    chassisSerial: identity.chassisSerial ?? '',
    boardSerial: identity.boardSerial ?? '',
    certificateSha256: '',
  };
}

import type {
  BmcDriver,
  BmcFailed,
  BmcIdentity,
  BmcTransient,
  ExpectedSystem,
  Firmware,
  PreemptibleUse,
} from '@rackwright/bmc';
import {
  type agent,
  bmcPorts,
  type FailureName,
  isSpokenProtocolId,
  type PowerWebhook,
  type SpokenProtocolId,
  shownCertificate,
  type BmcIdentity as WireBmcIdentity,
} from '@rackwright/messages';
import type { FailedAttempt, FinalResult } from '@rackwright/results';
import { AttemptEnd, type Credential, type OperationContext } from '../session/index.ts';

/** One BMC as an operation names it, with its secret. */
export interface BmcEndpoint {
  readonly address: string;
  readonly port: number;
  readonly protocol: SpokenProtocolId;
  /** IPMI; undefined: the best that the BMC names. */
  readonly cipherSuite: number | undefined;
  /** Redfish: the certificate to accept; undefined before the first verify. */
  readonly certificateSha256: string | undefined;
  /** The requests of a webhook. */
  readonly webhook?: PowerWebhook | undefined;
  /** Redfish: which of several systems is meant. */
  readonly expected: ExpectedSystem | undefined;
  readonly credential: Credential;
}

/** The BMCs of the rack: drivers share one governor per address. */
export interface BmcDrivers {
  /** With `preemptible` its calls give way to every other one. */
  driver(endpoint: BmcEndpoint, preemptible?: PreemptibleUse): BmcDriver;
  /** Forgets everything about a BMC. */
  forget(address: string, port: number): void;
  /** Forgets which credentials the BMCs refused: their versions name other passwords now. */
  forgetRefusals(): void;
  /** Sends magic packets to these MAC addresses; absent: no host is woken from here. */
  wake?(macs: readonly string[]): Promise<void>;
  /** Which firmware's flag a boot override carries. */
  readonly firmware: Firmware;
}

/** The address of a BMC, without its secret. */
export interface BmcAddress {
  readonly address: string;
  readonly port: number;
}

/** Undefined: this agent does not know the protocol, and so not its port. */
export function bmcAddress(access: agent.BmcAccess): BmcAddress | undefined {
  const { protocol } = access;
  return isSpokenProtocolId(protocol) ? addressOf(access, protocol) : undefined;
}

function addressOf({ address, port }: agent.BmcAccess, protocol: SpokenProtocolId): BmcAddress {
  return { address: address.toLowerCase(), port: port ?? bmcPorts[protocol] };
}

/** The driver for `access`; waits for the credential. Rejects with AttemptEnd. */
export async function openBmc(
  drivers: BmcDrivers,
  access: agent.BmcAccess | undefined,
  context: OperationContext,
  expected?: WireBmcIdentity,
): Promise<BmcDriver> {
  if (access === undefined || access.address === '') {
    throw new AttemptEnd(failure('invalidBmcAccess', 'the operation names no BMC'));
  }
  const { protocol } = access;
  if (!isSpokenProtocolId(protocol)) {
    const message = `this agent does not speak "${protocol}" to BMCs`;
    throw new AttemptEnd(failure('unsupported', message));
  }
  const credential = await context.credential(access.credential, access.credentialVersion);
  return drivers.driver(endpointOf(access, protocol, credential, expected));
}

/** The BMC of a host that is only read; undefined when its protocol is not supported here. */
export function bmcEndpoint(
  access: agent.BmcAccess,
  credential: Credential,
  expected: WireBmcIdentity | undefined,
): BmcEndpoint | undefined {
  const { protocol } = access;
  if (!isSpokenProtocolId(protocol)) return undefined;
  return endpointOf(access, protocol, credential, expected);
}

/** A BMC that is read beside all operations, as the control plane names it. */
export interface ReadableBmc {
  readonly kind: 'ok';
  readonly bmc: agent.BmcAccess;
  readonly expectedIdentity: WireBmcIdentity | undefined;
  readonly endpoint: BmcEndpoint;
}

/** The BMC with its secret from the session, or why it cannot be read. */
export function resolveBmc(
  session: { credential(name: string, version: bigint): Credential | undefined },
  bmc: agent.BmcAccess | undefined,
  expectedIdentity: WireBmcIdentity | undefined,
): ReadableBmc | FinalResult {
  const credential = bmc && session.credential(bmc.credential, bmc.credentialVersion);
  if (bmc === undefined || credential === undefined) {
    const message = 'the agent has no credential of this BMC';
    return { kind: 'transientError', cause: 'busy', message };
  }
  const endpoint = bmcEndpoint(bmc, credential, expectedIdentity);
  if (endpoint !== undefined) return { kind: 'ok', bmc, expectedIdentity, endpoint };
  return failure('unsupported', `this agent does not speak "${bmc.protocol}" to BMCs`);
}

function endpointOf(
  access: agent.BmcAccess,
  protocol: SpokenProtocolId,
  credential: Credential,
  expected: WireBmcIdentity | undefined,
): BmcEndpoint {
  const { cipherSuite, certificateSha256: pin, webhook } = access;
  return {
    ...addressOf(access, protocol),
    protocol,
    cipherSuite,
    webhook,
    certificateSha256: pin === '' ? undefined : pin,
    expected: expectedSystem(expected),
    credential,
  };
}

function expectedSystem(expected: WireBmcIdentity | undefined): ExpectedSystem | undefined {
  if (expected === undefined) return undefined;
  const { guid, serial } = expected;
  return {
    ...(guid.length === 0 ? {} : { guidHex: Buffer.from(guid).toString('hex') }),
    ...(serial === '' ? {} : { serial }),
  };
}

export function failure(type: FailureName, message: string, detail = ''): FailedAttempt {
  return { kind: 'failed', type, message, ...(detail === '' ? {} : { detail }) };
}

const failureNames: Readonly<Record<BmcFailed['type'], FailureName>> = {
  authentication: 'authentication',
  lockedOut: 'lockedOut',
  privilege: 'privilege',
  cipherSuite: 'invalidBmcAccess',
  address: 'invalidBmcAccess',
  invalidCredential: 'invalidBmcAccess',
  notApplied: 'notApplied',
  unsupported: 'unsupported',
  rejected: 'bmcRefused',
  malformed: 'protocol',
  protocol: 'protocol',
  certificate: 'certificateMismatch',
  ambiguous: 'invalidBmcAccess',
  mediaRefused: 'mediaRefused',
  mediaMissing: 'mediaMissing',
  settingRefused: 'settingRefused',
  settingUnknown: 'settingUnknown',
  stillPending: 'stillPending',
  updateFailed: 'updateFailed',
  volumesRefused: 'volumesRefused',
  notAllowed: 'notAllowed',
  toolMissing: 'toolMissing',
};

/** The result of an attempt after a failed BMC call. */
export function resultOfBmc(result: BmcFailed | BmcTransient): FinalResult {
  if (result.kind === 'failed') {
    const { type, message, backendText, shownCertificateSha256: shown } = result;
    const details = shown === undefined ? {} : { details: shownCertificate(shown) };
    return { ...failure(failureNames[type], message, backendText), ...details };
  }
  const text = result.backendText === '' ? '' : ` (${result.backendText})`;
  const message = `${result.message}${text}`;
  switch (result.reason) {
    case 'unreachable':
    case 'breakerOpen':
      return { kind: 'transientError', cause: 'unreachable', message };
    // It answers, or we ask it too much: nothing is wrong with it.
    case 'busy':
    case 'queueFull':
      return { kind: 'retryAfter', reason: 'locked', message, delayMs: result.retryAfterMs ?? 0 };
    case 'trouble':
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
    certificateSha256: identity.certificateSha256 ?? '',
  };
}

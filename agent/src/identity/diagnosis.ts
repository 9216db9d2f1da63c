/**
 * Why this agent cannot verify the control plane: another certificate authority, or a wrong clock
 * on either side. For a person, with what to do.
 */

import { X509Certificate } from 'node:crypto';
import type { RackName } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { ProbedServer } from '@rackwright/rpc';
import { certificatesIn, fingerprintsOf, signerOf } from './bundle.ts';

/** Clocks may differ by so much, as certificates begin a little in the past; milliseconds. */
export const clockSkewMs = 5 * 60_000;
const probeTimeoutMs = 10_000;

/** The agent's expectation, compared with the server's certificates and clock. */
export interface DiagnosisParts {
  readonly clock: Clock;
  readonly host: string;
  readonly port: number;
  /** PEM of the trusted authorities. */
  readonly caPem: string;
  /** The agent's own certificate, if it has one yet. */
  readonly certificatePem?: string;
  /** "racks/RACK", as far as it is known. */
  readonly rack: RackName;
}

/**
 * The explanation; undefined if certificates and clock are right, or the server cannot be reached.
 */
export async function diagnose(parts: DiagnosisParts): Promise<string | undefined> {
  const { clock, host, port } = parts;
  const { probeServer } = await import('../rpc.ts');
  const probed = await probeServer({ host, port, clock, timeoutMs: probeTimeoutMs });
  return probed === undefined ? undefined : explainServer(parts, probed, clock.nowMs());
}

/** Pure. */
export function explainServer(
  parts: DiagnosisParts,
  { chain, timeMs }: ProbedServer,
  nowMs: number,
): string | undefined {
  const [leaf] = chain;
  if (leaf === undefined) return undefined;
  const trusted = certificatesIn(parts.caPem);
  const clocks =
    `this machine’s clock says ${text(nowMs)}, the control plane’s ` +
    (timeMs === undefined ? 'is not known' : `says ${text(timeMs)}`);
  const remedy = 'Set the clock that is wrong (timedatectl shows whether it is synchronized)';
  if (signerOf(leaf, trusted) === undefined) {
    const rackId = parts.rack.replace('racks/', '') || 'RACK';
    return (
      `${parts.host}:${parts.port} is not the control plane that this agent joined, or its ` +
      `certificate authority was replaced while the agent was away: the agent trusts SHA-256 ` +
      `${fingerprintsOf(trusted).join(', ') || 'none'}, shown is ` +
      `${fingerprintsOf(chain).slice(1).join(', ') || fingerprintsOf(chain).join(', ')}. If the ` +
      `address is right, let the agent join again: rackwright rack join-token ${rackId} --replace`
    );
  }
  if (isOutside(leaf, nowMs)) {
    return (
      `the control plane’s certificate is good from ${span(leaf)}, but ${clocks}. ${remedy}; ` +
      'the agent then goes on by itself'
    );
  }
  const own = parts.certificatePem && new X509Certificate(parts.certificatePem);
  if (own && timeMs !== undefined && isOutside(own, timeMs)) {
    return (
      `this agent’s certificate is good from ${span(own)}, but ${clocks}. The agent asks for a ` +
      `new one by its registered key. ${isFar(nowMs, timeMs) ? remedy : ''}`.trim()
    );
  }
  return isFar(nowMs, timeMs) ? `${clocks}. ${remedy}` : undefined;
}

/** The warning about clocks that differ; undefined when they do not. */
export function clockWarning(nowMs: number, serverMs: number): string | undefined {
  if (!isFar(nowMs, serverMs)) return undefined;
  return (
    `this machine’s clock says ${text(nowMs)}, the control plane’s says ${text(serverMs)}: one ` +
    'of the two is wrong (timedatectl shows whether it is synchronized)'
  );
}

function isFar(nowMs: number, serverMs: number | undefined): boolean {
  return serverMs !== undefined && Math.abs(nowMs - serverMs) > clockSkewMs;
}

function isOutside(certificate: X509Certificate, nowMs: number): boolean {
  return nowMs < certificate.validFromDate.getTime() || nowMs > certificate.validToDate.getTime();
}

function span({ validFromDate, validToDate }: X509Certificate): string {
  return `${text(validFromDate.getTime())} to ${text(validToDate.getTime())}`;
}

function text(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/**
 * First contact by fingerprint: reads the chain that a server shows, without trusting it, and
 * picks the one certificate whose SHA-256 is known beforehand. That certificate is then the only
 * root of a second, fully checked connection.
 *
 * Nothing is sent over the probing connection, and it is never used for anything else: a callback
 * that compares inside an unchecked connection would leave that connection usable.
 */

import { X509Certificate } from 'node:crypto';
import { type ConnectionOptions, connect, type DetailedPeerCertificate } from 'node:tls';
import { sha256Hex, unauthenticated, unavailable } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';

/** Certificates looked at in one chain. */
const chainLengthMax = 8;

export interface PinnedProbe {
  readonly host: string;
  readonly port: number;
  /** SHA-256 of the wanted certificate (DER), lower-case hex. */
  readonly sha256: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/**
 * PEM of the certificate with the wanted fingerprint. Rejects with `unavailable` when the server
 * cannot be reached and with `unauthenticated` when its chain does not hold the certificate.
 */
export async function fetchPinnedCertificate(probe: PinnedProbe): Promise<string> {
  const chain = await readChain(probe);
  const wanted = chain.find((der) => sha256Hex(der) === probe.sha256);
  if (wanted !== undefined) return new X509Certificate(wanted).toString();
  throw unauthenticated(
    'FINGERPRINT_MISMATCH',
    `${probe.host}:${probe.port} shows no certificate with SHA-256 ${probe.sha256}; it shows ` +
      `${chain.map((der) => sha256Hex(der)).join(', ') || 'none'}. Check the address, or make a ` +
      'new token if the certificate authority was replaced.',
  );
}

/**
 * The certificates that a server shows, its own first; undefined when it cannot be reached. Sends
 * nothing but the TLS handshake. The certificates are not verified.
 */
export async function probeCertificates(
  probe: Omit<PinnedProbe, 'sha256'>,
): Promise<readonly X509Certificate[] | undefined> {
  try {
    return (await readChain(probe)).map((der) => new X509Certificate(der));
  } catch {
    // The caller looks after a failed call, and reports the error of that call.
    return undefined;
  }
}

function readChain(probe: Omit<PinnedProbe, 'sha256'>): Promise<Buffer[]> {
  const { host, port, timeoutMs, clock } = probe;
  const options: ConnectionOptions = {
    host,
    port,
    ALPNProtocols: ['h2'],
    minVersion: 'TLSv1.3',
    rejectUnauthorized: false,
  };
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: unknown) =>
      end(() =>
        reject(unavailable('SERVER_UNREACHABLE', `${host}:${port}: ${why}`, undefined, cause)),
      );
    const socket = connect(options, () => {
      const chain = chainOf(socket.getPeerCertificate(true));
      end(() => resolve(chain));
    });
    const cancel = clock.after(timeoutMs, () => fail(`no TLS answer within ${timeoutMs} ms`));
    const end = (settle: () => void) => {
      cancel();
      socket.destroy();
      settle();
    };
    socket.on('error', (error) => fail(error.message, error));
  });
}

/** The certificates that a server has shown, DER, its own first. */
export function chainOf(leaf: DetailedPeerCertificate): Buffer[] {
  const chain: Buffer[] = [];
  let at: DetailedPeerCertificate | undefined = leaf;
  while (at?.raw !== undefined && chain.length < chainLengthMax) {
    chain.push(at.raw);
    // A root names itself as its issuer.
    at = at.issuerCertificate === at ? undefined : at.issuerCertificate;
  }
  return chain;
}

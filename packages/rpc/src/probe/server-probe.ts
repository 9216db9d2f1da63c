/**
 * What a server shows without authentication: its certificates, and its clock. Nothing of it is
 * trusted: it explains to a person why a verified connection fails.
 *
 * Must not: send anything but an empty request.
 */
import { X509Certificate } from 'node:crypto';
import { connect } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '@rackwright/platform';
import { chainOf } from './pinned-certificate.ts';

export interface ServerProbe {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** A server as it shows itself. */
export interface ProbedServer {
  /** The certificates, its own first. */
  readonly chain: readonly X509Certificate[];
  /** Wall time by its own clock, to the second; undefined when unreported. */
  readonly timeMs: number | undefined;
}

/** Looks at a server; undefined when it cannot be reached. Never throws. */
export function probeServer(probe: ServerProbe): Promise<ProbedServer | undefined> {
  const { host, port, timeoutMs, clock } = probe;
  const name = host.includes(':') ? `[${host}]` : host;
  return new Promise((resolve) => {
    let chain: X509Certificate[] = [];
    const connection = connect(`https://${name}:${port}`, {
      minVersion: 'TLSv1.3',
      rejectUnauthorized: false,
    });
    const end = (timeMs?: number) => {
      cancel();
      resolve(chain.length === 0 ? undefined : { chain, timeMs });
      connection.destroy();
    };
    const cancel = clock.after(timeoutMs, () => end());
    connection.on('error', () => end());
    connection.on('close', () => end());
    connection.on('connect', (_session, socket) => {
      const shown = chainOf((socket as TLSSocket).getPeerCertificate(true));
      chain = shown.map((der) => new X509Certificate(der));
      const request = connection.request({ ':method': 'GET', ':path': '/' }, { endStream: true });
      request.on('error', () => end());
      request.on('response', (headers) => {
        const timeMs = Date.parse(headers.date ?? '');
        end(Number.isNaN(timeMs) ? undefined : timeMs);
      });
    });
  });
}

/**
 * TLS for both ends. There is no way here to speak plain text.
 *
 * Invariants:
 * 1. TLS 1.3 only.
 * 2. Certificates can be replaced while the server runs; open connections keep theirs.
 * 3. With `clientCaPem` only clients with a valid certificate of that CA get past the handshake.
 *    (Asking without demanding is no option: measured, a forged certificate whose issuer merely has
 *    our CA's name leaves an OpenSSL error behind that tears the unchecked connection down later.)
 * 4. A session is never resumed: a client is checked anew in each handshake, so that one whose
 *    certificate has expired meanwhile, or whose CA has gone, does not come in by an old ticket.
 */
import { constants } from 'node:crypto';
import type { SecureContextOptions, TlsOptions } from 'node:tls';

/** A private key with its certificate chain, both PEM; the chain starts with its certificate. */
export interface KeyAndChain {
  readonly privateKeyPem: string;
  readonly certificateChainPem: string;
}

/** A server's certificate, and the authorities that it trusts. */
export interface ServerTls extends KeyAndChain {
  /** CAs whose client certificates are demanded (invariant 3); undefined asks clients for none. */
  readonly clientCaPem?: string;
}

/** The protocols over TLS; `h2AndHttp1`: the client's offer decides (`chooseProtocol`). */
export type Protocols = 'h2' | 'h2AndHttp1';

/**
 * Chooses from a client's ALPN offer (RFC 7301): HTTP/1.1 wherever it is offered, because gRPC
 * clients offer HTTP/2 alone, while browsers and `curl` offer both and speak no gRPC. Undefined:
 * none fits.
 */
export function chooseProtocol(offered: readonly string[]): string | undefined {
  return ['http/1.1', 'h2'].find((protocol) => offered.includes(protocol));
}

/** Options of a TLS server. */
export function tlsOptions(
  tls: ServerTls,
  handshakeTimeoutMs: number,
  protocols: Protocols,
): TlsOptions {
  return {
    ...secureContext(tls),
    ...(protocols === 'h2'
      ? { ALPNProtocols: ['h2'] }
      : { ALPNCallback: ({ protocols: offered }) => chooseProtocol(offered) }),
    handshakeTimeout: handshakeTimeoutMs,
    requestCert: tls.clientCaPem !== undefined,
    rejectUnauthorized: tls.clientCaPem !== undefined,
  };
}

/** The parts that may be replaced while the server runs. */
export function secureContext(tls: ServerTls): SecureContextOptions {
  return {
    minVersion: 'TLSv1.3',
    key: tls.privateKeyPem,
    cert: tls.certificateChainPem,
    secureOptions: constants.SSL_OP_NO_TICKET,
    // An empty list would mean the public CAs; without client certificates none is ever consulted.
    ...(tls.clientCaPem === undefined ? {} : { ca: tls.clientCaPem }),
  };
}

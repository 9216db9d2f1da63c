/**
 * TLS for both ends. There is no way here to speak plain text.
 *
 * Invariants:
 * 1. TLS 1.3 only.
 * 2. Certificates can be replaced while the server runs; open connections keep theirs.
 * 3. With `clientCaPem` only clients with a valid certificate of that CA get past the handshake.
 *    (Asking without demanding is no option: measured, a forged certificate whose issuer merely has
 *    our CA's name leaves an OpenSSL error behind that tears the unchecked connection down later.)
 */
import type { SecureContextOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';

/** A private key with its certificate chain, both PEM; the chain starts with its certificate. */
export interface KeyAndChain {
  readonly privateKeyPem: string;
  readonly certificateChainPem: string;
}

/** What a server proves itself with and whom it believes. */
export interface ServerTls extends KeyAndChain {
  /** CA whose client certificates are demanded (invariant 3); undefined asks clients for none. */
  readonly clientCaPem?: string;
}

/** grpc-js credentials whose certificate can be replaced (invariant 2). */
export class RotatingServerCredentials extends ServerCredentials {
  readonly #clientCaPem: string | undefined;

  constructor(tls: ServerTls) {
    super(
      {
        minVersion: 'TLSv1.3',
        requestCert: tls.clientCaPem !== undefined,
        rejectUnauthorized: tls.clientCaPem !== undefined,
      },
      secureContext(tls, tls.clientCaPem),
    );
    this.#clientCaPem = tls.clientCaPem;
  }

  /** New handshakes use this key and chain from now on. */
  replace(next: KeyAndChain): void {
    this.updateSecureContextOptions(secureContext(next, this.#clientCaPem));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function secureContext(own: KeyAndChain, clientCaPem: string | undefined): SecureContextOptions {
  return {
    minVersion: 'TLSv1.3',
    key: own.privateKeyPem,
    cert: own.certificateChainPem,
    // An empty list would mean the public CAs; without client certificates none is ever consulted.
    ...(clientCaPem === undefined ? {} : { ca: clientCaPem }),
  };
}

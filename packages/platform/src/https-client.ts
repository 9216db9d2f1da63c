/**
 * HTTPS to one device of the rack: short requests, certificates pinned instead of trusted by name,
 * because a BMC signs its own.
 */

/** The address of a device, and the certificate that it has to show. */
export interface HttpsTarget {
  /** IPv4 or IPv6 address, or a name. */
  readonly address: string;
  /** 1–65535. */
  readonly port: number;
  /**
   * SHA-256 of the certificate (DER), lower-case hex. Any other is refused before a request is
   * sent. Undefined: none is known yet; every certificate is accepted, and the answer names it.
   */
  readonly certificateSha256: string | undefined;
}

export interface HttpsLimits {
  /** From the start of a connection to the end of its TLS handshake. */
  readonly connectTimeoutMs: number;
  /** From sending a request to the last byte of its answer, the connection included. */
  readonly requestTimeoutMs: number;
  /** An answer with a larger body is given up. */
  readonly bodyBytesMax: number;
  readonly headerBytesMax: number;
}

export interface HttpsRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, starting with "/". */
  readonly path: string;
  /** May carry secrets: they are sent, and appear in no outcome. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The outcome of a request. Nothing here carries what was sent. */
export type HttpsOutcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Lower-case names; repeated headers joined with ", ". */
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Uint8Array;
      /** The fingerprint of the shown certificate. */
      readonly certificateSha256: string;
    }
  /** Another certificate than the pinned one; nothing was sent. */
  | { readonly kind: 'certificateRefused'; readonly pinned: string; readonly shown: string }
  /** The server does not speak TLS, or no version of it that we accept. */
  | { readonly kind: 'noTls'; readonly message: string }
  /** The received bytes are no HTTP, or exceed the limits. */
  | { readonly kind: 'noHttp'; readonly message: string }
  /** The name cannot be resolved, or leads to internal addresses alone. */
  | { readonly kind: 'unknownName'; readonly message: string }
  /**
   * Nobody listens, or the connection broke. `mayHaveArrived`: the request may have been carried
   * out all the same.
   */
  | { readonly kind: 'broken'; readonly message: string; readonly mayHaveArrived: boolean }
  /** A limit of time was over. */
  | { readonly kind: 'timedOut'; readonly message: string; readonly mayHaveArrived: boolean }
  | { readonly kind: 'cancelled' };

/** One connection at a time to one device, kept open between requests. */
export interface HttpsPeer {
  /** Never rejects. */
  request(request: HttpsRequest, signal?: AbortSignal): Promise<HttpsOutcome>;
  /** Closes the connection; a request that is under way ends as `broken`. */
  close(): void;
}

export interface HttpClient {
  /** Connects with the first request, not before. */
  peer(target: HttpsTarget, limits: HttpsLimits): HttpsPeer;
}

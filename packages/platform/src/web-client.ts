/**
 * HTTP and HTTPS to servers by their URL: registries, webhooks. A server is known by its name, as
 * browsers know it; devices that sign their own certificates are `HttpClient`'s.
 */

export interface WebRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT';
  /** "http:" or "https:"; a user or password in it is refused. */
  readonly url: string;
  /** May carry secrets: they are sent, and appear in no outcome. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Authorities in PEM that are trusted for this request, beside those of the client. */
  readonly caPem?: string;
  /**
   * Internal addresses (`internal-address.ts`) that it may go to: "127.0.0.1:5000", "127.0.0.0/8".
   * Only a guarded client asks for them.
   */
  readonly internal?: readonly string[];
}

export interface WebLimits {
  /** From the start of the connection to the last header of the answer. */
  readonly answerTimeoutMs: number;
  /** The connection may bring nothing for so long while the body is read. */
  readonly silenceMs: number;
  /** A body that is not over brings at least so much in each such time. */
  readonly floor?: WebFloor;
  readonly headerBytesMax: number;
}

/** `bytes` infinite: the whole body has to arrive within the time. */
export interface WebFloor {
  readonly bytes: number;
  readonly everyMs: number;
}

/** An answer whose body is still on its way. Read it to its end, or close it. */
export interface WebAnswer {
  readonly kind: 'answered';
  readonly status: number;
  /** Lower-case names; repeated headers joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Throws `WebBroken` when the connection ends before the body does. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives up the unread rest; harmless when it is over. */
  close(): void;
}

/** The outcome of a request. Nothing here carries what was sent. */
export type WebOutcome =
  | WebAnswer
  /** This machine does not trust the certificate for the name; nothing was sent. */
  | { readonly kind: 'untrusted'; readonly message: string }
  /** It is at an internal address that is not listed; nothing was sent. */
  | { readonly kind: 'forbidden'; readonly message: string }
  /** The server's answer is neither HTTP nor TLS, or exceeds the limits. */
  | { readonly kind: 'noHttp'; readonly message: string }
  /** Nobody answers. `mayHaveArrived`: the request may have been carried out all the same. */
  | { readonly kind: 'unreachable'; readonly message: string; readonly mayHaveArrived: boolean }
  | { readonly kind: 'cancelled' };

/** Thrown while a body is read: the connection broke, fell silent, or was cancelled. */
export class WebBroken extends Error {
  override readonly name = 'WebBroken';
}

/** The server keeps the connection busy with almost no data (`WebLimits.floor`). */
export class WebTooSlow extends WebBroken {}

/** Follows no redirect and repeats nothing by itself. */
export interface WebClient {
  /** Never rejects. Aborting also breaks the body of an answer that is being read. */
  send(request: WebRequest, limits: WebLimits, signal?: AbortSignal): Promise<WebOutcome>;
}

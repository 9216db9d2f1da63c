/** One request as the boot path sees it: a body is never part of it. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query exactly as sent. */
  readonly target: string;
  /** As dotted IPv4 or IPv6; our own address has the same form. */
  readonly remoteAddress: string;
  /** Which of this machine's addresses it was sent to. */
  readonly localAddress: string;
  /** Lower-case header names; repeated headers joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
}

/** A slice of a file, streamed by the platform without passing through our heap at once. */
export interface FileSlice {
  readonly kind: 'file';
  readonly path: string;
  /** First byte, inclusive. */
  readonly start: number;
  /** Last byte, inclusive. */
  readonly end: number;
  /**
   * The state in which the file was just now (`FileStat.version`): pieces of that state may be
   * kept.
   */
  readonly version?: string;
  /**
   * For a file that is still being written: resolves with the number of bytes that may be read by
   * now, more than `at`. Rejects when no more will come, which breaks the connection. A client that
   * requests such a file after it is gone is asked to retry.
   */
  readonly readable?: (at: number, signal: AbortSignal) => Promise<number>;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Text and bytes are sent whole; a file slice is streamed. Not sent for HEAD. */
  readonly body?: string | Uint8Array | FileSlice;
  /** Called once when nothing more of it is sent; whether all of it is the kernel's by then. */
  readonly onEnd?: (isWhole: boolean) => void;
}

export interface HttpServer {
  readonly address: string;
  readonly port: number;
  /**
   * Undefined when it listens and answers a request of our own, else the problem. The check takes
   * none of the connections: a server that is full of clients is healthy.
   */
  problem(timeoutMs: number): Promise<string | undefined>;
  close(): Promise<void>;
}

export interface HttpListen {
  readonly address: string;
  readonly port: number;
  /** Header bytes above this are refused with 431. */
  readonly headerBytesMax: number;
  /** Connections above this are refused at accept. */
  readonly connectionsMax: number;
  /** Connections of one address above this are closed at once, until they ask for a host. */
  readonly connectionsPerAddressMax: number;
  /**
   * Connections of one host at one address; beyond it a request is refused with 429. Absent: as
   * many as an address may have.
   */
  readonly connectionsPerHostMax?: number;
  /** The host that a target is of; undefined: of none that is known. Returns at once. */
  hostOf?(target: string): string | undefined;
  /** Bytes of files that are kept in memory while they are requested; 0 or absent keeps none. */
  readonly keptFileBytesMax?: number;
  /** A connection silent for this long is closed. */
  readonly idleTimeoutMs: number;
  /**
   * Gets the error of a request that is answered with 500, or broken off although its client is
   * still there: a handler threw, or a file cannot be read. A missing file is no failure.
   */
  onFailure?(error: unknown): void;
}

export interface Http {
  listen(
    options: HttpListen,
    handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>,
  ): Promise<HttpServer>;
}

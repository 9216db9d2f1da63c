/** HTTP requests that are no calls: pages, probes, signing in. Plain values only. */
import type { CallContext } from './handlers.ts';

/** A request whose head is here. */
export interface PageRequest {
  /** "GET" */
  readonly method: string;
  /** As received, from the first "/" to the query: nothing of it is decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Its headers, whose it is, and the signal that ends it. */
  readonly context: CallContext;
  /** The whole body; throws when it is longer than this, or does not arrive. */
  body(bytesMax: number): Promise<Buffer>;
}

/** The answer. Several answers may share one body: it is never changed. */
export interface PageResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Uint8Array;
}

/** Answers all these requests; an `ApiFailure` that it throws is answered as JSON. */
export type Respond = (request: PageRequest) => PageResponse | Promise<PageResponse>;

/** The interface between a server and its HTTP/1.1 part beside gRPC. */
import type { TLSSocket } from 'node:tls';
import type { BoundService } from '@rackwright/messages';
import type { Clock, Log, Random } from '@rackwright/platform';
import type { RpcLimits } from '../wire/limits.ts';
import type { Admissions } from './admission.ts';
import type { IncomingRequests } from './first-message.ts';

/** The server's own parts: its room, its slots and its bounds are shared by all protocols. */
export interface HttpParts {
  readonly services: readonly BoundService[];
  readonly admissions: Admissions;
  readonly incoming: IncomingRequests;
  readonly limits: RpcLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Random;
}

/** Connections that speak HTTP/1.1. */
export interface HttpListener {
  /** Takes a connection whose handshake is over. */
  take(socket: TLSSocket): void;
  readonly connections: number;
  /** Ends idle connections now, the others when they are answered or the grace is over. */
  close(): Promise<void>;
}

/** Makes them for a server that is about to listen. */
export type OpenHttp = (parts: HttpParts) => HttpListener;

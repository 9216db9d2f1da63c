/**
 * The body of a request over HTTP/1.1: read after its caller was admitted, whole, within the bounds
 * that requests of every protocol share (`IncomingRequests`).
 */

import { ApiFailure, unavailable } from '@rackwright/messages';
import { type Clock, markHandled } from '@rackwright/platform';
import { callerGone } from '../server/call-failures.ts';
import type { IncomingLimits, IncomingRequests } from '../server/first-message.ts';
import { networkOfPeer } from '../wire/caller-address.ts';
import { tooMuch } from '../wire/codec.ts';
import type { Exchange } from './http-listener.ts';

/** The cost of a piece beside its bytes. */
const pieceCostBytes = 256;

export interface BodyParts {
  readonly incoming: IncomingRequests;
  readonly limits: IncomingLimits;
  readonly clock: Clock;
  readonly peerAddress: string;
}

/** A request that counts from its head on, until it is whole or over. */
export interface IncomingBody {
  /** Throws when there are more bytes, too little room for them, or too long a wait. */
  read(bytesMax: number, name: string): Promise<Buffer>;
  /** Idempotent. */
  release(): void;
}

/** Counts it from now on. */
export function expectBody(exchange: Exchange, parts: BodyParts): IncomingBody {
  const { incoming, limits, clock, peerAddress } = parts;
  const ended = Promise.withResolvers<never>();
  // Nobody may ever wait for it.
  markHandled(ended.promise);
  const body = incoming.begin(networkOfPeer(peerAddress), () => {
    const text = 'More is on its way to this server than it has room for; come again later.';
    ended.reject(unavailable('TOO_MUCH_UNDER_WAY', text, limits.retryAfterMs));
  });
  const cancel = clock.after(limits.firstMessageMs, () => {
    const text = `The body of a request must be here within ${limits.firstMessageMs} ms.`;
    const error = { kind: 'deadlineExceeded', message: text, reason: 'BODY_TOO_SLOW' } as const;
    ended.reject(new ApiFailure(error));
  });
  const release = (): void => {
    cancel();
    incoming.release(body);
  };
  exchange.response.once('close', () => {
    ended.reject(callerGone());
    release();
  });
  return {
    read: async (bytesMax, name) => {
      const grow = (bytes: number) => incoming.grow(body, bytes + pieceCostBytes);
      try {
        return await gather(exchange, { bytesMax, name, grow, ended: ended.promise });
      } finally {
        release();
      }
    },
    release,
  };
}

interface Gathering {
  readonly bytesMax: number;
  readonly name: string;
  readonly grow: (bytes: number) => void;
  readonly ended: Promise<never>;
}

function gather({ request, askForBody }: Exchange, parts: Gathering): Promise<Buffer> {
  const { bytesMax: most, name, grow, ended } = parts;
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > most) return Promise.reject(tooMuch(name, over(announced, most)));
  askForBody();
  const whole = Promise.withResolvers<Buffer>();
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onPiece = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes > most) {
      whole.reject(tooMuch(name, over(bytes, most)));
      return;
    }
    pieces.push(piece);
    grow(piece.length);
  };
  const onEnd = (): void => whole.resolve(Buffer.concat(pieces));
  request.on('data', onPiece).once('end', onEnd);
  // Bytes behind a refusal are discarded, and no longer kept here.
  return Promise.race([whole.promise, ended]).finally(() => {
    request.off('data', onPiece).off('end', onEnd);
    pieces.length = 0;
  });
}

function over(found: number, most: number) {
  return { limit: 'bytes', found, most } as const;
}

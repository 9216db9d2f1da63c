/**
 * Ends calls whose first message does not come: headers alone, or a body that trickles, would hold
 * a stream and its buffers for as long as the caller likes.
 */
import {
  status as Code,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { Cancel, Clock } from '@rackwright/platform';

/** An interceptor that gives the first message of each call this long. */
export function firstMessageWithin(limitMs: number, clock: Clock): ServerInterceptor {
  return (_method, call) => new Awaiting(call, limitMs, clock);
}

class Awaiting extends ServerInterceptingCall {
  readonly #cancel: Cancel;

  constructor(call: ServerInterceptingCallInterface, limitMs: number, clock: Clock) {
    super(call);
    this.#cancel = clock.after(limitMs, () => {
      super.sendStatus({
        code: Code.DEADLINE_EXCEEDED,
        details: `The first message of a call must be complete within ${limitMs} ms.`,
      });
    });
  }

  override start(listener: Parameters<ServerInterceptingCall['start']>[0]): void {
    const cancel = this.#cancel;
    super.start({
      onReceiveMetadata: (metadata) => listener.onReceiveMetadata(metadata),
      onReceiveMessage: (message) => {
        cancel();
        listener.onReceiveMessage(message);
      },
      onReceiveHalfClose: () => {
        cancel();
        listener.onReceiveHalfClose();
      },
      onCancel: () => {
        cancel();
        listener.onCancel();
      },
    });
  }

  override sendStatus(...status: Parameters<ServerInterceptingCall['sendStatus']>): void {
    this.#cancel();
    super.sendStatus(...status);
  }
}

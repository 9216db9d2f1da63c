/**
 * Messages of a stream that go out together. grpc-js gives the next one to HTTP/2 only when the one
 * before has left the process. Each then costs a TLS record, a system call and a pass of the event
 * loop. Here a message counts as sent once HTTP/2 has it; messages sent meanwhile go out with the
 * next record.
 *
 * Invariants:
 * 1. The order of messages stays, and the end of the stream comes behind them.
 * 2. When a stream's peer does not read, no more waits in HTTP/2 than `aheadBytesMax` and one
 *    message: then the sender waits until that has gone out.
 * 3. The first message has gone out before a second one is sent: until then a layer of grpc-js may
 *    have room for one only. So an answer of one message is sent as usual.
 */

/** Some dozens of orders or answers. */
export const aheadBytesMax = 16 * 1_024;

/** The messages of one call. */
export class SentAhead {
  #bytes = 0;
  #hasBegun = false;

  /**
   * Sends by `send`, which calls back once the message has gone out; `sent` may be called before.
   */
  send(length: number, sent: () => void, send: (gone: () => void) => void): void {
    const isAhead = this.#hasBegun && this.#bytes + length <= aheadBytesMax;
    this.#bytes += length;
    send(() => {
      this.#hasBegun = true;
      this.#bytes -= length;
      if (!isAhead) sent();
    });
    if (isAhead) sent();
  }
}

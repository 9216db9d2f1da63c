/**
 * Sends one file to one client, without sockets or clocks: events go in, actions come out.
 *
 * T1 Blocks count modulo 65,536 from 1 (rolling over to 0), so a file may have any length. The last
 *    block is shorter than the block size, and empty when the length is a multiple of it.
 * T2 Blocks in flight never exceed the negotiated window.
 * T3 An acknowledgement moves the window only forward, and only within the sent blocks; any other
 *    is ignored. One from inside the window, or a duplicate of the last one, may mean a loss (RFC
 *    7440 §4), or be the echo of a packet that came late or twice: the two cannot be distinguished.
 *    So acknowledgements cause each block to be repeated at most once; a second loss waits for the
 *    timer. With a window of one block a duplicate repeats nothing (the Sorcerer's Apprentice bug).
 * T4 Unanswered packets are sent again when the timer fires, at most `attemptsMax` times without
 *    progress; then the transfer ends.
 * T5 Before the client's first acknowledgement, even one of the options, fewer attempts are made,
 *    and the time-out that it asked for does not count yet. So a single request, which anybody can
 *    send with a forged address, holds a transfer for seconds only. A slow client loses nothing: it
 *    repeats its request, as for a lost request, and that begins a new transfer.
 * T6 A client whose machine reports that nobody has its port is asked once more soon. When the
 *    report comes again without a packet of the client, the transfer ends. The first report may be
 *    a mistake, or come from an address that the client does not use; several reports may answer
 *    one window.
 * T7 Each transfer ends exactly once. After its end every event is answered with nothing.
 */
import type { NegotiatedOptions } from './options.ts';
import {
  type DatagramParts,
  dataHeader,
  encodePacket,
  type TftpPacket,
  tftpError,
} from './packet.ts';

export interface RetryLimits {
  /** First wait for an answer; doubles with each retransmission unless the client chose one. */
  readonly retryDelayMs: number;
  readonly retryDelayMsMax: number;
  /** Times that the same packets are sent without progress before giving up. */
  readonly attemptsMax: number;
  /**
   * The same for the first packets, before any answer of the client (T5). Each further address of
   * ours that the client may have sent its request to adds one, up to `attemptsMax` in all.
   */
  readonly openingAttemptsMax: number;
  /** From the first sign that the client has gone until it is asked once more (T6). */
  readonly refusedDelayMs: number;
}

export type TransferEnd =
  | { readonly kind: 'complete' }
  /** The client ended it: EDK2 first asks for the size and then sends "User aborted". */
  | { readonly kind: 'aborted'; readonly message: string }
  /** The client reports an error of its own. */
  | { readonly kind: 'clientError'; readonly code: number; readonly message: string }
  | { readonly kind: 'timedOut'; readonly blocksAcknowledged: number }
  /** Nobody has the client's port any more (T6). */
  | { readonly kind: 'refused'; readonly blocksAcknowledged: number }
  /** The client sent a packet that has no place in a transfer of ours. */
  | { readonly kind: 'protocolError'; readonly message: string };

/** The next actions: send these in order, then set, keep or (at the end) clear the one timer. */
export interface TransferStep {
  readonly sends: readonly DatagramParts[];
  /** Undefined: the timer that is running stays. */
  readonly timerMs?: number;
  readonly end?: TransferEnd;
}

const nothing: TransferStep = { sends: [] };

export class Transfer {
  readonly #file: Uint8Array;
  readonly #negotiated: NegotiatedOptions;
  readonly #retry: RetryLimits;
  readonly #blocks: number;
  /** Block numbers up to which all was acknowledged, sent, sent twice; they do not roll over. */
  #acknowledged = 0;
  #sent = 0;
  #repeated = 0;
  #attempts = 0;
  /** Addresses of ours that the first packets go out from, alternately. */
  #addresses = 1;
  /** Rounds of packets that were refused without a word of the client, and the last one of them. */
  #refusals = 0;
  #refusedAttempt = 0;
  #awaitsOptionAck: boolean;
  #heedsDuplicate = true;
  #answered = false;
  #ended = false;

  constructor(file: Uint8Array, negotiated: NegotiatedOptions, retry: RetryLimits) {
    this.#file = file;
    this.#negotiated = negotiated;
    this.#retry = retry;
    this.#blocks = Math.floor(file.length / negotiated.blockBytes) + 1;
    this.#awaitsOptionAck = negotiated.answer.length > 0;
  }

  /** Whether the client has acknowledged anything, even only the options. */
  get answered(): boolean {
    return this.#answered;
  }

  /** The first packets; call once. `addresses`: how many of ours they go out from, alternately. */
  start(addresses = 1): TransferStep {
    this.#addresses = addresses;
    return this.#sendUnanswered('timer');
  }

  /** A well-formed packet from the client's own port. */
  receive(packet: TftpPacket): TransferStep {
    if (this.#ended) return nothing;
    this.#refusals = 0;
    this.#refusedAttempt = 0;
    switch (packet.kind) {
      case 'ack':
        return this.#receiveAck(packet.block);
      case 'error':
        return this.#receiveError(packet.code, packet.message);
      case 'readRequest':
        return nothing; // The client's retransmission crossed our answer; T4 repeats that.
      case 'writeRequest':
      case 'data':
      case 'optionAck':
        return this.#protocolError(`${packet.kind} during a read`);
    }
  }

  /** The timer fired. */
  timeout(): TransferStep {
    if (this.#ended) return nothing;
    if (this.#attempts >= this.#attemptsMax()) {
      return this.#finish({ kind: 'timedOut', blocksAcknowledged: this.#acknowledged });
    }
    return this.#sendUnanswered('timer');
  }

  /** The client's machine reports that nobody has the port of the client (T6). */
  refused(): TransferStep {
    if (this.#ended || this.#refusedAttempt === this.#attempts) return nothing;
    this.#refusedAttempt = this.#attempts;
    this.#refusals += 1;
    const addresses = this.#answered ? 1 : this.#addresses;
    if (this.#refusals > addresses) {
      return this.#finish({ kind: 'refused', blocksAcknowledged: this.#acknowledged });
    }
    return { sends: [], timerMs: this.#retry.refusedDelayMs };
  }

  #receiveAck(block: number): TransferStep {
    const advance = (block - this.#acknowledged) & 0xffff;
    if (this.#awaitsOptionAck) {
      if (block !== 0) return nothing;
      this.#awaitsOptionAck = false;
      this.#answered = true;
      this.#attempts = 0;
      return this.#sendUnanswered('ack');
    }
    if (advance === 0) return this.#duplicateAck();
    const inFlight = this.#sent - this.#acknowledged;
    if (advance > inFlight) return nothing;
    this.#heedsDuplicate = this.#attempts === 1 && advance === inFlight;
    this.#answered = true;
    this.#acknowledged += advance;
    this.#attempts = 0;
    return this.#acknowledged === this.#blocks
      ? this.#finish({ kind: 'complete' })
      : this.#sendUnanswered('ack');
  }

  /** T3. */
  #duplicateAck(): TransferStep {
    if (this.#negotiated.windowBlocks === 1 || !this.#heedsDuplicate) return nothing;
    this.#heedsDuplicate = false;
    return this.#sendUnanswered('ack');
  }

  #receiveError(code: number, message: string): TransferStep {
    const aborts = code === tftpError.optionsRefused || /abort/i.test(message);
    return this.#finish(
      aborts ? { kind: 'aborted', message } : { kind: 'clientError', code, message },
    );
  }

  #protocolError(message: string): TransferStep {
    const code = tftpError.illegalOperation;
    const sends = [[encodePacket({ kind: 'error', code, message })]];
    return { ...this.#finish({ kind: 'protocolError', message }), sends };
  }

  /** Sends the option acknowledgement, or the window after the last acknowledged block (T2, T3). */
  #sendUnanswered(cause: 'ack' | 'timer'): TransferStep {
    const timerMs = this.#delayMs();
    this.#attempts += 1;
    if (this.#awaitsOptionAck) {
      const options = this.#negotiated.answer;
      return { sends: [[encodePacket({ kind: 'optionAck', options })]], timerMs };
    }
    const last = Math.min(this.#blocks, this.#acknowledged + this.#negotiated.windowBlocks);
    const sends: DatagramParts[] = [];
    for (let block = this.#acknowledged + 1; block <= last; block += 1) {
      if (cause === 'timer' || block > this.#repeated) sends.push(this.#data(block));
    }
    this.#repeated = this.#sent;
    this.#sent = Math.max(this.#sent, last);
    return { sends, timerMs };
  }

  #data(block: number): DatagramParts {
    const { blockBytes } = this.#negotiated;
    const start = (block - 1) * blockBytes;
    return [dataHeader(block & 0xffff), this.#file.subarray(start, start + blockBytes)];
  }

  #attemptsMax(): number {
    const { attemptsMax, openingAttemptsMax } = this.#retry;
    if (this.#answered) return attemptsMax;
    return Math.min(attemptsMax, openingAttemptsMax + this.#addresses - 1);
  }

  #delayMs(): number {
    const { timeoutSeconds } = this.#negotiated;
    if (this.#answered && timeoutSeconds !== undefined) return timeoutSeconds * 1000;
    const doubled = this.#retry.retryDelayMs * 2 ** this.#attempts;
    return Math.min(doubled, this.#retry.retryDelayMsMax);
  }

  #finish(end: TransferEnd): TransferStep {
    this.#ended = true;
    return { sends: [], end };
  }
}

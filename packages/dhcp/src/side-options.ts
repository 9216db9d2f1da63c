/**
 * A client's options beside its question: what it boots, how, and by which program. Such an option
 * counts as absent when it cannot be decoded, because the question is clear without it; it is
 * remembered for a report.
 */
import { DecodeError } from '@rackwright/bytes';
import { type OptionKind, readOption } from './options.ts';
import type { DhcpPacket } from './packet.ts';

/** An option that was ignored. */
export interface IgnoredOption {
  readonly code: number;
  /** Why it cannot be decoded. */
  readonly problem: string;
}

/** The side options of one packet. */
export class SideOptions {
  readonly #packet: DhcpPacket;
  readonly #ignored = new Map<number, IgnoredOption>();

  constructor(packet: DhcpPacket) {
    this.#packet = packet;
  }

  /** The option's value; undefined when it is absent or cannot be decoded. */
  read<Value>(kind: OptionKind<Value>): Value | undefined {
    try {
      return readOption(this.#packet, kind);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#ignored.set(kind.code, { code: kind.code, problem: error.message });
      return undefined;
    }
  }

  /** Whether the packet has it, also when it cannot be decoded. */
  has({ code }: OptionKind<unknown>): boolean {
    return this.#packet.options.has(code);
  }

  /** The ignored options so far, each once. */
  get ignored(): readonly IgnoredOption[] {
    return [...this.#ignored.values()];
  }
}

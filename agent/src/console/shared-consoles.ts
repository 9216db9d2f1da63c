/**
 * One console of a host for all its viewers: BMCs allow one session at a time.
 *
 * S1 It is open as long as somebody views it, and the BMC is released then.
 * S2 The latest bytes are kept for later viewers, also when nobody views the console any more.
 *    Bounded: bytes of each host, and hosts.
 * S3 The token of a boot, which a kernel shows with its command line, reaches nobody.
 */
import { type BmcConsole, type BmcResult, type OnConsoleOutput, transient } from '@rackwright/bmc';
import type { HostUid } from '@rackwright/messages';
import { MaskedStream } from './masked.ts';
import { Scrollback } from './scrollback.ts';

/**
 * Opens the console of a host and gives way to every action on the BMC; undefined: its BMC has
 * none.
 */
export type OpenConsole = (
  hear: OnConsoleOutput,
  signal: AbortSignal,
) => Promise<BmcResult<BmcConsole>> | undefined;

export interface SharedConsoleLimits {
  readonly keptBytesMax: number;
  /** Of hosts; beyond that the oldest content is forgotten. */
  readonly keptMax: number;
}

export const defaultSharedConsoleLimits: SharedConsoleLimits = {
  keptBytesMax: 64 * 1024,
  keptMax: 256,
};

interface KeptConsole {
  readonly scrollback: Scrollback;
  masked: MaskedStream;
  /** The token that it masks. */
  bootToken: string;
}

interface OpenConnection {
  readonly observers: Set<OnConsoleOutput>;
  readonly abort: AbortController;
  readonly opening: Promise<BmcResult<BmcConsole>>;
}

/** The token of a host's present boot; undefined: it has none. */
export type BootTokenOf = (hostUid: HostUid) => string | undefined;

export class SharedConsoles {
  readonly #bootTokenOf: BootTokenOf;
  readonly #limits: SharedConsoleLimits;
  /** By the host's uid; the least recently used first. */
  readonly #kept = new Map<HostUid, KeptConsole>();
  readonly #open = new Map<HostUid, OpenConnection>();

  constructor(bootTokenOf: BootTokenOf, limits = defaultSharedConsoleLimits) {
    this.#bootTokenOf = bootTokenOf;
    this.#limits = limits;
  }

  /** A boot of the host begins, perhaps while its console is open: its token is masked now. */
  bootBegins(hostUid: HostUid): void {
    const bootToken = this.#bootTokenOf(hostUid);
    if (bootToken === undefined) return;
    const kept = this.#keptOf(hostUid);
    // While the token is the same, the masking continues: the latest bytes may be its beginning.
    if (kept.bootToken !== bootToken) {
      Object.assign(kept, { bootToken, masked: new MaskedStream(bootToken) });
    }
  }

  /** The console's output since `end` of an earlier answer; 0: all that is kept. */
  since(hostUid: HostUid, end: number): { readonly content: Uint8Array; readonly end: number } {
    const scrollback = this.#kept.get(hostUid)?.scrollback;
    if (scrollback === undefined) return { content: new Uint8Array(), end: 0 };
    const { length, written } = scrollback;
    // It may have been forgotten and begun anew.
    const news = end > written ? length : Math.min(written - end, length);
    return { content: scrollback.bytes().subarray(length - news), end: written };
  }

  /** Opens the host's console by `open`, or joins its present viewers. */
  hear(
    hostUid: HostUid,
    open: OpenConsole,
    hear: OnConsoleOutput,
    signal: AbortSignal,
  ): Promise<BmcResult<BmcConsole>> | undefined {
    const shared = this.#open.get(hostUid) ?? this.#openNow(hostUid, open);
    return shared === undefined ? undefined : this.#join(hostUid, shared, hear, signal);
  }

  forgetHost(hostUid: HostUid): void {
    this.#kept.delete(hostUid);
  }

  #openNow(hostUid: HostUid, open: OpenConsole): OpenConnection | undefined {
    this.bootBegins(hostUid);
    const [observers, abort] = [new Set<OnConsoleOutput>(), new AbortController()];
    const opening = open((bytes) => {
      const { scrollback, masked } = this.#keptOf(hostUid);
      const shown = masked.take(bytes);
      scrollback.write(shown);
      for (const hear of [...observers]) hear(shown);
    }, abort.signal);
    if (opening === undefined) return undefined;
    const shared = { observers, abort, opening };
    this.#open.set(hostUid, shared);
    return shared;
  }

  async #join(
    hostUid: HostUid,
    shared: OpenConnection,
    hear: OnConsoleOutput,
    signal: AbortSignal,
  ): Promise<BmcResult<BmcConsole>> {
    // A new function each time: the same caller may hear twice.
    const own: OnConsoleOutput = (bytes) => hear(bytes);
    shared.observers.add(own);
    const left = Promise.withResolvers<void>();
    const leave = (): void => {
      left.resolve();
      if (!shared.observers.delete(own) || shared.observers.size > 0) return;
      this.#over(hostUid, shared);
      shared.abort.abort();
      void shared.opening.then((opened) => opened.kind === 'ok' && opened.value.close());
    };
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    const opened = await Promise.race([shared.opening, left.promise]);
    if (opened === undefined) return transient('cancelled', 'the call was given up');
    signal.removeEventListener('abort', leave);
    if (opened.kind !== 'ok') {
      leave();
      return opened;
    }
    const ended = Promise.race([opened.value.ended, left.promise]).then(() => {
      shared.observers.delete(own);
      if (shared.observers.size === 0) this.#over(hostUid, shared);
    });
    return { kind: 'ok', value: { close: leave, ended } };
  }

  #over(hostUid: HostUid, shared: OpenConnection): void {
    if (this.#open.get(hostUid) === shared) this.#open.delete(hostUid);
  }

  #keptOf(hostUid: HostUid): KeptConsole {
    const known = this.#kept.get(hostUid);
    const { keptBytesMax, keptMax } = this.#limits;
    const kept = known ?? {
      scrollback: new Scrollback(keptBytesMax),
      ...{ masked: new MaskedStream(''), bootToken: '' },
    };
    this.#kept.delete(hostUid);
    this.#kept.set(hostUid, kept);
    const oldest = this.#kept.keys().next().value;
    if (this.#kept.size > keptMax && oldest !== undefined) this.#kept.delete(oldest);
    return kept;
  }
}

/** The optional receivers of what the control plane sends beside operations. */
import type { agent, BmcReadKind } from '@rackwright/messages';

/** Messages for an absent receiver are ignored. */
export interface SessionReceivers {
  /** The part that handles machines that are not hosts. */
  readonly discovery?: DiscoveryReceiver;
  /** Brings images into the cache beforehand; without it none is prefetched. */
  readonly prefetch?: PrefetchReceiver;
  /** Reads BMCs on request; without it the agent announces no kind of read. */
  readonly reads?: BmcReadReceiver;
  /** Shows consoles; without it the agent announces that it shows none. */
  readonly consoles?: ConsoleReceiver;
}

/** Receives the images that the rack should have. */
export interface PrefetchReceiver {
  /** A new session has received none of the earlier reports. */
  sessionOpened(): void;
  replace(wanted: agent.PrefetchImages): void;
}

/** Gets requests for reads of BMCs, and answers each by `reportBmcRead`. */
export interface BmcReadReceiver {
  readonly kinds: readonly BmcReadKind[];
  read(question: agent.ReadBmc): void;
}

/** Hears which consoles are to be shown, and shows them by `reportConsole`. */
export interface ConsoleReceiver {
  /** The requests of earlier sessions no longer count. */
  sessionOpened(): void;
  watch(order: agent.WatchConsole): void;
  end(id: string): void;
  /** So many bytes of all that this session was shown have been taken. */
  taken(bytes: number): void;
}

/** Keeps the trusted certificate authorities. */
export interface TrustKeeper {
  /** SHA-256 of each, as they are on the disk. */
  trusted(): readonly string[];
  /** Rejects when the bundle is unfit or the disk does not take it. */
  adopt(bundle: agent.TrustBundle): Promise<void>;
  /** A stream ended without a Welcome. */
  sessionFailed(): Promise<void>;
}

/** Receives messages about machines that are no hosts. */
export interface DiscoveryReceiver {
  /** Unanswered findings are sent again. */
  sessionOpened(): void;
  replace(policy: agent.Discovery): void;
  receiveAnswer(answer: agent.DiscoveredAnswer): void;
}

/** Messages for these receivers. */
type ReceiverMessage = Extract<
  agent.SessionResponse['message'],
  {
    case:
      | 'discovery'
      | 'discoveredAnswer'
      | 'prefetchImages'
      | 'readBmc'
      | 'watchConsole'
      | 'endConsole'
      | 'consoleTaken';
  }
>;

/** Passes the message to the receiver that it concerns. */
export function passToReceiver(
  { discovery, prefetch, reads, consoles }: SessionReceivers,
  message: ReceiverMessage,
): void {
  switch (message.case) {
    case 'discovery':
      return discovery?.replace(message.value);
    case 'discoveredAnswer':
      return discovery?.receiveAnswer(message.value);
    case 'prefetchImages':
      return prefetch?.replace(message.value);
    case 'readBmc':
      return reads?.read(message.value);
    case 'watchConsole':
      return consoles?.watch(message.value);
    case 'endConsole':
      return consoles?.end(message.value.id);
    case 'consoleTaken':
      return consoles?.taken(Number(message.value.bytes));
  }
}

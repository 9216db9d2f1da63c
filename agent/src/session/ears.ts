/** Who hears what the control plane says beside operations, and may not be there. */
import type { agent, BmcReadKind } from '@rackwright/messages';

/** Without one, what is said of its matter is ignored. */
export interface Ears {
  /** The part that handles machines that are not hosts. */
  readonly discovery?: DiscoveryEars;
  /** Who brings images into the cache beforehand; without it nobody does. */
  readonly prefetch?: PrefetchEars;
  /** Who reads BMCs when asked; without it the agent says that it can read nothing. */
  readonly reads?: BmcReadEars;
  /** Who shows consoles; without it the agent says that it shows none. */
  readonly consoles?: ConsoleEars;
}

/** Hears what images the rack should have. */
export interface PrefetchEars {
  /** All that was told before counts for nothing to the one who listens now. */
  sessionOpened(): void;
  replace(wanted: agent.PrefetchImages): void;
}

/** Hears what is to be read of BMCs, and answers each question by `tellBmcRead`. */
export interface BmcReadEars {
  readonly kinds: readonly BmcReadKind[];
  ask(question: agent.ReadBmc): void;
}

/** Hears which consoles are to be shown, and shows them by `tellConsole`. */
export interface ConsoleEars {
  /** All that was asked before counts for nothing to the one who listens now. */
  sessionOpened(): void;
  watch(order: agent.WatchConsole): void;
  end(id: string): void;
  /** So many bytes of all that this session was shown have been taken. */
  taken(bytes: number): void;
}

/** Keeps the certificate authorities that are believed. */
export interface TrustKeeper {
  /** SHA-256 of each, as they are on the disk. */
  trusted(): readonly string[];
  /** Rejects when the bundle is unfit or the disk does not take it. */
  adopt(bundle: agent.TrustBundle): Promise<void>;
  /** A stream ended without a Welcome. */
  sessionFailed(): Promise<void>;
}

/** Hears what the control plane says of machines that are no hosts. */
export interface DiscoveryEars {
  /** What was told and not answered is told again. */
  sessionOpened(): void;
  replace(policy: agent.Discovery): void;
  answered(answer: agent.DiscoveredAnswer): void;
}

/** What concerns them. */
type ForEars = Extract<
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

/** Tells whoever it concerns. */
export function tellEars({ discovery, prefetch, reads, consoles }: Ears, message: ForEars): void {
  switch (message.case) {
    case 'discovery':
      return discovery?.replace(message.value);
    case 'discoveredAnswer':
      return discovery?.answered(message.value);
    case 'prefetchImages':
      return prefetch?.replace(message.value);
    case 'readBmc':
      return reads?.ask(message.value);
    case 'watchConsole':
      return consoles?.watch(message.value);
    case 'endConsole':
      return consoles?.end(message.value.id);
    case 'consoleTaken':
      return consoles?.taken(Number(message.value.bytes));
  }
}

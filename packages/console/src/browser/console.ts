/** The shared parts of every page of the console: clients, link, clock and the signed-in person. */

import type { WhoAmIResponse } from '@rackwright/messages';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Caller } from '../logic/offers.ts';
import type { ConsoleClients } from './client.ts';
import type { PageClock } from './clock.ts';
import type { ConsoleLink } from './link.ts';

export interface Console {
  readonly clients: ConsoleClients;
  readonly link: ConsoleLink;
  readonly clock: PageClock;
  readonly me: WhoAmIResponse;
  readonly caller: Caller;
  /** Ends the sign-in, as a person asks. */
  readonly signOut: () => void;
  /** A call was answered that the sign-in is over: the page asks for a new sign-in. */
  readonly signInOver: () => void;
}

export const ConsoleContext = createContext<Console | undefined>(undefined);

/** The console around a component. */
export function useConsole(): Console {
  const found = useContext(ConsoleContext);
  if (found === undefined) throw new Error('a page stands outside of the console');
  return found;
}

/**
 * HTTP of this machine, loaded at its first use. Node's HTTP and TLS are a good part of a start,
 * and an agent gives addresses without them.
 */
import { errorText } from '../error-text.ts';
import type { Http } from '../http.ts';
import type { HttpClient, HttpsPeer } from '../https-client.ts';
import type { WebClient } from '../web-client.ts';

/**
 * Loads all of it. For a program that is up: an upgrade replaces the files that it has not loaded
 * yet.
 */
export async function loadHttp(): Promise<void> {
  await Promise.all([import('./http.ts'), import('./https-client.ts'), import('./web-client.ts')]);
}

/** The HTTP servers of this machine. */
export function nodeHttp(): Http {
  return {
    listen: async (options, handle) => {
      const { listen } = await import('./http.ts');
      return listen(options, handle);
    },
  };
}

/** HTTPS from this machine. */
export function nodeHttpClient(): HttpClient {
  return {
    peer: (target, limits) =>
      peerOf(import('./https-client.ts').then(({ openPeer }) => openPeer(target, limits))),
  };
}

/** The peer that is being opened. Where that fails, each request ends as `broken`. */
export function peerOf(opening: Promise<HttpsPeer>): HttpsPeer {
  const opened = opening.catch((cause: unknown): HttpsPeer => {
    const message = `HTTPS cannot be loaded: ${errorText(cause)}`;
    return {
      request: async () => ({ kind: 'broken', message, mayHaveArrived: false }),
      close: () => {},
    };
  });
  return {
    request: async (request, signal) => (await opened).request(request, signal),
    close: () => void opened.then((peer) => peer.close()),
  };
}

/**
 * Reaches every address that this machine reaches: for targets that this program's own
 * administrator names. `caPem`: trusted beside the authorities of this machine.
 */
export function nodeWebClient(caPem: readonly string[] = []): WebClient {
  return clientOf(async () => (await import('./web-client.ts')).openWebClient(caPem));
}

/** For places that others may name (W4). */
export function guardedWebClient(): WebClient {
  return clientOf(async () => (await import('./web-client.ts')).openGuardedWebClient());
}

function clientOf(open: () => Promise<WebClient>): WebClient {
  let opened: Promise<WebClient> | undefined;
  return {
    send: async (request, limits, signal) => {
      opened ??= open();
      return (await opened).send(request, limits, signal);
    },
  };
}

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
      peerOf(async () => (await import('./https-client.ts')).openPeer(target, limits)),
  };
}

/** A peer that is opened on demand. Where that fails, the request ends as `broken`. */
export function peerOf(open: () => Promise<HttpsPeer>): HttpsPeer {
  const opened = onDemand(open);
  return {
    request: async (request, signal) => {
      const peer = await opened();
      return peer instanceof NotLoaded
        ? { kind: 'broken', message: peer.message, mayHaveArrived: false }
        : peer.request(request, signal);
    },
    close: () => void opened().then((peer) => peer instanceof NotLoaded || peer.close()),
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

/** A client that is opened on demand. Where that fails, the request ends as `unreachable`. */
export function clientOf(open: () => Promise<WebClient>): WebClient {
  const opened = onDemand(open);
  return {
    send: async (request, limits, signal) => {
      const client = await opened();
      return client instanceof NotLoaded
        ? { kind: 'unreachable', message: client.message, mayHaveArrived: false }
        : client.send(request, limits, signal);
    },
  };
}

/** The program's files are gone, or replaced by others. */
class NotLoaded extends Error {}

/** Opens with the first call, and again after a failure. The result never rejects. */
function onDemand<Opened>(open: () => Promise<Opened>): () => Promise<Opened | NotLoaded> {
  let opening: Promise<Opened> | undefined;
  return async () => {
    opening ??= open();
    try {
      return await opening;
    } catch (cause) {
      opening = undefined;
      return new NotLoaded(`HTTP cannot be loaded: ${errorText(cause)}`, { cause });
    }
  };
}

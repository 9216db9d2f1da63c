/**
 * The page that is scraped, on a port of its own.
 *
 * P1 A scraper waits for nobody, and nobody waits for it: an answer is made at once, from memory,
 *    and given to all requests within a second.
 * P2 A scraper that does not read costs its connection until the idle time is over. There are at
 *    most `connectionsMax` of them, which share the bytes of an answer.
 * P3 A port that cannot be opened stops nothing. It is tried again, and the log says so.
 * P4 On loopback a request for another name gets no answer. So a browser of this machine reads
 *    nothing when a foreign name resolves to loopback (DNS rebinding).
 */
import type {
  Cancel,
  Clock,
  Http,
  HttpRequest,
  HttpResponse,
  HttpServer,
  Log,
} from '@rackwright/platform';
import { contentTypes, expose, type Format, formatFor } from './expose.ts';
import type { Registry } from './registry.ts';

/** The listener's address; port 0 lets the system choose. */
export interface MetricsListen {
  readonly address: string;
  readonly port: number;
}

export interface MetricsPage {
  /** Undefined while the port is not open. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

export interface MetricsParts {
  readonly http: Http;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry;
}

const limits = {
  headerBytesMax: 8_192,
  connectionsMax: 16,
  connectionsPerAddressMax: 8,
  idleTimeoutMs: 10_000,
} as const;
/** The maximum age of an answer that is sent again. */
const keptMs = 1_000;
const retryMs = 30_000;

/** Opens the port. Never rejects (P3). */
export async function serveMetrics(
  listen: MetricsListen,
  parts: MetricsParts,
): Promise<MetricsPage> {
  const { http, clock, log } = parts;
  const answer = answers(parts);
  let server: HttpServer | undefined;
  let cancel: Cancel = () => {};
  let isClosed = false;
  const open = async (): Promise<void> => {
    try {
      const onFailure = (error: unknown): void =>
        log.error({}, 'a request for the metrics cannot be answered', error);
      const opened = await http.listen({ ...listen, ...limits, onFailure }, answer);
      if (isClosed) await opened.close();
      else server = opened;
      log.info({ address: opened.address, port: opened.port }, 'metrics are served');
    } catch (error) {
      const address = `${listen.address}:${listen.port}`;
      log.error({ where: address, retryMs }, 'the port of the metrics cannot be opened', error);
      if (!isClosed) cancel = clock.after(retryMs, () => void open());
    }
  };
  await open();
  return {
    get port() {
      return server?.port;
    },
    close: async () => {
      isClosed = true;
      cancel();
      await server?.close();
    },
  };
}

/** Answers one request after the other. */
export function answers({
  clock,
  log,
  registry,
}: Pick<MetricsParts, 'clock' | 'log' | 'registry'>): (request: HttpRequest) => HttpResponse {
  const onUnread = (family: string, error: unknown): void =>
    log.error({ family }, 'a family of the metrics cannot be read', error);
  const kept = new Map<Format, { readonly atMs: number; readonly bytes: Uint8Array }>();
  const bytesOf = (format: Format): Uint8Array => {
    const atMs = clock.suspendAwareMs();
    const known = kept.get(format);
    if (known !== undefined && atMs - known.atMs < keptMs) return known.bytes;
    const bytes = new TextEncoder().encode(expose(registry.families(onUnread), format));
    kept.set(format, { atMs, bytes });
    return bytes;
  };
  return ({ method, target, headers, localAddress }) => {
    if (!isOwnName(localAddress, headers['host'])) {
      return { status: 421, headers: plain, body: otherName };
    }
    if (method !== 'GET' && method !== 'HEAD') {
      return { status: 405, headers: { allow: 'GET, HEAD' } };
    }
    const path = target.replace(/\?.*$/, '');
    // The health check asks for this.
    if (path === '/') return { status: 200, headers: plain, body: 'metrics are at /metrics\n' };
    if (path !== '/metrics')
      return { status: 404, headers: plain, body: 'only /metrics is here\n' };
    const format = formatFor(headers['accept']);
    const type = { 'content-type': contentTypes[format], vary: 'accept' };
    return { status: 200, headers: type, body: bytesOf(format) };
  };
}

const loopback = /^(?:127\.|::1$|::ffff:127\.)/;
const ownName = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const otherName = 'this port is for the machine itself: ask localhost or 127.0.0.1 for /metrics\n';

/** P4. A client that sends no Host is no browser. */
function isOwnName(localAddress: string, host: string | undefined): boolean {
  return host === undefined || !loopback.test(localAddress) || ownName.test(host);
}

const plain = { 'content-type': 'text/plain; charset=utf-8' } as const;

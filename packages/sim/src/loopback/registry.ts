/**
 * A registry of images made of software, on plain HTTP: the part of the OCI distribution API
 * (distribution-spec 1.1) that pushes and pulls. All of it is kept in memory.
 *
 * 1. Nothing is kept under a digest that is not its own.
 * 2. Closing it leaves no socket behind.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface SoftwareRegistryOptions {
  /** The listener's address; 127.0.0.1 when unset. */
  readonly address?: string;
  /** 0, the default, lets the system choose. */
  readonly port?: number;
}

export interface SoftwareRegistry {
  /** "127.0.0.1:PORT", as references name it. */
  readonly name: string;
  /** What the tag names now; undefined: there is no such tag. */
  digestOf(repository: string, tag: string): string | undefined;
  /**
   * Lets the tag name an image whose layers have only the first `keptShare` of their bytes. All
   * sizes and digests of files are right, so no registry and no cache can object; but what the
   * layers are unpacked to is not what the manifest says. Answers the new digest.
   */
  cutShort(repository: string, tag: string, keptShare: number): string;
  /** Requests that it has answered, the oldest first, as "GET /v2/… 200". */
  requests(): readonly string[];
  close(): Promise<void>;
}

interface Layer {
  readonly digest: string;
  readonly size: number;
}

interface StoredContent {
  readonly bytes: Buffer;
  readonly mediaType: string;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Buffer;
}

const blobType = 'application/octet-stream';
const notFound: Answer = { status: 404 };

/** Starts it, empty. */
export async function startSoftwareRegistry(
  options: SoftwareRegistryOptions = {},
): Promise<SoftwareRegistry> {
  const { address = '127.0.0.1', port = 0 } = options;
  const content = new Content();
  const requests: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { status, headers = {}, body } = content.answer(request, await buffer(request));
    requests.push(`${request.method} ${request.url} ${status}`);
    response.writeHead(status, { 'content-length': body?.length ?? 0, ...headers });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(port, address);
  await once(server, 'listening');
  return {
    name: `${address}:${(server.address() as AddressInfo).port}`,
    digestOf: (repository, tag) => content.tagged(repository, tag),
    cutShort: (...cut) => content.cutShort(...cut),
    requests: () => requests,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Its content, and its answers. */
class Content {
  /** Blobs and manifests, by their digest. */
  readonly #kept = new Map<string, StoredContent>();
  /** "REPOSITORY:TAG" → digest. */
  readonly #tags = new Map<string, string>();
  /** Path → the bytes so far. */
  readonly #uploads = new Map<string, Buffer>();
  #uploadsBegun = 0;

  tagged(repository: string, tag: string): string | undefined {
    return this.#tags.get(`${repository}:${tag}`);
  }

  cutShort(repository: string, tag: string, keptShare: number): string {
    const whole = this.#kept.get(this.tagged(repository, tag) ?? '');
    if (whole === undefined) throw new Error(`there is no ${repository}:${tag}`);
    const manifest = JSON.parse(whole.bytes.toString()) as { layers: Layer[] };
    const layers = manifest.layers.map((layer) => {
      const bytes = this.#kept.get(layer.digest)?.bytes ?? Buffer.alloc(0);
      const cut = bytes.subarray(0, Math.floor(bytes.length * keptShare));
      return { ...layer, digest: this.#keep(cut, blobType), size: cut.length };
    });
    const digest = this.#keep(
      Buffer.from(JSON.stringify({ ...manifest, layers })),
      whole.mediaType,
    );
    this.#tags.set(`${repository}:${tag}`, digest);
    return digest;
  }

  /** A manifest is put under a tag, or under its digest. */
  #name(repository: string, name: string, digest: string): Answer {
    if (!name.startsWith('sha256:')) this.#tags.set(`${repository}:${name}`, digest);
    else if (name !== digest) return { status: 400 };
    return { status: 201, headers: { 'docker-content-digest': digest } };
  }

  answer({ method = '', url = '/', headers }: IncomingMessage, body: Buffer): Answer {
    const { pathname, searchParams } = new URL(url, 'http://registry');
    if (pathname === '/v2/') return { status: 200 };
    const [, repository = '', kind = '', name = ''] =
      /^\/v2\/(.+?)\/(blobs|manifests)\/(.+|uploads\/)$/.exec(pathname) ?? [];
    if (kind === '') return notFound;
    if (kind === 'blobs' && name.startsWith('uploads/')) {
      return this.#upload(method, pathname, searchParams.get('digest') ?? '', body);
    }
    if (method === 'PUT' && kind === 'manifests') {
      const digest = this.#keep(body, headers['content-type'] ?? blobType);
      return this.#name(repository, name, digest);
    }
    if (method !== 'GET' && method !== 'HEAD') return { status: 405 };
    return this.#read(
      kind === 'manifests' ? (this.tagged(repository, name) ?? name) : name,
      headers,
    );
  }

  #read(digest: string, headers: IncomingMessage['headers']): Answer {
    const kept = this.#kept.get(digest);
    if (kept === undefined) return notFound;
    const { bytes, mediaType } = kept;
    const sent = { 'docker-content-digest': digest, etag: `"${digest}"` };
    if (headers['if-none-match'] === sent.etag) return { status: 304, headers: sent };
    const whole = { ...sent, 'content-type': mediaType, 'content-length': bytes.length };
    const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
    if (start === 0) return { status: 200, headers: whole, body: bytes };
    if (start >= bytes.length) return { status: 416, headers: sent };
    const range = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
    const part = { ...whole, 'content-range': range, 'content-length': bytes.length - start };
    return { status: 206, headers: part, body: bytes.subarray(start) };
  }

  /** POST begins an upload, PATCH adds to it, PUT ends it under its digest. */
  #upload(method: string, path: string, digest: string, body: Buffer): Answer {
    if (method === 'POST') {
      this.#uploadsBegun += 1;
      const location = `${path}${this.#uploadsBegun}`;
      this.#uploads.set(location, body);
      return { status: 202, headers: { location } };
    }
    const before = this.#uploads.get(path);
    if (before === undefined) return notFound;
    const bytes = Buffer.concat([before, body]);
    this.#uploads.set(path, bytes);
    if (method === 'PATCH') return { status: 202, headers: { location: path } };
    if (method !== 'PUT') return { status: 405 };
    this.#uploads.delete(path);
    if (digest !== digestOf(bytes)) return { status: 400 };
    return { status: 201, headers: { 'docker-content-digest': this.#keep(bytes, blobType) } };
  }

  #keep(bytes: Buffer, mediaType: string): string {
    const digest = digestOf(bytes);
    this.#kept.set(digest, { bytes, mediaType });
    return digest;
  }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

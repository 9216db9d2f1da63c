/**
 * The HTTP side of a boot: scripts and files. Answers from memory; only a file's bytes come from
 * disk, while they are sent.
 *
 * Z1 Every request is answered without waiting: a refusal is as quick as an answer. Only a host
 *    that phones home waits until that is written down, a file for a check of its version, and a
 *    script until runners can dial the agent.
 * Z2 A file is served by the name under which it was listed at the start, or not at all.
 */
import type { Mac } from '@rackwright/dhcp';
import type {
  Clock,
  FileSlice,
  Http,
  HttpRequest,
  HttpResponse,
  HttpServer,
  Log,
} from '@rackwright/platform';
import { type BootEvents, scriptName } from './boot-events.ts';
import type { BootHttpLimits } from './config.ts';
import type { DeployPages } from './deploy-pages.ts';
import type { FindImageBlob, ServedFile } from './files.ts';
import { grubStartScript } from './grub-script.ts';
import { type LineBudget, troubleBudget } from './line-budget.ts';
import type { BootMeter } from './meter.ts';
import type { BootGate } from './observation.ts';
import { mayStartRunner } from './permission.ts';
import { decideRange, isUnchanged } from './ranges.ts';
import type { BootScripts, ScriptLanguage } from './scripts.ts';
import {
  type BootUrls,
  type BootUrlTarget,
  parseTarget,
  type TargetForm,
  targetForm,
} from './urls.ts';

export interface BootHttpOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly bootGate: BootGate;
  /** The uid of the host of a MAC. Only a look-up: it requests nothing and reports nothing. */
  readonly knownHost: (mac: Mac) => string | undefined;
  readonly bootEvents: BootEvents;
  /** Files by name; those in memory are boot loaders, which start nothing by themselves. */
  readonly files: ReadonlyMap<string, ServedFile>;
  /** The present state of a file, read after the call, never before; undefined: unknown. */
  readonly fileState: (path: string) => Promise<FileState | undefined>;
  readonly scripts: BootScripts;
  /** Blobs of images by the hex of their SHA-256; absent: none are served. */
  readonly imageBlob?: FindImageBlob;
  /** Absent: nothing is deployed here. */
  readonly deploys?: DeployPages;
  readonly limits: BootHttpLimits;
  readonly meter?: BootMeter;
}

export type HttpShell = Pick<HttpServer, 'port' | 'problem' | 'close'>;

/**
 * The URLs for a client that has asked at this address of ours. Undefined: hosts are not given this
 * address. Called once the port is known, because the port is part of every URL.
 */
export type UrlsAt = (localAddress: string) => BootUrls | undefined;

export async function startHttp(
  http: Http,
  listen: { readonly address: string; readonly port: number },
  options: BootHttpOptions,
  urls: UrlsAt,
): Promise<HttpShell> {
  const pages = new BootPages(options, urls);
  const hostOf = (target: string): string | undefined => {
    const { urlTarget } = pages.read(target);
    return 'mac' in urlTarget ? options.knownHost(urlTarget.mac) : undefined;
  };
  const onFailure = (error: unknown): void => pages.failed(error);
  const listened = { ...listen, ...options.limits, hostOf, onFailure };
  return http.listen(listened, (request) => pages.answer(request));
}

class BootPages {
  readonly #options: BootHttpOptions;
  readonly #urls: UrlsAt;
  readonly #trouble: LineBudget;
  #last = readTarget('/');

  constructor(options: BootHttpOptions, urls: UrlsAt) {
    this.#options = options;
    this.#urls = urls;
    this.#trouble = troubleBudget(options.clock);
  }

  /** Keeps the last one: each is read for its host, and again for its answer. */
  read(target: string): ReadTarget {
    if (this.#last.target !== target) this.#last = readTarget(target);
    return this.#last;
  }

  answer(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    if (request.target.length > this.#options.limits.targetBytesMax) {
      return this.#served(request, refusal(414), 'malformed');
    }
    const { path, host, urlTarget } = this.read(request.target);
    if (host !== undefined && !this.#isOurs(host, request.localAddress)) {
      return this.#served(request, refusal(421), 'nothing');
    }
    return this.#answerPath(host === undefined ? request : { ...request, target: path }, urlTarget);
  }

  #answerPath(request: HttpRequest, target: BootUrlTarget): HttpResponse | Promise<HttpResponse> {
    if (target.kind === 'phoneHome') {
      // Without the token, which may be the right one.
      const shown = { ...request, target: `/phone-home/${target.id}/…` };
      return this.#phoneHome(request, target).then((response) =>
        this.#served(shown, response, target.kind),
      );
    }
    const shown = target.kind === 'seed' ? { ...request, target: `/seed/${target.id}/…` } : request;
    const decided = this.#decide(request, target);
    return decided instanceof Promise
      ? decided.then((response) => this.#served(shown, response, target.kind))
      : this.#served(shown, decided, target.kind);
  }

  /** A name may be any of ours; an address has to be. */
  #isOurs(host: string, localAddress: string): boolean {
    const isAddress = /^[\d.]+$|^\[/.test(host);
    const localServer = this.#urls(localAddress)?.serverAddress;
    return (
      !isAddress || host === localAddress || host === `[${localAddress}]` || host === localServer
    );
  }

  #served(request: HttpRequest, response: HttpResponse, kind: BootUrlTarget['kind']): HttpResponse {
    const bytes = request.method === 'HEAD' ? 0 : bytesOf(response.body);
    this.#options.meter?.httpAnswered(kind, response.status, bytes);
    if (response.status >= 400) {
      const fields = { client: request.remoteAddress, status: response.status };
      this.#report({ ...fields, target: request.target.slice(0, 128) }, 'HTTP request refused');
    }
    return response;
  }

  /** The only answer that waits for our disk: 200 means that the proof is recorded (Z1). */
  async #phoneHome(
    { method, localAddress, remoteAddress }: HttpRequest,
    { id, token }: BootUrlTarget & { kind: 'phoneHome' },
  ): Promise<HttpResponse> {
    const { deploys } = this.#options;
    if (deploys === undefined) return refusal(404);
    if (method !== 'POST') return refusal(405, { allow: 'POST' });
    if (this.#urls(localAddress) === undefined) return refusal(421);
    return phoneHomeAnswers[await deploys.phoneHome(id, token, remoteAddress)];
  }

  #decide(request: HttpRequest, target: BootUrlTarget): HttpResponse | Promise<HttpResponse> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refusal(405, { allow: 'GET, HEAD' });
    }
    // A health check comes every few seconds: it gets no line in the log.
    if (request.method === 'HEAD' && request.target === '/') return { status: 204, headers: {} };
    switch (target.kind) {
      case 'script':
        return this.#script(request, target.mac, target.language);
      case 'grubStart':
        return this.#grubStart(request);
      case 'hostFile':
        return this.#hostFile(request, target.mac, target.name);
      case 'file':
        return this.#file(request, this.#options.files.get(target.name));
      case 'blob': {
        const blob = this.#options.imageBlob?.(target.hex);
        // Its reader asks again where it was.
        if (blob === 'later') return refusal(503, { 'retry-after': '2' });
        return this.#file(request, blob && { kind: 'disk', ...blob, version: target.hex });
      }
      case 'seed':
        return this.#seed(request, target);
      case 'malformed':
        return refusal(400);
      case 'nothing':
      case 'phoneHome':
        return refusal(404);
    }
  }

  #grubStart({ localAddress }: HttpRequest): HttpResponse {
    const urls = this.#urls(localAddress);
    return urls === undefined ? refusal(421) : script(grubStartScript(urls.root));
  }

  #script(
    request: HttpRequest,
    mac: Mac,
    language: ScriptLanguage,
  ): HttpResponse | Promise<HttpResponse> {
    const urls = this.#urls(request.localAddress);
    // All that a script says would be of another network. Nothing is opened for it either.
    if (urls === undefined) return refusal(421);
    const answer = this.#options.scripts.of(mac, language, urls);
    switch (answer.kind) {
      case 'script':
        return this.#watched(request, script(answer.text), { mac, name: scriptName });
      case 'later':
        return this.#options.scripts.ready.then(() => this.#script(request, mac, language));
      case 'unknownHost':
      case 'nothing':
        return refusal(404);
      case 'fault':
        return refusal(500);
    }
  }

  /** Records the progress of a file for a boot into the runner. */
  #watched(request: HttpRequest, response: HttpResponse, file: WatchedFile): HttpResponse {
    if (request.method === 'HEAD') return response;
    const transfer = this.#options.bootEvents.file(file.mac, file.name, 'http');
    if (transfer === undefined) return response;
    const { status, body } = response;
    if (status >= 300) {
      transfer.failed(`it was answered with HTTP status ${status}`);
      return response;
    }
    const isEnd = typeof body !== 'object' || !('kind' in body) || body.end === file.lastByte;
    const onEnd = (isWhole: boolean): void => {
      if (!isWhole) transfer.failed('the connection was cut before all of it was sent');
      else if (isEnd) transfer.sent(bytesOf(body));
    };
    return { ...response, onEnd };
  }

  #seed(
    { localAddress }: HttpRequest,
    { id, token, name }: BootUrlTarget & { kind: 'seed' },
  ): HttpResponse {
    const urls = this.#urls(localAddress);
    if (urls === undefined) return refusal(421);
    const text = this.#options.deploys?.seedFile(id, token, name, urls.root);
    if (text === undefined) return refusal(404);
    return text === false ? refusal(403) : script(text);
  }

  /** UEFI HTTP boot needs a loader to run the script that sends it to its disk. */
  #hostFile(request: HttpRequest, mac: Mac, name: string): HttpResponse | Promise<HttpResponse> {
    const file = this.#options.files.get(name);
    const decision = this.#options.bootGate(mac, 'file');
    if (decision.kind === 'unknownHost' || file === undefined) return refusal(404);
    if (!mayStartRunner(decision) && file.kind === 'disk') return refusal(403);
    const answer = (now: ServedFile): HttpResponse => {
      const lastByte = sizeOf(now) - 1;
      return this.#watched(request, this.#versioned(request, now), { mac, name, lastByte });
    };
    const present = this.#present(file);
    return present instanceof Promise ? present.then(answer) : answer(present);
  }

  #file(request: HttpRequest, file: ServedFile | undefined): HttpResponse | Promise<HttpResponse> {
    if (file === undefined) return refusal(404);
    const present = this.#present(file);
    return present instanceof Promise
      ? present.then((now) => this.#versioned(request, now))
      : this.#versioned(request, present);
  }

  /** The file as it is now: a package or a person may have replaced it since the start. */
  #present(file: ServedFile): ServedFile | Promise<ServedFile> {
    if (file.version !== undefined || file.kind === 'memory') return file;
    return this.#options.fileState(file.path).then((now) => ({ ...file, ...now }));
  }

  #versioned({ headers: asked }: HttpRequest, file: ServedFile): HttpResponse {
    const { version } = file;
    const etag = version === undefined ? undefined : `"${version}"`;
    const tag: Record<string, string> = etag === undefined ? {} : { etag };
    if (etag !== undefined && isUnchanged(asked['if-none-match'], etag)) {
      return { status: 304, headers: tag };
    }
    const size = sizeOf(file);
    const type = 'application/octet-stream';
    const headers = { 'accept-ranges': 'bytes', 'content-type': type, ...tag };
    // RFC 9110 §13.1.5: a part only when the client has other parts of the same file.
    const isSame = asked['if-range'] === undefined || asked['if-range'] === etag;
    const range = decideRange(isSame ? asked['range'] : undefined, size);
    switch (range.kind) {
      case 'unsatisfiable':
        return refusal(416, { 'content-range': `bytes */${size}` });
      case 'whole':
        return { status: 200, headers, body: part(file, 0, size - 1) };
      case 'part': {
        const { start, end } = range;
        const contentRange = { 'content-range': `bytes ${start}-${end}/${size}` };
        return {
          status: 206,
          headers: { ...headers, ...contentRange },
          body: part(file, start, end),
        };
      }
    }
  }

  /** Logs the error of a request that gets no proper answer. */
  failed(error: unknown): void {
    const { log } = this.#options;
    this.#trouble.spend((suppressed) =>
      log.warn({ suppressed }, 'a request of a boot cannot be answered', error),
    );
  }

  #report(fields: Record<string, string | number>, message: string): void {
    const { log } = this.#options;
    this.#trouble.spend((suppressed) => log.warn({ ...fields, suppressed }, message));
  }
}

/** A target as it was sent, and what it asks for. */
interface ReadTarget extends TargetForm {
  readonly target: string;
  readonly urlTarget: BootUrlTarget;
}

function readTarget(target: string): ReadTarget {
  const form = targetForm(target);
  return { ...form, target, urlTarget: parseTarget(form.path) };
}

/** A file that a host asks for by its own name. */
interface WatchedFile {
  readonly mac: Mac;
  readonly name: string | typeof scriptName;
  /** The offset of the file's last byte; absent: it is no file of the disk. */
  readonly lastByte?: number;
}

function bytesOf(body: HttpResponse['body']): number {
  if (body === undefined) return 0;
  if (typeof body === 'object' && 'kind' in body) return body.end - body.start + 1;
  return body.length;
}

/** What the answer to a request depends on. */
export interface FileState {
  readonly sizeBytes: number;
  /** Changes when the file may have changed; unset: unknown. */
  readonly version?: string;
}

function sizeOf(file: ServedFile): number {
  return file.kind === 'memory' ? file.bytes.length : file.sizeBytes;
}

/** Bytes `start` to `end`, both inclusive; an empty file has end -1. */
function part(file: ServedFile, start: number, end: number): Uint8Array | FileSlice {
  if (file.kind === 'memory') return file.bytes.subarray(start, end + 1);
  if (end < start) return new Uint8Array();
  const { path, readable, version } = file;
  const slice = { kind: 'file', path, start, end } as const;
  // A file that is still being fetched is not kept in memory.
  if (readable !== undefined) return { ...slice, readable };
  return { ...slice, ...(version === undefined ? {} : { version }) };
}

const phoneHomeAnswers = {
  proved: { status: 200, headers: { 'content-type': 'text/plain' }, body: 'ok\n' },
  outdated: refusal(409),
  wrong: refusal(403),
  notDurable: refusal(503, { 'retry-after': '10' }),
} as const;

function script(text: string): HttpResponse {
  const headers = { 'content-type': 'text/plain', 'cache-control': 'no-store' };
  return { status: 200, headers, body: text };
}

function refusal(status: number, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return { status, headers, body: '' };
}

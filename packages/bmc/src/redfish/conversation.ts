/**
 * One conversation with a Redfish service: sign in, a few requests, sign out.
 *
 * 1. Signs in by a session, and by basic authentication where there are none or none is free. A
 *    sign-in that was refused is not repeated in another form, because BMCs count them.
 * 2. A session is given back: BMCs have few, and keep forgotten ones for half an hour.
 * 3. Redirects are followed to the same BMC only.
 * 4. The password goes into the sign-in and into nothing else.
 */
import type { Clock, HttpClient, HttpsLimits, HttpsPeer, HttpsRequest } from '@rackwright/platform';
import { type BmcFailed, type BmcResult, failed, ok } from '../driver.ts';
import { type HttpTarget, isAddress, urlHost } from '../http-target.ts';
import { noAnswer } from '../no-answer.ts';
import { variantsOf } from '../vendors.ts';
import { type JsonObject, objectAt, parseObject, pathOf } from './json.ts';
import {
  type CallerStatus,
  type HttpAnswer,
  namesMessage,
  type RequestTarget,
  refusalOfNonsense,
  refusalOfStatus,
  safeText,
  withOddAnswer,
} from './refusal.ts';

/** One BMC; its port is 443 by default in the protocol. */
export type RedfishTarget = HttpTarget;

export interface ConversationParts {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly target: RedfishTarget;
  readonly limits: HttpsLimits;
}

/** A resource as it was read. */
export interface Resource {
  readonly path: string;
  readonly body: JsonObject;
  readonly etag: string | undefined;
}

/** A service's answer to an order that it carries out later. */
export interface AcceptedOrder {
  /** Empty: it had no body. */
  readonly body: JsonObject;
  /** The path of the task that reports the outcome. */
  readonly location: string | undefined;
}

/** Reads one resource; its maker passes the read through the governor. */
export type Get = (path: string) => Promise<BmcResult<Resource>>;

/** DSP0266 §6.2: the same for every service. */
const rootPath = '/redfish/v1/';
const redirectsMax = 3;
/** Signing out must not delay the caller that waits for the answer. */
const signOutTimeoutMs = 3_000;

type Authorization =
  | { readonly kind: 'none' }
  | { readonly kind: 'basic'; readonly value: string }
  | { readonly kind: 'session'; readonly token: string; readonly path: string | undefined };

export class Conversation {
  readonly #parts: ConversationParts;
  readonly #peer: HttpsPeer;
  #authorization: Authorization = { kind: 'none' };
  #root: JsonObject | undefined;
  #certificateSha256: string | undefined;
  /** The BMC has accepted user and password. */
  #isAccepted = false;
  /** The last request got no answer: no further request is sent. */
  #isSilent = false;

  constructor(parts: ConversationParts) {
    this.#parts = parts;
    this.#peer = parts.client.peer(parts.target, parts.limits);
  }

  /** The certificate that the BMC showed. */
  certificateSha256(): string | undefined {
    return this.#certificateSha256;
  }

  /** The service root; signs in when that has not been done. */
  async open(signal: AbortSignal | undefined): Promise<BmcResult<JsonObject>> {
    if (this.#root !== undefined) return ok(this.#root);
    const unfit = unfitTarget(this.#parts.target);
    if (unfit !== undefined) return unfit;
    const root = await this.#readRoot(signal);
    if (root.kind !== 'ok') return root;
    const signedIn = await this.#signIn(root.value, signal);
    if (signedIn.kind !== 'ok') return signedIn;
    this.#root = root.value;
    return root;
  }

  async get(path: string, signal: AbortSignal | undefined): Promise<BmcResult<Resource>> {
    const answer = await this.#succeed({ method: 'GET', path }, signal);
    if (answer.kind !== 'ok') return answer;
    const body = parseObject(answer.value.body);
    if (body === undefined) return refusalOfNonsense(answer.value, this.#asked('GET', path));
    const tag = answer.value.headers['etag'] ?? body['@odata.etag'];
    return ok({ path, body, etag: typeof tag === 'string' ? tag : undefined });
  }

  async post(
    path: string,
    body: JsonObject,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<void>> {
    const taken = await this.order(path, body, signal);
    return taken.kind === 'ok' ? ok(undefined) : taken;
  }

  /** The same for an action that may take its time (DSP0266, 202). */
  async order(
    path: string,
    body: JsonObject,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<AcceptedOrder>> {
    return this.#taken({ method: 'POST', path, body }, signal);
  }

  /** Deletes a resource, now or later. */
  async remove(path: string, signal: AbortSignal | undefined): Promise<BmcResult<AcceptedOrder>> {
    return this.#taken({ method: 'DELETE', path }, signal);
  }

  /**
   * Changes a resource. The tag that was read goes along; services disagree about its form, and our
   * change is an assertion: so other forms are tried next, then none.
   */
  async patch(
    { path, etag }: Resource,
    body: JsonObject,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<void>> {
    const strong = etag?.startsWith('W/') === true ? etag.slice(2) : etag;
    const forms = { asGiven: etag, strong, none: undefined, any: '*' };
    const tags = [...new Set(variantsOf('etag').map((way) => forms[way]))];
    const requestTarget = this.#asked('PATCH', path);
    for (const tag of tags) {
      const headers = tag === undefined ? {} : { 'if-match': tag };
      const answer = await this.#send({ method: 'PATCH', path, body, headers }, signal);
      if (answer.kind !== 'ok') return answer;
      const { status } = answer.value;
      if (status === 412 || status === 428) continue;
      if (status < 400) return ok(undefined);
      return refusalOfStatus(answer.value, requestTarget, this.#callerStatus());
    }
    return failed('rejected', `the BMC accepts none of the ETags that it gives for ${path}`);
  }

  hasSession(): boolean {
    return this.#authorization.kind === 'session';
  }

  /** Signs out and closes the connection. A session that stays after all ends by itself. */
  async end(): Promise<BmcResult<void>> {
    const authorization = this.#authorization;
    const path = authorization.kind === 'session' ? authorization.path : undefined;
    let result: BmcResult<void> = ok(undefined);
    if (path !== undefined && !this.#isSilent) {
      const late = new AbortController();
      const cancel = this.#parts.clock.after(signOutTimeoutMs, () => late.abort());
      const answer = await this.#send({ method: 'DELETE', path }, late.signal);
      cancel();
      if (answer.kind !== 'ok') result = answer;
    }
    this.close();
    return result;
  }

  /** Closes the connection without a word. */
  close(): void {
    this.#authorization = { kind: 'none' };
    this.#isAccepted = false;
    this.#root = undefined;
    this.#peer.close();
  }

  /**
   * Without signing in, as the standard requires (DSP0266 §9.2). A service that guards its root,
   * too, knows no sessions (seen: sushy-tools): it gets basic authentication.
   */
  async #readRoot(signal: AbortSignal | undefined): Promise<BmcResult<JsonObject>> {
    const bare = await this.#send({ method: 'GET', path: rootPath }, signal);
    if (bare.kind !== 'ok') return bare;
    const isGuarded = bare.value.status === 401;
    if (isGuarded) this.#useBasic();
    const answer = isGuarded ? await this.#send({ method: 'GET', path: rootPath }, signal) : bare;
    if (answer.kind !== 'ok') return answer;
    const { status, body } = answer.value;
    const root = status < 400 ? parseObject(body) : undefined;
    const isRoot = root !== undefined && ('RedfishVersion' in root || 'Systems' in root);
    if (isRoot) return ok(root);
    const requestTarget = this.#asked('GET', rootPath);
    const isNonsense = status < 400 || status === 404;
    return isNonsense
      ? refusalOfNonsense(answer.value, requestTarget)
      : refusalOfStatus(answer.value, requestTarget, this.#callerStatus());
  }

  #useBasic(): void {
    const { user, password } = this.#parts.target;
    const value = Buffer.from(`${user}:${password}`).toString('base64');
    this.#authorization = { kind: 'basic', value };
  }

  async #signIn(root: JsonObject, signal: AbortSignal | undefined): Promise<BmcResult<void>> {
    const path = pathOf(objectAt(objectAt(root, 'Links'), 'Sessions'));
    if (path === undefined) this.#useBasic();
    if (path === undefined || this.#authorization.kind === 'basic') return ok(undefined);
    const { user, password } = this.#parts.target;
    const body = { UserName: user, Password: password };
    const answer = await this.#send({ method: 'POST', path, body }, signal);
    if (answer.kind !== 'ok') return answer;
    const { status, headers } = answer.value;
    const token = headers['x-auth-token'];
    if (status < 400 && token !== undefined) {
      const given = parseObject(answer.value.body) ?? {};
      const at = this.#ownPath(headers['location']) ?? pathOf(given);
      this.#authorization = { kind: 'session', token, path: at };
      this.#isAccepted = true;
      return ok(undefined);
    }
    const noSessions = status < 400 || variantsOf('noSessions').some((one) => one === status);
    if (noSessions || namesMessage(answer.value, 'SessionLimitExceeded')) {
      this.#useBasic();
      return ok(undefined);
    }
    return refusalOfStatus(answer.value, this.#asked('POST', path), this.#callerStatus());
  }

  async #taken(
    request: RequestParts,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<AcceptedOrder>> {
    const answer = await this.#succeed(request, signal);
    if (answer.kind !== 'ok') return answer;
    const location = this.#ownPath(answer.value.headers['location']);
    return ok({ body: parseObject(answer.value.body) ?? {}, location });
  }

  async #succeed(
    request: RequestParts,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<HttpAnswer>> {
    const answer = await this.#send(request, signal);
    if (answer.kind !== 'ok' || answer.value.status < 400) return answer;
    const requestTarget = this.#asked(request.method, request.path);
    return refusalOfStatus(answer.value, requestTarget, this.#callerStatus());
  }

  /** One request and its redirects; every answer below 300 and from 400 on is `ok` here. */
  async #send(
    { method, path, body, headers = {} }: RequestParts,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<HttpAnswer>> {
    const request: HttpsRequest = {
      method,
      path,
      headers: { ...baseHeaders, ...(body && withBody), ...this.#credentials(), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    let at = path;
    for (let hops = 0; hops <= redirectsMax; hops += 1) {
      const outcome = await this.#peer.request({ ...request, path: at }, signal);
      const requestTarget = this.#asked(method, at);
      if (outcome.kind !== 'answered') {
        // A caller that gives up leaves a BMC that can still be told of the end of the session.
        this.#isSilent = outcome.kind === 'broken' || outcome.kind === 'timedOut';
        const textOf = (message: string) => safeText(message, requestTarget.secrets);
        const noTlsRemedy = 'correct the address or the port';
        const failure = noAnswer(outcome, { name: 'the BMC', noTlsRemedy, textOf });
        return outcome.kind === 'noHttp' ? withOddAnswer(failure, requestTarget) : failure;
      }
      this.#isSilent = false;
      this.#certificateSha256 = outcome.certificateSha256;
      const { status } = outcome;
      if (status >= 200 && status < 300) {
        this.#isAccepted ||= this.#authorization.kind !== 'none';
        return ok(outcome);
      }
      if (status >= 400 && status < 600) return ok(outcome);
      // These two say that nothing was carried out (RFC 9110 §15.4.8, §15.4.9).
      const isNotDone = status === 307 || status === 308;
      const mayFollow = method === 'GET' ? status >= 300 : isNotDone;
      const next = mayFollow ? this.#ownPath(outcome.headers['location']) : undefined;
      if (next === undefined) {
        const failure = strangeStatus(outcome, requestTarget);
        return isNotDone ? failure : withOddAnswer(failure, requestTarget);
      }
      at = next;
    }
    return failed('protocol', `the BMC redirects ${method} ${path} in a circle`);
  }

  /** The path of a reference to this very BMC, absolute or not. */
  #ownPath(location: string | undefined): string | undefined {
    if (location === undefined) return undefined;
    const { address, port } = this.#parts.target;
    const host = urlHost(address);
    const origin = `https://${host}:${port}`;
    const url = URL.parse(location, origin);
    if (url === null || url.origin !== new URL(origin).origin) return undefined;
    return `${url.pathname}${url.search}`;
  }

  #credentials(): Readonly<Record<string, string>> {
    const authorization = this.#authorization;
    switch (authorization.kind) {
      case 'none':
        return {};
      case 'basic':
        return { authorization: `Basic ${authorization.value}` };
      case 'session':
        return { 'x-auth-token': authorization.token };
    }
  }

  #callerStatus(): CallerStatus {
    return { hasSession: this.hasSession(), isAccepted: this.#isAccepted };
  }

  #asked(method: string, path: string): RequestTarget {
    const { password } = this.#parts.target;
    const authorization = this.#authorization;
    const secrets = [password];
    if (authorization.kind === 'session') secrets.push(authorization.token);
    if (authorization.kind === 'basic') secrets.push(authorization.value);
    return { method, path, secrets };
  }
}

interface RequestParts {
  readonly method: HttpsRequest['method'];
  readonly path: string;
  readonly body?: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
}

const baseHeaders = { accept: 'application/json', 'odata-version': '4.0' };
const withBody = { 'content-type': 'application/json' };

function strangeStatus(
  { status, headers }: HttpAnswer,
  { method, path }: RequestTarget,
): BmcFailed {
  const to = headers['location'];
  if (to === undefined) return failed('protocol', `the BMC answers ${status} to ${method} ${path}`);
  const message = 'the BMC redirects to another address, which is not followed: use that address';
  // Without the query, which may carry a secret.
  return failed('protocol', message, `${status} to ${to.replace(/\?.*$/, '').slice(0, 200)}`);
}

/** Refuses here a target that would be cut short or misread. */
function unfitTarget(target: RedfishTarget): BmcResult<never> | undefined {
  const { address, user, password, credential } = target;
  if (!isAddress(address)) {
    const form = 'an IPv4 or IPv6 address or a host name';
    return failed('address', `BMC address ${JSON.stringify(address)} is not ${form}`);
  }
  const isUnfit = (text: string): boolean => text === '' || /\p{Cc}/u.test(text);
  if (isUnfit(user) || isUnfit(password) || user.includes(':')) {
    const form = 'a user without ":" and a password, both without control characters';
    return failed('invalidCredential', `Redfish needs ${form}: ${credential} has not`);
  }
  return undefined;
}

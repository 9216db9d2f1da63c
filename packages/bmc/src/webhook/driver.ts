/**
 * A socket that a device switches over HTTP, in place of a BMC. It has power and nothing else: no
 * boot override, no soft off, no lamp, no log, and no identity of the machine.
 *
 * 1. `on` and `off` are the socket's: a system that has shut down leaves it on.
 * 2. A value that is neither on nor off is no state: nothing is switched, and no state is reported.
 * 3. A redirect is refused: the secret goes to the device that was named, and to no other.
 * 4. Nothing that the device answers is repeated, so nothing can show the secret.
 * 5. The certificate is pinned as that of a BMC. By plain HTTP there is none.
 */
import type { Clock, HttpClient, HttpsRequest, WebClient } from '@rackwright/platform';
import {
  type BmcAssertion,
  type BmcDriver,
  type BmcFailed,
  type BmcIdentity,
  type BmcPowerAndHealth,
  type BmcResult,
  type BmcTransient,
  failed,
  ok,
  type PowerState,
  type SoftOff,
} from '../driver.ts';
import type { GovernedCalls } from '../governor.ts';
import { type HttpTarget, isAddress } from '../http-target.ts';
import { mayHaveHappened, type ReadBackTimings, readUntil } from '../read-back.ts';
import { type PowerCalls, stateIn } from './calls.ts';
import { type Answer, askByHttp, askByHttps, type WebhookLimits } from './request.ts';

/** One socket of a device. */
export interface WebhookTarget extends HttpTarget {
  readonly calls: PowerCalls;
}

export interface WebhookDriverParts {
  readonly target: WebhookTarget;
  readonly governor: GovernedCalls;
  readonly client: HttpClient;
  /** For plain HTTP; absent: it is not supported here. */
  readonly web?: WebClient | undefined;
  readonly clock: Clock;
  readonly limits?: WebhookLimits;
  readonly readBack: ReadBackTimings;
}

export const defaultWebhookLimits: WebhookLimits = {
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  bodyBytesMax: 65_536,
  headerBytesMax: 16_384,
};

/** The pause after each request: the device may have many sockets to serve. */
const restMs = { read: 50, act: 500 } as const;

export class WebhookDriver implements BmcDriver {
  readonly #parts: WebhookDriverParts;

  constructor(parts: WebhookDriverParts) {
    this.#parts = parts;
  }

  /**
   * The device has no identity but its certificate. A readable state proves that it is the right
   * kind of device.
   */
  async readIdentity(signal?: AbortSignal): Promise<BmcResult<BmcIdentity>> {
    const read = await this.#read(signal);
    if (read.kind !== 'ok') return read;
    const { certificateSha256 } = read.value;
    return ok(certificateSha256 === undefined ? {} : { certificateSha256 });
  }

  async powerState(signal?: AbortSignal): Promise<BmcResult<PowerState>> {
    const read = await this.#read(signal);
    return read.kind === 'ok' ? ok(read.value.power) : read;
  }

  async readPowerAndHealth(signal?: AbortSignal): Promise<BmcResult<BmcPowerAndHealth>> {
    const power = await this.powerState(signal);
    return power.kind === 'ok' ? ok({ power: power.value }) : power;
  }

  async setPower(state: PowerState, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const before = await this.powerState(signal);
    if (before.kind !== 'ok') return before;
    if (before.value === state) return ok({ changed: false, notes: [] });
    const { calls } = this.#parts.target;
    const [path, body] =
      state === 'on' ? [calls.onPath, calls.onBody] : [calls.offPath, calls.offBody];
    const method = methodOf(calls);
    const answer = await this.#ask({ method, path, body }, restMs.act, signal);
    const requestLine = `${method} ${path}`;
    const refused =
      answer.kind === 'ok' ? refusalOf(answer.value, requestLine, calls.expectedStatus) : answer;
    if (refused !== undefined && !isOpen(refused)) return refused;
    const { clock, readBack } = this.#parts;
    const read = () => this.powerState(signal);
    const seen = await readUntil(clock, readBack, read, (power) => power === state, signal);
    if (seen.kind !== 'ok') return seen;
    if (seen.value === state) return ok({ changed: true, notes: [] });
    if (refused !== undefined) return refused;
    const message = `the device took "${state}", and its socket stayed ${seen.value}`;
    return failed('notApplied', message);
  }

  async softOff(signal?: AbortSignal): Promise<BmcResult<SoftOff>> {
    const power = await this.powerState(signal);
    if (power.kind !== 'ok') return power;
    if (power.value === 'off') return ok({ wasRequested: false });
    return unknownHere('a soft off');
  }

  async clearEventLog(): Promise<BmcResult<BmcAssertion>> {
    return unknownHere('an event log');
  }

  async setIndicator(): Promise<BmcResult<BmcAssertion>> {
    return unknownHere('a lamp');
  }

  async resetBmc(): Promise<BmcResult<BmcAssertion>> {
    return unknownHere('a restart');
  }

  async #read(signal: AbortSignal | undefined): Promise<BmcResult<PowerReading>> {
    const { calls } = this.#parts.target;
    const request = { method: 'GET', path: calls.statePath, body: '' } as const;
    const answer = await this.#ask(request, restMs.read, signal);
    if (answer.kind !== 'ok') return answer;
    const { body, certificateSha256 } = answer.value;
    const refused = refusalOf(answer.value, `GET ${calls.statePath}`, undefined);
    if (refused !== undefined) return refused;
    const state = stateIn(body, calls);
    if (state.kind === 'state') return ok({ power: state.power, certificateSha256 });
    return failed('malformed', `the power is unknown: ${state.why} (GET ${calls.statePath})`);
  }

  #ask(
    { method, path, body }: { method: HttpsRequest['method']; path: string; body: string },
    rest: number,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<Answer>> {
    const { governor, target, client, web, limits = defaultWebhookLimits, clock } = this.#parts;
    const unfit = unfitTarget(target);
    if (unfit !== undefined) return Promise.resolve(unfit);
    const headers = {
      accept: 'application/json, text/plain',
      ...secretOf(target),
      ...(body === '' ? {} : { 'content-type': 'application/json' }),
    };
    const request = { method, path, headers, ...(body === '' ? {} : { body }) };
    const act = (): Promise<BmcResult<Answer>> =>
      target.calls.plainHttp
        ? askByHttp({ web, clock, target, limits }, request, signal)
        : askByHttps({ client, target, limits }, request, signal);
    return governor.run(target.credential, act, { restMs: rest }, signal);
  }
}

interface PowerReading {
  readonly power: PowerState;
  readonly certificateSha256: string | undefined;
}

function methodOf({ method }: PowerCalls): 'GET' | 'POST' | 'PUT' {
  return method === 'GET' || method === 'PUT' ? method : 'POST';
}

function secretOf({ calls, user, password }: WebhookTarget): Readonly<Record<string, string>> {
  if (calls.secretHeader !== '') return { [calls.secretHeader.toLowerCase()]: password };
  const basic = Buffer.from(`${user}:${password}`).toString('base64');
  return { authorization: `Basic ${basic}` };
}

function unknownHere(action: string): BmcFailed {
  return failed(
    'unsupported',
    `a device that switches a socket has no ${action.replace(/^an? /, '')}`,
  );
}

const busyStatuses: ReadonlySet<number> = new Set([409, 423, 429, 503]);
const unsureStatuses: ReadonlySet<number> = new Set([408, 500, 502, 504]);

/** Undefined: it was taken. */
function refusalOf(
  { status }: Answer,
  requestLine: string,
  expected: number | undefined,
): BmcFailed | BmcTransient | undefined {
  if (expected === undefined ? status >= 200 && status < 300 : status === expected)
    return undefined;
  const text = `${status} to ${requestLine}`;
  if (status === 401 || status === 403) {
    const message = 'the device does not accept the credential: correct it';
    return failed('authentication', message, text);
  }
  if (status >= 300 && status < 400) {
    const message = 'the device redirects, which is not followed: give the address that it names';
    return failed('protocol', message, text);
  }
  if (busyStatuses.has(status)) {
    return {
      kind: 'transient',
      reason: 'busy',
      message: 'the device is busy',
      backendText: text,
    };
  }
  if (unsureStatuses.has(status)) {
    const message = 'the device has trouble of its own';
    return { kind: 'transient', reason: 'trouble', message, backendText: text };
  }
  const wanted = expected === undefined ? '200 to 299' : String(expected);
  const refused = failed(
    'rejected',
    `the device does not take ${requestLine}: ${wanted} is expected`,
    text,
  );
  return status >= 200 && status < 300 ? { ...refused, afterSending: true } : refused;
}

/** What answers an order in no readable way may have carried it out. */
function isOpen(refusal: BmcFailed | BmcTransient): boolean {
  const isUnreadable = refusal.kind === 'failed' && refusal.type === 'protocol';
  return isUnreadable || mayHaveHappened(refusal);
}

/** Refuses here a target that would be cut short or misread. */
function unfitTarget({ address, user, password, credential, calls }: WebhookTarget) {
  if (!isAddress(address)) {
    const form = 'an IPv4 or IPv6 address or a host name';
    return failed('address', `the address ${JSON.stringify(address)} is not ${form}`);
  }
  const isUnfit = (text: string): boolean => text === '' || /[^ -~]/.test(text);
  if (isUnfit(password)) {
    const message = `a password of printable ASCII characters is needed: ${credential} has none`;
    return failed('invalidCredential', message);
  }
  if (calls.secretHeader === '' && (/[^ -~]/.test(user) || user.includes(':'))) {
    return failed('invalidCredential', `Basic needs a user without ":": ${credential} has one`);
  }
  return undefined;
}

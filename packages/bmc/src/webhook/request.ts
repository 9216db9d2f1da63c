/** One request to a device, by HTTPS with its pinned certificate or by plain HTTP. */
import type {
  Clock,
  HttpClient,
  HttpsLimits,
  HttpsRequest,
  HttpsTarget,
  WebClient,
  WebOutcome,
} from '@rackwright/platform';
import { type BmcResult, failed, ok, transient } from '../driver.ts';
import { urlHost } from '../http-target.ts';
import { type AskedDevice, noAnswer } from '../no-answer.ts';

export type WebhookLimits = HttpsLimits;

export interface Answer {
  readonly status: number;
  readonly body: Uint8Array;
  readonly certificateSha256: string | undefined;
}

export async function askByHttps(
  {
    client,
    target,
    limits,
  }: {
    readonly client: HttpClient;
    readonly target: HttpsTarget;
    readonly limits: WebhookLimits;
  },
  request: HttpsRequest,
  signal: AbortSignal | undefined,
): Promise<BmcResult<Answer>> {
  const peer = client.peer(target, limits);
  try {
    const outcome = await peer.request(request, signal);
    if (outcome.kind !== 'answered') return noAnswer(outcome, askedDevice);
    const { status, body, certificateSha256 } = outcome;
    return ok({ status, body, certificateSha256 });
  } finally {
    peer.close();
  }
}

const askedDevice: AskedDevice = {
  name: 'the device',
  noTlsRemedy: 'correct the port, or allow plain HTTP',
  textOf: () => '',
};

interface PlainParts {
  readonly web: WebClient | undefined;
  readonly clock: Clock;
  readonly target: HttpsTarget;
  readonly limits: WebhookLimits;
}

export async function askByHttp(
  { web, clock, target, limits }: PlainParts,
  { method, path, headers, body }: HttpsRequest,
  signal: AbortSignal | undefined,
): Promise<BmcResult<Answer>> {
  if (web === undefined || method === 'DELETE') {
    return failed('unsupported', 'this agent speaks no plain HTTP to devices');
  }
  const { address, port } = target;
  const at = `${urlHost(address)}:${port}`;
  const late = new AbortController();
  const cancel = clock.after(limits.requestTimeoutMs, () => late.abort());
  const both = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
  try {
    const { connectTimeoutMs, requestTimeoutMs: silenceMs, headerBytesMax } = limits;
    const outcome = await web.send(
      {
        ...{ method, url: `http://${at}${path}`, headers },
        // An address was judged when it was set; a name's address is judged here.
        internal: isLiteral(address) ? [at] : [],
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
      },
      { answerTimeoutMs: connectTimeoutMs + silenceMs, silenceMs, headerBytesMax },
      both,
    );
    if (outcome.kind !== 'answered') return noWebAnswer(outcome, late.signal);
    const whole = await bodyOf(outcome, limits.bodyBytesMax);
    if (whole === 'tooLong') return failed('protocol', 'the device says too much');
    if (whole !== 'broken') {
      return ok({ status: outcome.status, body: whole, certificateSha256: undefined });
    }
    return signal?.aborted === true
      ? transient('cancelled', 'the call was given up')
      : transient('unreachable', 'the device broke its answer off');
  } finally {
    cancel();
  }
}

/** Not a name: nothing has to be looked up. */
function isLiteral(address: string): boolean {
  return address.includes(':') || /^[0-9.]+$/.test(address);
}

type WebAnswered = Extract<WebOutcome, { kind: 'answered' }>;

async function bodyOf(
  answer: WebAnswered,
  bytesMax: number,
): Promise<Uint8Array | 'tooLong' | 'broken'> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of answer.body) {
      bytes += part.length;
      if (bytes > bytesMax) return 'tooLong';
      parts.push(part);
    }
    return Buffer.concat(parts);
  } catch {
    // The connection ended within the body; the answer is "broken".
    return 'broken';
  } finally {
    answer.close();
  }
}

function noWebAnswer(
  outcome: Exclude<WebOutcome, { kind: 'answered' }>,
  late: AbortSignal,
): BmcResult<never> {
  switch (outcome.kind) {
    case 'untrusted':
    case 'noHttp':
      return failed('protocol', 'what answers does not speak HTTP, or says too much');
    case 'forbidden':
      return failed('address', 'the address is internal: correct it');
    case 'unreachable':
      return transient('unreachable', 'the device does not answer');
    case 'cancelled':
      return late.aborted
        ? transient('unreachable', 'the device does not answer in time')
        : transient('cancelled', 'the call was given up');
  }
}

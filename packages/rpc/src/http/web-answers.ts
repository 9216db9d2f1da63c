/** Answers HTTP requests that are no calls. The program's own function makes the answer. */
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import type { PageRequest, PageResponse, Respond } from '@rackwright/messages';
import type { Admissions } from '../server/admission.ts';
import { type FailureParts, failureForCaller } from '../server/call-failures.ts';
import { connectError } from './connect-error.ts';
import { sendWeb } from './http-answer.ts';
import { type HttpArrival, queryOf } from './http-arrival.ts';
import type { IncomingBody } from './http-body.ts';
import type { Exchange } from './http-listener.ts';

/** The name of their entrance. They need no token and have slots of their own. */
export const webEntrance = 'web';

export interface WebParts extends FailureParts {
  readonly admissions: Admissions;
  readonly respond: Respond;
}

export interface WebCall {
  readonly exchange: Exchange;
  readonly arrival: HttpArrival;
  readonly body: IncomingBody;
  readonly path: string;
}

/** Admits a request and answers it. An `ApiFailure` has the form that it has for a unary call. */
export async function answerWeb(parts: WebParts, call: WebCall): Promise<void> {
  const { exchange, arrival, body, path } = call;
  const { admissions, respond } = parts;
  let refusal = (error: unknown): unknown => error;
  try {
    await admissions.admit(arrival);
    const admitted = admissions.of(arrival.key);
    refusal = admitted.refusal;
    const request: PageRequest = {
      method: exchange.request.method ?? '',
      path,
      query: queryOf(exchange.request),
      context: admitted.scope.context,
      body: (bytesMax) => body.read(bytesMax, 'The body'),
    };
    sendWeb(exchange, await respond(request));
  } catch (error) {
    sendWeb(exchange, failed(refusal(error), path, parts));
  }
}

function failed(error: unknown, path: string, parts: FailureParts): PageResponse {
  const failure = connectError(failureForCaller(error, path, parts));
  const headers = Object.fromEntries(failure.metadata);
  return {
    status: codeToHttpStatus(failure.code),
    headers: { ...headers, 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: errorToJsonBytes(failure, undefined),
  };
}

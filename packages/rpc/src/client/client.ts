/**
 * A typed client of one service over a channel. Every failure is an `ApiFailure`, for every cause;
 * a stream that its reader leaves early is cancelled.
 */
import type { DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import {
  status as Code,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { ApiFailure } from '@rackwright/messages';
import { Waits } from '@rackwright/platform';
import { decodeMessage, encodeMessage } from '../wire/codec.ts';
import { fromStatus, statusDetailsKey } from '../wire/status.ts';
import { pump } from '../wire/stream.ts';
import type { Channel } from './channel.ts';
import { callWithRepeats, type Repeats } from './repeats.ts';

export interface CallOptions {
  /** Aborting ends the call with `cancelled`. */
  readonly signal?: AbortSignal;
  /** Wall time in milliseconds after which the call ends with `deadlineExceeded`. */
  readonly deadlineMs?: number;
  /** Headers, lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Wait for a connection instead of failing at once while there is none. */
  readonly waitForReady?: boolean;
  /** Repeats calls that only read while the server is unavailable; unset: none is repeated. */
  readonly repeats?: Repeats;
}

type ClientMethod<M extends DescMethod> = M['methodKind'] extends 'unary'
  ? (
      request: MessageInitShape<M['input']>,
      options?: CallOptions,
    ) => Promise<MessageShape<M['output']>>
  : M['methodKind'] extends 'server_streaming'
    ? (
        request: MessageInitShape<M['input']>,
        options?: CallOptions,
      ) => AsyncIterable<MessageShape<M['output']>>
    : M['methodKind'] extends 'bidi_streaming'
      ? (
          requests: AsyncIterable<MessageInitShape<M['input']>>,
          options?: CallOptions,
        ) => AsyncIterable<MessageShape<M['output']>>
      : never;

/** One function for each method of service `S`, by its local name. */
export type Client<S extends DescService> = {
  readonly [K in keyof S['method']]: ClientMethod<S['method'][K]>;
};

/** A client of `service`; `defaults` apply to every call without options of its own. */
export function createClient<S extends DescService>(
  service: S,
  channel: Channel,
  defaults: CallOptions = {},
): Client<S> {
  const methods = service.methods.map((method) => {
    const path = `/${service.typeName}/${method.name}`;
    return [method.localName, clientMethod(channel, method, path, defaults)];
  });
  return Object.fromEntries(methods);
}

function clientMethod(channel: Channel, method: DescMethod, path: string, defaults: CallOptions) {
  switch (method.methodKind) {
    case 'unary':
      return (request: never, options?: CallOptions) => {
        const merged = merge(defaults, options);
        return callWithRepeats(method, merged, () => unary(channel, method, path, request, merged));
      };
    case 'server_streaming':
      return (request: never, options?: CallOptions) =>
        serverStreaming(channel, method, path, request, merge(defaults, options));
    case 'bidi_streaming':
      return (requests: AsyncIterable<never>, options?: CallOptions) =>
        bidiStreaming(channel, method, path, requests, merge(defaults, options));
    case 'client_streaming':
      throw new Error(`${path}: client streaming is not offered`);
  }
}

function unary(
  channel: Channel,
  method: DescMethod,
  path: string,
  request: never,
  options: CallOptions,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (options.signal?.aborted) return reject(cancelled());
    const bytes = encodeMessage(method.input, request);
    const onAbort = () => call.cancel();
    const call = channel.grpc.makeUnaryRequest<Buffer, Buffer>(
      path,
      asIs,
      asIs,
      bytes,
      metadataOf(options),
      grpcOptions(options),
      (error, response) => {
        options.signal?.removeEventListener('abort', onAbort);
        if (error !== null) return reject(failureOf(error));
        try {
          resolve(decodeMessage(method.output, response as Buffer));
        } catch (cause) {
          reject(badAnswer(method, cause));
        }
      },
    );
    options.signal?.addEventListener('abort', onAbort, { once: true });
  });
}

async function* serverStreaming(
  channel: Channel,
  method: DescMethod,
  path: string,
  request: never,
  options: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  if (options.signal?.aborted) throw cancelled();
  const call = channel.grpc.makeServerStreamRequest<Buffer, Buffer>(
    path,
    asIs,
    asIs,
    encodeMessage(method.input, request),
    metadataOf(options),
    grpcOptions(options),
  );
  yield* responses(call, method, options.signal);
}

async function* bidiStreaming(
  channel: Channel,
  method: DescMethod,
  path: string,
  requests: AsyncIterable<never>,
  options: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  if (options.signal?.aborted) throw cancelled();
  const call = channel.grpc.makeBidiStreamRequest<Buffer, Buffer>(
    path,
    asIs,
    asIs,
    metadataOf(options),
    grpcOptions(options),
  );
  const over = new AbortController();
  call.once('close', () => over.abort());
  call.once('status', () => over.abort());
  const encode = (request: never) => encodeMessage(method.input, request);
  let requestFailure: unknown;
  pump(requests, call, encode, over.signal).then(
    (finished) => {
      if (finished) call.end();
    },
    (error: unknown) => {
      requestFailure = error;
      call.cancel();
    },
  );
  try {
    yield* responses(call, method, options.signal);
  } catch (error) {
    // The error of our own requests is the cause; the cancellation only follows from it.
    throw requestFailure ?? error;
  } finally {
    over.abort();
  }
}

type ReadableCall = ReturnType<Channel['grpc']['makeServerStreamRequest']>;

async function* responses(
  call: ReadableCall,
  method: DescMethod,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown, void, undefined> {
  const waits = new Waits(signal);
  call.once('error', (error) => waits.fail(failureOf(error as ServiceError)));
  const iterator = call.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const next = await waits.on(iterator.next());
      if (next === undefined) throw cancelled();
      if (next.done === true) return;
      yield decodeAnswer(method, next.value as Buffer);
    }
  } catch (error) {
    throw error instanceof ApiFailure ? error : failureOf(error as ServiceError);
  } finally {
    waits.over();
    call.cancel();
  }
}

function decodeAnswer(method: DescMethod, bytes: Buffer): unknown {
  try {
    return decodeMessage(method.output, bytes);
  } catch (cause) {
    throw badAnswer(method, cause);
  }
}

function merge(defaults: CallOptions, options: CallOptions | undefined): CallOptions {
  return { ...defaults, ...options, headers: { ...defaults.headers, ...options?.headers } };
}

function metadataOf({ headers, waitForReady }: CallOptions): Metadata {
  const metadata = new Metadata({ waitForReady: waitForReady ?? false });
  for (const [name, value] of Object.entries(headers ?? {})) metadata.set(name, value);
  return metadata;
}

function grpcOptions({ deadlineMs }: CallOptions): GrpcCallOptions {
  return deadlineMs === undefined ? {} : { deadline: deadlineMs };
}

function failureOf(error: Partial<ServiceError> & Error): ApiFailure {
  const [details] = error.metadata?.get(statusDetailsKey) ?? [];
  const code = error.code ?? Code.UNKNOWN;
  const message = error.details ?? error.message;
  // Without details it is grpc-js that speaks, of its own innards.
  const text = details === undefined ? textOfCode(code, message) : message;
  return new ApiFailure(fromStatus(code, text, details), error);
}

function textOfCode(code: Code, message: string): string {
  if (code === Code.DEADLINE_EXCEEDED) return 'There was no answer in time.';
  if (code !== Code.UNAVAILABLE) return message;
  const [, lastError = message] =
    /Last error: (.*?)(?:\. Resolution note:.*)?$/s.exec(message) ?? [];
  const [errno = ''] = /\bE[A-Z]{4,}\b/.exec(lastError) ?? [];
  return `There is no connection: ${textsOfErrno[errno] ?? lastError.replace(/^Error: /, '')}`;
}

/** Operating systems' codes of the usual connection failures (errno(3)). */
const textsOfErrno: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'it was closed at once',
  EHOSTUNREACH: 'no route to that address',
  ENETUNREACH: 'no route to that network',
  ETIMEDOUT: 'nobody answers at that address',
};

function cancelled(): ApiFailure {
  return new ApiFailure({ kind: 'cancelled', message: 'The caller left.', reason: 'CANCELLED' });
}

function badAnswer(method: DescMethod, cause: unknown): ApiFailure {
  return new ApiFailure(
    {
      kind: 'internal',
      message: `The server's answer is no ${method.output.typeName}; the versions may not fit.`,
      reason: 'MALFORMED_ANSWER',
      reference: '',
    },
    cause,
  );
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

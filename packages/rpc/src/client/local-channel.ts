/**
 * A channel to services in this very process: every unary call and every stream of answers goes
 * through the same encoding, decoding and mapping of errors as over a network, but no socket is
 * involved.
 *
 * Must not: serve streams of requests; a client that needs those connects to a server.
 */
import { Readable } from 'node:stream';
import {
  status as Code,
  type Client as GrpcClient,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { ApiFailure, type BoundService, type CallContext } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { limitsOfMethod } from '../bounds/method-limits.ts';
import { decodeMessage, encodeMessage, weighMessage } from '../wire/codec.ts';
import { statusDetailsKey, toStatus } from '../wire/status.ts';
import type { Channel } from './channel.ts';

/**
 * A channel whose calls end in these services; an error that is no `ApiFailure` ends as `internal`.
 */
export function localChannel(services: readonly BoundService[]): Channel {
  const makeUnaryRequest = (
    path: string,
    _encode: unknown,
    _decode: unknown,
    bytes: Buffer,
    metadata: Metadata,
    _options: unknown,
    reply: (error: ServiceError | null, response?: Buffer) => void,
  ) => {
    answer(services, path, bytes, metadata).then(
      (response) => reply(null, response),
      (error: unknown) => reply(serviceError(error)),
    );
    return { cancel: () => undefined };
  };
  const makeServerStreamRequest = (
    path: string,
    _encode: unknown,
    _decode: unknown,
    bytes: Buffer,
    metadata: Metadata,
  ) => {
    const stream = Readable.from(answers(services, path, bytes, metadata));
    return Object.assign(stream, { cancel: () => void stream.destroy() });
  };
  const grpc: Partial<GrpcClient> = {
    makeUnaryRequest: makeUnaryRequest as never,
    makeServerStreamRequest: makeServerStreamRequest as never,
  };
  return { grpc: grpc as GrpcClient, close: () => undefined };
}

async function answer(
  services: readonly BoundService[],
  path: string,
  bytes: Buffer,
  metadata: Metadata,
): Promise<Buffer> {
  const { method, answering } = call(services, path, bytes, metadata);
  return encodeMessage(method.output, (await answering) as never);
}

async function* answers(
  services: readonly BoundService[],
  path: string,
  bytes: Buffer,
  metadata: Metadata,
): AsyncGenerator<Buffer> {
  try {
    const { method, answering } = call(services, path, bytes, metadata);
    for await (const each of answering as AsyncIterable<unknown>) {
      yield encodeMessage(method.output, each as never);
    }
  } catch (error) {
    throw serviceError(error);
  }
}

function call(services: readonly BoundService[], path: string, bytes: Buffer, metadata: Metadata) {
  const [, typeName = '', name = ''] = path.split('/');
  const bound = services.find(({ service }) => service.typeName === typeName);
  const method = bound?.service.methods.find((each) => each.name === name);
  const handler = method === undefined ? undefined : bound?.handlers[method.localName];
  if (method === undefined || handler === undefined) {
    throw new ApiFailure({
      kind: 'unimplemented',
      message: `${path} is not served here.`,
      reason: 'UNIMPLEMENTED',
    });
  }
  const { first } = limitsOfMethod(method);
  weighMessage(method.input, bytes, first);
  const request = decodeMessage(method.input, bytes, first);
  return { method, answering: handler(request as never, contextOf(path, metadata)) };
}

function contextOf(method: string, metadata: Metadata): CallContext {
  return {
    method,
    header: (name) => metadata.get(name)[0]?.toString(),
    peerAddress: 'local',
    peerCertificate: () => undefined,
    signal: new AbortController().signal,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
}

function serviceError(error: unknown): ServiceError {
  if (!(error instanceof ApiFailure)) {
    const details = errorText(error);
    return Object.assign(new Error(details, { cause: error }), {
      code: Code.INTERNAL,
      details,
      metadata: new Metadata(),
    });
  }
  const { code, message, details } = toStatus(error.error);
  const metadata = new Metadata();
  metadata.set(statusDetailsKey, Buffer.from(details));
  return Object.assign(new Error(message), { code, details: message, metadata });
}

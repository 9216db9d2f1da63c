/**
 * The encoding of a request's one message, by its content type: Connect has it bare for unary calls
 * and in an envelope for streams, gRPC-Web in an envelope always.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import { ApiFailure } from '@rackwright/messages';

export interface RequestFormat {
  readonly isJson: boolean;
  readonly isEnveloped: boolean;
}

/**
 * The head of an envelope: one byte of flags, four of the length (Connect protocol, gRPC over
 * HTTP2).
 */
export const envelopeBytes = 5;

const bare = /^application\/(json|proto)(?:; ?charset=utf-?8)?$/i;
const streamed = /^application\/connect\+(json|proto)$/i;
const grpcWeb = /^application\/grpc-web(?:\+(json|proto))?$/i;

/** Undefined: a content type that this method is not called with. */
export function formatOf(
  contentType: string | undefined,
  { methodKind }: Pick<DescMethod, 'methodKind'>,
): RequestFormat | undefined {
  const type = contentType?.trim() ?? '';
  const own = (methodKind === 'unary' ? bare : streamed).exec(type);
  const found = own ?? grpcWeb.exec(type);
  if (found === null) return undefined;
  const isEnveloped = methodKind !== 'unary' || own === null;
  return { isJson: found[1]?.toLowerCase() === 'json', isEnveloped };
}

/** Throws unless a body is sent as it is. */
export function refusePacked(contentEncoding: string | undefined): void {
  if (contentEncoding === undefined || contentEncoding === 'identity') return;
  throw packed();
}

function packed(): ApiFailure {
  return new ApiFailure({
    kind: 'unimplemented',
    message: 'Requests are taken as they are; send the body without compression.',
    reason: 'COMPRESSED_REQUEST',
  });
}

/** The message in a body. Throws when its envelope does not hold exactly one. */
export function messageIn(body: Buffer, { isEnveloped }: RequestFormat): Buffer {
  if (!isEnveloped) return body;
  const isWhole = body.length >= envelopeBytes;
  if (!isWhole || body.readUInt32BE(1) !== body.length - envelopeBytes) {
    throw new ApiFailure({
      kind: 'invalidArgument',
      message: 'The body is not one message in an envelope: 1 byte of flags, 4 of its length.',
      reason: 'MALFORMED_MESSAGE',
      violations: [],
    });
  }
  if (body[0] !== 0) throw packed();
  return body.subarray(envelopeBytes);
}

/** A body of this format that holds an empty message. */
export async function* placeholderOf(format: RequestFormat): AsyncGenerator<Uint8Array> {
  const message = format.isJson ? Buffer.from('{}') : Buffer.alloc(0);
  if (!format.isEnveloped) {
    yield message;
    return;
  }
  const envelope = Buffer.alloc(envelopeBytes);
  envelope.writeUInt32BE(message.length, 1);
  yield Buffer.concat([envelope, message]);
}

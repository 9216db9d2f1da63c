/** Decodes the requests of a method: always after a check of the decoding cost. */
import type { DescMethod } from '@bufbuild/protobuf';
import { limitsOfMethod } from '../bounds/method-limits.ts';
import { decodeMessage, weighMessage } from '../wire/codec.ts';
import type { MessageReader } from '../wire/stream.ts';

/** Reads the messages of a stream, each within its limits. */
export function requestReader(method: DescMethod): MessageReader<unknown> {
  const limits = limitsOfMethod(method);
  const of = (isFirst: boolean) => (isFirst ? limits.first : limits.later);
  return {
    weigh: (bytes, { isFirst }) => weighMessage(method.input, bytes, of(isFirst)),
    decode: (bytes, { isFirst }) => decodeMessage(method.input, bytes, of(isFirst)),
  };
}

/** The one request of a method that takes no stream. */
export function readRequest(method: DescMethod, bytes: Buffer): unknown {
  const reader = requestReader(method);
  reader.weigh(bytes, { isFirst: true });
  return reader.decode(bytes, { isFirst: true });
}

/** Messages ↔ bytes, with every failure in our own taxonomy. */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { ApiFailure } from '../error/api-error.ts';

/** Bytes of a message or of the fields that make one. */
export function encodeMessage<D extends DescMessage>(
  schema: D,
  message: MessageInitShape<D>,
): Buffer {
  const bytes = toBinary(schema, create(schema, message));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The message in `bytes`; unknown fields are kept. Throws `invalidArgument` for other bytes. */
export function decodeMessage<D extends DescMessage>(
  schema: D,
  bytes: Uint8Array,
): MessageShape<D> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw new ApiFailure(
      {
        kind: 'invalidArgument',
        message: `The bytes are no ${schema.typeName}; encode it with the published .proto files.`,
        reason: 'MALFORMED_MESSAGE',
        violations: [],
      },
      cause,
    );
  }
}

/** Messages ↔ bytes, with every failure in our own taxonomy. */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { ApiFailure } from '@rackwright/messages';
import type { JsonExcess } from '../bounds/json-survey.ts';
import type { MessageLimits } from '../bounds/method-limits.ts';
import { decodeCost, type Excess, surveyMessage } from '../bounds/survey.ts';

/** Bytes of a message or of the fields that make one. */
export function encodeMessage<D extends DescMessage>(
  schema: D,
  message: MessageInitShape<D>,
): Buffer {
  const bytes = toBinary(schema, create(schema, message));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The cost of decoding these bytes, in bytes. Throws `resourceExhausted` when they exceed a limit,
 * and `invalidArgument` when they are no message. No object is made of them before.
 */
export function weighMessage(
  schema: DescMessage,
  bytes: Uint8Array,
  limits: MessageLimits,
): number {
  const found = surveyMessage(schema, bytes, limits);
  if (found === 'malformed') throw malformed(schema);
  if ('limit' in found) throw tooMuch(schema.typeName, found);
  return decodeCost(bytes.length, found);
}

type AnyExcess = Excess | JsonExcess;

const excessTexts: Readonly<Record<AnyExcess['limit'], string>> = {
  bytes: 'bytes',
  elements: 'fields and elements of lists',
  unknownFields: 'fields that this server does not know',
  depth: 'levels of objects and lists',
};

/** The refusal of a message that holds more than its method takes. */
export function tooMuch(name: string, { limit: of, found, most }: AnyExcess): ApiFailure {
  return new ApiFailure({
    kind: 'resourceExhausted',
    message: `${name} has ${found} ${excessTexts[of]} or more; ${most} are taken.`,
    reason: 'MESSAGE_TOO_LARGE',
    metadata: { limit: of, most: String(most) },
  });
}

/** Whether fields that the schema does not name are kept, for programs that pass the message on. */
export interface DecodeOptions {
  readonly unknownFields: 'kept' | 'skipped';
}

/** The message in `bytes`. Throws `invalidArgument` for other bytes. */
export function decodeMessage<D extends DescMessage>(
  schema: D,
  bytes: Uint8Array,
  { unknownFields }: DecodeOptions = { unknownFields: 'kept' },
): MessageShape<D> {
  try {
    return fromBinary(schema, bytes, { readUnknownFields: unknownFields === 'kept' });
  } catch (cause) {
    throw malformed(schema, cause);
  }
}

function malformed({ typeName }: DescMessage, cause?: unknown): ApiFailure {
  return new ApiFailure(
    {
      kind: 'invalidArgument',
      message: `The bytes are no ${typeName}; encode it with the published .proto files.`,
      reason: 'MALFORMED_MESSAGE',
      violations: [],
    },
    cause,
  );
}

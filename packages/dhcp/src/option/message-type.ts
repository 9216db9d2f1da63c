import { ByteReader, ByteWriter } from '@rackwright/bytes';
import type { OptionCodec } from './codec.ts';

/** RFC 2132 §9.6, in the order of their numbers from 1. */
const messageTypes = [
  'discover',
  'offer',
  'request',
  'decline',
  'ack',
  'nak',
  'release',
  'inform',
] as const;

export type MessageType = (typeof messageTypes)[number];

/** Option 53. Later types (RFC 3203, 4388) are none of a boot server's and refused. */
export const messageType: OptionCodec<MessageType> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'option 53 (message type)');
    const number = reader.uint8();
    reader.expectEnd();
    const value = messageTypes[number - 1];
    if (value === undefined) throw reader.error(`type ${number}, known are 1 to 8,`);
    return value;
  },
  encode(value) {
    return new ByteWriter(1).uint8(messageTypes.indexOf(value) + 1).finish();
  },
};

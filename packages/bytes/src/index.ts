/** Bounds-checked reading and writing of wire formats: the base of every codec here. */

export { copyInto } from './copy-into.ts';
export { DecodeError, EncodeError } from './errors.ts';
export { giveBack } from './give-back.ts';
export { ByteReader } from './reader.ts';
export { ByteWriter } from './writer.ts';

/** The wire form of one option's value. */
export interface OptionCodec<Value> {
  /** Throws DecodeError, and nothing else, when the bytes are no such value. */
  decode(bytes: Uint8Array): Value;
  /** Throws EncodeError when the value has no place on the wire. */
  encode(value: Value): Uint8Array;
}

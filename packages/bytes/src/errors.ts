/**
 * Input that breaks its format: cut short, a length that points outside, a value out of range.
 * The only error that decoders built on {@link ByteReader} throw, so that a caller can drop the
 * packet and nothing else.
 */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** A value that does not fit its place on the wire. A fault of the caller, never of a peer. */
export class EncodeError extends Error {
  override readonly name = 'EncodeError';
}

/** Removes a secret from a stream of bytes, however the stream is split. */
export class MaskedStream {
  readonly #secret: Uint8Array;
  /** Bytes at the end of the stream that may be the beginning of the secret. */
  #matched = 0;

  /** `secret`: hexadecimal digits; empty: there is none. */
  constructor(secret: string) {
    this.#secret = new TextEncoder().encode(secret);
  }

  /**
   * The bytes that may be shown now. An end that may be the beginning of the secret is held back.
   */
  take(bytes: Uint8Array): Uint8Array {
    const secret = this.#secret;
    if (secret.length === 0) return bytes;
    const whole = new Uint8Array(this.#matched + bytes.length);
    whole.set(secret.subarray(0, this.#matched));
    whole.set(bytes, this.#matched);
    const searched = Buffer.from(whole.buffer);
    for (let at = searched.indexOf(secret); at !== -1; ) {
      whole.fill(asterisk, at, at + secret.length);
      at = searched.indexOf(secret, at + secret.length);
    }
    this.#matched = 0;
    for (let length = Math.min(secret.length - 1, whole.length); length > 0; length -= 1) {
      if (!endsWith(whole, secret.subarray(0, length))) continue;
      this.#matched = length;
      break;
    }
    return whole.subarray(0, whole.length - this.#matched);
  }
}

const asterisk = 0x2a;

function endsWith(whole: Uint8Array, part: Uint8Array): boolean {
  const start = whole.length - part.length;
  return part.every((byte, offset) => whole[start + offset] === byte);
}

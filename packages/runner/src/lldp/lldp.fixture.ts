/** Frames of lldpd 1.0.16 as tcpdump 4.99.3 wrote them, and frames made by hand. */

/** Both frames of lldpd on one port: the neighbour, and then its sign-off. */
export const lldpdCapture = new Uint8Array(
  Buffer.from(
    '1MOyoQIABAAAAAAAAAAAAO4FAAABAAAA+cIKa/gUDgB7AAAAewAAAAGAwgAADppp8ihux4jMAgcEmmnyKG7H' +
      'BAoHRXRoZXJuZXQ3BgIAeAoGbGVhZi0xDApyYWNrc3dpdGNoDgQAnACAEAwFAcAAAgcCAAAAAgAICnRvIGhv' +
      'c3QgaDH+CQASDwMBAAAAAP4JABIPAQCAAAA2/gYAgMIBACoAAPvCCms4Rw4AKQAAACkAAAABgMIAAA6aafIo' +
      'bseIzAIHBJpp8ihuxwQKB0V0aGVybmV0NwYCAAAAAA==',
    'base64',
  ),
);
/** The offset of the second frame's record in the capture. */
export const leaveAt = 24 + 16 + 0x7b;

const toSwitches = '0180c200000e';

export const hexOf = (text: string): string => Buffer.from(text).toString('hex');

/** One TLV: seven bits of type, nine of length, and what `hex` is. */
export function tlv(type: number, hex: string): string {
  return (((type << 9) | (hex.length / 2)) >>> 0).toString(16).padStart(4, '0') + hex;
}

/** Chassis id (MAC), port id (name) and time to live. */
export const mandatory = tlv(1, '04020000000001') + tlv(2, `05${hexOf('swp1')}`) + tlv(3, '0078');

/** A frame from its TLVs; `to` is its destination. */
export function frameOf(tlvs: string, to = toSwitches): Uint8Array {
  return new Uint8Array(Buffer.from(`${to}02000000000188cc${tlvs}`, 'hex'));
}

/** What tcpdump would write of these frames, a second apart, on a machine of this byte order. */
export function captureOf(frames: readonly Uint8Array[], order: 'big' | 'little'): Uint8Array {
  const isLittle = order === 'little';
  const numbers = (...values: readonly [number, 2 | 4][]): Buffer => {
    const parts = values.map(([value, bytes]) => {
      const part = Buffer.alloc(bytes);
      part.writeUIntBE(value, 0, bytes);
      return isLittle ? part.reverse() : part;
    });
    return Buffer.concat(parts);
  };
  const head = numbers([0xa1b2c3d4, 4], [2, 2], [4, 2], [0, 4], [0, 4], [1514, 4], [1, 4]);
  const records = frames.flatMap((frame, index) => [
    numbers([1_700_000_000 + index, 4], [500_000, 4], [frame.length, 4], [frame.length, 4]),
    Buffer.from(frame),
  ]);
  return new Uint8Array(Buffer.concat([head, ...records]));
}

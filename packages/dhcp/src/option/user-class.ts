import { ByteReader, ByteWriter } from '@rackwright/bytes';
import { packetBytesMax } from '../limits.ts';
import type { OptionCodec } from './codec.ts';
import { text } from './text.ts';

/** `listed` is RFC 3004's list of counted classes; `plain` is bare text, as iPXE sends it. */
export interface UserClass {
  readonly form: 'listed' | 'plain';
  /** Never empty; exactly one when plain. */
  readonly classes: readonly string[];
}

/**
 * Option 77. Nothing in it tells the two forms apart, so it counts as a list when its lengths add
 * up exactly, and as plain text otherwise: "iPXE" begins with 0x69, more than it has bytes.
 */
export const userClass: OptionCodec<UserClass> = {
  decode(bytes) {
    if (bytes.length === 0) throw new ByteReader(bytes, 'option 77 (user class)').error('empty');
    const classes = listedClasses(bytes);
    return classes === undefined
      ? { form: 'plain', classes: [text.decode(bytes)] }
      : { form: 'listed', classes };
  },
  encode({ form, classes }) {
    const writer = new ByteWriter(packetBytesMax);
    for (const name of classes) {
      if (form === 'listed') writer.uint8(name.length);
      writer.text(name);
    }
    return writer.finish();
  },
};

/** The classes when the counts fit exactly and none is empty (RFC 3004 §4), else undefined. */
function listedClasses(bytes: Uint8Array): string[] | undefined {
  const classes: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const count = bytes[at] as number;
    const end = at + 1 + count;
    if (count === 0 || end > bytes.length) return undefined;
    classes.push(String.fromCharCode(...bytes.subarray(at + 1, end)));
    at = end;
  }
  return classes;
}

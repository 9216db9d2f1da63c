/**
 * Ethernet addresses as text: `52:54:00:77:00:01` inside, `52-54-00-77-00-01` in file names. One
 * address has one text, so that texts can be compared and be keys.
 */

/** Lower case with colons. */
export type Mac = string & { readonly __brand: 'Mac' };

const anySpelling = /^[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}$/i;
const hexDigits = '0123456789abcdef';

/** Undefined when the text is no address. Takes `:` or `-`, any case. */
export function canonicalMac(text: string): Mac | undefined {
  return anySpelling.test(text) ? (text.toLowerCase().replaceAll('-', ':') as Mac) : undefined;
}

/** The MAC of a text that must be an address. Throws a RangeError for anything else. */
export function asMac(text: string): Mac {
  const mac = canonicalMac(text);
  if (mac === undefined) throw new RangeError(`"${text}" is no Ethernet address`);
  return mac;
}

/** The MAC of the six bytes on the wire. */
export function macOfBytes(bytes: Uint8Array): Mac {
  let text = '';
  for (const byte of bytes) {
    text += `${text === '' ? '' : ':'}${hexDigits[byte >> 4]}${hexDigits[byte & 15]}`;
  }
  return text as Mac;
}

/** The spelling for URLs and file names, where a colon would need care. */
export function hyphenatedMac(mac: Mac): string {
  return mac.replaceAll(':', '-');
}

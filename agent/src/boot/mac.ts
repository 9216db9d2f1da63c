/** Ethernet addresses as text: `52:54:00:77:00:01` inside, `52-54-00-77-00-01` in file names. */

const anySpelling = /^[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}$/i;

/** Lower case with colons; undefined when the text is no address. Takes `:` or `-`, any case. */
export function canonicalMac(text: string): string | undefined {
  return anySpelling.test(text) ? text.toLowerCase().replaceAll('-', ':') : undefined;
}

/** The spelling for URLs and file names, where a colon would need care. */
export function hyphenatedMac(canonical: string): string {
  return canonical.replaceAll(':', '-');
}

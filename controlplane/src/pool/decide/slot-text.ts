/**
 * Texts of slots and failures: bounded, and without details that are elsewhere in the record. Pure.
 */
import type { RolloutSlot } from '@rackwright/messages';

/** The longest text of a slot: a pool's record must have room for one of most hosts. */
const messageCharsMax = 240;

/** The most hosts that a text names; the rest are counted. */
const namedMax = 3;

const digestShape = /(sha256:[0-9a-f]{12})[0-9a-f]{52}/g;

/**
 * A text about a host, without the image and most of any digest, so that the reason is not
 * truncated.
 */
export function inShort(text: string, { image }: RolloutSlot): string {
  const named = image === '' ? text : text.replaceAll(image, 'its image');
  return named.replaceAll(digestShape, '$1…');
}

/** A text in the form for the record. */
export function truncate(text: string, charsMax = messageCharsMax): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}

/** "hosts/h1, hosts/h2, hosts/h3 and 4 more" */
export function namesText(out: readonly { readonly name: string }[]): string {
  const names = out.map(({ name }) => name).toSorted();
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
  return `${names.slice(0, namedMax).join(', ')}${more}`;
}

/** What slots and failures say: bounded, and without what stands beside them. Pure. */
import type { RolloutSlot } from '@rackwright/messages';

/** What a slot says: of most hosts of a pool may stand one in its record. */
const messageCharsMax = 240;

/** Hosts that a text names; the rest are counted. */
const namedMax = 3;

const digestShape = /(sha256:[0-9a-f]{12})[0-9a-f]{52}/g;

/**
 * Words on a host without what stands beside them, so that the reason is not cut off: the image,
 * and most of any digest.
 */
export function inShort(text: string, { image }: RolloutSlot): string {
  const named = image === '' ? text : text.replaceAll(image, 'its image');
  return named.replaceAll(digestShape, '$1…');
}

/** A text that a record keeps. */
export function cut(text: string, charsMax = messageCharsMax): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}

/** "hosts/h1, hosts/h2, hosts/h3 and 4 more" */
export function namesText(out: readonly { readonly name: string }[]): string {
  const names = out.map(({ name }) => name).toSorted();
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
  return `${names.slice(0, namedMax).join(', ')}${more}`;
}

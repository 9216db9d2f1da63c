/** The name of the CD for virtual media, and how a URL of it is known again. Pure. */

const pattern = /^boot-medium-[\da-f]{16}\.iso$/;

/** `version`: 16 hexadecimal digits of its content. */
export function mediumName(version: string): string {
  return `boot-medium-${version}.iso`;
}

/**
 * True when `url` names a CD of the agent that serves one at `ours` now: at the same address and
 * place, in this version or another.
 */
export function isOwnMedium(url: string, ours: string): boolean {
  const nameAt = ours.lastIndexOf('/') + 1;
  return url.startsWith(ours.slice(0, nameAt)) && pattern.test(url.slice(nameAt));
}

/** The form of URLs that a BMC may be told to fetch from. */

/** Without user, query, codes or steps in its path: every reader reads it in the same way. */
export function isPlainUrl(text: string): boolean {
  const isPlain = /^https?:\/\/[A-Za-z0-9.:[\]-]{1,255}(\/[A-Za-z0-9._~-]+)*\/?$/.test(text);
  return isPlain && text.length <= 512 && !/\/\.{1,2}(\/|$)/.test(text) && URL.canParse(text);
}

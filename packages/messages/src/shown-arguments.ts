/**
 * The arguments of a step as they are shown and recorded, by programs that plan and programs that
 * print.
 *
 * Must not: show a value that may hold a secret. A header, a body, an environment and a program's
 * arguments often hold a token, and so do the path and the query of the URL of a webhook; only
 * their names are shown. A person who may read a plan or a template finds the values there.
 */

/** Arguments of template steps whose values are named only. */
const hidden: ReadonlySet<string> = new Set([
  'arguments',
  'body',
  'content',
  'environment',
  'headers',
  'script',
]);

/** The text in place of a value that is not shown. */
const hiddenValue = '…';

/** Names and values in the order of their names, each value in one line and cut. */
export function shownArguments(
  given: Readonly<Record<string, string>>,
  valueCharactersMax: number,
): [name: string, value: string][] {
  return Object.entries(given)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => {
      if (hidden.has(name)) return [name, value === '' ? '' : hiddenValue];
      const line = (name === 'url' ? addressOf(value) : value).replaceAll(/\s+/g, ' ').trim();
      const isLong = line.length > valueCharactersMax;
      return [name, isLong ? `${line.slice(0, valueCharactersMax)}${hiddenValue}` : line];
    });
}

/** Scheme, host and port; the rest of a URL is not shown. */
function addressOf(text: string): string {
  const url = URL.parse(text);
  if (url === null || url.origin === 'null') return hiddenValue;
  const isBare = url.pathname === '/' && url.search === '' && url.hash === '';
  return `${url.origin}/${isBare ? '' : hiddenValue}`;
}

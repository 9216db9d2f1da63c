/** The page that an address names: the part after its "#". Pure. */

export interface Route {
  /** "hosts/h1" is ["hosts", "h1"]; the overview is []. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** Of "#/hosts/h1?tab=disks". Every hash has a route. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const parts = path.split('/').filter((part) => part !== '');
  return {
    path: parts.map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** "#/hosts/h1?tab=disks"; an undefined or empty value is left out of the query. */
export function formatRoute(
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(set).toString();
  const joined = path.map(encodeURIComponent).join('/');
  return `#/${joined}${text === '' ? '' : `?${text}`}`;
}

/** The page of a resource by its name, as "hosts/h1" or "pools/web". */
export function routeOf(name: string, query: Readonly<Record<string, string>> = {}): string {
  return formatRoute(name.split('/'), query);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A person has typed it. The page of that name reports that nothing has it.
    return part;
  }
}

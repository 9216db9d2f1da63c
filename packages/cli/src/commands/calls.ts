/** Calls as commands make them. */
import type { Connection } from '../settings.ts';

/** Pages that one listing fetches at most: a million resources. */
const pagesMax = 10_000;

/** Runs `work` with a client, and closes the connection whatever happens. */
export async function withClient<C, T>(
  opening: Promise<Connection>,
  makeClient: (connection: Connection) => C,
  work: (client: C) => Promise<T>,
): Promise<T> {
  const connection = await opening;
  try {
    return await work(makeClient(connection));
  } finally {
    connection.channel.close();
  }
}

/** Everything of a listing, page after page. */
export async function allPages<P extends { readonly nextPageToken: string }, T>(
  fetch: (pageToken: string) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): Promise<T[]> {
  const items: T[] = [];
  let pageToken = '';
  for (let page = 0; page < pagesMax; page += 1) {
    const answer = await fetch(pageToken);
    items.push(...itemsOf(answer));
    pageToken = answer.nextPageToken;
    if (pageToken === '') break;
  }
  return items;
}

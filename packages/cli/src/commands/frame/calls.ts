/** Calls as commands make them. */
import type { DescService } from '@bufbuild/protobuf';
import { type Client, createClient } from '@rackwright/rpc';
import type { CommandIo } from '../../command-io.ts';
import { type Connection, type ConnectionFlags, openConnection } from '../../settings.ts';

/** Pages that one listing fetches at most: a million resources. */
const pagesMax = 10_000;

/** Runs `work` with a client, and closes the connection in every case. */
export async function withClient<C, T>(
  opening: Promise<Connection>,
  makeClient: (connection: Connection) => C,
  work: (client: C) => Promise<T>,
): Promise<T> {
  const connection = await opening;
  try {
    return await work(makeClient(connection));
  } catch (error) {
    throw await connection.explained(error);
  } finally {
    connection.channel.close();
  }
}

/** Runs `work` on the connection that a command's flags name. */
export function withConnection<T>(
  io: CommandIo,
  flags: ConnectionFlags,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  return withClient(openConnection(io, flags), (connection) => connection, work);
}

/**
 * A function that runs `work` with a client of one service, on the connection that a command's
 * flags name.
 */
export function callsOf<S extends DescService>(service: S) {
  return <T>(
    io: CommandIo,
    flags: ConnectionFlags,
    work: (client: Client<S>) => Promise<T>,
  ): Promise<T> =>
    withClient(
      openConnection(io, flags),
      ({ channel, defaults }) => createClient(service, channel, defaults),
      work,
    );
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

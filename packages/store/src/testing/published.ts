/** What a store has published, as any client of the server reads it. */
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from 'nats';
import { eventsName } from '../nats/messages.ts';

/** A message of the stream. */
export interface Consumed {
  readonly subject: string;
  readonly contentType: string;
  readonly text: string;
}

/** All messages of the stream beside the bucket, in order. Throws where there is no stream. */
export async function publishedBeside(
  servers: readonly string[],
  bucket: string,
): Promise<readonly Consumed[]> {
  const connection = await connect({ servers: [...servers] });
  try {
    const { streams } = await jetstreamManager(connection);
    const { state } = await streams.info(eventsName(bucket));
    const found: Consumed[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
      const message = await streams.getMessage(eventsName(bucket), { seq });
      if (message === null) continue;
      const { subject, header, data } = message;
      const contentType = header?.get('content-type') ?? '';
      found.push({ subject, contentType, text: new TextDecoder().decode(data) });
    }
    return found;
  } finally {
    await connection.close();
  }
}

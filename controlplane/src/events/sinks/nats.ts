/** Publishes events to the NATS server of the store, as CloudEvents in structured mode. */
import { type Event, EventTypeSchema, enumWord } from '@rackwright/messages';
import { keySegment, type StateStore, StoreError } from '@rackwright/store';
import { cloudEventMediaType, cloudEventOf } from './cloud-event.ts';
import type { DeliveryAttempt } from './window.ts';

/** Longest time of one attempt, including the store's own retries. */
export const publishTimeoutMs = 20_000;

export async function sendToNats(
  store: Pick<StateStore, 'incarnation' | 'publish'>,
  event: Event,
): Promise<DeliveryAttempt> {
  const value = new TextEncoder().encode(JSON.stringify(cloudEventOf(store.incarnation, event)));
  const { id } = event;
  try {
    await store.publish?.({ words: wordsOf(event), id, value, contentType: cloudEventMediaType });
    return { kind: 'delivered' };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return { kind: 'failed', problem: error.message };
  }
}

/** "run-ended", "hosts", "h1" */
function wordsOf({ type, subject }: Event): readonly string[] {
  const word = enumWord(EventTypeSchema, type) ?? String(type);
  return [word, ...subject.split('/').map((part) => keySegment(part))];
}

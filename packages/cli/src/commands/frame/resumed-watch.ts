/**
 * Watches that outlive their connections.
 *
 * Invariant: a watch that breaks is opened again and resumed where it ended; only when the server
 * no longer has that position is everything sent anew.
 */
import { ApiFailure } from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { WaitedTooLong } from '../../failure.ts';

/** Pause before a broken watch is resumed, milliseconds. */
const resumeAfterMs = 1_000;

/**
 * The position in every event of a watch: where to resume after it; empty: where the last one said.
 */
interface WatchEvent {
  readonly position: string;
}

/** Opens the watch after `position`; empty: with everything that there is. */
export type OpenWatch<Event> = (
  position: string,
  options: { readonly deadlineMs?: number },
) => AsyncIterable<Event>;

/** How long a watch goes on. */
interface Patience {
  readonly timeoutSeconds: number | undefined;
  /** The text about the awaited event and what helps; asked for when the time is over. */
  late(): string;
}

/**
 * Shows each event until `isOver` is true, the person stops, or `timeoutSeconds` are over. Rejects
 * with `WaitedTooLong` then, and with an error that a retry cannot fix. A server that has sent
 * nothing at all by then was not reached.
 */
export async function watchResumed<Event extends WatchEvent>(
  { clock, signal }: CommandIo,
  { timeoutSeconds, late }: Patience,
  open: OpenWatch<Event>,
  isOver: (event: Event) => boolean,
): Promise<void> {
  const options =
    timeoutSeconds === undefined ? {} : { deadlineMs: clock.nowMs() + timeoutSeconds * 1_000 };
  let position = '';
  while (!signal.aborted) {
    try {
      for await (const event of open(position, options)) {
        if (event.position !== '') ({ position } = event);
        if (isOver(event)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const kind = error instanceof ApiFailure ? error.error.kind : undefined;
      if (kind === 'outOfRange') position = '';
      else if (kind === 'deadlineExceeded' && position !== '') throw new WaitedTooLong(late());
      else if (kind !== 'unavailable' || position === '') throw error;
      await new Promise<void>((resolve) => clock.after(resumeAfterMs, resolve));
    }
  }
}

/** A graceful shutdown as text for people. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import { type Shutdown, ShutdownOutcome } from './gen/rackwright/v1/run_pb.ts';
import { durationText } from './words.ts';

const outcomes: Readonly<Record<ShutdownOutcome, string>> = {
  [ShutdownOutcome.UNSPECIFIED]: 'the system is off, and nobody said how it went off',
  [ShutdownOutcome.STOPPED]: 'the system shut down by itself',
  [ShutdownOutcome.WAS_OFF]: 'it was off when it was looked at',
  [ShutdownOutcome.FORCED]: 'the system did not shut down in its time, and was forced off',
  [ShutdownOutcome.FORCED_UNSUPPORTED]:
    'the system was forced off at once: its BMC, or the agent, has no soft off',
  [ShutdownOutcome.FORCED_REFUSED]:
    'the system was forced off at once: its BMC refused the soft off',
  [ShutdownOutcome.FORCED_CAME_BACK]:
    'the system had shut down, was switched on again by something else, and was forced off',
};

/** "the system shut down by itself, after 12 seconds"; of one that is over. */
export function shutdownText({ outcome, duration }: Shutdown): string {
  const after = duration === undefined ? '' : `, after ${durationText(durationMs(duration))}`;
  return `${outcomes[outcome] ?? outcomes[ShutdownOutcome.UNSPECIFIED]}${after}`;
}

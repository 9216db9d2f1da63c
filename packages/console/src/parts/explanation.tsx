/** What something waits for, why, and what a person can do about it: as the server explains it. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { Explanation } from '@rackwright/messages';
import type { Live } from '../browser/hooks.ts';
import { span } from '../logic/format.ts';
import { Fields, Loading, Panel, Time } from './basics.tsx';
import { FailureBox } from './errors.tsx';
import { LastScreen } from './last-screen.tsx';

interface ExplanationPanelProps {
  readonly title: string;
  /** "What the host waits for" */
  readonly subject: string;
  readonly explained: Live<Explanation>;
}

export function ExplanationPanel({ title, subject, explained }: ExplanationPanelProps) {
  const { value, failure, reload } = explained;
  if (failure !== undefined) {
    return <FailureBox subject={`${subject} cannot be said`} failure={failure} retry={reload} />;
  }
  if (value === undefined) return <Loading subject="Asking what it waits for" />;
  const isStuck = value.unblock.length > 0;
  return (
    <Panel title={title} tone={isStuck ? 'warn' : 'good'}>
      <p class="headline">{value.headline}</p>
      {value.causes.length > 0 && (
        <ol class="causes">
          {value.causes.map(({ text, since }) => (
            <li key={text}>
              {text} {since !== undefined && <Time at={since} />}
            </li>
          ))}
        </ol>
      )}
      {isStuck && (
        <div class="unblock">
          <h3>What unblocks it</h3>
          <ul>
            {value.unblock.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </div>
      )}
      <Fields
        rows={[
          { label: 'Waits for', value: value.blocker },
          { label: 'Since', value: value.since && <Time at={value.since} /> },
          {
            label: 'Tried again',
            value: value.nextAttemptTime && <Time at={value.nextAttemptTime} />,
          },
          { label: 'Given up', value: value.deadline && <Time at={value.deadline} /> },
          {
            label: 'Usually takes',
            value: value.usualDuration && span(durationMs(value.usualDuration)),
          },
          { label: 'Last seen', value: value.lastEvidence },
        ]}
      />
      <LastScreen lines={value.lastScreen} />
    </Panel>
  );
}

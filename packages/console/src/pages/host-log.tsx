/** What the steps of a host's run write, as they write it. */

import { type Host, hasTitle } from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { runWord } from '../logic/host-tones.ts';
import { Nothing, Panel } from '../parts/basics.tsx';
import { StepLog } from '../parts/step-log.tsx';

export function HostLog({ host: { status } }: { readonly host: Host }) {
  const run = status?.run;
  const [step, setStep] = useState('');
  if (run === undefined) {
    return (
      <Panel title="Log">
        <Nothing>No run yet.</Nothing>
      </Panel>
    );
  }
  if (run.workflowRun === '') {
    const lines = run.steps.filter(({ exit, error }) => exit !== undefined || error !== '');
    return (
      <Panel title={`Log of ${runWord(run)}`}>
        <p class="quiet">
          {status?.progress?.text || 'Steps of our own tell their progress; see the run.'}
        </p>
        {lines.map(({ name, error, exit }) => (
          <pre key={name} tabIndex={0}>{`${name}: ${error}\n${exit?.lastOutput ?? ''}`}</pre>
        ))}
      </Panel>
    );
  }
  const titled = run.steps.filter(hasTitle);
  return (
    <Panel title={`Log of ${runWord(run)}`}>
      <label class="inline">
        Step{' '}
        <select value={step} onChange={(event) => setStep(event.currentTarget.value)}>
          <option value="">the present one</option>
          {titled.map(({ title }) => (
            <option key={title} value={title}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <StepLog run={run.workflowRun} step={step} />
    </Panel>
  );
}

/** One workflow of a host: its latest run with steps and log, and what it waits for. */

import {
  enumWord,
  type Workflow,
  type WorkflowRun,
  WorkflowRunState,
  WorkflowRunStateSchema,
} from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { newRequestId } from '../browser/clock.ts';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { idOf } from '../logic/format.ts';
import { workflowTone } from '../logic/host-tones.ts';
import { isOffered } from '../logic/offers.ts';
import { routeOf } from '../logic/route.ts';
import { Badge, Fields, PageHead, Panel, Time } from '../parts/basics.tsx';
import { AskDialog, useAction } from '../parts/dialog.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { ExplanationPanel } from '../parts/explanation.tsx';
import { RunView } from '../parts/run.tsx';
import { StepLog } from '../parts/step-log.tsx';
import { Unread } from '../parts/unread.tsx';

export function WorkflowPage({ name }: { readonly name: string }) {
  const { clients } = useConsole();
  const host = name.split('/').slice(0, 2).join('/');
  useTopic({ kind: 'host', name: host });
  const options = { isConcerned: () => true, everyMs: 10_000 };
  const { value, failure, reload } = useLive(
    name,
    (signal) => clients.workflows.getWorkflow({ name }, { signal }),
    options,
  );
  const explained = useLive(
    `explain ${name}`,
    (signal) => clients.workflows.explainWorkflow({ name }, { signal }),
    options,
  );
  const above = <a href={routeOf(host)}>{idOf(host)}</a>;
  if (value === undefined) {
    return <Unread name={name} kind="workflow" above={above} failure={failure} retry={reload} />;
  }
  const run = value.status?.run;
  return (
    <>
      <PageHead
        title={idOf(name)}
        above={above}
        actions={<WorkflowActions workflow={value} reload={reload} />}
      />
      <ExplanationPanel title="Now" subject="What the workflow waits for" explained={explained} />
      {run !== undefined && <RunPanel run={run} />}
      {run?.run !== undefined && (
        <Panel title="Log">
          <StepLog run={run.name} step="" />
        </Panel>
      )}
    </>
  );
}

function RunPanel({ run }: { readonly run: WorkflowRun }) {
  const variables = Object.entries(run.variables).map(([key, value]) => `${key}=${value}`);
  return (
    <Panel title={`Run ${run.number}`} tone={workflowTone(run.state)}>
      <p class="host-line">
        <Badge tone={workflowTone(run.state)}>
          {enumWord(WorkflowRunStateSchema, run.state) ?? ''}
        </Badge>
        <span class="quiet">
          asked for by {run.requestedBy}, <Time at={run.createTime} />
        </span>
      </p>
      <Fields rows={[{ label: 'Variables', value: variables.join(', ') }]} />
      {run.run !== undefined && <RunView run={run.run} />}
      {run.run === undefined && run.error !== undefined && (
        <p class="run-error">{run.error.message}</p>
      )}
    </Panel>
  );
}

interface WorkflowActionsProps {
  readonly workflow: Workflow;
  readonly reload: () => void;
}

function WorkflowActions({ workflow, reload }: WorkflowActionsProps) {
  const { clients, caller } = useConsole();
  const { failure, isBusy, run } = useAction();
  const [isAsking, setAsking] = useState(false);
  const { name, status } = workflow;
  const state = status?.run?.state;
  const isUnderWay = state === WorkflowRunState.PENDING || state === WorkflowRunState.RUNNING;
  const again = () =>
    void run(() => clients.workflows.runWorkflow({ name, requestId: newRequestId() })).then(reload);
  return (
    <>
      {!isUnderWay && isOffered(caller, 'runWorkflow') && (
        <button type="button" disabled={isBusy} onClick={again}>
          Run again
        </button>
      )}
      {isUnderWay && isOffered(caller, 'cancelWorkflow') && (
        <button type="button" onClick={() => setAsking(true)}>
          Cancel …
        </button>
      )}
      {isAsking && (
        <AskDialog
          title={`Cancel ${idOf(name)}`}
          text="The run ends as soon as its step allows it."
          verb="Cancel the run"
          close={() => setAsking(false)}
          act={(reason) =>
            clients.workflows.cancelWorkflow({ name, reason, requestId: newRequestId() })
          }
        />
      )}
      {failure !== undefined && <FailureBox subject="It was not run" failure={failure} />}
    </>
  );
}

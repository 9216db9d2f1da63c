/**
 * Destructive work: first the plan, with all that is lost; then, by typing the host's name, exactly
 * that plan is started, by its hash.
 */

import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  HostRefusal,
  type Plan,
  type PlannedDevice,
  type PlanRunRequestSchema,
  stepText,
} from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { newRequestId } from '../browser/clock.ts';
import { useConsole } from '../browser/console.ts';
import { useLive } from '../browser/hooks.ts';
import { bytesText, idOf, span } from '../logic/format.ts';
import { isOffered } from '../logic/offers.ts';
import { Badge, Loading, Nothing } from './basics.tsx';
import { Dialog, useAction } from './dialog.tsx';
import { FailureBox } from './errors.tsx';
import { Table } from './table.tsx';

type PlanRequest = MessageInitShape<typeof PlanRunRequestSchema>;

interface PlanDialogProps {
  /** "Clean" */
  readonly verb: string;
  /** "hosts/h1" */
  readonly host: string;
  readonly run: NonNullable<PlanRequest['run']>;
  readonly close: () => void;
}

export function PlanDialog({ verb, host, run, close }: PlanDialogProps) {
  const { clients } = useConsole();
  const { value, failure, isLoading, reload } = useLive(`plan ${host}`, (signal) =>
    clients.plans.planRun({ parent: host, run }, { signal }),
  );
  const title = `${verb} ${idOf(host)}: the plan`;
  return (
    <Dialog title={title} close={close} isWide>
      {value === undefined && isLoading && <Loading subject="Asking what it would do" />}
      {failure !== undefined && (
        <FailureBox subject={`${title} could not be made`} failure={failure} retry={reload} />
      )}
      {value !== undefined && <Confirm plan={value} verb={verb} host={host} close={close} />}
    </Dialog>
  );
}

interface ConfirmProps {
  readonly plan: Plan;
  readonly verb: string;
  readonly host: string;
  readonly close: () => void;
}

function Confirm({ plan, verb, host, close }: ConfirmProps) {
  const { clients, caller } = useConsole();
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState('');
  const { isBusy, failure, run } = useAction();
  const id = idOf(host);
  const isDestructive = plan.dataLoss.length > 0;
  const isConfirmed = !isDestructive || typed === id;
  const mayStart = isOffered(caller, 'startPlan') && plan.refusal === HostRefusal.UNSPECIFIED;
  const submit = async (event: Event) => {
    event.preventDefault();
    const requestId = newRequestId();
    const start = () => clients.plans.startPlan({ name: plan.name, reason, requestId });
    if (await run(start)) close();
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <PlanBody plan={plan} />
      {isDestructive && (
        <label>
          <span>
            Type <code>{id}</code> to confirm that this is lost
          </span>
          <input
            name="confirm"
            value={typed}
            autoComplete="off"
            spellcheck={false}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      )}
      <label>
        Reason (may be left out)
        <input
          name="reason"
          value={reason}
          maxLength={500}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      {failure !== undefined && (
        <FailureBox subject={`${verb} ${id} was not started`} failure={failure} />
      )}
      <footer>
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button
          type="submit"
          class={isDestructive ? 'danger' : 'primary'}
          disabled={!isConfirmed || !mayStart || isBusy}
        >
          {isDestructive ? `${verb} ${id} and lose its data` : `${verb} ${id}`}
        </button>
      </footer>
    </form>
  );
}

function PlanBody({ plan }: { readonly plan: Plan }) {
  const usualMs = plan.usualDuration && durationMs(plan.usualDuration);
  return (
    <>
      {plan.refusal !== HostRefusal.UNSPECIFIED && (
        <div class="failure" role="alert">
          <strong>It would be refused now.</strong>
          <p>{plan.refused}</p>
          <p class="advice">Change what stands against it, then look at a new plan.</p>
        </div>
      )}
      <section class="loss">
        <h3>What is lost</h3>
        {plan.dataLoss.length === 0 ? (
          <Nothing>Nothing.</Nothing>
        ) : (
          <ul>
            {plan.dataLoss.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        )}
      </section>
      {plan.devices.length > 0 && (
        <Table label="Disks" columns={deviceColumns} rows={plan.devices} keyOf={deviceKey} />
      )}
      <section>
        <h3>
          Steps
          {usualMs !== undefined && <span class="quiet"> usually {span(usualMs)}</span>}
        </h3>
        <ol class="plan-steps">
          {plan.stages.map((stage) => (
            <li key={stage}>{stage}</li>
          ))}
          {plan.steps.map(({ step, title, destructive, condition }, index) => (
            <li key={`${index} ${step}`}>
              {stepText({ name: step, title })}{' '}
              {destructive && <Badge tone="bad">destroys data</Badge>}{' '}
              {condition !== '' && <span class="quiet">{condition}</span>}
            </li>
          ))}
        </ol>
      </section>
      {plan.notes.length > 0 && (
        <section>
          <h3>To know</h3>
          <ul>
            {plan.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

const deviceKey = ({ serial, wwn, kernelName }: PlannedDevice) => serial || wwn || kernelName;

const deviceColumns = [
  { title: 'Disk', cell: (disk: PlannedDevice) => disk.model || disk.kernelName },
  { title: 'Serial', cell: ({ serial, wwn }: PlannedDevice) => <code>{serial || wwn}</code> },
  {
    title: 'Size',
    cell: ({ sizeBytes }: PlannedDevice) => bytesText(sizeBytes),
    isNumber: true,
    isMinor: true,
  },
  { title: 'What happens', cell: ({ fate }: PlannedDevice) => fate },
  {
    title: 'Read back',
    cell: ({ verification }: PlannedDevice) => verification,
    isMinor: true,
  },
  {
    title: 'Takes',
    cell: ({ time }: PlannedDevice) => (time === undefined ? '–' : span(durationMs(time))),
    isNumber: true,
    isMinor: true,
  },
];

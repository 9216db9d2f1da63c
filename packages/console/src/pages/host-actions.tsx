/** What can be asked of a host: offered by role and by what the host is. */

import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  DeletionMode,
  HoldScope,
  type Host,
  HostState,
  type HostWait,
  hostWaitOf,
  type PlanRunRequestSchema,
  PowerAction,
  RunPhase,
} from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { newRequestId } from '../browser/clock.ts';
import { useConsole } from '../browser/console.ts';
import { idOf } from '../logic/format.ts';
import { isOffered, type OfferName } from '../logic/offers.ts';
import { AskDialog } from '../parts/dialog.tsx';
import { PlanDialog } from '../parts/plan-dialog.tsx';
import { ImageDialog } from './image-dialog.tsx';

type PlannedRun = NonNullable<MessageInitShape<typeof PlanRunRequestSchema>['run']>;

interface HostAction {
  readonly id: string;
  readonly title: string;
  readonly offer: OfferName;
  /** Whether it makes sense for a host like this. */
  readonly fits: (host: Host) => boolean;
  readonly kind: 'plan' | 'image' | 'ask';
  readonly text: string;
  readonly needsReason: boolean;
}

const isBusy = ({ status }: Host) =>
  status?.run !== undefined && status.run.phase !== RunPhase.ENDED;
const isIdle = (host: Host) => !isBusy(host);
/** The run waits until a person switches the host on or off. The page says which. */
const asksPerson = ({ status }: Host) => hostWaitOf(status?.run?.waiting) === 'person';
/** The run waits for one of these. */
const waitsFor =
  (...waits: HostWait[]) =>
  (host: Host) =>
    isBusy(host) && waits.some((each) => each === hostWaitOf(host.status?.run?.waiting));
const hasFailedClean = (host: Host) => isIdle(host) && host.status?.afterFailure !== undefined;
const isIn =
  (...states: HostState[]) =>
  (host: Host) =>
    states.includes(host.status?.state ?? HostState.UNSPECIFIED);
const row = (
  id: string,
  title: string,
  offer: OfferName,
  fits: HostAction['fits'],
  text = '',
  kind: HostAction['kind'] = 'ask',
): HostAction => ({ id, title, offer, fits, kind, text, needsReason: kind === 'ask' });

const { MANAGEABLE, AVAILABLE, PROVISIONED } = HostState;

const actions: readonly HostAction[] = [
  row('clean', 'Clean …', 'plan', isIn(MANAGEABLE, AVAILABLE), '', 'plan'),
  row('deploy', 'Deploy an image …', 'plan', isIn(AVAILABLE, PROVISIONED), '', 'image'),
  row('resume', 'Go on …', 'resume', waitsFor('hold'), 'The run goes on where it stands.'),
  row(
    'resumeClean',
    'Go on with the failed clean …',
    'resume',
    hasFailedClean,
    'A new run erases what is left, from the step that failed. ' +
      'If the runner is gone, the host boots, and all of its disks are erased again.',
  ),
  row(
    'skip',
    'Skip the step …',
    'skip',
    waitsFor('hold', 'wait'),
    'The run goes on without the step at which it stands, or ends its pause.',
  ),
  row('abort', 'Abort the run …', 'abort', isBusy, 'The run ends as soon as its step allows it.'),
  {
    ...row('retry', 'Try again now', 'retry', isIdle, 'What the goal waits for starts at once.'),
    needsReason: false,
  },
  {
    ...row('verify', 'Verify', 'verify', isIdle, 'BMC access and identity are proved again.'),
    needsReason: false,
  },
  {
    ...row('inspect', 'Inspect', 'inspect', isIdle, 'The host boots, and lists its hardware.'),
    needsReason: false,
  },
  {
    ...row('on', 'Power on', 'power', isIdle, 'The host is switched on.'),
    needsReason: false,
  },
  {
    ...row('off', 'Power off', 'power', isIdle, 'A system that runs is asked to shut down first.'),
    needsReason: false,
  },
  {
    ...row(
      'isOff',
      'It is off now',
      'power',
      asksPerson,
      'You have switched the host off by hand.',
    ),
    needsReason: false,
  },
  {
    ...row('isOn', 'It is on now', 'power', asksPerson, 'You have switched the host on by hand.'),
    needsReason: false,
  },
  row('hold', 'Hold its work …', 'hold', () => true, 'No work begins until the hold is lifted.'),
  row(
    'lift',
    'Lift all holds …',
    'releaseHold',
    ({ status }) => (status?.holds.length ?? 0) > 0,
    'All holds of the host are lifted.',
  ),
  row(
    'claim',
    'Claim …',
    'claim',
    ({ status }) => status?.claim === undefined,
    'You use the host.',
  ),
  row(
    'unclaim',
    'Give up the claim …',
    'unclaim',
    ({ status }) => status?.claim !== undefined,
    'The host is free for others.',
  ),
  row(
    'release',
    'Release …',
    'release',
    isIn(PROVISIONED),
    'The host is given back. Its clean, which follows by its goal, erases all of its disks.',
  ),
  row('delete', 'Delete …', 'plan', ({ status }) => status?.deletion === undefined, '', 'plan'),
];

export function HostActions({ host }: { readonly host: Host }) {
  const { caller } = useConsole();
  const [open, setOpen] = useState<HostAction | undefined>(undefined);
  const offered = actions.filter(({ offer, fits }) => isOffered(caller, offer) && fits(host));
  if (offered.length === 0) return null;
  const [first, ...rest] = offered;
  return (
    <>
      {first !== undefined && (
        <button type="button" onClick={() => setOpen(first)}>
          {first.title}
        </button>
      )}
      <details
        class="menu"
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.open = false;
        }}
      >
        <summary>More</summary>
        <ul>
          {rest.map((action) => (
            <li key={action.id}>
              <button
                type="button"
                class="plain"
                onClick={(event) => {
                  event.currentTarget.closest('details')?.removeAttribute('open');
                  setOpen(action);
                }}
              >
                {action.title}
              </button>
            </li>
          ))}
        </ul>
      </details>
      {open !== undefined && (
        <HostDialog action={open} host={host} close={() => setOpen(undefined)} />
      )}
    </>
  );
}

interface HostDialogProps {
  readonly action: HostAction;
  readonly host: Host;
  readonly close: () => void;
}

function HostDialog({ action, host, close }: HostDialogProps) {
  const { clients } = useConsole();
  const title = action.title.replace(' …', '');
  switch (action.kind) {
    case 'image':
      return <ImageDialog host={host} close={close} />;
    case 'plan':
      return <PlanDialog verb={title} host={host.name} run={runOf(action.id)} close={close} />;
    case 'ask':
      return (
        <AskDialog
          title={`${title}: ${idOf(host.name)}`}
          text={action.text}
          verb={title}
          needsReason={action.needsReason}
          close={close}
          act={(reason) => act(clients.hosts, action.id, host.name, reason)}
        />
      );
  }
}

function runOf(id: string): PlannedRun {
  return id === 'delete'
    ? { case: 'delete', value: { mode: DeletionMode.NORMAL } }
    : { case: 'clean', value: {} };
}

type HostClient = ReturnType<typeof useConsole>['clients']['hosts'];

function act(hosts: HostClient, id: string, name: string, reason: string): Promise<unknown> {
  const requestId = newRequestId();
  const asked = { name, reason, requestId };
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    resume: () => hosts.resumeRun(asked),
    resumeClean: () => hosts.resumeRun(asked),
    skip: () => hosts.skipStep(asked),
    abort: () => hosts.abortRun(asked),
    retry: () => hosts.retryHost({ name, requestId }),
    verify: () => hosts.verifyHost({ name, requestId }),
    inspect: () => hosts.inspectHost({ name, requestId }),
    on: () => hosts.setHostPower({ name, action: PowerAction.ON, requestId }),
    off: () => hosts.setHostPower({ name, action: PowerAction.OFF, requestId }),
    isOff: () => hosts.setHostPower({ name, action: PowerAction.CONFIRM_OFF, requestId }),
    isOn: () => hosts.setHostPower({ name, action: PowerAction.CONFIRM_ON, requestId }),
    hold: () => hosts.holdHost({ ...asked, scope: HoldScope.WORK }),
    lift: () => hosts.releaseHold(asked),
    claim: () => hosts.claimHost(asked),
    unclaim: () => hosts.unclaimHost(asked),
    release: () => hosts.releaseHost(asked),
  };
  const call = calls[id];
  if (call === undefined) throw new Error(`nothing is done for ${id}`);
  return call();
}

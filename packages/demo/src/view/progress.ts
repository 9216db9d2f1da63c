/** A host's state for a person: its progress, its activity, its problem. Pure. */
import { counted, type Host, HostState, type Rack, RunKind, RunPhase } from '@rackwright/messages';

export interface HostProgress {
  readonly name: string;
  readonly rack: string;
  /** 0 to 1: from unknown to available; from the beginning of a deployment to its end. */
  readonly fraction: number;
  /** "cleaning", "available". */
  readonly state: string;
  /** The step under way, or the problem. */
  readonly detail: string;
  readonly mood: 'busy' | 'done' | 'troubled';
}

export interface RackProgress {
  readonly name: string;
  readonly isConnected: boolean;
}

/** The beginning and end of each run on its way. */
const shares: { readonly [kind in RunKind]?: readonly [from: number, to: number] } = {
  [RunKind.VERIFY]: [0, 0.1],
  [RunKind.INSPECT]: [0.1, 0.4],
  [RunKind.CLEAN]: [0.4, 1],
  [RunKind.PROVISION]: [0, 1],
  [RunKind.REIMAGE]: [0, 1],
};
/** The properties of a host that is proved and idle. */
const provedShare = 0.1;
const almost = 0.99;

export function hostProgress(host: Host): HostProgress {
  const { status, spec } = host;
  const error = status?.lastError?.failure?.message ?? status?.faults[0]?.message;
  const isDone = isAtRest(host);
  const step = stepText(host);
  return {
    name: host.name.replace('hosts/', ''),
    rack: (spec?.rack ?? '').replace('racks/', ''),
    fraction: isDone ? 1 : Math.min(fractionOf(host), almost),
    state: stateText(status?.display ?? ''),
    detail: isDone ? doneText(host) : (error ?? step),
    mood: isDone ? 'done' : error === undefined ? 'busy' : 'troubled',
  };
}

/** Whether it has reached its target. */
function isAtRest({ status }: Host): boolean {
  if (status?.run !== undefined && status.run.phase !== RunPhase.ENDED) return false;
  if (status?.state === HostState.AVAILABLE) return true;
  return status?.state === HostState.PROVISIONED && status.lastError === undefined;
}

export function rackProgress({ name, status }: Rack): RackProgress {
  return { name: name.replace('racks/', ''), isConnected: status?.agentConnected === true };
}

/** "cleaning, waiting for runner" is a column too wide. */
function stateText(display: string): string {
  return display.replace(/^.*, waiting for /, 'waits for ');
}

function fractionOf({ status }: Host): number {
  const run = status?.run;
  const rest = status?.state === HostState.NEW ? 0 : provedShare;
  const share = run === undefined ? undefined : shares[run.kind];
  if (run === undefined || share === undefined || run.phase === RunPhase.ENDED) return rest;
  const percent = status?.progress?.percent ?? 0;
  const done = (run.currentStep + percent / 100) / Math.max(run.steps.length, 1);
  const [from, to] = share;
  return from + (to - from) * Math.min(done, 1);
}

function stepText({ status }: Host): string {
  const run = status?.run;
  if (run === undefined || run.phase === RunPhase.ENDED) return '';
  const step = run.steps[run.currentStep];
  if (step === undefined) return '';
  const percent = status?.progress === undefined ? '' : ` ${status.progress.percent} %`;
  // "deploy.erase_devices 50 %" is wider than what 80 columns leave.
  const name = step.name.replace(/^deploy\./, '');
  return `${run.currentStep + 1}/${run.steps.length} ${name}${percent}`;
}

function doneText({ status }: Host): string {
  if (status?.state === HostState.PROVISIONED) return `runs ${imageText(status.image)}`;
  const count = status?.lastCleaned?.certificates.length ?? 0;
  return `clean, ${counted(count, 'certificate')}`;
}

/** "web@sha256:0123456789ab" */
function imageText(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return name.replace(/(sha256:[0-9a-f]{12})[0-9a-f]{52}$/, '$1');
}

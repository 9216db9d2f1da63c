/** Waits until the work that was started on a host is over. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  HistoryService,
  type Host,
  HostService,
  WatchHostsResponse_Kind as Kind,
  type WatchHostsResponse,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { createClient } from '@rackwright/rpc';
import type { CommandIo } from '../../command-io.ts';
import { GoalUnreachable, WaitedTooLong, WorkFailed } from '../../failure.ts';
import { type WorkProgress, workOf } from '../../output/progress.ts';
import type { Connection } from '../../settings.ts';
import { type ProgressView, progressView } from '../frame/progress.ts';
import { type OpenWatch, watchResumed } from '../frame/resumed-watch.ts';
import { checkInterrupted, type WaitFlags } from '../frame/wait.ts';
import { type HostClient, hintFor } from './client.ts';
import {
  type HostTarget,
  runName,
  type TargetProgress,
  targetAfter,
  targetText,
  verdictOf,
  verdictOfEnded,
} from './target.ts';

/** The flags of a command's wait. */
interface WorkFlags extends Partial<WaitFlags> {
  readonly requestId: string;
}

/**
 * The host once the work that a request started is over, where `--wait` asks for it; otherwise as
 * it was answered. Rejects as `waitForHost` does.
 */
export async function workDone(
  io: CommandIo,
  connection: Connection,
  { wait = false, timeout, requestId }: WorkFlags,
  of: 'run' | 'goal' | 'deleted' | undefined,
  answered: Host,
  view?: ProgressView,
): Promise<Host> {
  const isRepeated = requestId !== '';
  const target = wait && of !== undefined ? targetAfter(answered, of, isRepeated) : undefined;
  if (target === undefined) return answered;
  const shown = view === undefined ? {} : { view };
  return waitForHost(io, connection, answered, target, { timeoutSeconds: timeout, ...shown });
}

/** The timeout, and the place of the output. */
interface HostWait {
  readonly timeoutSeconds: number | undefined;
  /** Unset: on standard error. */
  readonly view?: ProgressView;
}

/**
 * Resolves with the host once it has reached `target`; `host` is the answer to the request that
 * started the work. Rejects with `WorkFailed`, `GoalUnreachable`, `WaitedTooLong` or `Interrupted`.
 */
export async function waitForHost(
  io: CommandIo,
  { channel, defaults }: Connection,
  host: Host,
  target: HostTarget,
  { timeoutSeconds, view = progressView(io) }: HostWait,
): Promise<Host> {
  const hosts = createClient(HostService, channel, defaults);
  const { name } = host;
  const seen = seenHost(io.clock, hosts, host);
  let verdict: TargetProgress = verdictOf(target, host, { isDeleted: false });
  const late = () => {
    const waited = `waited ${timeoutSeconds} s for ${targetText(name, target)}`;
    return `${waited}: ${seen.work().text}; it goes on; ${hintFor(name)}`;
  };
  const isOver = (event: WatchHostsResponse) => {
    const isDeleted = seen.take(event);
    if (isDeleted === undefined) return false;
    verdict = verdictOf(target, seen.host(), { isDeleted });
    view.show(seen.work);
    return verdict.kind !== 'open';
  };
  try {
    view.show(seen.work);
    if (verdict.kind === 'open') {
      const open: OpenWatch<WatchHostsResponse> = (position, options) =>
        hosts.watchHosts({ name, position }, options);
      await watchResumed(io, { timeoutSeconds, late }, open, isOver);
    }
  } finally {
    view.end();
  }
  checkInterrupted(io, `rackwright host watch ${name.replace('hosts/', '')}`);
  if (verdict.kind === 'passed' && target.kind === 'run') {
    const history = createClient(HistoryService, channel, defaults);
    verdict = verdictOfEnded(await history.getHostRun({ name: `${name}/runs/${target.number}` }));
  }
  return settle(seen.host(), target, verdict);
}

/** The latest known state of the host, with the usual duration of its run once that is known. */
function seenHost(clock: Clock, hosts: HostClient, first: Host) {
  let host = first;
  let hasReported = false;
  let run = '';
  let usualMs: number | undefined;
  /** Asked once for each run; without an answer it is not known. */
  const learnUsual = () => {
    const { run: now } = host.status ?? {};
    if (now === undefined || runName(now) === run) return;
    run = runName(now);
    usualMs = undefined;
    hosts.explainHost({ name: host.name }).then(
      ({ usualDuration: usual }) => {
        usualMs = usual === undefined ? undefined : durationMs(usual);
      },
      // The wait continues without the usual duration.
      () => undefined,
    );
  };
  learnUsual();
  return {
    host: () => host,
    work: (): WorkProgress => workOf(host, clock.nowMs(), usualMs),
    /** Whether it is deleted; undefined: the event does not say. */
    take: ({ kind, host: current }: WatchHostsResponse): boolean | undefined => {
      // All hosts have been sent, and this one was not among them.
      const isMissing = kind === Kind.SYNCED && !hasReported;
      if (current === undefined && !isMissing) return undefined;
      hasReported = true;
      if (kind === Kind.DELETED || current === undefined) return true;
      host = current;
      learnUsual();
      return false;
    },
  };
}

/** The host, or as an error the reason why it does not reach its target. */
function settle(host: Host, target: HostTarget, verdict: TargetProgress): Host {
  const { name } = host;
  switch (verdict.kind) {
    case 'reached':
      return host;
    case 'failed': {
      const wanted = target.kind === 'run' ? target.name : target.until;
      throw new WorkFailed(`${wanted} of ${name} ${verdict.why}; ${hintFor(name)}`);
    }
    case 'stuck': {
      const wanted =
        target.kind === 'run' ? `${target.name} has not ended` : `it is not ${target.until}`;
      throw new GoalUnreachable(`${name}: ${wanted}: ${verdict.why}; ${hintFor(name)}`);
    }
    case 'open':
    case 'passed':
      throw new WaitedTooLong(`${name} is no longer told of; ${hintFor(name)}`);
  }
}

/** The command that repeats failed work, as advice names it. Pure. */
import { HostState, isPoolClaim, type Run, RunKind, type store } from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import { runKindName } from '../pass/pass.ts';
import { powerAction, stepFlags } from './flags-of-run.ts';

export interface RepeatCommand {
  readonly command: string;
  readonly kind: 'inspect' | 'start';
  /** It starts a clean by the host's policy. */
  readonly isClean: boolean;
}

export function repeatCommandOf(record: store.HostRecord, host: string): RepeatCommand {
  const { line, starts: isStart, isClean = false } = failedCommand(record, host);
  return { command: `rackwright ${line}`, kind: isStart ? 'start' : 'inspect', isClean };
}

interface Command {
  readonly line: string;
  /** Whether it starts a run. */
  readonly starts: boolean;
  /** Whether that run is a clean by the host's policy. */
  readonly isClean?: boolean;
}

const starts = (line: string): Command => ({ line, starts: true });
const cleans = (host: string): Command => ({ ...starts(`host clean ${host}`), isClean: true });

/** The command that repeats the last failed work, or shows what does. */
function failedCommand(record: store.HostRecord, host: string): Command {
  const { lastError, run, deletion, claim, state } = record.host?.status ?? {};
  const retry = starts(`host retry ${host}`);
  // The last request goes on, not the failed work on the way to it.
  if (deletion !== undefined || record.adoptTo !== HostState.UNSPECIFIED) return retry;
  const kind = lastError?.runKind ?? RunKind.UNSPECIFIED;
  const isWritten =
    kind === RunKind.REIMAGE || (kind === RunKind.PROVISION && state === HostState.AVAILABLE);
  if (claim !== undefined && isPoolClaim(claim)) {
    // Only the pool deploys or cleans it, and the pool's goal leads there.
    if (isWritten) return { line: `pool explain ${idOf(claim.by)}`, starts: false };
    if (kind === RunKind.CLEAN || kind === RunKind.PROVISION) return retry;
  }
  if (isWritten) return starts(`host ${runKindName(kind)} ${host} ${record.image || 'IMAGE'}`);
  return repeatCommandBy(kind, host, run) ?? retry;
}

/** The command that requests such a run; undefined: there is none. */
function repeatCommandBy(kind: RunKind, host: string, run: Run | undefined): Command | undefined {
  switch (kind) {
    case RunKind.VERIFY:
    case RunKind.INSPECT:
    case RunKind.RELEASE:
    case RunKind.RESCUE:
      return starts(`host ${runKindName(kind)} ${host}`);
    case RunKind.CLEAN:
    case RunKind.PROVISION:
      return cleans(host);
    case RunKind.SERVICE:
      return starts(`host service ${host} ${stepFlags(run)}`);
    case RunKind.POWER:
      return starts(`host power ${powerAction(run)} ${host}`);
    default:
      return undefined;
  }
}

/**
 * Ends what an earlier runner of this boot left running, before anything new is done.
 *
 * Invariants:
 * 1. A process is ended only when it is certain to be the predecessor's: same boot, and the leader
 *    still has the start time that was recorded, or is gone while its group lives on (the kernel
 *    gives a group's number to nobody else while the group has members).
 * 2. It does not return before the predecessor's group is empty: a tool in the middle of a disk
 *    operation may outlive its SIGKILL for a while. Past `groupEndTimeoutMs` it throws.
 */
import type { BootId } from '@rackwright/messages';
import type { Clock, Disk, Log } from '@rackwright/platform';
import { endAll, processesWhere, readProcess } from './processes.ts';

export interface ProcessMark {
  readonly bootId: BootId;
  readonly pid: number;
  /** The process group; children stay in it. */
  readonly group: number;
  /** Clock ticks since the kernel started (proc(5), field 22). */
  readonly startTicks: string;
}

const groupEndTimeoutMs = 120_000;
const ownerOnly = 0o600;

export interface PredecessorParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: BootId;
  /** The file with the mark of this runner and its predecessors. */
  readonly path: string;
  readonly procRoot: string;
  readonly ownPid: number;
  /** Sends SIGKILL to a process (positive) or a group (negative). */
  readonly kill: (target: number) => void;
}

/** Ends the predecessor, then leaves our own mark. */
export async function replacePredecessor(parts: PredecessorParts): Promise<void> {
  const stored = await parts.disk.read(parts.path);
  if (stored !== undefined) {
    await endPredecessor(parts, JSON.parse(new TextDecoder().decode(stored)));
  }
  const own = await readProcess(parts.procRoot, parts.ownPid);
  if (own === undefined) throw new Error(`no process ${parts.ownPid} in ${parts.procRoot}`);
  if (own.group !== parts.ownPid) {
    const message = 'not the leader of a process group: what it starts could outlive it unnoticed';
    parts.log.warn({ pid: parts.ownPid, group: own.group }, message);
  }
  const mark: ProcessMark = {
    bootId: parts.bootId,
    pid: parts.ownPid,
    group: own.group,
    startTicks: own.startTicks,
  };
  const bytes = new TextEncoder().encode(JSON.stringify(mark));
  await parts.disk.writeAtomic(parts.path, bytes, ownerOnly);
}

async function endPredecessor(parts: PredecessorParts, mark: ProcessMark): Promise<void> {
  if (mark.bootId !== parts.bootId || mark.pid === parts.ownPid) return;
  const leader = await readProcess(parts.procRoot, mark.pid);
  if (leader !== undefined && leader.startTicks !== mark.startTicks) return;
  // A runner that did not lead its group shares it with strangers: only itself may be ended.
  const target = mark.group === mark.pid ? -mark.group : mark.pid;
  const leads = mark.group === mark.pid;
  const left = await endAll(
    parts.clock,
    groupEndTimeoutMs,
    () =>
      processesWhere(parts.procRoot, (pid, { group }) =>
        leads ? group === mark.group : pid === mark.pid,
      ),
    (found) => {
      parts.log.warn({ processes: found.join(' ') }, 'ending what the runner before left');
      parts.kill(target);
    },
  );
  if (left.length === 0) return;
  throw new Error(`processes ${left.join(', ')} of the runner before do not end`);
}

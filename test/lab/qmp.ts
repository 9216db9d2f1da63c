/**
 * How often a machine was reset from within: by what QEMU itself says on its control socket, so
 * that no program of ours has to be trusted.
 *
 * 1. QEMU ends when the machine is switched off and another one begins at the next power-on; the
 *    count goes on over all of them.
 */
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { LabMachine } from './qemu.ts';
import type { Undo } from './undo.ts';

const RECONNECT_MS = 200;

/** What was seen of resets so far. */
export interface ResetWatch {
  /** Resets that the guest asked for. */
  count(): number;
}

/** Watches until the lab ends. */
export function watchResets(undo: Undo, machine: LabMachine): ResetWatch {
  const path = join(machine.folder, 'qmp.sock');
  let resets = 0;
  let isOver = false;
  let socket: Socket | undefined;
  let timer: NodeJS.Timeout | undefined;
  const open = (): void => {
    if (isOver) return;
    let rest = '';
    const opened = connect(path);
    socket = opened;
    opened.setEncoding('utf8');
    opened.on('connect', () => opened.write('{"execute":"qmp_capabilities"}\n'));
    opened.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      resets += lines.filter(isGuestReset).length;
    });
    opened.on('error', () => undefined); // the machine is off: nobody listens
    opened.on('close', () => {
      if (!isOver) timer = setTimeout(open, RECONNECT_MS);
    });
  };
  undo.add('stop the watch of resets', () => {
    isOver = true;
    clearTimeout(timer);
    socket?.destroy();
  });
  open();
  return { count: () => resets };
}

/** QMP: an event RESET, whose "guest" says who asked for it. */
export function isGuestReset(line: string): boolean {
  try {
    const { event, data } = JSON.parse(line) as { event?: string; data?: { guest?: boolean } };
    return event === 'RESET' && data?.guest === true;
  } catch {
    return false; // no JSON: not an event
  }
}

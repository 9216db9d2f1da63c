/**
 * The commands with which a script in a simulated machine takes its own runner away: they are first
 * on the path of scripts, and the machine carries them out.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a script may ask of its machine. */
export const takeAways = ['reboot', 'kexec', 'poweroff'] as const;
export type TakeAway = (typeof takeAways)[number];

const commandMode = 0o755;

/** Only `kexec -e` leaves the kernel; a simulated machine supports no other use of kexec. */
const kexecCondition = 'case " $* " in *" -e "*|*" --exec "*) ;; *) exit 0;; esac';

/** Makes the commands in the machine's ramdisk. */
export function writeCommands(folder: string): void {
  const bin = join(folder, 'run', 'scratch', 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of takeAways) {
    const condition = name === 'kexec' ? `${kexecCondition}\n` : '';
    // As with a real machine, no later command of the script runs.
    const text = `#!/bin/sh\n${condition}echo ${name} >"${requestPath(folder)}"\nexec sleep 3600\n`;
    writeFileSync(join(bin, name), text, { mode: commandMode });
  }
}

/** The requested command since the machine was switched on; undefined: none. */
export function takeAwayAsked(folder: string): TakeAway | undefined {
  const path = requestPath(folder);
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, 'utf8').trim();
  return takeAways.find((name) => name === text);
}

function requestPath(folder: string): string {
  return join(folder, 'run', 'take-away');
}

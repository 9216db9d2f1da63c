/**
 * The commands with which a script in a software machine takes its own runner away: they stand
 * first on the path of scripts, and the machine does what they ask for.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a script may ask of its machine. */
export const takeAways = ['reboot', 'kexec', 'poweroff'] as const;
export type TakeAway = (typeof takeAways)[number];

const commandMode = 0o755;

/** Only `kexec -e` leaves the kernel; all else that kexec does is none of a software machine's. */
const kexecCondition = 'case " $* " in *" -e "*|*" --exec "*) ;; *) exit 0;; esac';

/** Makes the commands in the machine's ramdisk. */
export function writeCommands(folder: string): void {
  const bin = join(folder, 'run', 'scratch', 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of takeAways) {
    const condition = name === 'kexec' ? `${kexecCondition}\n` : '';
    // As with a real machine, nothing of the script comes after it.
    const text = `#!/bin/sh\n${condition}echo ${name} >"${requestPath(folder)}"\nexec sleep 3600\n`;
    writeFileSync(join(bin, name), text, { mode: commandMode });
  }
}

/** What was asked for since the machine was switched on; undefined: nothing. */
export function takeAwayAsked(folder: string): TakeAway | undefined {
  const path = requestPath(folder);
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, 'utf8').trim();
  return takeAways.find((name) => name === text);
}

function requestPath(folder: string): string {
  return join(folder, 'run', 'take-away');
}

/**
 * What a line of advice means to somebody who does exactly what it says: a command that is typed,
 * an errand to the machine, or a remark. A line that is none of these nobody can act on.
 */
import { bmcPassword } from '../bmc.ts';
import type { SimMachine } from '../machine.ts';
import { addressOf } from './records.ts';

export type Advised =
  | { readonly kind: 'command'; readonly line: readonly string[]; readonly input: string }
  | { readonly kind: 'errand'; readonly run: (machine: SimMachine) => void }
  /** Says what happens by itself, or what to find out first. */
  | { readonly kind: 'remark' }
  | { readonly kind: 'unclear' };

const nothing = () => undefined;
const repairBmc = ({ bmc }: SimMachine) => bmc.repair();

/** Every disk that does not do what it says leaves the machine. */
function replaceBadDisks(machine: SimMachine): void {
  for (const [index, drive] of machine.drives.entries()) {
    machine.replaceDrive(index, { ...drive.traits, lies: false, wipe: 'none' }, drive.hasData);
  }
}

const errands: readonly (readonly [RegExp, (machine: SimMachine) => void])[] = [
  [/^take the disk .* out of the host, or replace it$/, replaceBadDisks],
  [/^the disk that is named does not keep an erasure: take it out/, replaceBadDisks],
  [/^replace the part that is named, or improve its cooling$/, replaceBadDisks],
  [/^see that the BMC at .* has power and network/, repairBmc],
  [/^see what answers at /, repairBmc],
  [/^the BMC at .* says yes and does nothing: reset or replace it$/, repairBmc],
  [/^wait until the BMC lets the account in again, or unlock it there$/, repairBmc],
  [/^start the agent of .*: rackwright-agent run --config FILE$/, nothing],
  [/^the disk that is named hides capacity/, replaceBadDisks],
  [/^look at the (console|logs) of /, nothing],
  [/^(check whether|look what) /, nothing],
  [/^see what holds it up at the console of /, nothing],
  // No simulated machine has firmware that boots: only its runner can fail to come.
  [/^see (at the console of|whether another DHCP server) /, nothing],
  [/^see that (.* has link|nothing between .* drops)\b/, nothing],
  [/^see that the BMC at .* (can fetch from the agent|has a virtual drive)\b/, nothing],
  [/^see that the disk that is named is in its slot$/, nothing],
  [/^read what the program wrote/, nothing],
  [/^update the agent of /, nothing],
  [/^see that .* answers\b/, nothing],
  [/^give the machine a serial number /, nothing],
  [/^have the image made or pushed anew/, nothing],
  [/^see that .* has the image/, nothing],
  [/^make room on the disk of the agent/, nothing],
  [/^or (use a smaller image|keep that disk no longer)$/, nothing],
  [/^let the agent of its rack serve more hosts at once/, nothing],
  // No step of a simulated host has a wrong argument, and each agent has its programs.
  [/^correct (the step|the argument|controller and drives of the step)\b/, nothing],
  [/^leave the step out, if /, nothing],
  [/^or see that the versions of agent and runner fit /, nothing],
  [/^install the program that is named on the agent of /, nothing],
  // The user of a simulated BMC has every right, and no agent loses its runner but by itself.
  [/^give the user the right that is missing/, nothing],
  [/^see the network between the host and the agent of its rack\b/, nothing],
  // Nobody uses a simulated host behind our backs.
  [/^hold each host that may be in use: /, nothing],
];

/** Lines whose command moves no host: it shows something, or needs what only the site knows. */
const idleCommands: readonly RegExp[] = [
  /^see .*: rackwright host history /,
  /^or permit (an internal address|a URL of firmware): /,
];

const remarks: readonly RegExp[] = [
  /^the work then goes on by itself$/,
  /^it is then tried again at once by itself$/,
  /^nothing: /,
  /^wait /,
  /^find out /,
  /^see why /,
];

/** What a line means. The machine fills in what stands in capitals. */
export function understand(text: string, machine: SimMachine | undefined): Advised {
  const errand = errands.find(([pattern]) => pattern.test(text));
  if (errand !== undefined) return { kind: 'errand', run: errand[1] };
  if (idleCommands.some((line) => line.test(text))) return { kind: 'remark' };
  const command = /\brackwright (?!-)([^;]+)/.exec(text)?.[1];
  if (command !== undefined) {
    return { kind: 'command', line: words(filledIn(command, machine)), input: bmcPassword };
  }
  return remarks.some((remark) => remark.test(text)) ? { kind: 'remark' } : { kind: 'unclear' };
}

function filledIn(command: string, machine: SimMachine | undefined): string {
  const address = machine === undefined ? '' : addressOf(machine);
  return command
    .replace(/\bADDRESS:PORT\b|\bADDRESS\b/, address)
    .replace(/\bMAC\b/, machine?.mac ?? '')
    .replace(/\bUSER\b/, 'admin')
    .replace(/\b(REASON|WHY)\b/, 'seen-to')
    .replace(/\bN\/SECONDS\b/, '100/60')
    .replace(/\bN\b/, '100');
}

/** Words as a shell cuts them: blanks divide, quotes hold together. */
function words(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

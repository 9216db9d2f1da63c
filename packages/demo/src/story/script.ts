/**
 * Scripts for users' own tests: one command a line, `#` begins a comment.
 *
 *     wait h1 available 60      until the host (or "all") is shown as exactly that; seconds, 120
 *                               unless given
 *     wait h1 deleted           until it is gone
 *     wait r1 away              until the rack's agent is "connected" or "away"
 *     wait accepted 30 180      until so many of the machines that nobody enrolled are hosts, or
 *                               "discovered": are listed and not accepted
 *     kill r1                   the rack's agent, by SIGKILL
 *     start r1                  the rack's agent
 *     kill n1                   with --nats: one of its three servers, n1 to n3
 *     start n1                  it and the other servers that were killed; waits until all are well
 *     strangers 40              so many machines that nobody enrols, u1 to u40; they are off
 *     boot u1                   switches one of them, or "all", on, to boot from the network
 *     manifest 30               writes manifest.yaml, of the first so many of them
 *     fault h3 silent           break a machine; "none" mends it
 *     swap h3                   somebody pulls its first disk and puts another one in
 *     mark before               remembers the time under this name
 *     run host clean h1 --yes   a rackwright command that has to succeed; in its arguments "uid:h1"
 *                               stands for the uid that h1 had in the beginning, "machine:u1" for
 *                               the id that u1 is listed under, "bmc:u1" for its BMC's address,
 *                               "mac:u1" for its boot MAC,
 *                               "plan:h1" for the hash of the plan for h1 that was printed last,
 *                               "time:before" for a marked time, "file:greet.yaml" for a file in
 *                               scripts/templates
 *     fail host power off h1    a rackwright command that has to be refused
 *     run host explain h1 expect "waits for the BMC" expect "to do: "
 *                               one that has to print these texts, too; "fail" takes them as well
 *     see host explain h1 expect "waits for the BMC"
 *                               is run, for half a minute, until it prints them: one that reads
 *     sleep 2                   seconds
 *     say All is well
 */
import { globSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { type FaultName, isFaultName } from '../faults.ts';
import { soundMachines } from '../fleet.ts';
import { eventually } from '../site/eventually.ts';
import { setFault, swapDisk } from '../site/machine.ts';
import { manifestOf, strangersMax } from '../site/strangers.ts';
import { expectingOf, missingTexts } from './expected.ts';
import { Notes } from './notes.ts';
import { announce, expectThat, type Stage, tell, tellCommand, untilHost } from './stage.ts';

export interface RackwrightCommand {
  readonly kind: 'run' | 'fail' | 'see';
  readonly args: readonly string[];
  /** What it has to print. */
  readonly texts: readonly string[];
  /** Its standard input; nothing without it. */
  readonly input?: string;
}

/** In guides: file operations of a shell. */
export type FileCommand =
  | { readonly kind: 'file'; readonly act: 'mv'; readonly from: string; readonly to: string }
  | { readonly kind: 'file'; readonly act: 'mkdir'; readonly path: string };

export type ScriptCommand =
  | {
      readonly kind: 'waitHost';
      readonly host: string;
      readonly state: string;
      readonly seconds: number;
    }
  | { readonly kind: 'waitRack'; readonly rack: string; readonly connected: boolean }
  | {
      readonly kind: 'waitCount';
      readonly of: 'accepted' | 'discovered';
      readonly count: number;
      readonly seconds: number;
    }
  | { readonly kind: 'strangers' | 'manifest'; readonly count: number }
  | { readonly kind: 'boot'; readonly machine: string }
  /** A rack's agent, or one of the NATS servers. */
  | { readonly kind: 'kill' | 'start'; readonly name: string }
  | { readonly kind: 'fault'; readonly host: string; readonly fault: FaultName | 'none' }
  | { readonly kind: 'swap'; readonly host: string }
  | { readonly kind: 'mark'; readonly name: string }
  | RackwrightCommand
  /** In guides: a command of the control plane's program, with the paths of the packages. */
  | { readonly kind: 'controlPlane'; readonly args: readonly string[] }
  | { readonly kind: 'service'; readonly act: 'start' | 'stop' }
  | FileCommand
  | { readonly kind: 'sleep'; readonly seconds: number }
  | { readonly kind: 'say'; readonly text: string };

const waitSeconds = 600;
const serverName = /^n[123]$/;
const templatesFolder = join(import.meta.dirname, '../../scripts/templates');

/** Reads a script. Throws with the line's number for one that it does not understand. */
export function parseScript(text: string): ScriptCommand[] {
  return text.split('\n').flatMap((line, index) => {
    const command = line.trim();
    if (command === '' || command.startsWith('#')) return [];
    try {
      return [parseCommand(command)];
    } catch (error) {
      const text = errorText(error);
      throw new Error(`line ${index + 1}, "${command}": ${text}`, { cause: error });
    }
  });
}

function waitCommand(condition: string, until: string, seconds: string | undefined): ScriptCommand {
  if (/^r\d+$/.test(condition)) {
    demand(until === 'connected' || until === 'away', 'wait RACK connected, or away');
    return { kind: 'waitRack', rack: condition, connected: until === 'connected' };
  }
  if (condition === 'accepted' || condition === 'discovered') {
    demand(/^\d{1,4}$/.test(until), `wait ${condition} NUMBER [SECONDS]`);
    return { kind: 'waitCount', of: condition, count: Number(until), seconds: secondsOf(seconds) };
  }
  demand(condition !== '' && until !== '', 'wait HOST STATE [SECONDS]');
  return { kind: 'waitHost', host: condition, state: until, seconds: secondsOf(seconds) };
}

function faultCommand(host: string, fault: string): ScriptCommand {
  demand(host !== '' && (fault === 'none' || isFaultName(fault)), 'fault HOST KIND or none');
  return { kind: 'fault', host, fault: isFaultName(fault) ? fault : 'none' };
}

/** Reads one command. Throws with what would be right. */
export function parseCommand(line: string): ScriptCommand {
  const [verb = '', ...args] = wordsOf(line);
  const [first = '', second = '', third] = args;
  switch (verb) {
    case 'wait':
      return waitCommand(first, second, third);
    case 'kill':
    case 'start':
      demand(/^r\d+$/.test(first) || serverName.test(first), `${verb} RACK, or n1 to n3`);
      return { kind: verb, name: first };
    case 'strangers':
    case 'manifest':
      demand(/^\d{1,2}$/.test(first) && Number(first) <= strangersMax, `${verb} NUMBER`);
      return { kind: verb, count: Number(first) };
    case 'boot':
      demand(/^(all|u\d{1,2})$/.test(first), 'boot MACHINE, or all');
      return { kind: 'boot', machine: first };
    case 'fault':
      return faultCommand(first, second);
    case 'swap':
      demand(/^[hu]\d+$/.test(first), 'swap HOST');
      return { kind: 'swap', host: first };
    case 'mark':
      demand(/^[a-z]+$/.test(first), 'mark NAME, in small letters');
      return { kind: 'mark', name: first };
    case 'run':
    case 'fail':
    case 'see':
      return rackwrightCommand(verb, args);
    case 'sleep':
      demand(first !== '', 'sleep SECONDS');
      return { kind: 'sleep', seconds: secondsOf(first) };
    case 'say':
      return { kind: 'say', text: line.replace(/^say\s*/, '') };
    default:
      throw new Error(
        'it must begin with wait, kill, start, strangers, boot, manifest, fault, swap, mark, ' +
          'run, fail, see, sleep or say',
      );
  }
}

function rackwrightCommand(
  kind: RackwrightCommand['kind'],
  words: readonly string[],
): RackwrightCommand {
  const expecting = expectingOf(words);
  demand(expecting !== undefined, `${kind} COMMAND expect TEXT expect TEXT`);
  const { args = [], texts = [] } = expecting ?? {};
  demand(args.length > 0, `${kind} and a rackwright command without its name`);
  demand(kind !== 'see' || texts.length > 0, 'see COMMAND expect TEXT');
  return { kind, args, texts };
}

/** Carries out a script. Throws at the first command that does not hold. */
export async function runScript(stage: Stage, commands: readonly ScriptCommand[]): Promise<void> {
  const notes = new Notes();
  for (const command of commands) await runCommand(stage, command, notes);
}

async function switchService({ site }: Stage, act: 'start' | 'stop'): Promise<void> {
  if (act === 'start') await site.startAgain();
  else await site.controlPlaneProgram.kill();
}

async function switchProgram({ site }: Stage, act: 'kill' | 'start', name: string): Promise<void> {
  const isServer = serverName.test(name);
  if (act === 'kill') {
    await (isServer ? site.nats.kill([name]) : site.agentOf(name).kill());
  } else if (isServer) await site.nats.startAll();
  else site.agentOf(name).start();
}

async function runCommand(stage: Stage, command: ScriptCommand, notes: Notes): Promise<void> {
  const { site } = stage;
  switch (command.kind) {
    case 'waitHost':
      return await waitHosts(stage, command);
    case 'waitCount':
      return await waitCount(stage, command);
    case 'strangers':
      return await site.addStrangers(command.count, stage.fleet.seed);
    case 'boot':
      return await bootStrangers(stage, command.machine);
    case 'manifest': {
      const text = manifestOf(site.strangers(command.count));
      return writeFileSync(join(site.folder, 'manifest.yaml'), text);
    }
    case 'waitRack':
      return await site.untilRack(command.rack, { connected: command.connected });
    case 'kill':
    case 'start':
      return await switchProgram(stage, command.kind, command.name);
    case 'fault':
      return setFault(site.machine(command.host), command.fault);
    case 'swap':
      return swapDisk(site.machine(command.host));
    case 'mark':
      return notes.mark(command.name);
    case 'run':
    case 'fail':
      return await runRackwright(stage, command, notes);
    case 'see':
      return await seeRackwright(stage, command, notes);
    case 'controlPlane':
      return await runControlPlane(stage, command.args);
    case 'service':
      return await switchService(stage, command.act);
    case 'file':
      return runOnFiles(stage, command);
    case 'sleep':
      return await sleep(command.seconds * 1_000);
    case 'say':
      return announce(stage, command.text);
  }
}

function runOnFiles({ site }: Stage, command: FileCommand): void {
  if (command.act === 'mkdir') mkdirSync(join(site.folder, command.path));
  else renameSync(site.pathOf(command.from), site.pathOf(command.to));
}

async function runControlPlane(stage: Stage, args: readonly string[]): Promise<void> {
  tell(stage, `$ rackwright-controlplane ${args.join(' ')}`);
  const { code, output } = await stage.site.controlPlaneCommand(args);
  if (output !== '') tell(stage, output);
  expectThat(code === 0, `"rackwright-controlplane ${args.join(' ')}" ended with ${code}`);
}

async function runRackwright(
  stage: Stage,
  { kind, args: words, texts, input }: RackwrightCommand,
  notes: Notes,
): Promise<void> {
  const args = await Promise.all(words.map((word) => filledIn(stage, word, notes)));
  tellCommand(stage, args);
  const expanded = args.flatMap((word) => filesNamed(stage, word));
  const { code, output } = await stage.site.rackwright(expanded, input);
  if (output !== '') tell(stage, output);
  notes.noteOutput(output);
  const line = words.join(' ');
  if (kind === 'run') expectThat(code === 0, `"${line}" ended with exit code ${code}`);
  else expectThat(code !== 0, `"${line}" was not refused`);
  const [lacking] = missingTexts(output, texts);
  expectThat(lacking === undefined, `"${line}" did not print "${lacking}"`);
}

/** How long a command is repeated until it prints the expected text, milliseconds. */
const seenWithinMs = 120_000;

/** Its last output is shown, also when it is not the expected one. */
async function seeRackwright(
  stage: Stage,
  { args: words, texts }: RackwrightCommand,
  notes: Notes,
): Promise<void> {
  const args = await Promise.all(words.map((word) => filledIn(stage, word, notes)));
  tellCommand(stage, args);
  let output = '';
  try {
    await eventually(`"${words.join(' ')}" to print "${texts.join('", "')}"`, seenWithinMs, () =>
      stage.site.rackwright(args).then((result) => {
        output = result.output;
        return result.code === 0 && missingTexts(output, texts).length === 0 ? true : undefined;
      }),
    );
  } finally {
    if (output !== '') tell(stage, output);
    notes.noteOutput(output);
  }
}

/** Like a shell with "certificates/*.json": a pattern that matches no file stays as it is. */
function filesNamed({ site }: Stage, word: string): readonly string[] {
  if (!word.includes('*')) return [word];
  const found = globSync(word, { cwd: site.folder }).sort();
  return found.length === 0 ? [word] : found;
}

/** "uid:h1" is the uid of h1, also when it is gone. */
async function filledIn({ site }: Stage, word: string, notes: Notes): Promise<string> {
  const [, of, name = ''] = /^(uid|machine|bmc|mac|plan|time|file):(.+)$/.exec(word) ?? [];
  switch (of) {
    case 'plan':
      return notes.planOf(name);
    case 'time':
      return notes.timeOf(name);
    case 'file':
      return join(templatesFolder, name);
    case 'uid':
      return site.uidOf(name);
    case 'bmc':
      return `${site.machine(name).bmc.address}:${site.machine(name).bmc.port}`;
    case 'mac':
      return site.machine(name).plan.mac;
    case 'machine': {
      const { mac } = site.machine(name).plan;
      const found = (await listed(site)).find(({ bootMac }) => bootMac === mac);
      expectThat(found !== undefined, `${name} is not listed`);
      return found?.name ?? '';
    }
    default:
      return word;
  }
}

async function listed({ clients }: Stage['site']) {
  return (await clients.discovery.listDiscoveredMachines({ pageSize: 1_000 })).discoveredMachines;
}

/** Hosts that have the boot MAC of a machine that nobody enrolled. */
async function accepted(site: Stage['site']): Promise<Host[]> {
  const macs = new Set(site.strangers().map(({ plan }) => plan.mac));
  const hosts = await site.listHosts();
  return hosts.filter(({ spec }) => spec?.bootMacs.some((mac) => macs.has(mac)) === true);
}

async function waitCount(
  { site }: Stage,
  { of, count, seconds }: ScriptCommand & { kind: 'waitCount' },
): Promise<void> {
  await eventually(`${count} ${of}`, seconds * 1_000, async () => {
    const all = of === 'accepted' ? await accepted(site) : await listed(site);
    return all.length === count ? true : undefined;
  });
}

/** Between two machines that are switched on: nobody switches on a whole room at once. */
const bootSpacingMs = 150;

async function bootStrangers({ site }: Stage, machine: string): Promise<void> {
  const all = machine === 'all' ? site.strangers() : [site.machine(machine)];
  for (const { power } of all) {
    if (power.isOn()) continue;
    power.powerOn('network');
    await sleep(bootSpacingMs);
  }
}

async function waitHosts(
  stage: Stage,
  { host, state, seconds }: ScriptCommand & { kind: 'waitHost' },
): Promise<void> {
  if (state === 'deleted') return await untilDeleted(stage, host, seconds * 1_000);
  const all = soundMachines(stage.fleet).map(({ name }) => name);
  for (const name of host === 'all' ? all : [host]) {
    await untilHost(stage, name, state, seconds * 1_000, ({ status }) => {
      return status?.display === state;
    });
  }
}

async function untilDeleted(stage: Stage, host: string, timeoutMs: number): Promise<void> {
  await eventually(`${host} to be deleted`, timeoutMs, async () => {
    const hosts = await stage.site.listHosts();
    return hosts.some(({ name }) => name === `hosts/${host}`) ? undefined : true;
  });
}

/** Words at spaces; double quotes keep them together. */
function wordsOf(line: string): string[] {
  return Array.from(line.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? '');
}

function secondsOf(text: string | undefined): number {
  if (text === undefined) return waitSeconds;
  demand(/^\d{1,5}(\.\d+)?$/.test(text), 'a number of seconds');
  return Number(text);
}

function demand(holds: boolean, right: string): void {
  if (!holds) throw new Error(`it must be: ${right}`);
}

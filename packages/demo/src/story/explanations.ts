/** Hosts whose BMCs are broken in four ways, each explained in a few lines, and freed by them. */
import { type Host, HostState, hostWaitOf } from '@rackwright/messages';
import { canBecomeAvailableWith, type FaultName } from '../faults.ts';
import type { PlannedMachine } from '../fleet.ts';
import { eventually } from '../site/eventually.ts';
import { bmcPassword, bmcUser, setFault } from '../site/machine.ts';
import { commandIn, missingIn, toDoLines } from './explained.ts';
import { announce, expectThat, type Stage, tell, tellCommand, untilHost } from './stage.ts';

/** The advice in each host's explanation, as it was printed. */
type ToDo = ReadonlyMap<string, readonly string[]>;

const troubleTimeoutMs = 300_000;
const mendedTimeoutMs = 600_000;

/** A person's actions at the machine itself; typed commands come out of the explanations. */
const mending: { readonly [name in FaultName]?: string } = {
  silent: "The plug of silent's BMC is put in again.",
  rubbish: "rubbish's BMC is restarted.",
  'yes-but-nothing': "yes-but-nothing's BMC is replaced.",
};

/** What a person puts in place of the words in capitals. */
const known = { USER: bmcUser };

/** Every host with a fault, once its trouble has been seen, as the command explains it. */
export async function explainTroubles(stage: Stage): Promise<ToDo> {
  const broken = stage.fleet.machines.filter(({ fault }) => {
    return fault !== undefined && !canBecomeAvailableWith(fault);
  });
  const toDo = new Map<string, readonly string[]>();
  for (const { name } of broken) {
    await eventually(`the trouble of ${name} to be seen`, troubleTimeoutMs, async () => {
      const host = await stage.site.clients.hosts.getHost({ name: `hosts/${name}` });
      return isTroubled(host) ? true : undefined;
    });
    toDo.set(name, await explain(stage, name));
  }
  return toDo;
}

/** Shows the explanation; returns its actions. */
async function explain(stage: Stage, name: string): Promise<readonly string[]> {
  const explanation = await stage.site.clients.hosts.explainHost({ name: `hosts/${name}` });
  const args = ['host', 'explain', name];
  const { code, output } = await stage.site.rackwright(args);
  announce(stage, `${name}: why does it not move?`);
  tellCommand(stage, args);
  tell(stage, output);
  expectThat(code === 0, `the command could not explain ${name}`);
  const missing = missingIn(explanation);
  expectThat(missing === undefined, `the explanation of ${name} explains nothing: ${missing}`);
  const lines = toDoLines(output);
  expectThat(lines.length > 0, `the command did not print what to do for ${name}`);
  return lines;
}

/** Carries out the explanations of the four examples; that frees every one of them. */
export async function followExplanations(stage: Stage, toDo: ToDo): Promise<void> {
  const examples = stage.fleet.machines.filter(({ isExample }) => isExample);
  if (examples.length === 0) return;
  announce(stage, 'Somebody does what the explanations say.');
  for (const machine of examples) await follow(stage, machine, toDo.get(machine.name) ?? []);
  for (const { name } of examples) {
    await untilHost(stage, name, 'available', mendedTimeoutMs, ({ status }) => {
      return status?.state === HostState.AVAILABLE;
    });
  }
  announce(stage, `All ${examples.length} are available.`);
}

async function follow(
  stage: Stage,
  { name, fault }: PlannedMachine,
  toDo: readonly string[],
): Promise<void> {
  const commands = toDo.flatMap((line) => {
    const args = commandIn(line, known);
    return args === undefined ? [] : [args];
  });
  const atMachine = fault === undefined ? undefined : mending[fault];
  if (atMachine === undefined) {
    expectThat(commands.length > 0, `no line on what to do for ${name} is a command to type`);
  } else {
    setFault(stage.site.machine(name), 'none');
    tell(stage, atMachine);
  }
  for (const args of commands) await type(stage, name, args);
}

/** Runs a command of an explanation, and answers each password prompt with the right one. */
async function type(stage: Stage, name: string, args: readonly string[]): Promise<void> {
  const { site } = stage;
  const command = args.join(' ');
  tellCommand(stage, args);
  const refusal = await eventually(`"${command}" to be accepted`, mendedTimeoutMs, async () => {
    const { code, output } = await site.rackwright(args, `${bmcPassword}\n`);
    if (code === 0) return '';
    const isUnderWay = output.includes('busy') || output.includes('to be retried');
    if (!isUnderWay) return `"${command}" was refused: ${output}`;
    // It has just been tried again by itself, and may get through this time.
    const host = await site.clients.hosts.getHost({ name: `hosts/${name}` });
    return isTroubled(host) ? undefined : '';
  });
  expectThat(refusal === '', refusal);
}

function isTroubled({ status }: Host): boolean {
  const wait = hostWaitOf(status?.run?.waiting);
  const isStuck = wait === 'bmc' || wait === 'retry';
  return status?.lastError !== undefined || status?.faults[0] !== undefined || isStuck;
}

/** The part of the story while the machines are being cleaned. */
import { type Host, HostState, RunPhase, StepState } from '@rackwright/messages';
import { type PlannedMachine, soundMachines } from '../fleet.ts';
import { eventually } from '../site/eventually.ts';
import { commandsOf, dirtyDisks, slowWrites } from '../site/machine.ts';
import {
  announce,
  expectThat,
  type Stage,
  StoryFailure,
  tell,
  tellCommand,
  untilHost,
} from './stage.ts';

const cleaningTimeoutMs = 600_000;
const availableTimeoutMs = 900_000;
const awayMs = 1_000;
const attemptsMax = 4;
/** How much longer an erase takes when the one before ended too soon. */
const slowerBy = 4;

/** A power request for a host that is being erased is refused, and its BMC gets no command. */
export async function refusePower(stage: Stage): Promise<void> {
  const rack = quickMachines(stage)[0]?.rack;
  if (rack === undefined) return;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const host = await firstErasing(stage, rack, slowerBy ** attempt);
    const machine = stage.site.machine(host);
    const before = commandsOf(machine);
    const args = ['host', 'power', 'off', host];
    const { code, output } = await stage.site.rackwright(args);
    const after = commandsOf(machine);
    // Before and after the erase the clean itself switches the power: that would not be ours.
    if ((await erasingStep(stage, host)) === undefined) continue;
    announce(stage, `${host} is being erased; somebody wants to switch it off.`);
    tellCommand(stage, args);
    tell(stage, output);
    expectThat(code !== 0, `${host} was being erased, and yet its power could be switched`);
    const commands = after.slice(before.length);
    expectThat(commands.length === 0, `its BMC was told all the same: ${commands.join(', ')}`);
    const counts = `${before.length} before, ${after.length} after`;
    tell(stage, `Refused at once: the log of its BMC shows no new command (${counts}).`);
    // Only this clean was to take long.
    slowWrites(machine, 1);
    return;
  }
  throw new StoryFailure(`no erase in ${rack} lasted as long as one command takes`);
}

/** The agent of a rack dies in mid-clean and comes back: nothing is lost, nothing done twice. */
export async function loseAgent(stage: Stage): Promise<void> {
  const rack = quickMachines(stage).at(-1)?.rack;
  if (rack === undefined) return;
  const host = await firstErasing(stage, rack);
  const agent = stage.site.agentOf(rack);
  announce(stage, `The agent of ${rack} is killed (kill -9 ${agent.pid}) while ${host} is erased.`);
  await agent.kill();
  await stage.site.untilRack(rack, { connected: false });
  const { code, output } = await stage.site.rackwright(['rack', 'explain', rack]);
  tellCommand(stage, ['rack', 'explain', rack]);
  tell(stage, output);
  expectThat(code === 0, 'the command could not explain the rack');
  await new Promise((resolve) => setTimeout(resolve, awayMs));
  agent.start();
  await stage.site.untilRack(rack, { connected: true });
  slowWrites(stage.site.machine(host), 1);
  announce(stage, `The agent of ${rack} is back; its hosts go on where they were.`);
}

/** Every sound machine becomes available, and its disks, read from outside, hold nothing. */
export async function awaitAvailable(stage: Stage): Promise<void> {
  const machines = soundMachines(stage.fleet);
  for (const { name } of machines) {
    await untilHost(stage, name, 'available', availableTimeoutMs, ({ status }) => {
      return status?.state === HostState.AVAILABLE;
    });
    const dirty = dirtyDisks(stage.site.machine(name)).map(({ serial }) => serial);
    expectThat(dirty.length === 0, `${name} is available, but ${dirty.join(', ')} is not clean`);
  }
  announce(stage, `All ${machines.length} sound machines are available.`);
  tell(stage, 'Read from outside, no block of their disks holds what was there before.');
}

/** Hosts without any fault, not even a tolerable one. */
function quickMachines({ fleet }: Stage): readonly PlannedMachine[] {
  return fleet.machines.filter(({ fault }) => fault === undefined);
}

/**
 * A host of the rack that is being erased. Whenever all of them rest, one is cleaned anew, with
 * writes that take `factor` times as long: on a busy machine a command may outlast an erase.
 */
async function firstErasing(stage: Stage, rack: string, factor = slowerBy): Promise<string> {
  const { clients } = stage.site;
  const inRack = quickMachines(stage).filter((machine) => machine.rack === rack);
  return await eventually(`a host of ${rack} to be erased`, cleaningTimeoutMs, async () => {
    for (const { name } of inRack) if ((await erasingStep(stage, name)) !== undefined) return name;
    const { hosts } = await clients.hosts.listHosts({ rack: `racks/${rack}` });
    const resting = hosts.filter(isAtRest).map(({ name }) => name);
    const [first] = inRack;
    const isOver = inRack.every(({ name }) => resting.includes(`hosts/${name}`));
    if (first === undefined || !isOver) return undefined;
    slowWrites(stage.site.machine(first.name), factor);
    await clients.hosts.cleanHost({ name: `hosts/${first.name}` });
    return undefined;
  });
}

function isAtRest({ status }: Host): boolean {
  const isAtWork = status?.run !== undefined && status.run.phase !== RunPhase.ENDED;
  return status?.state === HostState.AVAILABLE && !isAtWork;
}

/** The destructive step that the host is at, if it is. */
async function erasingStep({ site }: Stage, id: string): Promise<string | undefined> {
  const { status } = await site.clients.hosts.getHost({ name: `hosts/${id}` });
  const run = status?.run;
  const step = run?.phase === RunPhase.ENDED ? undefined : run?.steps[run.currentStep];
  const isErasing = step?.destructive === true && step.state === StepState.RUNNING;
  return isErasing ? step.name : undefined;
}

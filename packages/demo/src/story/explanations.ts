/** Hosts whose BMCs are broken in four ways, each explained in a few lines, and freed by them. */
import { type Host, HostState } from '@rackwright/api';
import { type FaultName, isBearable } from '../faults.ts';
import type { PlannedMachine } from '../fleet.ts';
import { eventually } from '../site/eventually.ts';
import { bmcPassword, bmcUser, setFault } from '../site/machine.ts';
import { announce, expectThat, type Stage, tell, tellCommand, untilHost } from './stage.ts';

const troubleTimeoutMs = 90_000;
const mendedTimeoutMs = 120_000;

/** What a person does at the machine itself. */
const mending: { readonly [name in FaultName]?: string } = {
  silent: "The plug of silent's BMC is put in again.",
  rubbish: "rubbish's BMC is restarted.",
  'yes-but-nothing': "yes-but-nothing's BMC is replaced.",
};

/** Every host with a fault, once its trouble has been seen, as the command explains it. */
export async function explainTroubles(stage: Stage): Promise<void> {
  const broken = stage.fleet.machines.filter(({ fault }) => {
    return fault !== undefined && !isBearable(fault);
  });
  for (const { name } of broken) {
    await eventually(`the trouble of ${name} to be seen`, troubleTimeoutMs, async () => {
      const host = await stage.site.clients.hosts.getHost({ name: `hosts/${name}` });
      return isTroubled(host) ? true : undefined;
    });
    const args = ['host', 'explain', name];
    const { code, output } = await stage.site.rackwright(args);
    announce(stage, `${name}: why does it not move?`);
    tellCommand(stage, args);
    tell(stage, output);
    expectThat(code === 0, `the command could not explain ${name}`);
  }
}

/** Does what the explanations of the four examples say; that frees every one of them. */
export async function followExplanations(stage: Stage): Promise<void> {
  const examples = stage.fleet.machines.filter(({ isExample }) => isExample);
  if (examples.length === 0) return;
  announce(stage, 'Somebody does what the explanations say.');
  for (const machine of examples) await follow(stage, machine);
  for (const { name } of examples) {
    await untilHost(stage, name, 'available', mendedTimeoutMs, ({ status }) => {
      return status?.state === HostState.AVAILABLE;
    });
  }
  announce(stage, `All ${examples.length} are available.`);
}

async function follow(stage: Stage, { name, fault }: PlannedMachine): Promise<void> {
  const { site } = stage;
  const { unblock } = await site.clients.hosts.explainHost({ name: `hosts/${name}` });
  if (fault === 'wrong-password') {
    const args = ['credential', 'update', `bmc-of-${name}`, '--username', bmcUser];
    tellCommand(stage, args);
    const { code, output } = await site.rackwright(args, `${bmcPassword}\n`);
    expectThat(code === 0, output);
    return;
  }
  setFault(site.machine(name), 'none');
  tell(stage, (fault && mending[fault]) ?? `${name} is mended.`);
  for (const advice of unblock) {
    const command = /rackwright (host (?:verify|inspect|clean) \S+)/.exec(advice)?.[1];
    if (command === undefined) continue;
    const args = command.split(' ');
    tellCommand(stage, args);
    const refusal = await eventually(`"${command}" to be accepted`, mendedTimeoutMs, async () => {
      const { code, output } = await site.rackwright(args);
      if (code === 0) return '';
      if (!output.includes('busy')) return output;
      // It has just been tried again by itself, and may get through this time.
      const host = await site.clients.hosts.getHost({ name: `hosts/${name}` });
      return isTroubled(host) ? undefined : '';
    });
    expectThat(refusal === '', refusal);
  }
}

function isTroubled({ status }: Host): boolean {
  const waits = status?.run?.waiting?.reason;
  const isStuck = waits === 'bmc' || waits === 'retry';
  return status?.lastError !== undefined || status?.faults[0] !== undefined || isStuck;
}

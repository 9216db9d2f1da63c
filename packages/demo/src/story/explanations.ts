/** Hosts whose BMCs are broken in four ways, each explained in a few lines. */
import { HostState } from '@rackwright/api';
import { eventually } from '../site/eventually.ts';
import { bmcPassword, bmcUser } from '../site/machine.ts';
import { announce, expectThat, type Stage, tell, tellCommand, untilHost } from './stage.ts';

const troubleTimeoutMs = 60_000;
const mendedTimeoutMs = 120_000;

export async function explainTroubles(stage: Stage): Promise<void> {
  const examples = stage.fleet.machines.filter(({ isExample }) => isExample);
  for (const { name } of examples) {
    await untilTroubled(stage, name);
    announce(stage, `${name}: why does it not move?`);
    const args = ['host', 'explain', name];
    tellCommand(stage, args);
    const { code, output } = await stage.site.rackwright(args);
    tell(stage, output);
    expectThat(code === 0, `the command could not explain ${name}`);
  }
}

/** Does for one of them what its explanation says. */
export async function followExplanation(stage: Stage): Promise<void> {
  const { site, fleet } = stage;
  const machine = fleet.machines.find((each) => each.isExample && each.fault === 'wrong-password');
  if (machine === undefined) return;
  const { name } = machine;
  announce(stage, `${name}: its password is corrected, as the explanation says.`);
  const args = ['credential', 'update', `bmc-of-${name}`, '--username', bmcUser];
  tellCommand(stage, args);
  const { code, output } = await site.rackwright(args, `${bmcPassword}\n`);
  tell(stage, output);
  expectThat(code === 0, 'the credential could not be changed');
  await untilHost(stage, name, 'proved', mendedTimeoutMs, ({ status }) => {
    return status !== undefined && status.state !== HostState.NEW;
  });
  tell(stage, `${name} is proved, and goes on by itself.`);
}

async function untilTroubled(stage: Stage, id: string): Promise<void> {
  await eventually(`the trouble of ${id} to be seen`, troubleTimeoutMs, async () => {
    const { status } = await stage.site.clients.hosts.getHost({ name: `hosts/${id}` });
    const waits =
      status?.run?.waiting?.reason === 'bmc' || status?.run?.waiting?.reason === 'retry';
    const isTroubled = status?.lastError !== undefined || status?.faults[0] !== undefined || waits;
    return isTroubled ? true : undefined;
  });
}

/**
 * `--agent-away`: the agent dies in the middle of a clean and stays away. The host shows that it
 * waits, for whom and since when; nothing fails. The agent comes back: the clean goes on to its
 * end, each step once and in order. All that `--check` finds out about a clean holds for this one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { watchBootPath } from '../boot-path.ts';
import { describeHost, type HostView } from '../host-watch.ts';
import { usualDisks } from '../qemu-disks.ts';
import { createHost, powerOff, RUN_LIMIT_MS, type Scenario, type Site } from '../site.ts';
import { checkCertificates, checkDisks, checkFull } from './check.ts';

const ERASE_STEP = 'deploy.erase_devices';
/** The contact deadline is the session's last message + 90 s; the host must say so by then. */
const WAITING_LIMIT_MS = 150_000;
const AWAY_MS = 20_000;

/** The scenario. */
export const agentAwayScenario: Scenario = {
  machines: [{ name: 'h1', disks: usualDisks() }],
  run: async (site) => {
    const { lab, stack, watch, findings } = site;
    const [bmc] = lab.bmcs;
    if (bmc === undefined) throw new Error('the scenario has one machine');
    checkFull(site, bmc.machine);
    const checkBootPath = await watchBootPath(site, bmc.machine);
    await createHost(site, bmc, 'available');
    await watch.waitFor('h1', 'the erasure to begin', RUN_LIMIT_MS, (host) =>
      isInStep(host, ERASE_STEP),
    );
    stack.agent.process()?.signal('SIGKILL');
    await stack.agent.process()?.ended;
    findings.say('       the agent is killed while the disks are being erased');
    await showsWaiting(site);
    await stack.agent.start();
    findings.say('       the agent is back');
    const ended = await watch.waitFor('h1', 'h1 is available', RUN_LIMIT_MS, ({ status }) => {
      return status.state === 'HOST_STATE_AVAILABLE';
    });
    findings.check('h1 is available', true);
    checkOrder(site, ended);
    await checkBootPath();
    await powerOff(site, bmc);
    checkDisks(site, bmc.machine);
    await checkCertificates(site, bmc.machine);
  },
};

async function showsWaiting({ watch, findings }: Site): Promise<void> {
  const waiting = await watch.waitFor('h1', 'that h1 waits', WAITING_LIMIT_MS, ({ status }) => {
    return status.run?.phase === 'RUN_PHASE_WAITING';
  });
  const why = waiting.status.run?.waiting;
  findings.say(`       waiting: ${why?.reason}, ${why?.message}, since ${why?.since}`);
  findings.check('the host waits for the agent', /agent/i.test(`${why?.reason} ${why?.message}`));
  findings.check('the host says since when', !Number.isNaN(Date.parse(why?.since ?? '')));
  await sleep(AWAY_MS);
  const later = watch.latest('h1');
  const text = describeHost(later);
  findings.check(
    'nothing has failed meanwhile',
    later?.status.run?.phase !== 'RUN_PHASE_ENDED',
    text,
  );
}

/** The steps that the clean took ended one after the other, and none more than once. */
function checkOrder({ watch, findings }: Site, ended: HostView): void {
  // The clean works in the boot of the inspection, and skips its own.
  const taken = [...(ended.status.run?.steps ?? []).entries()].filter(
    ([, { state }]) => state !== 'STEP_STATE_SKIPPED',
  );
  const ends = taken.map(([, step]) => Date.parse(step.endTime ?? ''));
  const inOrder = ends.every((end, index) => index === 0 || end >= (ends[index - 1] ?? 0));
  findings.check('the steps ended in their order', inOrder, JSON.stringify(taken));
  for (const [index, { name }] of taken) {
    const seen = new Set<string>();
    for (const { status } of watch.history('h1')) {
      const { run } = status;
      const end =
        run?.number === ended.status.run?.number ? run?.steps?.[index]?.endTime : undefined;
      if (end !== undefined) seen.add(end);
    }
    findings.check(`step ${index}, ${name}, ended once`, seen.size === 1, [...seen].join(', '));
  }
}

function isInStep({ status }: HostView, name: string): boolean {
  const { run } = status;
  const step = run?.steps?.[run.currentStep ?? 0];
  return step?.name === name && step.state === 'STEP_STATE_RUNNING';
}

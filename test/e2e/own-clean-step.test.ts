/**
 * A program of the site's own in automatic cleans, through the real programs: it is listed and
 * planned beforehand, its failure is followed by what it says of that, the runner boots anew before
 * disks are erased, and a host may be cleaned without it. Its image is in no registry, for a
 * machine made of software runs none.
 */
import {
  type Host,
  HostGoal,
  HostState,
  RunOutcome,
  RunPhase,
  StepState,
} from '@rackwright/messages';
import { startSoftwareRegistry } from '@rackwright/sim/loopback';
import { expect, test } from 'vitest';
import { runnerStarts } from './machines.ts';
import { Rack } from './rack.ts';

const timeout = 600_000;
const name = 'hosts/h1';
const programFrom = (repository: string) => ({
  ...{ name: 'check', image: `${repository}@sha256:${'a'.repeat(64)}`, priority: 1 },
  ...{ onFailure: 'continue', description: 'Looks whether all fans are there.' },
});

const hasEnded = (number: bigint) => (host: Host) => {
  const { run } = host.status ?? {};
  return run?.number === number && run.phase === RunPhase.ENDED;
};
const titles = ({ status }: Host) => status?.run?.steps.map((step) => step.title || step.name);

test('a program of the site’s own is foreseen, may fail, and is left out where it is disabled', {
  timeout,
}, async () => {
  const disks = [{ name: 'vda', serial: 'DISK-1', kind: 'discard' as const }];
  const machine = {
    ...{ name: 'h1', bmcAddress: '127.0.0.21', mac: '52:54:00:00:00:01', disks },
    ...{ uuid: '0102030405060708090a0b0c0d0e0f10', serial: 'SN-1' },
  };
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  const registry = await startSoftwareRegistry();
  const repository = `${registry.name}/tools/check`;
  const program = programFrom(repository);
  try {
    const { fleet, hosts, plans } = rack.clients;
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    const spec = { ownCleanSteps: [program] };
    const updateMask = { paths: ['spec.own_clean_steps'] };
    await expect(fleet.updateFleet({ fleet: { spec }, updateMask })).rejects.toThrow(
      `fleet.spec.own_clean_steps[0].image: the fleet allows no command from ${repository}`,
    );
    const plainHttpRegistries = [registry.name];
    const templates = { imageRepositories: [repository], plainHttpRegistries };
    await fleet.updateFleet({
      fleet: { spec: { ...spec, templates } },
      updateMask: { paths: [...updateMask.paths, 'spec.templates'] },
    });
    await rack.untilHost('h1', 'verified', ({ status }) => {
      return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
    });

    const listed = await hosts.listCleanSteps({ name });
    expect(listed.steps.filter(({ enabled }) => enabled)).toMatchObject([
      { name: 'own.check', priority: 1, source: 'fleet', own: { image: program.image } },
      { name: 'deploy.erase_devices' },
    ]);
    expect(listed.warnings.join()).toContain('own.check has priority 1, behind the erasure');
    const plan = await plans.planRun({ parent: name, run: { case: 'clean', value: {} } });
    const foreseen = plan.steps.map(({ step, title }) => title || step);
    await hosts.cleanHost({ name });
    const cleaned = await rack.untilHost('h1', 'cleaned', hasEnded(2n));
    expect(cleaned.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(titles(cleaned)).toEqual(foreseen);
    expect(cleaned.status?.run?.steps.find(({ title }) => title === 'own.check')).toMatchObject({
      ...{ name: 'run.command', state: StepState.FAILED },
      error: expect.stringContaining(repository.replace('/', ' has no ')),
    });
    expect(cleaned.status).toMatchObject({ dirty: false, lastCleaned: {} });
    expect(runnerStarts(folder), 'once for the program, once for the erasure').toBe(2);

    const host = { name, spec: { cleaning: { priorityOverrides: { 'own.check': 0 } } } };
    await hosts.updateHost({ host, updateMask: { paths: ['spec.cleaning.priority_overrides'] } });
    await hosts.cleanHost({ name });
    const again = await rack.untilHost('h1', 'cleaned without it', hasEnded(3n));
    expect(again.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(titles(again)).not.toContain('own.check');
    expect(runnerStarts(folder)).toBe(3);
  } finally {
    await rack.stop();
    await registry.close();
  }
});

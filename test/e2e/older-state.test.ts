/**
 * What an older version has kept, read by this one: recorded by the older programs themselves
 * (`recorded/main.ts`), killed while one host was available and another one's disk was written.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/messages';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { eventually, Rack } from './rack.ts';

/** Schema 2: secrets under one key, and the authority's key in a file of the identity. */
const recorded = join(import.meta.dirname, 'recorded/2767d96.tar.gz');
const disk = (n: number): DiskPlan => ({ name: 'vda', serial: `DISK-${n}`, kind: 'overwrite' });
const machine = (n: number) => ({
  name: `h${n}`,
  bmcAddress: `127.0.0.2${n}`,
  mac: `52:54:00:00:00:0${n}`,
  uuid: `0${n}02030405060708090a0b0c0d0e0f10`,
  serial: `SN-${n}`,
  disks: [disk(n)],
});

/** As it was, but for the ports, which are this test's own. */
function unpack(folder: string, ports: { operators: number; agents: number }): void {
  execFileSync('tar', ['-xzpf', recorded, '--no-same-owner', '-C', folder]);
  const file = join(folder, 'agent/identity.json');
  const identity = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const addresses = {
    agentEndpoint: `127.0.0.1:${ports.agents}`,
    enrolmentAddress: `127.0.0.1:${ports.operators}`,
  };
  expect(Object.keys(identity)).toEqual(expect.arrayContaining(Object.keys(addresses)));
  writeFileSync(file, JSON.stringify({ ...identity, ...addresses }), { mode: 0o600 });
  expect(schemaOf(folder)).toBe(2);
  expect(existsSync(join(folder, 'controlplane/identity/ca.key'))).toBe(true);
}

function schemaOf(folder: string): unknown {
  const database = new DatabaseSync(join(folder, 'controlplane/state.db'));
  try {
    return database.prepare('PRAGMA user_version').get()?.['user_version'];
  } finally {
    database.close();
  }
}

test('knows what the older version knew, aborts its clean, makes another, is marked', async () => {
  const rack = await Rack.start({ machines: [machine(1), machine(2)], earlierLife: unpack });
  try {
    const { hosts, racks, erasures, templates, secrets, authorities } = rack.clients;
    // The older version's agent is known by its key, whenever its certificate ended.
    await eventually('the agent to be connected', async () => {
      const { status } = await racks.getRack({ name: 'racks/r1' });
      if (status?.agentConnected !== true) throw new Error('not yet');
    });
    const kept = await hosts.getHost({ name: 'hosts/h1' });
    expect(kept.status).toMatchObject({ state: HostState.AVAILABLE, holds: [] });
    const [name = ''] = kept.status?.lastCleaned?.certificates ?? [];
    // Certificates of that format proved nothing and were never released: they are not shown.
    await expect(erasures.getErasureCertificate({ name })).rejects.toThrow('does not exist');
    const template = await templates.getTemplate({ name: 'templates/pause' });
    expect(template.source).toContain('wait: 1s');

    // The clean that was under way is known, and can be aborted. That it goes on is not shown here:
    // its machine, with the disk that was being erased, is not that of the recording any more.
    const under = await hosts.getHost({ name: 'hosts/h2' });
    const { run } = under.status ?? {};
    expect(run).toMatchObject({ kind: RunKind.CLEAN, outcome: RunOutcome.UNSPECIFIED });
    expect(run?.steps[run.currentStep]?.name).toBe('deploy.erase_devices');
    await hosts.abortRun({ name: 'hosts/h2', reason: 'the power was cut' });
    await rack.untilHost('h2', 'free', ({ status }) => status?.run?.phase === RunPhase.ENDED);
    // Its BMC takes the password that the older version has sealed.
    await hosts.cleanHost({ name: 'hosts/h2' });
    const done = await rack.untilHost('h2', 'available', ({ status }) => {
      return status?.state === HostState.AVAILABLE && status.run?.phase === RunPhase.ENDED;
    });
    expect(done.status?.run).toMatchObject({
      kind: RunKind.CLEAN,
      outcome: RunOutcome.SUCCEEDED,
    });
    const [, cleaned] = rack.machines;
    expect(holdsPattern(cleaned?.folder ?? '', disk(2))).toBe(false);

    const ca = readFileSync(join(rack.folder, 'controlplane/identity/ca.pem'), 'utf8');
    const trust = await authorities.getAuthorities({});
    expect(trust.authorities).toHaveLength(1);
    expect(trust.bundlePem.trim()).toBe(ca.trim());
    const sealed = await secrets.getSecretsKey({});
    expect(sealed.waitsFor).toBe('');
    expect(sealed.uses).toHaveLength(1);
    expect(sealed.uses[0]).toMatchObject({ keyId: sealed.keyId, here: true });
    // What an older program refuses: it knows up to 2.
    await rack.pause('controlplane');
    expect(schemaOf(rack.folder)).toBe(7);
    expect(existsSync(join(rack.folder, 'controlplane/identity/ca.key'))).toBe(false);
  } finally {
    await rack.stop();
  }
});

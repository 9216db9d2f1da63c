/**
 * A pool of 24 hosts over two control planes on three NATS servers: one control plane and the
 * leader of the stream are killed in the middle of a rollout. Who is out is watched all the time,
 * by the machines' own log.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { toJson } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type DeployHistoryEntry, DeployHistoryEntrySchema, HostState } from '@rackwright/messages';
import { serverMissing } from '@rackwright/store/testing';
import { expect, test } from 'vitest';
import { Box, until } from './identity-site.ts';
import { bucket, type Replica, ReplicaSite } from './replica-site.ts';
import { ownSteps, RolloutMachines } from './rollout-machines.ts';

const timeout = 600_000;
const hostsCount = 24;
const outMax = 4;
/** Hosts on the new image when the first of the two is killed, and the second. */
const [firstKillAt, secondKillAt] = [5, 11];
const [first, second] = ['a', 'b'].map((letter) => `sha256:${letter.repeat(64)}`) as [
  string,
  string,
];
const imageOf = (digest: string) => `registry.example/os@${digest}`;

/** A rack with the hosts, whose agent goes from one control plane to the other. */
async function addRack(site: ReplicaSite, machines: RolloutMachines): Promise<Box> {
  const { racks, hosts } = site.a.clients;
  await racks.createRack({ rackId: 'r1' });
  const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
  let dialled = 0;
  const agentPorts = [site.a, site.b].map(({ ports }) => ports[1]);
  const box = new Box('r1', join(site.folder, 'box'), {
    endpoint: () => `127.0.0.1:${agentPorts[dialled++ % agentPorts.length]}`,
    machines: (operation) => machines.act(operation),
    steps: ownSteps,
  });
  await box.join(site.a.address, token);
  await box.start();
  const create = (index: number) => {
    const bmc = { address: `192.0.2.${index}`, credential: 'credentials/bmc' };
    const mac = `52:54:00:00:00:${index.toString(16).padStart(2, '0')}`;
    const spec = { rack: 'racks/r1', bmc, bootMacs: [mac] };
    return hosts.createHost({ hostId: `h${index}`, host: { spec } });
  };
  await Promise.all(Array.from({ length: hostsCount }, (_, at) => create(at + 1)));
  return box;
}

/** Name of the server that leads the stream of the bucket, as the servers themselves say. */
async function leader({ nats }: ReplicaSite): Promise<string> {
  return until('the stream to have a leader', async () => {
    for (const monitor of nats.monitors) {
      const answer = await fetch(new URL('/jsz?accounts=true&streams=true', monitor));
      const said = (await answer.json()) as {
        account_details?: { stream_detail?: { name: string; cluster?: { leader?: string } }[] }[];
      };
      const streams = (said.account_details ?? []).flatMap(
        ({ stream_detail = [] }) => stream_detail,
      );
      const name = streams.find((each) => each.name === `KV_${bucket}`)?.cluster?.leader;
      if (name !== undefined && name !== '') return name;
    }
    return undefined;
  });
}

async function historyOf({ clients }: Replica): Promise<DeployHistoryEntry[]> {
  return (await clients.pools.listDeployHistory({ parent: 'pools/web' })).entries;
}

const shown = (entries: readonly DeployHistoryEntry[]) =>
  entries.map((entry) => toJson(DeployHistoryEntrySchema, entry));

/** Everybody runs the image, and the pool says so. */
async function untilDone(replica: Replica, digest: string): Promise<void> {
  await until(`every host to be on ${digest.slice(0, 12)}`, async () => {
    const { status } = await replica.clients.pools.getPool({ name: 'pools/web' });
    const isOn = status?.target?.digest === digest && status.currentCount === hostsCount;
    return isOn && status.slots.length === 0 ? true : undefined;
  });
}

test('a rollout goes on when a control plane and the leader of the stream are killed', {
  timeout,
}, async ({ skip }) => {
  const missing = serverMissing();
  if (missing !== undefined) return skip(missing);
  const machines = new RolloutMachines();
  const site = await ReplicaSite.start({}, randomBytes(32), { servers: 3, racks: 0 });
  const { a, b } = site;
  try {
    site.boxes.push(await addRack(site, machines));
    await until('every host to be available', async () => {
      const { hosts } = await b.clients.hosts.listHosts({ pageSize: hostsCount });
      const states = hosts.filter(({ status }) => status?.state === HostState.AVAILABLE);
      return states.length === hostsCount ? true : undefined;
    });
    const rollout = { maxUnavailable: { amount: { case: 'count' as const, value: outMax } } };
    const spec = { hosts: { rack: 'racks/r1' }, image: imageOf(first), rollout };
    await b.clients.pools.createPool({ poolId: 'web', pool: { spec } });
    await untilDone(b, first);

    const pool = { name: 'pools/web', spec: { image: imageOf(second) } };
    await b.clients.pools.updatePool({ pool, updateMask: { paths: ['spec.image'] } });
    const on = (count: number) =>
      until(`${count} hosts to be on the second image`, () => {
        return machines.serving(second) >= count ? true : undefined;
      });
    await on(firstKillAt);
    expect(machines.serving(second)).toBeLessThan(hostsCount);
    await a.end('SIGKILL');
    await on(secondKillAt);
    expect(machines.serving(second)).toBeLessThan(hostsCount);
    await site.nats.kill([await leader(site)]);
    await untilDone(b, second);

    expect(machines.mostOut).toBeGreaterThan(1);
    expect(machines.mostOut).toBeLessThanOrEqual(outMax);
    for (const digest of [first, second]) {
      expect(machines.timesWritten(digest), digest).toEqual(Array(hostsCount).fill(1));
    }
    const history = await historyOf(b);
    expect(history.map((each) => [each.digest, each.hostCount, each.currentHosts])).toEqual([
      [second, hostsCount, hostsCount],
      [first, hostsCount, 0],
    ]);
    for (const { digest, lastDeployed } of history) {
      const told = lastDeployed === undefined ? 0 : timestampMs(lastDeployed);
      expect(told).toBeGreaterThanOrEqual(machines.lastServed(digest));
      expect(told).toBeLessThan(Date.now());
    }
    const [newest, oldest] = history;
    const began = machines.log.find(({ act, digest }) => act === 'begun' && digest === second);
    expect(timestampMs(oldest?.lastDeployed as never)).toBeLessThan(began?.atMs ?? 0);
    expect(newest?.digest).toBe(second);

    await site.nats.startAll();
    await a.start();
    expect(shown(await historyOf(a))).toEqual(shown(history));
  } finally {
    await site.stop();
  }
});

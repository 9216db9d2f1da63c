/** The control plane on a real NATS server: killed in mid-clean, and two of them on one bucket. */
import { setTimeout as sleep } from 'node:timers/promises';
import { HostState, RunOutcome, RunPhase } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { type DiskPlan, diskBytes, holdsPattern } from '@rackwright/sim/machine';
import { openNatsStore } from '@rackwright/store';
import { NatsCluster, publishedBeside, serverMissing } from '@rackwright/store/testing';
import { expect, type TestContext, test } from 'vitest';
import { diskLog, type MachinePlan } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const bucket = 'rackwright';
const replicas = 1;
/** Several looks at every host by both control planes. */
const idleMs = 10_000;
/** What follows on the last clean may still be written in the first of them. */
const idleLooksMax = 4;
const outageMs = 6_000;
const disk: DiskPlan = {
  name: 'vda',
  serial: 'DISK-1',
  kind: 'overwrite',
  faults: [{ kind: 'slow', operation: 'write', delayMs: 40 }],
};
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [disk],
};

/** A server that syncs every write and shows that it does, and a rack on it. */
async function onNats(
  { skip }: TestContext,
  options: { readonly replica: boolean },
  body: (rack: Rack, nats: NatsCluster) => Promise<void>,
): Promise<void> {
  const missing = serverMissing();
  if (missing !== undefined) return skip(missing);
  const nats = await NatsCluster.start({ servers: 1, syncAlways: true });
  try {
    const servers = nats.addresses;
    const store = { driver: 'nats', servers, bucket, replicas, monitors: nats.monitors };
    const rack = await Rack.start({ machines: [machine], controlplane: { store }, ...options });
    try {
      await body(rack, nats);
    } finally {
      await rack.stop();
    }
  } finally {
    await nats.dispose();
  }
}

/** Who holds the agent's session says so in the rack's record once a minute. */
const isIdle = (written: readonly string[]): boolean =>
  written.length <= 1 && written.every((key) => key === 'racks.r1');

async function expectAvailable(rack: Rack): Promise<void> {
  const host = await rack.untilHost('h1', 'available', ({ status }) => {
    return status?.state === HostState.AVAILABLE;
  });
  expect(host.status?.lastCleaned?.certificates).toHaveLength(1);
  const [folder] = rack.machines;
  if (folder === undefined) throw new Error('no machine');
  expect(holdsPattern(folder.folder, disk)).toBe(false);
  const zeros = diskLog(folder, disk).filter((act) => act.kind === 'zero' && act.phase === 'end');
  expect(zeros.reduce((sum, act) => sum + act.length, 0)).toBe(diskBytes);
}

/** What consumers are told of a host, the first time that each event came. */
async function publishedOf(nats: NatsCluster, host: string): Promise<readonly string[]> {
  const published = await publishedBeside(nats.addresses, bucket);
  const events = published
    // What is signed is a record of its own, whose events have an order of their own.
    .filter(({ subject }) => subject.endsWith(`.hosts.${host}`) && !/-issued\./.test(subject))
    .map(({ text }) => JSON.parse(text));
  const once = new Map(events.map((event) => [event.id, event]));
  // The same order as the store has of the record: none came before an earlier one.
  const sequences = [...once.values()].map(({ sequence }) => String(sequence));
  expect(sequences).toEqual(sequences.toSorted((a, b) => (a < b ? -1 : 1)));
  return [...once.values()].map(({ type, data }) => {
    const what = [data.to?.replace('HOST_STATE_', '').toLowerCase(), data.kind, data.outcome];
    return [type, ...what.filter((each) => each !== undefined)].join(' ');
  });
}

function untilWritten(rack: Rack): Promise<void> {
  return eventually('the clean to write to the disk', () => {
    const [folder] = rack.machines;
    const acts = folder === undefined ? [] : diskLog(folder, disk);
    if (!acts.some(({ kind }) => kind === 'write')) throw new Error('not yet');
  });
}

test('a control plane on NATS that is killed in mid-clean ends it well', { timeout }, (context) =>
  onNats(context, { replica: false }, async (rack, nats) => {
    const eventSink = { spec: { target: { case: 'nats', value: {} } as const } };
    await rack.clients.eventSinks.createEventSink({ eventSinkId: 'nats', eventSink });
    await untilWritten(rack);
    rack.kill('controlplane');
    await expectAvailable(rack);
    expect(rack.starts.controlplane).toBe(2);
    await eventually('the events of the clean to be published', async () => {
      const types = await publishedOf(nats, 'h1');
      expect(types).toContain('rackwright.v1.HostStateChanged available');
    });
    const told = await publishedOf(nats, 'h1');
    const ends = told.filter((each) => each.startsWith('rackwright.v1.RunEnded'));
    expect(ends.at(-1)).toBe('rackwright.v1.RunEnded RUN_KIND_CLEAN RUN_OUTCOME_SUCCEEDED');
  }),
);

test('a clean lives through the loss of the NATS server', { timeout }, (context) =>
  onNats(context, { replica: false }, async (rack, nats) => {
    await untilWritten(rack);
    await nats.kill();
    // Longer than a work lease lasts.
    await sleep(outageMs);
    await nats.startAll();
    await expectAvailable(rack);
    const { hosts } = rack.clients;
    const { revisions } = await hosts.listHostRevisions({ name: 'hosts/h1', pageSize: 1_000 });
    const errors = revisions.map(({ host }) => host?.status?.run?.error?.message ?? '');
    expect(new Set(errors)).toEqual(new Set(['']));
  }),
);

test('two control planes on one bucket lead a host to available', { timeout }, (context) =>
  onNats(context, { replica: true }, async (rack, nats) => {
    await untilWritten(rack);
    rack.kill('replica');
    await expectAvailable(rack);
    const seen = await eventually('the replica to be back', () =>
      rack.replicaClients.hosts.getHost({ name: 'hosts/h1' }),
    );
    const own = await rack.clients.hosts.getHost({ name: 'hosts/h1' });
    expect(seen.etag).toBe(own.etag);

    const store = await openNatsStore({
      servers: nats.addresses,
      random: nodeRandom(),
      bucket,
      replicas,
      durability: { kind: 'monitors', urls: nats.monitors },
    });
    try {
      let written: string[] = [];
      for (let look = 0; look < idleLooksMax; look += 1) {
        written = [];
        const ending = AbortSignal.timeout(idleMs);
        for await (const change of store.watch(await store.latestRevision(), '', ending)) {
          written.push(change.kind === 'compacted' ? change.reason : change.key);
        }
        if (isIdle(written)) break;
      }
      expect(written).toSatisfy(isIdle);
    } finally {
      await store.close();
    }

    const asked = await rack.replicaClients.hosts.cleanHost({ name: 'hosts/h1' });
    const host = await rack.untilHost('h1', 'cleaned as the replica was asked', ({ status }) => {
      const { number, phase } = status?.run ?? {};
      return number === asked.status?.run?.number && phase === RunPhase.ENDED;
    });
    expect(host.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(host.status?.state).toBe(HostState.AVAILABLE);
  }),
);

/** What people ask while a host is at work, twice, or of a host that is to go. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import {
  ApiFailure,
  type Host,
  HostGoal,
  HostSchema,
  HostState,
  PowerAction,
  RunKind,
  RunPhase,
} from '@rackwright/messages';
import { type DiskPlan, readDescription } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { bmcCommands, diskLog, type MachineFolder, type MachinePlan } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const name = 'hosts/h1';
const disk: DiskPlan = {
  name: 'vda',
  serial: 'DISK-1',
  kind: 'overwrite',
  faults: [{ kind: 'slow', operation: 'write', delayMs: 30 }],
};
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [disk],
};

async function withRack(body: (rack: Rack, folder: MachineFolder) => Promise<void>) {
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    await untilIdle(rack);
    await body(rack, folder);
  } finally {
    await rack.stop();
  }
}

function untilIdle(rack: Rack, runs = 1n): Promise<Host> {
  return rack.untilHost('h1', `manageable after ${runs} runs`, ({ status }) => {
    const run = status?.run;
    const over = run?.phase === RunPhase.ENDED && run.number >= runs;
    return status?.state === HostState.MANAGEABLE && over;
  });
}

function untilWritten(folder: MachineFolder): Promise<void> {
  return eventually('the clean to write to the disk', () => {
    if (!diskLog(folder, disk).some(({ kind }) => kind === 'write')) throw new Error('not yet');
  });
}

/** What comes back from a call that must be refused. */
async function refusalOf(call: Promise<unknown>): Promise<ApiFailure> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof ApiFailure) return outcome;
  throw new Error(`not refused: ${String(outcome)}`);
}

test('a request id that comes twice acts once, also after a restart', { timeout }, () =>
  withRack(async (rack) => {
    const requestId = randomUUID();
    const first = await rack.clients.hosts.cleanHost({ name, requestId });
    const again = await rack.clients.hosts.cleanHost({ name, requestId });
    expect(again.status?.run?.number).toBe(first.status?.run?.number);
    rack.kill('controlplane');
    const afterKill = await eventually('the control plane to be back', () =>
      rack.clients.hosts.cleanHost({ name, requestId }),
    );
    expect(afterKill.status?.run?.number).toBe(2n);
    await untilIdle(rack, 2n);
    const late = await rack.clients.hosts.cleanHost({ name, requestId });
    expect(late.status?.run).toMatchObject({ number: 2n, kind: RunKind.CLEAN });
    const fresh = await rack.clients.hosts.cleanHost({ name, requestId: randomUUID() });
    expect(fresh.status?.run?.number).toBe(3n);
  }),
);

/** The runner stands still until it is let go on, and the clean with it, however slow the calls. */
function stopRunner({ folder }: MachineFolder): () => void {
  const pid = Number(readFileSync(join(folder, 'runner.pid'), 'utf8'));
  process.kill(pid, 'SIGSTOP');
  return () => process.kill(pid, 'SIGCONT');
}

test('a cleaning host refuses power and deletion, and nothing changes', { timeout }, () =>
  withRack(async (rack, folder) => {
    const { hosts } = rack.clients;
    await hosts.cleanHost({ name });
    await untilWritten(folder);
    const goOn = stopRunner(folder);
    const before = await hosts.getHost({ name });
    const commands = bmcCommands(folder);
    for (const action of [PowerAction.ON, PowerAction.OFF, PowerAction.RESET]) {
      const bootOldDiskReason = 'the test wants it';
      const refusal = await refusalOf(hosts.setHostPower({ name, action, bootOldDiskReason }));
      expect(refusal.error.kind).toBe('failedPrecondition');
      expect(refusal.message).toContain('clean 2');
      expect(refusal.message).toContain('deploy.erase_devices');
    }
    const refusal = await refusalOf(hosts.deleteHost({ name, reason: 'sold' }));
    expect(refusal.error.kind).toBe('failedPrecondition');
    expect(refusal.message).toContain('clean 2');
    const after = await hosts.getHost({ name });
    expect(bmcCommands(folder)).toEqual(commands);
    expect(after.etag).toBe(before.etag);
    expect(storedBytes(after)).toEqual(storedBytes(before));
    goOn();
    const { status } = await untilIdle(rack, 2n);
    expect(status?.dirty).toBe(false);
  }),
);

/** The host without what is only served: progress and its time. */
function storedBytes(host: Host): Uint8Array {
  const stored = { ...host, status: { ...host.status } } as Host;
  delete stored.status?.progress;
  return toBinary(HostSchema, stored);
}

test('a deleted host is forgotten, and its name inherits nothing', { timeout }, () =>
  withRack(async (rack, folder) => {
    const { hosts } = rack.clients;
    const mac = readDescription(folder.folder).mac.replaceAll(':', '-');
    const script = `http://127.0.0.1:${rack.bootHttpPort}/boot/${mac}/script.ipxe`;
    expect((await fetch(script)).status).toBe(200);
    await hosts.cleanHost({ name });
    const cleaned = await untilIdle(rack, 2n);
    expect(cleaned.status?.lastCleaned?.certificates).toHaveLength(1);
    await hosts.deleteHost({ name, reason: 'sold' });
    await eventually('the host to be gone', async () => {
      const refusal = await refusalOf(hosts.getHost({ name }));
      if (refusal.error.kind !== 'notFound') throw refusal;
    });
    expect((await fetch(script)).status).toBe(404);

    const { spec } = cleaned;
    if (spec === undefined) throw new Error('a host has a spec');
    const created = await hosts.createHost({ hostId: 'h1', host: { spec } });
    expect(created.uid).not.toBe(cleaned.uid);
    const again = await untilIdle(rack);
    expect(again.status).toMatchObject({ dirty: true, useEpoch: 1n, faults: [], holds: [] });
    expect(again.status?.run).toMatchObject({ kind: RunKind.VERIFY, number: 1n });
    expect(again.status?.lastCleaned).toBeUndefined();
    expect(again.status?.inventory).toBeUndefined();
    expect(again.status?.lastError).toBeUndefined();
    expect((await fetch(script)).status).toBe(200);
  }),
);

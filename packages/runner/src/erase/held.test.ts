/** What a device does while it is held: marks that are lost, errors, losses, words of its own. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { methodToWire, type NvmeFacts, storageDeviceOf } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import { type BlockDevices, DeviceError, type HeldDevice } from '../machine/block-devices.ts';
import {
  addDisk,
  clock,
  deviceLog,
  folder,
  heldAs,
  image,
  messageOf,
  mib,
  regionsAs,
  run,
  useFolder,
  verdicts,
} from './erase.fixture.ts';

useFolder();

const crypto = { transport: 'nvme', nvme: { cryptoEraseSupported: true } };

test('a cryptographic erase whose marks are lost afterwards is not accepted', async () => {
  addDisk('nvme0', crypto);
  let formatted = false;
  let dropped = 0;
  const devices = heldAs((held) => ({
    ...regionsAs(held, (open) => ({
      write: async (offset, bytes) => {
        if (!formatted) return open.write(offset, bytes);
        dropped += 1;
      },
    })),
    nvmeFormat: async (mode) => {
      formatted = true;
      return held.nvmeFormat(mode);
    },
  }));
  const end = await run({ context: { devices } });
  expect(dropped).toBeGreaterThan(0);
  expect(end.result).toMatchObject({ kind: 'failed', type: 'unverified' });
  expect(messageOf(end)).toMatch(/the mark written at \d+ after the erasure is lost/);
});

test('a mark that cannot be read is no proof either', async () => {
  addDisk('nvme0', crypto);
  const devices = heldAs((held) =>
    regionsAs(held, () => ({
      read: () => Promise.reject(new DeviceError('no answer', { operation: 'read' })),
    })),
  );
  const end = await run({ context: { devices } });
  expect(messageOf(end)).toMatch(/the mark at \d+: no answer/);
  expect(verdicts(end)).toEqual([agent.VerdictKind.UNVERIFIED]);
});

test('evidence names the marks, the challenge and the answers of the device itself', async () => {
  addDisk('nvme0', crypto);
  const said = heldAs(() => ({ readLog: async () => ['error log: empty'] }));
  const log = (await run({ context: { devices: said } })).evidence?.devices?.[0]?.log ?? [];
  expect(log).toContainEqual(
    expect.stringMatching(/^nvme0: \d+ challenge blocks written and read/),
  );
  expect(log).toContainEqual(expect.stringMatching(/^nvme0: \d+ marks written after it$/));
  expect(log.at(-1)).toBe('error log: empty');
  const mute = heldAs(() => ({ readLog: () => Promise.reject(new DeviceError('no log page')) }));
  const without = (await run({ context: { devices: mute } })).evidence?.devices?.[0]?.log ?? [];
  expect(without.at(-1)).toBe("the device's own log cannot be read: no log page");
});

test('a challenge that reads back differently ends before anything is erased', async () => {
  addDisk('sda');
  const devices = heldAs((held) =>
    regionsAs(held, (open) => ({
      readInto: async (offset, target) => {
        await open.readInto(offset, target);
        target[target.length - 1] = (target.at(-1) ?? 0) ^ 1;
      },
    })),
  );
  const end = await run({ context: { devices } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'ioError' });
  expect(messageOf(end)).toMatch(/the block just written at offset \d+ reads back differently/);
  expect(end.evidence?.devices?.[0]).toMatchObject({ challengeBlocksWritten: 0n });
  expect(deviceLog('sda').some(({ kind }) => kind === 'discard')).toBe(false);
});

test('a device that fails is asked whether it is still there, and the loss is told', async () => {
  addDisk('sda');
  for (const [loss, type, told] of [
    ['vanished', 'deviceVanished', agent.DeviceLoss.VANISHED],
    ['changed', 'deviceChanged', agent.DeviceLoss.CHANGED],
  ] as const) {
    let failed = false;
    const devices = heldAs((held) => ({
      ...regionsAs(held, () => ({
        discard: async () => {
          failed = true;
          throw new DeviceError('the discard failed', { operation: 'write' });
        },
      })),
      checkAttached: async () => {
        if (failed) throw new DeviceError('it is another one', { loss });
      },
    }));
    const end = await run({ context: { devices } });
    expect(end.result).toMatchObject({ kind: 'failed', type });
    expect(messageOf(end)).toContain('the discard failed');
    const [outcome] = end.evidence?.devices ?? [];
    expect(outcome).toMatchObject({ loss: told, errors: { write: 1n } });
    expect(outcome?.log).toContain('it is another one');
  }
});

test('the reason says that the last sanitize of the device has failed', async () => {
  addDisk('nvme0', crypto);
  const text = 'the last sanitize has failed';
  const devices = heldAs((held) => ({
    ...regionsAs(held, () => ({
      write: () => Promise.reject(new DeviceError('refused', { operation: 'write' })),
    })),
    ownWork: async () => ({ kind: 'failed', text }),
  }));
  const end = await run({ context: { devices } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'ioError' });
  expect(end.evidence?.devices?.[0]?.verdictReason).toBe(`refused; ${text}`);
});

test('a device that cannot be held is shown with its reason; the others are erased', async () => {
  addDisk('sda');
  addDisk('sdb');
  const devices = fileDisks(folder, clock);
  const refusing: BlockDevices = {
    ...devices,
    hold: (device, access) =>
      device.name === 'sda'
        ? Promise.reject(new DeviceError('is in use by md0', { loss: 'changed' }))
        : devices.hold(device, access),
  };
  const end = await run({ context: { devices: refusing } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceChanged' });
  expect(messageOf(end)).toBe(
    '1 of 2 devices is not proved erased: S-sda (sda): not erased: is in use by md0',
  );
  expect(verdicts(end)).toEqual([agent.VerdictKind.UNVERIFIED, agent.VerdictKind.ERASED]);
  expect(image('sda').includes('PATTERN!')).toBe(true);
});

test('a fault of ours while devices are taken leaves none of them held', async () => {
  addDisk('sda');
  addDisk('sdb');
  const devices = fileDisks(folder, clock);
  let closed = 0;
  const broken: BlockDevices = {
    ...devices,
    hold: async (device, access) => {
      if (device.name === 'sdb') throw new TypeError('a fault of ours');
      const held = await devices.hold(device, access);
      return Object.assign(Object.create(held) as HeldDevice, {
        close: async () => {
          closed += 1;
          await held.close();
        },
      });
    },
  };
  await expect(run({ context: { devices: broken } })).rejects.toThrow('a fault of ours');
  expect(closed).toBe(1);
});

test('proof that data is there outranks every other failure', async () => {
  addDisk('sda', { faults: [{ kind: 'lying', operation: 'discard' }] });
  addDisk('sdb', { discardSupported: false });
  const devices = heldAs((held, name) => {
    if (name !== 'sdb') return {};
    const writeZeros = () => Promise.reject(new DeviceError('pulled', { loss: 'vanished' }));
    return regionsAs(held, () => ({ writeZeros }));
  });
  const end = await run({ context: { devices } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'notErased' });
  expect(messageOf(end)).toMatch(/^2 of 2 devices are not proved erased: /);
});

test('a reason is as long as evidence carries it', async () => {
  addDisk('sda');
  const devices = heldAs(() => ({
    confirm: () => Promise.reject(new DeviceError('x'.repeat(2_000))),
  }));
  const end = await run({ context: { devices } });
  const reason = end.evidence?.devices?.[0]?.verdictReason ?? '';
  expect(reason.length).toBeGreaterThan(400);
  expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(512);
});

test('capacity of a device outside its namespaces is reported as not examined', async () => {
  addDisk('nvme0', crypto);
  const devices = fileDisks(folder, clock);
  const notExamined = async (more: Partial<NvmeFacts>) => {
    const listed = async () => {
      const listing = await devices.list();
      const [first] = listing.devices;
      if (first?.nvme === undefined) throw new Error('there is one NVMe disk');
      return { ...listing, devices: [{ ...first, nvme: { ...first.nvme, ...more } }] };
    };
    const end = await run({ context: { devices: { ...devices, list: listed } } });
    return end.evidence?.devices?.[0]?.notExamined;
  };
  expect(await notExamined({})).toEqual([]);
  expect(await notExamined({ namespacesUnlisted: true, unallocatedBytes: 4_096 })).toEqual([
    'namespaces that are not attached: it does not say whether any',
    '4096 bytes that are in no namespace',
  ]);
  const hiddenNamespaces = Array.from({ length: 20 }, (_, at) => at + 2);
  const [said = ''] = (await notExamined({ hiddenNamespaces })) ?? [];
  expect(said).toMatch(/^20 namespaces that are not attached, such as 2, .*, 17$/);
});

test('the kernel is asked for the device every few seconds while it is written', async () => {
  addDisk('sda', { discardSupported: false }, undefined, 64 * mib);
  let nowMs = clock.nowMs();
  let looks = 0;
  const slow = { ...clock, nowMs: () => nowMs };
  const devices = heldAs((held) => ({
    ...regionsAs(held, (open) => ({
      writeZeros: async (offset, length) => {
        nowMs += 5_000;
        await open.writeZeros(offset, length);
      },
    })),
    checkAttached: async () => {
      looks += 1;
      if (looks === 2) throw new DeviceError('is gone', { loss: 'vanished' });
    },
  }));
  const end = await run({ context: { devices, clock: slow } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceVanished' });
  expect(image('sda').includes('PATTERN!')).toBe(true);
  expect(Number(end.evidence?.devices?.[0]?.bytesWritten)).toBeGreaterThan(0);
});

test('every device is let go at the end, however the step ended', async () => {
  addDisk('sda');
  addDisk('sdb', { faults: [{ kind: 'lying', operation: 'discard' }] });
  const held = new Set<string>();
  const devices = heldAs((open, name) => {
    held.add(name);
    const close = async (): Promise<void> => {
      held.delete(name);
      await open.close();
    };
    return { close };
  });
  expect((await run({ context: { devices } })).result.kind).toBe('failed');
  expect(held.size).toBe(0);
  const stage = () => Promise.reject(new Error('the record is not safe'));
  await expect(run({ context: { devices, recordStage: stage } })).rejects.toThrow(
    'the record is not safe',
  );
  expect(held.size).toBe(0);
});

test('one device that has vanished names the failure, whatever else failed', async () => {
  addDisk('sda');
  addDisk('sdb');
  const devices = heldAs((held, name) => {
    const loss = name === 'sdb' ? { loss: 'vanished' as const } : {};
    const discard = () => Promise.reject(new DeviceError('it failed', loss));
    return regionsAs(held, () => ({ discard }));
  });
  const end = await run({ context: { devices } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceVanished' });
});

test('a rereading that cannot read proves nothing, and does not call data back', async () => {
  addDisk('sda');
  const { devices: order } = await fileDisks(folder, clock).list();
  const asked = order.map((device) => ({
    ...{ device: storageDeviceOf(device), method: methodToWire('discard') },
    rereadDelay: durationFromMs(50),
  }));
  let isAgain = false;
  const devices = heldAs((held) =>
    regionsAs(held, (open) => ({
      readInto: (offset, target) =>
        isAgain
          ? Promise.reject(new DeviceError('no answer', { operation: 'read' }))
          : open.readInto(offset, target),
    })),
  );
  const progress = (_percent: number, text: string): void => {
    isAgain ||= text.includes('waits');
  };
  const plans = create(agent.RunStepSchema, { devices: asked }).devices;
  const end = await run({
    order: { devices: plans },
    context: { devices, reportProgress: progress },
  });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'unverified' });
  expect(messageOf(end)).not.toContain('read again after');
});

test.each([15, 65])('a challenge seed of %d bytes is refused', async (length) => {
  addDisk('sda');
  const end = await run({ order: { challengeSeed: new Uint8Array(length) } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
  expect(image('sda').includes('PATTERN!')).toBe(true);
});

test('progress is reported for the whole step and for each device, in percent', async () => {
  addDisk('sda', { discardSupported: false }, undefined, 8 * mib);
  const told: [number, string][] = [];
  const progress = (percent: number, text: string): void => void told.push([percent, text]);
  await run({ context: { reportProgress: progress } });
  expect(told.at(-1)).toEqual([100, 'S-sda: 100 %, done']);
  for (const [percent, text] of told) {
    expect(text).toMatch(new RegExp(`^S-sda: ${percent} %, `));
    expect(percent).toBeLessThanOrEqual(100);
  }
  expect(told.some(([percent]) => percent > 0 && percent < 100)).toBe(true);
});

import { asMac } from '@rackwright/dhcp';
import type { Clock, Log } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import type { BootMemory } from './memory.ts';
import { makeBootGate, type NetbootObservation } from './observation.ts';

const mac = asMac('52:54:00:77:00:01');
const clock: Clock = { nowMs: () => 5_000, suspendAwareMs: () => 5_000, after: () => () => {} };

function logInto(lines: string[]): Log {
  return recordingLog(({ message }) => void lines.push(message));
}

function memoryWith(expiresAtMs: number): BootMemory {
  const grant = { hostUid: 'u1', operationId: 'o', bootToken: 't', openedAtMs: 1, expiresAtMs };
  const hosts = [{ hostUid: 'u1', hostName: 'one', macs: [mac] }];
  return { snapshot: { generation: 1, hosts }, grants: [grant] };
}

test('the server informs the observer of every request, permitted or not, and logs few', () => {
  const observed: NetbootObservation[] = [];
  const lines: string[] = [];
  let memory = memoryWith(6_000);
  const onNetboot = (one: NetbootObservation) => observed.push(one);
  const bootGate = makeBootGate({ clock, log: logInto(lines), memory: () => memory, onNetboot });
  expect(bootGate(mac, 'dhcp').kind).toBe('runner');
  memory = memoryWith(4_000);
  expect(bootGate(mac, 'script').kind).toBe('localBoot');
  expect(observed).toEqual([
    { mac, hostUid: 'u1', stage: 'dhcp', permitted: true, atMs: 5_000 },
    { mac, hostUid: 'u1', stage: 'script', permitted: false, atMs: 5_000 },
  ]);
  for (let round = 0; round < 1_000; round += 1) bootGate(asMac('52:54:00:77:00:99'), 'dhcp');
  expect(observed).toHaveLength(1_002);
  expect(observed.at(-1)).not.toHaveProperty('hostUid');
  expect(lines).toHaveLength(20);
});

test('an observer that throws costs a log line, not a boot', () => {
  const lines: string[] = [];
  const onNetboot = () => {
    throw new Error('planted');
  };
  const bootGate = makeBootGate({
    clock,
    log: logInto(lines),
    memory: () => memoryWith(6_000),
    onNetboot,
  });
  expect(bootGate(mac, 'dhcp').kind).toBe('runner');
  expect(lines).toEqual(['netboot', 'observer of netboots failed']);
});

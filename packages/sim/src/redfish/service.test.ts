import type { Clock } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { EventHeap } from '../heap.ts';
import type { RedfishAnswer, RedfishJsonObject } from './messages.ts';
import type { PowerOnBoot, RedfishServiceOptions } from './options.ts';
import { RedfishService } from './service.ts';

const account = { user: 'admin', password: 'secret' };
const basic = { authorization: `Basic ${Buffer.from('admin:secret').toString('base64')}` };
const system = '/redfish/v1/Systems/1';
const sessions = '/redfish/v1/SessionService/Sessions';

function setUp(changes: Partial<RedfishServiceOptions> = {}) {
  const heap = new EventHeap();
  const clock: Clock = {
    nowMs: () => heap.nowMs,
    suspendAwareMs: () => heap.nowMs,
    after: (delayMs, callback) => heap.after(delayMs, callback),
  };
  const boots: PowerOnBoot[] = [];
  let isOn = false;
  const service = new RedfishService(clock, {
    ...account,
    identity: { uuid: 'u', serial: 's', manufacturer: 'm', model: 'o' },
    machine: {
      powerOn: (boot) => {
        isOn = true;
        boots.push(boot);
      },
      powerOff: () => {
        isOn = false;
      },
      isOn: () => isOn,
    },
    ...changes,
  });
  const call = (
    method: string,
    target: string,
    body?: RedfishJsonObject,
    headers = {},
  ): RedfishAnswer =>
    service.answer({
      method,
      target,
      headers: { ...basic, ...headers },
      body: body === undefined ? '' : JSON.stringify(body),
    });
  const pass = (forMs: number) => {
    // Time moves with events only.
    heap.after(forMs, () => {});
    return heap.run(heap.nowMs + forMs, () => false);
  };
  const reset = (ResetType: string) =>
    call('POST', `${system}/Actions/ComputerSystem.Reset`, { ResetType });
  const read = () => JSON.parse(call('GET', system).body);
  return { service, call, pass, reset, read, boots };
}

describe('power', () => {
  test('changes seconds after the command, at the same time for one seed', async () => {
    const seen: number[] = [];
    for (const seed of [1, 1, 2]) {
      const { reset, read, pass } = setUp({ seed, habits: { powerDelayMs: [1_000, 11_000] } });
      expect(reset('On').status).toBe(204);
      expect(read().PowerState).toBe('Off');
      let waitedMs = 0;
      for (; read().PowerState === 'Off'; waitedMs += 100) await pass(100);
      expect(waitedMs).toBeGreaterThanOrEqual(1_000);
      expect(waitedMs).toBeLessThanOrEqual(11_100);
      seen.push(waitedMs);
    }
    expect(seen[0]).toBe(seen[1]);
    expect(seen[0]).not.toBe(seen[2]);
  });

  test('is said to be on its way by a BMC with that habit', async () => {
    const habits = { powerDelayMs: [1_000, 1_000], showsTransitions: true } as const;
    const { reset, read, pass } = setUp({ habits });
    reset('On');
    expect(read().PowerState).toBe('PoweringOn');
    await pass(1_500);
    expect(read().PowerState).toBe('On');
    reset('ForceOff');
    expect(read().PowerState).toBe('PoweringOff');
    reset('On');
    expect(read().PowerState).toBe('On');
  });

  test('is answered with 204, without an act, if it is as requested already', async () => {
    const { reset, pass, service } = setUp();
    expect(reset('ForceOff').status).toBe(204);
    await pass(60_000);
    expect(service.switches()).toBe(0);
  });

  test('is that of the newest command', async () => {
    const { reset, pass, boots, service } = setUp({ habits: { powerDelayMs: [1_000, 1_000] } });
    reset('On');
    await pass(500);
    reset('ForceOff');
    await pass(5_000);
    expect(boots).toEqual([]);
    expect(service.switches()).toBe(0);
  });

  test('goes off and on for a restart, and boots as asked for once', async () => {
    const { reset, call, pass, boots, read } = setUp();
    reset('On');
    await pass(5_000);
    const Boot = { BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: 'UefiHttp' };
    call('PATCH', system, { Boot });
    reset('ForceRestart');
    await pass(5_000);
    reset('PowerCycle');
    await pass(5_000);
    expect(boots.map(({ device }) => device)).toEqual(['none', 'uefiHttp', 'none']);
    expect(read().Boot).toMatchObject({ BootSourceOverrideEnabled: 'Disabled' });
  });

  test('stays as it is when the machine fails to switch', async () => {
    const errors: unknown[] = [];
    const machine = {
      powerOn: () => Promise.reject(new Error('no current')),
      powerOff: () => {},
      isOn: () => false,
    };
    const onMachineError = (error: unknown) => void errors.push(error);
    const { reset, pass, read } = setUp({ machine, onMachineError });
    reset('On');
    await pass(5_000);
    expect(read().PowerState).toBe('Off');
    expect(errors).toEqual([new Error('no current')]);
  });
});

describe('values that it does not know', () => {
  const Boot = { BootSourceOverrideTarget: 'BiosSetup', BootSourceOverrideEnabled: 'Once' };

  test('are refused', () => {
    const { call, reset } = setUp();
    expect(reset('Suspend').status).toBe(400);
    expect(call('PATCH', system, { Boot }).status).toBe(400);
    expect(call('PATCH', system, { PowerState: 'On' }).status).toBe(400);
  });

  test('do nothing with 204, where that is its habit', () => {
    const { call, reset, read } = setUp({ habits: { unknownValues: 'ignored' } });
    expect(reset('Suspend').status).toBe(204);
    expect(call('PATCH', system, { Boot }).status).toBe(204);
    expect(read().Boot).toMatchObject({ BootSourceOverrideEnabled: 'Disabled' });
  });
});

describe('accounts', () => {
  const signIn = (call: ReturnType<typeof setUp>['call'], Password: string) =>
    call('POST', sessions, { UserName: 'admin', Password });

  test('lock after some failures, and open again by themselves', async () => {
    const { call, pass } = setUp({ habits: { lockOut: { failuresMax: 3, forMs: 10_000 } } });
    for (let count = 0; count < 3; count += 1) expect(signIn(call, 'wrong').status).toBe(401);
    const locked = signIn(call, 'secret');
    expect(locked.status).toBe(401);
    expect(locked.body).toContain('the account is locked for 10 s');
    await pass(10_001);
    expect(signIn(call, 'secret').status).toBe(201);
  });

  test('have few sessions, which end when nobody uses them', async () => {
    const { call, pass } = setUp({ habits: { sessionsMax: 1, sessionIdleMs: 1_000 } });
    const first = signIn(call, 'secret');
    const token = { 'x-auth-token': first.headers['x-auth-token'] };
    expect(signIn(call, 'secret').status).toBe(503);
    await pass(900);
    expect(call('GET', system, undefined, token).status).toBe(200);
    await pass(1_001);
    expect(call('GET', system, undefined, token).status).toBe(401);
    expect(signIn(call, 'secret').status).toBe(201);
  });

  test('end their sessions when the password is changed', () => {
    const { call, service } = setUp();
    const token = { 'x-auth-token': signIn(call, 'secret').headers['x-auth-token'] };
    service.setPassword('new');
    expect(call('GET', system, undefined, token).status).toBe(401);
    expect(signIn(call, 'secret').status).toBe(401);
    expect(signIn(call, 'new').status).toBe(201);
  });
});

test('a list comes in pages, each with the number of all members', () => {
  const inventory = { memory: [1, 2, 3].map((one) => ({ capacityMiB: 1, serial: `${one}` })) };
  const { call } = setUp({ inventory, habits: { membersPerPage: 2 } });
  const first = JSON.parse(call('GET', `${system}/Memory`).body);
  expect(first.Members).toHaveLength(2);
  expect(first['Members@odata.count']).toBe(3);
  const second = JSON.parse(call('GET', first['Members@odata.nextLink']).body);
  expect(second.Members).toEqual([{ '@odata.id': `${system}/Memory/3` }]);
  expect(second['Members@odata.nextLink']).toBeUndefined();
});

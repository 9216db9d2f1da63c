import { expect, test } from 'vitest';
import { type CallerConnection, Callers } from './callers.ts';

const limits = { connectionsMax: 20, connectionsPerAddressMax: 3, connectionsPerHostMax: 2 };

function admitted(callers: Callers, address: string): CallerConnection {
  const caller = callers.admit(address);
  if (caller === undefined) throw new Error(`${address} was refused`);
  return caller;
}

test('hosts behind one address do not take each other their connections', () => {
  const callers = new Callers(limits);
  for (const host of ['one', 'two', 'three']) {
    for (let index = 0; index < 2; index += 1) {
      expect(callers.name(admitted(callers, 'nat'), host), host).toBe(true);
    }
  }
  expect(callers.name(admitted(callers, 'nat'), 'one')).toBe(false);
  expect(callers.name(admitted(callers, 'elsewhere'), 'one')).toBe(true);
});

test('a connection that asks for no host is limited by its address', () => {
  const callers = new Callers(limits);
  const all = [1, 2, 3].map(() => admitted(callers, 'one'));
  expect(callers.admit('one')).toBeUndefined();
  expect(callers.admit('two')).toBeDefined();
  expect(callers.name(all[0] as CallerConnection, 'host')).toBe(true);
  expect(callers.admit('one')).toBeDefined();
  expect(callers.admit('one')).toBeUndefined();
});

test('one address has at most half of all, for however many hosts it speaks', () => {
  const callers = new Callers(limits);
  for (let index = 0; index < 10; index += 1) {
    callers.name(admitted(callers, 'one'), `host-${index}`);
  }
  expect(callers.admit('one')).toBeUndefined();
  expect(callers.admit('two')).toBeDefined();
});

test('addresses of one IPv6 network have at most half of all together', () => {
  const callers = new Callers(limits);
  const at = (n: number, network = '2001:db8:1:2') => `${network}::${n}`;
  const all = Array.from({ length: 10 }, (_, n) => admitted(callers, at(n + 1)));
  expect(callers.admit(at(11))).toBeUndefined();
  expect(callers.admit(at(1, '2001:db8:1:3'))).toBeDefined();
  expect(callers.admit('192.0.2.7')).toBeDefined();
  for (const one of all) callers.leave(one);
  expect(callers.admit(at(11))).toBeDefined();
});

test('a closed connection makes room; a connection stays with its first host', () => {
  const callers = new Callers(limits);
  const [first, second] = [admitted(callers, 'nat'), admitted(callers, 'nat')];
  for (const one of [first, second]) callers.name(one, 'host');
  expect(callers.name(first, 'other')).toBe(true);
  const third = admitted(callers, 'nat');
  expect(callers.name(third, 'host')).toBe(false);
  callers.leave(first);
  expect(callers.name(third, 'host')).toBe(true);
  callers.leave(second);
  callers.leave(third);
  const again = [1, 2, 3].map(() => admitted(callers, 'nat'));
  expect(again.slice(1).map((one) => callers.name(one, 'host'))).toEqual([true, true]);
});

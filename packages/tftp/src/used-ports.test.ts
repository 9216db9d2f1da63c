import { expect, test } from 'vitest';
import { UsedPorts, usedPortLimitsDefault } from './used-ports.ts';

const { lateMs, rememberedMs } = usedPortLimitsDefault;
const [one, other] = [new Uint8Array([0, 1, 65]), new Uint8Array([0, 1, 66])];
const port = '192.0.2.7 2070';

test('a request begins at once at a port that was not used, whatever others do', () => {
  const ports = new UsedPorts();
  expect(ports.judge(port, one, 0)).toEqual({ kind: 'first' });
  ports.noteDatagram(port, 0);
  ports.noteStart('192.0.2.7 2071', one, 0);
  expect(ports.judge(port, one, 1)).toEqual({ kind: 'first' });
});

test('another request waits until what was on its way has come, for as long as it is known', () => {
  const ports = new UsedPorts();
  ports.noteStart(port, one, 0);
  const again = { kind: 'again', afterMs: lateMs };
  expect(ports.judge(port, other, 1)).toEqual(again);
  ports.noteDatagram(port, 5_000);
  expect(ports.judge(port, other, 5_000 + rememberedMs)).toEqual(again);
  expect(ports.judge(port, other, 5_001 + rememberedMs)).toEqual({ kind: 'first' });
});

test('a request that was made there is late until nothing came for a while', () => {
  const ports = new UsedPorts();
  ports.noteStart(port, one, 0);
  expect(ports.judge(port, one, lateMs)).toEqual({ kind: 'late' });
  ports.noteDatagram(port, 1_000);
  expect(ports.judge(port, one, 1_000 + lateMs)).toEqual({ kind: 'late' });
  expect(ports.judge(port, one, 1_001 + lateMs)).toMatchObject({ kind: 'again' });
});

test('a copy of the request before the last is late too', () => {
  const ports = new UsedPorts();
  ports.noteStart(port, one, 0);
  ports.noteStart(port, other, 10);
  expect(ports.judge(port, one, 20)).toEqual({ kind: 'late' });
});

test('ports beyond the limit push out the one heard longest ago, and requests the oldest', () => {
  const ports = new UsedPorts({ ...usedPortLimitsDefault, portsMax: 2 });
  ports.noteStart('a', one, 0);
  ports.noteStart('b', one, 1);
  ports.noteDatagram('a', 2);
  ports.noteStart('c', one, 3);
  expect(['a', 'b', 'c'].map((name) => ports.judge(name, one, 4).kind)).toEqual([
    ...['late', 'first', 'late'],
  ]);
  for (let byte = 0; byte < 4; byte += 1) ports.noteStart('a', new Uint8Array([byte]), 5);
  expect(ports.judge('a', one, 6).kind).toBe('again');
  expect(ports.judge('a', new Uint8Array([0]), 6).kind).toBe('again');
  expect(ports.judge('a', new Uint8Array([1]), 6).kind).toBe('late');
});

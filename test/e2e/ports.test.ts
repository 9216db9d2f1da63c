/** Every listening port but the boot path's refuses plain text. */
import { HostState } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { listeningPorts, plainAnswer } from './listening.ts';
import type { MachinePlan } from './machines.ts';
import { Rack } from './rack.ts';

const timeout = 600_000;
const waitMs = 120_000;
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};

const http1 = Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
/** RFC 9113 §3.4: the client's preface and an empty SETTINGS frame, without TLS before it. */
const http2 = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);
/** RFC 8446 §5.1: all that a TLS server may say to this. */
const alertRecord = 21;

test('every port but those of the boot path and the figures refuses plain text', {
  timeout,
}, async () => {
  const rack = await Rack.start({ machines: [machine] });
  try {
    await rack.untilHost('h1', 'available', ({ status }) => {
      return status?.state === HostState.AVAILABLE;
    });
    const boot = rack.bootHttpPort;
    const controlPlane = listeningPorts(rack.pidOf('controlplane'));
    const agent = listeningPorts(rack.pidOf('agent'));
    expect(controlPlane, 'operators, agents and figures').toHaveLength(3);
    expect(agent, 'HTTP boot, runners and figures').toHaveLength(3);
    expect(agent).toContain(boot);
    const [figures, others] = await divide([...controlPlane, ...agent]);
    expect(figures, 'of the control plane and of the agent').toHaveLength(2);
    for (const text of [http1, http2]) {
      for (const port of others.filter((each) => each !== boot)) {
        const { bytes, closed } = await plainAnswer(port, text, waitMs);
        expect(closed, `port ${port} hangs up`).toBe(true);
        expect([undefined, alertRecord]).toContain(bytes.at(0));
      }
    }
    const { bytes } = await plainAnswer(boot, http1, waitMs);
    expect(bytes.toString('latin1')).toMatch(/^HTTP\/1\.1 4/);
  } finally {
    await rack.stop();
  }
});

/** Figures are no secret, and stand on loopback: their ports answer in plain text. */
async function divide(ports: readonly number[]): Promise<[figures: number[], others: number[]]> {
  const figures: number[] = [];
  for (const port of ports) {
    const { bytes } = await plainAnswer(port, http1, waitMs);
    if (bytes.toString('latin1').includes('metrics are at /metrics')) figures.push(port);
  }
  return [figures, ports.filter((port) => !figures.includes(port))];
}

import type { Udp, UdpBind } from '@rackwright/platform';
import { nodeClock, nodeUdp } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { magicPacket, wakerBy } from './wake.ts';

const mac = '52:54:00:12:34:56';

test('a magic packet is six bytes FF and the address sixteen times', () => {
  const packet = Buffer.from(magicPacket(mac) ?? []).toString('hex');
  expect(packet).toBe('f'.repeat(12) + '525400123456'.repeat(16));
  expect(['', '52:54:00:12:34', '52-54-00-12-34-56', `${mac}:00`].map(magicPacket)).toEqual(
    Array(4).fill(undefined),
  );
});

test('a magic packet goes to port 9 of every network, also where another one is down', async () => {
  const bound: UdpBind[] = [];
  const sent: string[] = [];
  const udp: Pick<Udp, 'bind'> = {
    bind: async (options) => {
      if (options.address === '192.0.2.1') throw new Error('the interface is down');
      bound.push(options);
      return {
        local: { address: options.address, port: 40_000 },
        send: (datagram, to) => sent.push(`${datagram.length} ${to.address}:${to.port}`),
        close: () => sent.push('closed'),
      };
    },
  };
  await wakerBy(udp as Udp, nodeClock(), ['192.0.2.1', '198.51.100.1'])([mac, 'no address']);
  expect(bound).toEqual([{ address: '198.51.100.1', port: 0, broadcast: true }]);
  expect(sent).toEqual([...Array(3).fill('102 255.255.255.255:9'), 'closed']);
});

test('a real socket may send to everybody', async () => {
  const errors: string[] = [];
  const onError = ({ message }: Error) => errors.push(message);
  const real = nodeUdp();
  const bind = (options: UdpBind) => real.bind(options, { onDatagram: () => undefined, onError });
  await wakerBy({ ...real, bind }, nodeClock(), ['127.0.0.1'])([mac]);
  expect(errors.join()).not.toContain('EACCES');
});

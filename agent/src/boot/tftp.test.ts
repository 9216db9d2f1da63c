/** The TFTP server on loopback: its answers, and from which of its addresses they come. */
import type { Udp } from '@rackwright/platform';
import { nodeUdp } from '@rackwright/platform/node';
import { decodePacket, encodePacket } from '@rackwright/tftp';
import { expect, test } from 'vitest';
import { openMailbox } from './test-clients.ts';
import { type BootRig, startRig } from './test-rig.ts';

const loader = 'undionly.kpxe';
const silenceMs = 200;
/** Those of the loopback interface; the machine has any of 127.0.0.0/8. */
const own = new Map([['lo', ['127.0.0.1', '127.0.0.2']]]);

function readRequest(fileName: string): Uint8Array {
  return encodePacket({ kind: 'readRequest', fileName, mode: 'octet', options: [] });
}

/** The errors of this server answer requests; an error is never answered (RFC 1350 §7). */
test('an error is not answered, whole or cut, wherever it is sent', async () => {
  const rig = await startRig({});
  const [client, stranger] = [await openMailbox(), await openMailbox()];
  client.send(readRequest(loader), rig.services.tftpPort);
  const first = await client.next(2_000);
  const whole = encodePacket({ kind: 'error', code: 4, message: 'no' });
  const errors = [whole, whole.subarray(0, -1), whole.subarray(0, 4), whole.subarray(0, 2)];
  for (const port of [rig.services.tftpPort, first?.from.port ?? 0]) {
    for (const error of errors) stranger.send(error, port);
  }
  expect(await stranger.next(silenceMs)).toBeUndefined();
  await close(rig, client, stranger);
});

test('an error without the byte that ends its text ends its transfer', async () => {
  const rig = await startRig({});
  const client = await openMailbox();
  client.send(readRequest(loader), rig.services.tftpPort);
  const first = await client.next(2_000);
  client.send(
    encodePacket({ kind: 'error', code: 3, message: 'full' }).subarray(0, -1),
    first?.from.port ?? 0,
  );
  await expect.poll(() => rig.services.transfers()).toBe(0);
  await close(rig, client);
});

test.each(['127.0.0.1', '127.0.0.2'])('a request to %s is answered from there', async (asked) => {
  const rig = await everywhereRig(own);
  const client = await openMailbox();
  for (const fileName of [loader, 'none']) {
    client.send(readRequest(fileName), rig.services.tftpPort, asked);
    const answer = await client.next(2_000);
    expect(answer?.from.address, fileName).toBe(asked);
  }
  await close(rig, client);
});

test('an address that came later, and one without sockets of its own, are served too', async () => {
  // As with inherited sockets, beside which nobody may open the port.
  const udp: Udp = {
    bind: (options, handlers) => {
      if (options.share === 'join') return Promise.reject(new Error('EACCES'));
      return nodeUdp().bind(options, handlers);
    },
    connect: nodeUdp().connect,
  };
  for (const [asked, given] of [
    ['127.0.0.3', nodeUdp()],
    ['127.0.0.2', udp],
  ] as const) {
    const rig = await everywhereRig(own, given);
    const client = await openMailbox();
    client.send(readRequest(loader), rig.services.tftpPort, asked);
    const answer = await client.next(2_000);
    // tftp-hpa takes the port of the answer and keeps sending to the address of its request.
    client.send(encodePacket({ kind: 'ack', block: 1 }), answer?.from.port ?? 0, asked);
    const second = await client.next(2_000);
    expect(decodePacket(second?.datagram ?? new Uint8Array())).toMatchObject({ block: 2 });
    await close(rig, client);
  }
});

test('a second server on the port is refused', async () => {
  const rig = await everywhereRig(own);
  const tftp = { address: '0.0.0.0', port: rig.services.tftpPort };
  await expect(startRig({ config: { tftp }, ownAddresses: () => own })).rejects.toThrow(
    'EADDRINUSE',
  );
  await close(rig);
});

function everywhereRig(
  addresses: ReadonlyMap<string, readonly string[]>,
  udp = nodeUdp(),
): Promise<BootRig> {
  const tftp = { address: '0.0.0.0', port: 0 };
  return startRig({ config: { tftp }, udp, ownAddresses: () => addresses });
}

async function close(rig: BootRig, ...mailboxes: { close(): void }[]): Promise<void> {
  for (const mailbox of mailboxes) mailbox.close();
  await rig.close();
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inheritedDescriptors, openInherited } from './inherited.ts';

describe('inherited descriptors', () => {
  test('are counted from three, for the process that they are meant for', () => {
    expect(inheritedDescriptors({ LISTEN_PID: '7', LISTEN_FDS: '2' }, 7)).toEqual([
      { fd: 3, name: '' },
      { fd: 4, name: '' },
    ]);
    expect(inheritedDescriptors({ LISTEN_PID: '8', LISTEN_FDS: '2' }, 7)).toEqual([]);
    expect(inheritedDescriptors({}, 7)).toEqual([]);
  });

  test('have the names that the supervisor has given them', () => {
    const environment = { LISTEN_PID: '7', LISTEN_FDS: '3', LISTEN_FDNAMES: 'eth1:eth1:eth2.7' };
    const names = inheritedDescriptors(environment, 7).map(({ name }) => name);
    expect(names).toEqual(['eth1', 'eth1', 'eth2.7']);
  });

  test('are refused when their number is none', () => {
    expect(() => inheritedDescriptors({ LISTEN_PID: '7', LISTEN_FDS: '1e9' }, 7)).toThrow(
      'LISTEN_FDS has to be a number up to 96',
    );
  });

  test('are of no interface when there are none', async () => {
    expect((await openInherited([])).interfaces).toBe(0);
  });

  test('are refused when they are no sockets', async () => {
    const file = await open(import.meta.filename);
    try {
      await expect(openInherited([{ fd: file.fd, name: '' }])).rejects.toThrow(
        'is no UDP socket over IPv4',
      );
    } finally {
      await file.close();
    }
  });
});

/** Binds two sockets of one port, on two addresses of loopback, and hands them to a child. */
const parent = `
const { createSocket } = require('node:dgram');
const { spawn } = require('node:child_process');
const bind = (address, port) => new Promise((resolve) => {
  const socket = createSocket('udp4');
  socket.bind(port, address, () => resolve(socket));
});
(async () => {
  const one = await bind('127.0.0.1', 0);
  const { port } = one.address();
  const two = await bind('127.0.0.2', port);
  // What arrives is for the child: a supervisor does not read it either.
  const fd = (socket) => {
    const symbol = Object.getOwnPropertySymbols(socket).find(
      ({ description }) => description === 'state symbol');
    socket[symbol].handle.recvStop();
    return socket[symbol].handle.fd;
  };
  const script = 'LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=one:two ' +
    'exec "$0" --input-type=module -e "$1"';
  const child = spawn('/bin/sh', ['-c', script, process.execPath, process.env.CHILD], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['inherit', 'inherit', 'inherit', fd(one), fd(two)],
  });
  child.once('exit', (code) => process.exit(code ?? 1));
})();
`;

/** Serves both by one socket of the platform; then asks for the port once more. */
const child = `
import { nodeUdp } from '${join(import.meta.dirname, 'udp.ts')}';
import { inheritedDescriptors, openInherited } from '${join(import.meta.dirname, 'inherited.ts')}';
import { createSocket } from 'node:dgram';
const port = Number(process.env.PORT);
const inherited = await openInherited(inheritedDescriptors(process.env, process.pid));
const udp = nodeUdp(inherited);
const lines = [inherited.interfaces];
const onError = (error) => lines.push(error.message);
await udp.bind({ address: '0.0.0.0', port }, {
  onDatagram: (bytes, from, at) => at.send(Buffer.concat([Buffer.from('re:'), bytes]), from),
  onError,
});
const client = createSocket('udp4');
const ask = (word, address) => new Promise((resolve) => {
  client.once('message', (bytes, from) => {
    lines.push(bytes + ' from ' + from.address + (from.port === port ? '' : ', another port'));
    resolve();
  });
  client.send(word, port, address);
});
client.bind(0, '127.0.0.1', async () => {
  await ask('a', '127.0.0.1');
  await ask('b', '127.0.0.2');
  await udp.bind({ address: '127.0.0.1', port }, { onDatagram() {}, onError }).catch(
    (cause) => lines.push(cause.code));
  lines.push(inherited.closeRest().length);
  console.log(JSON.stringify(lines));
  process.exit(0);
});
`;

/** Serves each by a socket of its own, and asks for one of a name that none has. */
const apart = `
import { nodeUdp } from '${join(import.meta.dirname, 'udp.ts')}';
import { inheritedDescriptors, openInherited } from '${join(import.meta.dirname, 'inherited.ts')}';
import { createSocket } from 'node:dgram';
const port = Number(process.env.PORT);
const inherited = await openInherited(inheritedDescriptors(process.env, process.pid));
const udp = nodeUdp(inherited);
const lines = [...inherited.names];
const onError = (error) => lines.push(error.message);
const serve = (name) => udp.bind({ address: '0.0.0.0', port, interface: name }, {
  onDatagram: (bytes, from, at) => at.send(Buffer.from(name + ' heard ' + bytes), from),
  onError,
});
await serve('none').catch((cause) => lines.push(cause.message.replace(port, 'P')));
await serve('two');
await serve('one');
await serve('two').catch((cause) => lines.push(cause.message.replace(port, 'P')));
const client = createSocket('udp4');
const ask = (word, address) => new Promise((resolve) => {
  client.once('message', (bytes, from) => {
    lines.push(bytes + ' from ' + from.address);
    resolve();
  });
  client.send(word, port, address);
});
client.bind(0, '127.0.0.1', async () => {
  await ask('a', '127.0.0.1');
  await ask('b', '127.0.0.2');
  console.log(JSON.stringify(lines));
  process.exit(0);
});
`;

test('an inherited socket is given to whoever asks for its port and name', async () => {
  expect(await saidBy(apart)).toEqual([
    ...['one', 'two', 'no socket of port P on none was handed to this process'],
    'no socket of port P on two was handed to this process',
    ...['one heard a from 127.0.0.1', 'two heard b from 127.0.0.2'],
  ]);
});

test('inherited sockets of one port are one socket, each answers for its own address', async () => {
  const said = await saidBy(child);
  const answers = ['re:a from 127.0.0.1', 're:b from 127.0.0.2'];
  expect(said).toEqual([2, ...answers, 'EADDRINUSE', 0]);
});

/** The list that the script has printed, handed the sockets. */
async function saidBy(script: string): Promise<unknown> {
  const running = spawn(process.execPath, ['-e', parent], {
    env: { ...process.env, CHILD: script },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  running.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await once(running, 'close');
  return JSON.parse(said);
}

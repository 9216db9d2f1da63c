/** Our TFTP server and the clients of curl, tftp-hpa and atftp. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { peer, runPeer } from '../peer.ts';
import { type Served, serve } from './served.ts';

const sizes = [0, 511, 512, 513, 4 * 1024 * 1024];

/** 65,540 blocks of 8 bytes and a bit: the block number rolls over. */
const rollingBytes = 8 * 65_540 + 3;

let served: Served;
/** The same, at every address of the machine. */
let everywhere: Served;
/** The same, all of it from the port that is asked. */
let single: Served;
const singleSizes = [512, 513, 1024 * 1024 + 1];

beforeAll(async () => {
  served = await serve([...sizes, rollingBytes]);
  everywhere = await serve([513], { address: '0.0.0.0' });
  single = await serve(singleSizes, { transferPorts: 'single' });
});

afterAll(async () => {
  await served.close();
  await everywhere.close();
  await single.close();
});

interface Client {
  readonly name: string;
  readonly program: string;
  args(fileName: string, target: string, port: string): string[];
}

const clients: readonly Client[] = [
  {
    name: 'curl',
    program: 'curl',
    args: (name, target, port) => ['-sS', '-o', target, `tftp://127.0.0.1:${port}/${name}`],
  },
  {
    name: 'curl with blocks of 1428 bytes',
    program: 'curl',
    args: (name, target, port) => [
      ...['-sS', '--tftp-blksize', '1428'],
      ...['-o', target, `tftp://127.0.0.1:${port}/${name}`],
    ],
  },
  {
    name: 'curl without options',
    program: 'curl',
    args: (name, target, port) => [
      ...['-sS', '--tftp-no-options'],
      ...['-o', target, `tftp://127.0.0.1:${port}/${name}`],
    ],
  },
  {
    name: 'tftp-hpa',
    program: 'tftp',
    args: (name, target, port) => ['-m', 'binary', '127.0.0.1', port, '-c', 'get', name, target],
  },
  {
    name: 'atftp',
    program: 'atftp',
    args: (name, target, port) => ['-g', '-r', name, '-l', target, '127.0.0.1', port],
  },
  {
    name: 'atftp with windows of 4 blocks',
    program: 'atftp',
    args: (name, target, port) => [
      ...['--option', 'blksize 1428', '--option', 'windowsize 4', '--option', 'tsize 0'],
      ...['-g', '-r', name, '-l', target, '127.0.0.1', port],
    ],
  },
];

/** What the client stored, or its own words when it stored nothing. */
async function fetchWith(
  client: Client,
  path: string,
  name: string,
  from = served,
): Promise<Uint8Array> {
  const target = join(from.folder, `got-${client.name.replaceAll(' ', '-')}-${name}`);
  const port = String(from.services.tftpPort);
  const { code, output } = await runPeer(path, client.args(name, target, port));
  return readFile(target).catch(() => {
    throw new Error(`${client.name} stored nothing (code ${code}): ${output}`);
  });
}

describe.each(clients)('$name', (client) => {
  test.for(sizes)('fetches %i bytes unchanged', async (size, context) => {
    const found = peer(client.program);
    if (found.kind === 'missing') return context.skip(found.reason);
    const bytes = await fetchWith(client, found.path, `f${size}`);
    const wanted = served.contents.get(`f${size}`) ?? new Uint8Array();
    expect(Buffer.compare(bytes, wanted)).toBe(0);
  });

  test.for(singleSizes)('fetches %i bytes from a single port', async (size, context) => {
    const found = peer(client.program);
    if (found.kind === 'missing') return context.skip(found.reason);
    const bytes = await fetchWith(client, found.path, `f${size}`, single);
    const wanted = single.contents.get(`f${size}`) ?? new Uint8Array();
    expect(Buffer.compare(bytes, wanted)).toBe(0);
  });
});

/** tftp-hpa goes on speaking to the address that it asked, whatever the answer comes from. */
test.for([
  ['tftp', (to: string, port: string) => hpa('127.0.0.2', port, '//f513', to)],
  ['busybox', (to: string, port: string) => busybox('127.0.0.2', port, '//f513', to)],
] as const)('%s fetches from our second address', async ([program, args], context) => {
  const found = peer(program);
  if (found.kind === 'missing') return context.skip(found.reason);
  const target = join(served.folder, `second-${program}`);
  const port = String(everywhere.services.tftpPort);
  const { output } = await runPeer(found.path, args(target, port), 10_000);
  const bytes = await readFile(target).catch(() => {
    throw new Error(`${program} stored nothing: ${output}`);
  });
  expect(Buffer.compare(bytes, everywhere.contents.get('f513') ?? new Uint8Array())).toBe(0);
});

/** Given more than two names, tftp-hpa fetches one after the other from one port of its own. */
test('tftp-hpa fetches one file after the other from a single port', async (context) => {
  const found = peer('tftp');
  if (found.kind === 'missing') return context.skip(found.reason);
  const { folder, services, contents } = single;
  const names = singleSizes.map((size) => `f${size}`);
  const line = `-m binary 127.0.0.1 ${services.tftpPort} -c get ${names.join(' ')}`;
  const { output } = await runPeer('/bin/sh', ['-c', `cd ${folder} && ${found.path} ${line}`]);
  for (const name of names) {
    const bytes = await readFile(join(folder, name));
    expect(Buffer.compare(bytes, contents.get(name) ?? new Uint8Array()), output).toBe(0);
  }
});

function hpa(address: string, port: string, name: string, target: string): string[] {
  return ['-m', 'binary', address, port, '-c', 'get', name, target];
}

function busybox(address: string, port: string, name: string, target: string): string[] {
  return ['tftp', '-g', '-r', name, '-l', target, address, port];
}

test('curl follows block numbers that roll over', async (context) => {
  const found = peer('curl');
  if (found.kind === 'missing') return context.skip(found.reason);
  const small: Client = {
    name: 'curl with blocks of 8 bytes',
    program: 'curl',
    args: (name, target, port) => [
      ...['-sS', '--tftp-blksize', '8'],
      ...['-o', target, `tftp://127.0.0.1:${port}/${name}`],
    ],
  };
  const bytes = await fetchWith(small, found.path, `f${rollingBytes}`);
  expect(Buffer.compare(bytes, served.contents.get(`f${rollingBytes}`) ?? new Uint8Array())).toBe(
    0,
  );
});

test('curl tells its user that a file is not there', async (context) => {
  const found = peer('curl');
  if (found.kind === 'missing') return context.skip(found.reason);
  const url = `tftp://127.0.0.1:${served.services.tftpPort}/none`;
  const { code } = await runPeer(found.path, ['-sS', '-o', '/dev/null', url]);
  // curl's "file not found on TFTP server".
  expect(code).toBe(68);
});

/** The agent's process itself, up to where it refuses to start. */
import { spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

const main = join(import.meta.dirname, 'main.ts');
let folder: string;
let sockets: Socket[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-'));
  sockets = [];
});
afterEach(() => {
  for (const socket of sockets) socket.close();
  rmSync(folder, { recursive: true });
});

async function bind(address: string, port: number): Promise<number> {
  const socket = createSocket('udp4');
  sockets.push(socket);
  socket.bind(port, address);
  await once(socket, 'listening');
  return socket.address().port;
}

/** The number of a socket's descriptor, which Node keeps to itself. */
function descriptorOf(socket: Socket): number {
  const name = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === 'state symbol',
  );
  const state = Reflect.get(socket, name ?? '') as { readonly handle: { readonly fd: number } };
  return state.handle.fd;
}

/** Runs the agent with these sockets handed to it, as systemd does. */
async function run(
  names = '',
  networks = 'serverAddress: 127.0.0.1',
): Promise<{ readonly code: unknown; readonly said: string }> {
  const config = join(folder, 'agent.yaml');
  const files = 'files: [{name: vmlinuz, path: /v}, {name: initrd, path: /i}]';
  writeFileSync(config, `{${networks}, ${files}, stateFolder: ${join(folder, 'state')}}\n`);
  const handed = `LISTEN_FDS=${sockets.length} LISTEN_FDNAMES=${names}`;
  const script = `LISTEN_PID=$$ ${handed} exec "$0" "$@"`;
  const args = ['-c', script, process.execPath, main, 'run', '--config', config];
  const child = spawn('/bin/sh', args, {
    stdio: ['ignore', 'ignore', 'pipe', ...sockets.map(descriptorOf)],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  return { code, said };
}

test('sockets of a second interface are refused, because hosts are told one address', async () => {
  const port = await bind('127.0.0.1', 0);
  await bind('127.0.0.2', port);
  const { code, said } = await run();
  expect(code).toBe(1);
  expect(said).toContain('is enabled for 2 interfaces, and hosts are told of one serverAddress');
});

test('several ports of one interface do not count as several interfaces', async () => {
  await bind('127.0.0.1', 0);
  await bind('127.0.0.1', 0);
  const { code, said } = await run();
  expect(code).toBe(1);
  // It goes on, and finds out that it has joined no rack.
  expect(said).not.toContain('.socket');
  expect(said).toContain('join');
});

const listed = 'interfaces: [{name: one, serverAddress: 127.0.0.1}, {name: two, serverAddress: X}]';
const both = listed.replace('X', '127.0.0.2');

test('the agent takes the sockets of the interfaces that are listed', async () => {
  const port = await bind('127.0.0.1', 0);
  await bind('127.0.0.2', port);
  const { code, said } = await run('one:two', both);
  expect(code).toBe(1);
  expect(said).not.toContain('.socket');
  expect(said).toContain('join');
});

test('the agent starts without an interface that is not there yet, and says so', async () => {
  await bind('127.0.0.1', 0);
  const { said } = await run('one', both);
  expect(said).toMatch(/"interface":"two".*is not there yet/);
  expect(said).toContain('join');
  // It also says that the interface "one" does not have the address.
  expect(said).toContain('hosts on one are told 127.0.0.1, which is no address of it but of lo');
});

test('a contradictory configuration is shown with its line, and no restart follows', async () => {
  const { code, said } = await run('', 'serverAddress: 127.0.0.1, http: {port: 7443}');
  expect(code).toBe(2);
  expect(said).toContain('agent.yaml:1: http.port has to be another than runner.port\n');
});

test('a failed start is counted, but not one with a wrong configuration', async () => {
  const count = join(folder, 'failed-starts');
  process.env['RUNTIME_DIRECTORY'] = folder;
  try {
    await run();
    expect(existsSync(count)).toBe(true);
    await run('', 'serverAddress: 127.0.0.1, http: {port: 7443}');
    expect(existsSync(count)).toBe(false);
  } finally {
    delete process.env['RUNTIME_DIRECTORY'];
  }
});

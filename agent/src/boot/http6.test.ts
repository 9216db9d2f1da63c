/** Scripts and files over IPv6, on loopback: the same rules, and URLs that lead back there. */
import { networkInterfaces } from 'node:os';
import type { Udp } from '@rackwright/platform';
import { nodeUdp } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { bootProblems } from './config.ts';
import { grantedMac, knownMac, rigConfig, startRig, unknownMac } from './test-rig.ts';

const here = '::1';
const hasIpv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === here),
);
const noIpv6 = 'this machine has no IPv6 on loopback';
const http = { address: '0.0.0.0', port: 0 };
/** The second address of loopback stands for an address that hosts are given. */
const other = '127.0.0.2';
/** The address of an interface's socket: any. */
const udp: Udp = {
  bind: ({ interface: _name, ...rest }, handlers) => nodeUdp().bind(rest, handlers),
  connect: nodeUdp().connect,
};

test('a host is given its boot over IPv6 by the same grant', async (context) => {
  if (!hasIpv6) return context.skip(noIpv6);
  const rig = await startRig({ interface: { serverAddress6: here }, config: { http } });
  try {
    const root = `http://[${here}]:${rig.services.httpPort}`;
    const ask = (path: string) => fetch(`${root}${path}`);
    const script = await (await ask(`/boot/${grantedMac}/script.ipxe`)).text();
    const files = `${root}/boot/${grantedMac.replaceAll(':', '-')}/files`;
    expect(script).toContain(`kernel ${files}/vmlinuz `);
    expect(script).toContain(`initrd --name initrd ${files}/initrd`);
    // The runner dials by IPv4 as before.
    expect(script).toContain('rackwright.agent=127.0.0.1:7443');
    const initrd = await (await fetch(`${files}/initrd`)).bytes();
    expect(Buffer.compare(initrd, rig.contents['initrd'] ?? new Uint8Array())).toBe(0);
    expect((await ask('/files/snponly.efi')).status).toBe(200);
    expect(await (await ask(`/boot/${knownMac}/script.ipxe`)).text()).toContain('no boot grant');
    expect((await ask(`/boot/${knownMac}/files/initrd`)).status).toBe(403);
    expect((await ask(`/boot/${unknownMac}/script.ipxe`)).status).toBe(404);
    const by4 = await (await fetch(rig.url(`/boot/${grantedMac}/script.ipxe`))).text();
    expect(by4).toContain(`kernel http://127.0.0.1:${rig.services.httpPort}/boot/`);
  } finally {
    await rig.close();
  }
});

test('an address that no host is told of gets no script', async (context) => {
  if (!hasIpv6) return context.skip(noIpv6);
  const rig = await startRig({ interface: { serverAddress6: 'fd00::1' }, config: { http } });
  try {
    const root = `http://[${here}]:${rig.services.httpPort}`;
    expect((await fetch(`${root}/boot/${grantedMac}/script.ipxe`)).status).toBe(421);
    expect(rig.observed).toEqual([]);
    expect(rig.lines.at(-1)).toContain(`"client":"${here}"`);
  } finally {
    await rig.close();
  }
});

test('with several interfaces, who asks by IPv4 is told of that address', async (context) => {
  if (!hasIpv6) return context.skip(noIpv6);
  const dhcp = { mode: 'off' } as const;
  const interfaces = [
    { name: 'one', serverAddress: '127.0.0.1', serverAddress6: here, dhcp },
    { name: 'two', serverAddress: other, dhcp },
  ];
  const rig = await startRig({ config: { interfaces, http, tftp: { ...http, port: 0 } }, udp });
  try {
    const ask = (address: string) =>
      fetch(`http://${address}:${rig.services.httpPort}/boot/${grantedMac}/script.ipxe`);
    expect(await (await ask(other)).text()).toContain(`rackwright.agent=${other}:7443`);
    expect((await ask('127.0.0.3')).status).toBe(421);
    expect(rig.lines.at(-1)).toContain('"client":"127.0.0.1"');
  } finally {
    await rig.close();
  }
});

test('HTTP has to listen everywhere, and two interfaces have two addresses', () => {
  const one = rigConfig(67, { serverAddress6: 'fd00::1' });
  const [first] = one.interfaces;
  if (first === undefined) throw new Error('no interface');
  const files = ['vmlinuz', 'initrd'].map((name) => ({ name, path: name }));
  const loaderFiles = ['undionly.kpxe', 'snponly.efi'].map((name) => ({ name, path: name }));
  const all = { ...one, files, loaderFiles };
  expect(bootProblems(all)).toEqual([
    { key: 'http.address', text: 'has to be 0.0.0.0, the default, with serverAddress6' },
  ]);
  const two = [
    { ...first, name: 'one' },
    { ...first, name: 'two', serverAddress: other },
  ];
  expect(bootProblems({ ...all, interfaces: two, http })).toEqual([
    { key: 'interfaces', text: 'has to be with a serverAddress6 each, or none' },
  ]);
});

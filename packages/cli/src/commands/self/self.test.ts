/** What the command says of itself, and proposes; over a control plane that counts its calls. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AccessService,
  asRunNumber,
  bind,
  FleetService,
  HostSchema,
  HostService,
  RackService,
  RunKind,
  RunPhase,
} from '@rackwright/messages';
import { localChannel } from '@rackwright/rpc';
import { selfSigned } from '@rackwright/sim/loopback';
import { describe, expect, test } from 'vitest';
import { type GivenWorld, runOver } from '../../command-io.fixture.ts';
import { exitCodes } from '../../failure.ts';
import { widthOf } from '../../output/text.ts';
import { routeNames } from '../../routes.ts';
import { whyNotTrusted } from '../../unreached.ts';
import { version } from '../../version.ts';

const settings = {
  environment: {
    RACKWRIGHT_SERVER: 'box:7440',
    RACKWRIGHT_TOKEN_FILE: '/token',
    RACKWRIGHT_CA_FILE: '/ca',
  },
  files: { '/token': 'token', '/ca': 'ca' },
};

/** So many hosts, as lists tell them by pages of at most 1000. */
function fleetOf(count: number) {
  const calls: { filter: string; pageSize: number | undefined }[] = [];
  const all = Array.from(
    { length: count },
    (_, index): MessageInitShape<typeof HostSchema> => ({
      name: `hosts/node-${index + 1}`,
      status: {
        run: {
          kind: RunKind.CLEAN,
          number: asRunNumber(1),
          phase: RunPhase.RUNNING,
          startTime: timestampFromMs(0),
          steps: [{ name: 'deploy.erase_devices' }],
        },
        progress: { percent: 40 },
        faults: [{ type: 'identityMismatch', message: 'another machine answers' }],
      },
    }),
  );
  interface ListRequest {
    readonly filter: string;
    readonly pageSize?: number;
  }
  const listHosts = async ({ filter, pageSize }: ListRequest) => {
    calls.push({ filter, pageSize });
    const [, begin = ''] = /^name = (.*)\*$/.exec(filter) ?? [];
    const fits = all.filter(({ name = '' }) => name.startsWith(`hosts/${begin}`));
    const hosts = fits.slice(0, pageSize ?? 100).map((host) => create(HostSchema, host));
    return { hosts, nextPageToken: fits.length > hosts.length ? 'more' : '' };
  };
  const countHosts = async ({ groupBy }: { readonly groupBy: string }) => {
    calls.push({ filter: groupBy, pageSize: undefined });
    return { total: count, groups: [{ value: 'available', count }] };
  };
  const listRacks = async () => ({ racks: [{ name: 'racks/r1' }, { name: 'racks/r2' }] });
  const getFleet = async () => ({ status: { freeze: { by: 'user:ann', reason: 'a drill' } } });
  const whoAmI = async () => ({ serverVersion: '9.8.7' });
  const services = [
    bind(HostService, { listHosts, countHosts } as never),
    bind(RackService, { listRacks } as never),
    bind(FleetService, { getFleet } as never),
    bind(AccessService, { whoAmI } as never),
  ];
  return { calls, given: { ...settings, connect: () => localChannel(services) } };
}

describe('completion', () => {
  const propose = async (args: readonly string[], given: GivenWorld = {}) => {
    const { code, out, err } = await runOver(['__complete', ...args], given);
    expect([code, err]).toEqual([0, '']);
    return out
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split('\t')[0]);
  };

  test('proposes commands, flags and values', async () => {
    expect(await propose(['ho'])).toEqual(['host']);
    expect(await propose([''])).toEqual(expect.arrayContaining([...routeNames]));
    expect(await propose(['host', 'cl'])).toEqual(['clean', 'clean-steps', 'claim']);
    expect(await propose(['host', 'clean', 'h1', '--wa'])).toEqual(['--wait']);
    expect(await propose(['host', 'list', '-o', 'j'])).toEqual(['json']);
  });

  test('proposes names of hosts, racks and pools, by one page however many there are', async () => {
    const { calls, given } = fleetOf(5_000);
    const proposed = await propose(['host', 'clean', 'node-42'], given);
    expect(proposed).toContain('node-42');
    expect(proposed.length).toBeLessThanOrEqual(100);
    expect(calls).toEqual([{ filter: 'name = node-42*', pageSize: 100 }]);
    expect(await propose(['host', 'get', 'hosts/node-4999'], given)).toEqual(['hosts/node-4999']);
    expect(await propose(['rack', 'get', 'r'], given)).toEqual(['r1', 'r2']);
    expect(await propose(['host', 'list', '--rack', 'r2'], given)).toEqual(['r2']);
  });

  test('asks nothing for what begins no name', async () => {
    const { calls, given } = fleetOf(1);
    expect(await propose(['host', 'get', 'a" OR name = "b'], given)).toEqual([]);
    expect(calls).toEqual([]);
  });

  test('prints nothing when the control plane is not known, or does not answer', async () => {
    expect(await propose(['host', 'get', 'h'])).toEqual([]);
    const dead = { ...settings, environment: { ...settings.environment } };
    dead.environment.RACKWRIGHT_SERVER = '127.0.0.1:1';
    expect(await propose(['host', 'get', 'h'], dead)).toEqual([]);
    expect(await propose(['nothing', 'of', 'this'])).toEqual([]);
  });

  test.each(['bash', 'zsh', 'fish'])('has a script for %s', async (shell) => {
    const { code, out } = await runOver(['completion', shell]);
    expect([code, out]).toEqual([0, expect.stringContaining('__complete')]);
  });
});

describe('version', () => {
  test('is shown with that of the control plane beside it', async () => {
    const { code, out } = await runOver(['--version'], fleetOf(0).given);
    expect([code, out]).toEqual([0, `rackwright ${version}\ncontrol plane 9.8.7\n`]);
  });

  test('is told without a control plane, too', async () => {
    const { code, out } = await runOver(['version']);
    expect(code).toBe(0);
    expect(out).toContain(`rackwright ${version}\n`);
    expect(out).toContain('control plane is not known: the control plane is not known: give');
  });
});

describe('top', () => {
  test('asks for what fits, however large the fleet is', async () => {
    const { calls, given } = fleetOf(20_000);
    const { code, out } = await runOver(['top'], given);
    expect(code).toBe(0);
    expect(out).toContain('20000 hosts: 20000 available');
    expect(out).toContain('! frozen by user:ann: a drill');
    expect(out).toMatch(/hosts\/node-1 {2}clean 1: 1\/1 deploy.erase_devices .*40%/);
    expect(out).toContain("and 19979 more: rackwright host list --filter 'fault:*'");
    expect(calls).toHaveLength(5);
    expect(Math.max(...calls.map(({ pageSize = 0 }) => pageSize))).toBe(50);
  });

  test.each([80, 200])('fits %i columns', async (columns) => {
    const { out } = await runOver(['top', '--once'], { ...fleetOf(30).given, columns });
    for (const line of out.split('\n')) expect(widthOf(line)).toBeLessThan(columns);
    expect(out).toContain('RUNS');
  });

  test('draws its screen until Ctrl-C, and gives the terminal back', async () => {
    const signal = AbortSignal.timeout(400);
    const { code, out } = await runOver(['top'], { ...fleetOf(3).given, columns: 80, signal });
    expect(code).toBe(0);
    expect(out.startsWith('\x1b[?1049h')).toBe(true);
    expect(out.endsWith('\x1b[?1049l')).toBe(true);
  });
});

describe('what is not reached', () => {
  test('is shown with the address and what to look at', async () => {
    const environment = { ...settings.environment, RACKWRIGHT_SERVER: '127.0.0.1:1' };
    const { code, err } = await runOver(['host', 'list'], { ...settings, environment });
    expect(code).toBe(exitCodes.unreachable);
    expect(err).toContain('no control plane answers at 127.0.0.1:1. There is no connection');
    expect(err).toContain('connection: connection refused. Check --server, and that it runs');
  });

  test('a control plane with a wrong certificate is told by what is wrong with it', async () => {
    const { X509Certificate } = await import('node:crypto');
    const one = await selfSigned('one', '127.0.0.1');
    const other = await selfSigned('other', '127.0.0.1');
    const chain = [new X509Certificate(one.certificatePem)];
    const wanted = { server: '127.0.0.1:7440', caFile: 'ca.pem', caPem: other.certificatePem };
    const nowMs = chain[0]?.validFromDate.getTime() ?? 0;
    expect(whyNotTrusted(wanted, chain, nowMs)).toBe(
      '127.0.0.1:7440 shows a certificate that ca.pem did not sign; ' +
        'is this the right --ca-file, and the right --server?',
    );
    const right = { ...wanted, caPem: one.certificatePem };
    expect(whyNotTrusted(right, chain, nowMs)).toBeUndefined();
    expect(whyNotTrusted(right, chain, nowMs - 86_400_000)).toContain(
      'set the clock that is wrong',
    );
    const named = { ...right, server: 'cp.example:7440' };
    expect(whyNotTrusted(named, chain, nowMs)).toContain(
      'not for cp.example; give --server as one',
    );
  });
});

/** Requests for many hosts, over a control plane that counts its requests. */
import { create } from '@bufbuild/protobuf';
import {
  ApiFailure,
  bind,
  HostSchema,
  HostService,
  HostState,
  HostView,
} from '@rackwright/messages';
import { localChannel } from '@rackwright/rpc';
import { describe, expect, test } from 'vitest';
import { runOver } from '../../command-io.fixture.ts';
import { exitCodes } from '../../failure.ts';

const settings = {
  environment: {
    RACKWRIGHT_SERVER: 'box:7440',
    RACKWRIGHT_TOKEN_FILE: '/token',
    RACKWRIGHT_CA_FILE: '/ca',
  },
  files: { '/token': 'token', '/ca': 'ca' },
};

const hostOf = (number: number) =>
  create(HostSchema, {
    name: `hosts/h${number}`,
    spec: { rack: `racks/r${number % 2}` },
    status: {
      state: HostState.AVAILABLE,
      display: 'available',
      inventory: { devices: [{ sizeBytes: 480_000_000_000n }, { sizeBytes: 20_000_000_000n }] },
      ...(number === 1 ? { claim: { by: 'user:bob' } } : {}),
    },
  });

/** So many hosts, of which these refuse. */
function controlPlane(
  count: number,
  refusing: readonly string[] = [],
  whenAsked: () => void = () => undefined,
) {
  const asked: string[] = [];
  const lists: { filter: string; rack: string; view: HostView }[] = [];
  let now = 0;
  let most = 0;
  const hosts = Array.from({ length: count }, (_, index) => hostOf(index + 1));
  const take = async ({ name }: { readonly name: string }) => {
    whenAsked();
    now += 1;
    most = Math.max(most, now);
    await new Promise((resolve) => setImmediate(resolve));
    now -= 1;
    asked.push(name);
    if (refusing.includes(name)) {
      throw new ApiFailure({ kind: 'failedPrecondition', message: 'it is busy', reason: 'BUSY' });
    }
    return hosts.find((host) => host.name === name);
  };
  const services = [
    bind(HostService, {
      listHosts: async ({
        filter,
        rack,
        view,
        pageToken,
      }: (typeof lists)[0] & { pageToken: string }) => {
        lists.push({ filter, rack, view });
        const from = Number(pageToken || 0);
        const page = hosts.slice(from, from + 10);
        const next = from + 10 < count ? String(from + 10) : '';
        return { hosts: page, nextPageToken: next };
      },
      cleanHost: take,
      verifyHost: take,
      setHostPower: take,
    } as never),
  ];
  return { asked, lists, most: () => most, connect: () => localChannel(services) };
}

describe('a request for many hosts', () => {
  test('reports what is lost in numbers, and takes their number as the answer', async () => {
    const { asked, lists, connect } = controlPlane(14);
    const questions: string[] = [];
    const { code, err } = await runOver(['host', 'clean', '--filter', 'labels.site = fra1'], {
      ...settings,
      connect,
      answers: ['14'],
      questions,
    });
    expect([code, asked.length]).toEqual([0, 14]);
    expect(err).toContain('clean: 14 hosts in 2 racks: h1, h2, h3');
    expect(err).toContain('h12, and 2 more');
    expect(err).toContain('They are: 14 available, 1 claimed by somebody.');
    expect(questions).toEqual([
      'Wipe 14 hosts: 28 disks (7.0 TB)? All data is lost. Type 14 to go on: ',
    ]);
    expect(lists[0]).toEqual({ filter: 'labels.site = fra1', rack: '', view: HostView.FULL });
  });

  test('a request that destroys nothing needs only a yes, and reads no inventories', async () => {
    const { asked, lists, connect } = controlPlane(3);
    const given = { ...settings, connect, answers: ['y'] };
    expect((await runOver(['host', 'verify', '--rack', 'r1'], given)).code).toBe(0);
    expect(asked).toHaveLength(3);
    expect(lists).toEqual([{ filter: '', rack: 'racks/r1', view: HostView.BASIC }]);
  });

  test('asks as many at once as it is told, and no more', async () => {
    const { most, connect } = controlPlane(30);
    const args = ['host', 'power', 'off', '--rack', 'r1', '--yes', '--parallel', '5'];
    expect((await runOver(args, { ...settings, connect })).code).toBe(0);
    expect(most()).toBe(5);
  });

  test('reports each host, and has an exit code for what is partly done', async () => {
    const run = async (refusing: readonly string[], output = 'table') => {
      const { asked, connect } = controlPlane(3, refusing);
      const args = ['host', 'clean', '--rack', 'r1', '--yes', '-o', output];
      return { ...(await runOver(args, { ...settings, connect })), asked };
    };
    const partly = await run(['hosts/h2']);
    expect([partly.code, partly.asked.length]).toEqual([exitCodes.partlyDone, 3]);
    expect(partly.out).toMatch(/^hosts\/h2 +refused +it is busy$/m);
    expect(partly.err).toContain('1 of 3 hosts not done');
    const none = await run(['hosts/h1', 'hosts/h2', 'hosts/h3']);
    expect(none.code).toBe(exitCodes.refused);
    expect((await run(['hosts/h2'], 'name')).out).toBe('hosts/h1\nhosts/h3\n');
    const json: unknown = JSON.parse((await run(['hosts/h2'], 'json')).out);
    expect(json).toContainEqual({ name: 'hosts/h2', result: 'refused', message: 'it is busy' });
  });

  test('a request that selects none says so, and asks nobody', async () => {
    const { connect } = controlPlane(0);
    const { code, err } = await runOver(['host', 'clean', '--rack', 'r9', '--yes'], {
      ...settings,
      connect,
    });
    expect([code, err]).toEqual([exitCodes.usage, expect.stringContaining('no host matches')]);
  });

  test('asks no further host after Ctrl-C, and says that the others go on', async () => {
    const stop = new AbortController();
    const { asked, connect } = controlPlane(3, [], () => stop.abort());
    const args = ['host', 'clean', '--rack', 'r1', '--yes', '--parallel', '1'];
    const { code, err, out } = await runOver(args, { ...settings, connect, signal: stop.signal });
    expect([code, asked]).toEqual([exitCodes.interrupted, ['hosts/h1']]);
    expect(err).toContain('2 of 3 hosts not done; what was begun goes on');
    expect(out).toMatch(/^hosts\/h3 +not asked/m);
  });
});

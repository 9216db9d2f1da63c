/** Destructive commands, over a control plane that counts its requests. */
import { create } from '@bufbuild/protobuf';
import { bind, HostSchema, HostService, HostState } from '@rackwright/messages';
import { localChannel } from '@rackwright/rpc';
import { describe, expect, test } from 'vitest';
import { runOver } from '../../command-io.fixture.ts';
import { exitCodes } from '../../failure.ts';

const environment = {
  RACKWRIGHT_SERVER: 'box:7440',
  RACKWRIGHT_TOKEN_FILE: '/token',
  RACKWRIGHT_CA_FILE: '/ca',
};
const host = create(HostSchema, {
  name: 'hosts/h1',
  status: {
    state: HostState.PROVISIONED,
    image: 'registry.example/os:1',
    inventory: { devices: [{ sizeBytes: 480_000_000_000n }] },
  },
});

function controlPlane() {
  const asked: { method: string; reason: string }[] = [];
  const taken = (method: string) => async (request: { readonly reason: string }) => {
    asked.push({ method, reason: request.reason });
    return host;
  };
  const services = [
    bind(HostService, {
      getHost: async () => host,
      listHosts: async () => ({ hosts: [host], nextPageToken: '' }),
      cleanHost: taken('clean'),
      provisionHost: taken('provision'),
      reimageHost: taken('reimage'),
      releaseHost: taken('release'),
      deleteHost: taken('delete'),
    } as never),
  ];
  return { asked, connect: () => localChannel(services) };
}

const files = { '/token': 'token', '/ca': 'ca' };
const commands = [
  ['clean', ['host', 'clean', 'h1']],
  ['provision', ['host', 'provision', 'h1', 'registry.example/os:2']],
  ['reimage', ['host', 'reimage', 'h1', 'registry.example/os:2']],
  ['release', ['host', 'release', 'h1']],
  ['delete', ['host', 'delete', 'h1']],
  ['delete', ['host', 'delete', 'h1', '--force']],
  ['clean', ['host', 'each', 'clean', '--rack', 'r1']],
  ['release', ['host', 'each', 'release', '--rack', 'r1']],
  ['clean', ['host', 'clean', '--rack', 'r1']],
  ['delete', ['host', 'delete', '--force', '--filter', 'state = provisioned']],
  ['provision', ['host', 'provision', '--filter', 'state = available', 'registry.example/os:2']],
] as const;

describe.each(commands)('%s by %j', (method, args) => {
  // Many hosts are agreed to by their number, which nobody types by habit.
  const yesWord = args.some((word) => /^--(rack|filter)$/.test(word)) ? '1' : 'y';
  const run = async (more: readonly string[], answers: readonly string[] = []) => {
    const { asked, connect } = controlPlane();
    const questions: string[] = [];
    const given = { environment, files, connect, answers, questions };
    return { ...(await runOver([...args, ...more], given)), asked, questions };
  };

  test('does nothing where nobody can be asked', async () => {
    const { code, err, asked } = await run([]);
    expect([code, asked]).toEqual([exitCodes.usage, []]);
    expect(err).toContain('nobody can be asked here; give --yes');
  });

  test('does nothing unless the person agrees, and says what would be lost', async () => {
    const no = await run([], ['n']);
    expect([no.code, no.asked]).toEqual([exitCodes.refused, []]);
    expect(`${no.err}${no.questions.join()}`).toContain('1 disk (480 GB)');
    expect(await run([], [''])).toMatchObject({ code: exitCodes.refused, asked: [] });
    const other = yesWord === 'y' ? '1' : 'y';
    expect(await run([], [other])).toMatchObject({ code: exitCodes.refused, asked: [] });
  });

  test('is asked for once the person agrees, or with --yes, with its reason', async () => {
    const reason = ['--reason', 'it is sold'];
    const yes = await run(reason, [yesWord]);
    expect([yes.code, yes.asked]).toEqual([0, [{ method, reason: 'it is sold' }]]);
    const script = await run([...reason, '--yes']);
    expect(script).toMatchObject({ code: 0, asked: [{ method, reason: 'it is sold' }] });
    expect(script.questions).toEqual([]);
  });
});

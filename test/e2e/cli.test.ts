/** The rackwright command against a real control plane, as processes. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ControlPlaneProcess,
  startControlPlaneProcess,
} from '../peers-tests/python-client/control-plane-process.ts';

const main = new URL('../../packages/cli/src/main.ts', import.meta.url).pathname;

let controlPlane: ControlPlaneProcess;
let config: string;

beforeAll(async () => {
  controlPlane = await startControlPlaneProcess();
  const { operators: server, tokenFile, caFile } = controlPlane;
  config = join(controlPlane.folder, 'cli.yaml');
  await writeFile(config, JSON.stringify({ server, tokenFile, caFile }));
});

afterAll(() => controlPlane.stop());

async function rackwright(args: readonly string[], input = '') {
  const child = spawn(process.execPath, [main, ...args], {
    env: { RACKWRIGHT_CONFIG: config },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, out, err };
}

const words = (line: string) => line.split(' ');

describe('rackwright', () => {
  test('takes a host from nothing to its deletion, in words and exit codes', async () => {
    const rack = await rackwright(['rack', 'create', 'r1', '--display-name', 'Hall 1']);
    expect(rack).toMatchObject({ code: 0, err: 'Next: rackwright rack join-token r1\n' });
    const token = await rackwright(words('rack join-token r1'));
    expect(token.out).toMatch(/^rwj1\.[0-9a-f]{64}\.r1\.[A-Za-z0-9_-]{43}\n$/);

    const create = words(
      'host create h1 --rack r1 --bmc 192.0.2.1 --credential bmc --mac 52-54-00-AA-00-01',
    );
    const early = await rackwright(create);
    expect(early.code).toBe(2);
    expect(early.err).toContain('host.spec.bmc.credential names credentials/bmc, which does not');
    const credential = await rackwright(words('credential create bmc --username root'), 'calvin\n');
    expect(credential.code).toBe(0);
    expect(credential.out + credential.err).not.toContain('calvin');

    expect((await rackwright(create)).code).toBe(0);
    expect((await rackwright(create)).code).toBe(4);
    const list = await rackwright(words('host list'));
    expect(list.out.split('\n')[1]).toMatch(/^hosts\/h1 +verifying/);
    const json: unknown = JSON.parse((await rackwright(words('host get h1 -o json'))).out);
    expect(json).toMatchObject({ name: 'hosts/h1', spec: { bootMacs: ['52:54:00:aa:00:01'] } });

    const steps = await rackwright(words('host steps h1'));
    expect(steps.out).toContain('deploy.erase_devices');
    const busy = await rackwright(words('host clean h1'));
    expect(busy.code).toBe(1);
    expect(busy.err).toContain('verify 1');
    expect((await rackwright(words('host get h2'))).code).toBe(3);

    const watch = rackwright(words('host watch h1 --until deleted --timeout 60'));
    const deleted = await rackwright([...words('host delete h1 --reason'), 'wrong address']);
    expect(deleted.code).toBe(0);
    expect((await watch).code).toBe(0);
    expect((await rackwright(words('host list'))).out).not.toContain('h1');
  });

  test('says who is not let in, and where nobody answers', async () => {
    const other = join(controlPlane.folder, 'other.token');
    await writeFile(other, 'rwa1.guess\n');
    const refused = await rackwright(['rack', 'list', '--token-file', other]);
    expect(refused.code).toBe(5);
    expect(refused.err).toContain('admin token');
    const nobody = await rackwright(words('rack list --server 127.0.0.1:1'));
    expect(nobody.code).toBe(6);
    expect(nobody.err).toContain('There is no connection');
  });

  test('prints the key that certificates verify with', async () => {
    const { out } = await rackwright(words('erasure trust'));
    expect(out).toMatch(/^-----BEGIN PUBLIC KEY-----/);
    expect((await rackwright(words('erasure list'))).code).toBe(0);
  });

  test('holds, claims and adopts a host, and says who keeps it from what', async () => {
    await rackwright(words('rack create r9'));
    await rackwright(words('credential create bmc9 --username root'), 'calvin\n');
    const place = '--bmc 192.0.2.9 --credential bmc9 --mac 52:54:00:aa:00:09';
    const made = await rackwright(words(`host create h9 --rack r9 --goal manageable ${place}`));
    expect(made.err).toBe('');
    const claimed = await rackwright([...words('host claim h9 --reason'), 'my database']);
    expect(claimed.out).toMatch(/claimed by +user:admin .*: my database/);
    const busy = await rackwright(words('host delete h9'));
    expect(busy.code).toBe(1);
    expect(busy.err).toContain('busy: claimed by user:admin (my database) since 2');
    expect((await rackwright(words('host unclaim h9'))).out).not.toContain('my database');
    const hold = words('host hold h9 --scope release --for 2h --reason audit');
    expect((await rackwright(hold)).out).toMatch(/release held +by user:admin .*ends in .*: audit/);
    expect((await rackwright(words('host delete h9'))).err).toContain('audit');
    expect((await rackwright(words('host release-hold h9 --hold audit'))).code).toBe(0);
    const adopt = words('host adopt h9 --to external --reason theirs');
    expect((await rackwright(adopt)).code).toBe(0);
    const kept = await rackwright(words('host explain h9'));
    expect(kept.out).toContain('hosts/h9');
    for (const [command, why] of [
      ['host rescue h9', 'busy: verify 1'],
      ['host service h9 --step management.clear_event_log', 'busy: verify 1'],
      ['host release h9', 'busy: verify 1'],
      ['host provision h9 --image registry.example/os:1', 'busy: verify 1'],
      ['host reimage h9 --image registry.example/os:1', 'busy: verify 1'],
    ] as const) {
      const refused = await rackwright(words(command));
      expect(refused.code, refused.out).toBe(1);
      expect(refused.err).toContain(why);
    }
    expect((await rackwright(words('host retry h9'))).code).toBe(0);
    expect((await rackwright(words('host delete h9'))).code).toBe(0);
  });
});

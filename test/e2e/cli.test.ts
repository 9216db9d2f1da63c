/** The rackwright command against a real control plane; one story of it as a program. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ControlPlaneProcess,
  startControlPlaneProcess,
} from '../peers-tests/python-client/control-plane-process.ts';
import { started, typed } from './command.ts';
import { programOf } from './programs.ts';

let controlPlane: ControlPlaneProcess;
let config: string;

beforeAll(async () => {
  controlPlane = await startControlPlaneProcess(programOf('controlplane'));
  const { operators: server, tokenFile, caFile } = controlPlane;
  config = join(controlPlane.folder, 'cli.yaml');
  await writeFile(config, JSON.stringify({ server, tokenFile, caFile }));
});

afterAll(() => controlPlane.stop());

const rackwright = (args: readonly string[], input?: string) =>
  typed({ RACKWRIGHT_CONFIG: config }, args, input);
const program = (args: readonly string[], input?: string) =>
  started('rackwright', { RACKWRIGHT_CONFIG: config }, args, input);

const words = (line: string) => line.split(' ');

/** `rackwright events --follow` about one rack, until it is stopped. */
function followEvents(output: string, more: readonly string[]) {
  const stopping = new AbortController();
  let text = '';
  let wake = (): void => undefined;
  const out = {
    write: (given: string) => {
      text += given;
      wake();
    },
    columns: undefined,
  };
  const args = [...words('events --follow -o'), output, '--filter', 'rack = r8', ...more];
  const { signal } = stopping;
  const ended = typed({ RACKWRIGHT_CONFIG: config }, args, '', { signal, out });
  const lines = () => text.split('\n').slice(0, -1);
  const reach = async (count: number) => {
    while (lines().length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  return { lines, reach, stop };
}

test('the control plane’s program explains itself, and refuses what it does not know', async () => {
  const help = await started('controlplane', {}, ['--help']);
  expect(help).toMatchObject({ code: 0, err: '' });
  expect(help.out).toContain('backup --to FILE.tar');
  expect(help.out).toContain('restore --from FILE.tar');
  const unknown = await started('controlplane', {}, ['bakcup', '--to', 'x.tar']);
  expect(unknown).toMatchObject({ code: 2, out: '' });
  expect(unknown.err).toContain('backup --to FILE.tar');
});

describe('rackwright', () => {
  test('takes a host from nothing to its deletion, in words and exit codes', async () => {
    const rack = await program(['rack', 'create', 'r1', '--display-name', 'Hall 1']);
    expect(rack).toMatchObject({ code: 0, err: 'Next: rackwright rack join-token r1\n' });
    const token = await program(words('rack join-token r1'));
    expect(token.out).toMatch(/^rwj1\.[0-9a-f]{64}\.r1\.[A-Za-z0-9_-]{43}\n$/);

    const create = words(
      'host create h1 --rack r1 --bmc 192.0.2.1 --credential bmc --mac 52-54-00-AA-00-01',
    );
    const early = await program(create);
    expect(early.code).toBe(2);
    expect(early.err).toContain('host.spec.bmc.credential names credentials/bmc, which does not');
    const credential = await program(words('credential create bmc --username root'), 'calvin\n');
    expect(credential.code).toBe(0);
    expect(credential.out + credential.err).not.toContain('calvin');

    expect((await program(create)).code).toBe(0);
    expect((await program(create)).code).toBe(4);
    const labelled = await program(words('host update h1 --label site=x --label role=db'));
    expect(labelled.out).toMatch(/labels +role=db site=x|labels +site=x role=db/);
    const fewer = await program(words('host update h1 --label site=y --label role-'));
    expect(fewer.out).toMatch(/labels +site=y\n/);
    expect((await program(words('host update h1 --label site-'))).out).toMatch(/labels +-\n/);
    const list = await program(words('host list'));
    expect(list.out.split('\n')[1]).toMatch(/^hosts\/h1 +verifying/);
    const found = await program(words('host find 52:54:00:AA:00:01'));
    expect(found.out.split('\n')[1]).toMatch(/^hosts\/h1 +/);
    const elsewhere = await program(words('host list --rack r1x'));
    expect(elsewhere).toMatchObject({ code: 3, out: '' });
    expect(elsewhere.err).toContain('racks/r1x');
    expect((await program(words('audit list --actor admin'))).out).toContain('user:admin');
    const json: unknown = JSON.parse((await program(words('host get h1 -o json'))).out);
    expect(json).toMatchObject({ name: 'hosts/h1', spec: { bootMacs: ['52:54:00:aa:00:01'] } });

    const steps = await program(words('host clean-steps h1'));
    expect(steps.out).toContain('deploy.erase_devices');
    const unasked = await program(words('host clean h1'));
    expect(unasked.code).toBe(2);
    expect(unasked.err).toContain('All data on disks that no inventory has named yet is lost');
    expect(unasked.err).toContain('nobody can be asked here; give --yes');
    const busy = await program(words('host clean h1 --yes'));
    const audited = await program(words('audit list --action CleanHost'));
    expect(audited.out.match(/CleanHost/g)).toHaveLength(1);
    expect(busy.code).toBe(1);
    expect(busy.err).toContain('verify 1');
    expect((await program(words('host get h2'))).code).toBe(3);

    const watch = program(words('host watch h1 --until deleted --timeout 60'));
    const deleted = await program([...words('host delete h1 --yes --reason'), 'wrong address']);
    expect(deleted.code).toBe(0);
    expect((await watch).code).toBe(0);
    expect((await program(words('host list'))).out).not.toContain('h1');
  });

  test('reports events as they come, and goes on behind a position', async () => {
    expect(await rackwright(['events'])).toMatchObject({ code: 2, out: '' });
    // When the watch has begun cannot be seen: the rack comes and goes until it is told.
    const following = followEvents('json', []);
    for (let n = 0; following.lines().length < 3; n += 1) {
      await rackwright(words(`rack ${n % 2 === 0 ? 'create' : 'delete'} r8`));
    }
    await following.stop();
    const told = following.lines().map((line) => JSON.parse(line));
    const types = new Set(told.map(({ event }) => event.type));
    expect(types).toEqual(new Set(['EVENT_TYPE_RACK_CREATED', 'EVENT_TYPE_RACK_REMOVED']));
    const behind = ['--position', told[0].position];
    const again = followEvents('json', behind);
    await again.reach(2);
    await again.stop();
    const ids = again.lines().map((line) => JSON.parse(line).event.id);
    expect(ids.slice(0, 2)).toEqual(told.slice(1, 3).map(({ event }) => event.id));
    const plain = followEvents('table', behind);
    await plain.reach(1);
    await plain.stop();
    expect(plain.lines()[0]).toMatch(/^\S+ .*racks\/r8 {2}rack-(created|removed) /);
    // Of before, the newest first: the same ones, behind those from before the watch had begun.
    const past = await rackwright(words('events racks/r8 -o json'));
    const known = JSON.parse(past.out)
      .events.map(({ id }: { id: string }) => id)
      .toReversed();
    const from = known.indexOf(told[0].event.id);
    expect(known.slice(from, from + 3)).toEqual(told.slice(0, 3).map(({ event }) => event.id));
    const one = await rackwright(words('events racks/r8 --limit 1 --filter type=rack-created'));
    expect([one.code, one.out]).toEqual([0, expect.stringMatching(/^\S+ .*rack-created .*\n$/)]);
    expect(one.err).toContain('--limit');
    expect((await rackwright(words('events racks/r7'))).code).toBe(3);
  });

  test('finds, sorts and counts hosts by what is asked', async () => {
    await rackwright(words('rack create r9'));
    await rackwright(words('credential create search --username root'), 'calvin\n');
    for (const n of [1, 2, 3]) {
      const mac = `52:54:00:bb:00:0${n}`;
      const host = `host create s${n} --rack r9 --credential search --mac ${mac}`;
      const label = n === 3 ? [] : ['--label', `site=hall ${n}`];
      const made = await rackwright([
        ...words(`${host} --bmc 192.0.3.${n} --goal manageable`),
        ...label,
      ]);
      expect(made.code).toBe(0);
    }
    const listed = async (...args: readonly string[]) => {
      const { out, err, code } = await rackwright(['host', 'list', ...args, '--columns', 'name']);
      expect([code, err]).toEqual([0, '']);
      return out.trim().split('\n').slice(1).join(' ').replaceAll('hosts/', '');
    };
    const sort = ['--rack', 'r9', '--sort', 'name desc'];
    expect(await listed(...sort)).toBe('s3 s2 s1');
    expect(await listed(...sort, '--label', 'site=hall 2')).toBe('s2');
    expect(await listed(...sort, '--label', 'site', '--label', 'site!=hall 2')).toBe('s1');
    expect(await listed(...sort, '--filter', 'name = s1 OR NOT labels:site')).toBe('s3 s1');
    const both = ['--state', 'new', '--state', 'available', '--filter', 'name = s1 OR name = s2'];
    expect(await listed(...sort, ...both)).toBe('s2 s1');
    expect(await listed(...sort, '--state', 'provisioned')).toBe('');
    const table = await rackwright([...words('host list --rack r9 --columns'), 'name,labels.site']);
    expect(table.out).toMatch(/^NAME +labels\.site\n/);
    expect(table.out).toMatch(/hosts\/s1 +hall 1\n/);
    for (const known of ['s2', 'hosts/s2', '192.0.3.2', '52-54-00-BB-00-02', '5254.00bb.0002']) {
      expect([known, (await rackwright(['host', 'find', known])).out]).toEqual([
        known,
        expect.stringMatching(/^[^\n]*\nhosts\/s2 [^\n]*\n$/),
      ]);
    }
    const nothing = await rackwright(words('host find *2'));
    expect(nothing).toMatchObject({ code: 2, out: '' });
    expect(nothing.err).toContain('no host has "*2" as its name');
    const bad = await rackwright(['host', 'list', '--filter', 'stat = new']);
    expect(bad.err).toContain('at character 1, near "stat = new": there is no field stat');
    expect((await rackwright(words('host list --state shiny'))).err).toContain('one of new, ');
    expect((await rackwright(words('host list --columns size'))).err).toContain('labels.KEY');
    await rackwright([...words('rack freeze r9 --reason'), 'a drill']);
    const status = await rackwright(words('fleet status'));
    expect(status.out).toMatch(/^\d+ hosts?\n/);
    expect(status.out).toMatch(/\nstate +new +\d+\n/);
    expect(status.out).toContain('racks/r9: frozen by user:admin: a drill\n');
    const json: unknown = JSON.parse((await rackwright(words('fleet status -o json'))).out);
    expect(json).toMatchObject({ state: { total: expect.any(Number) } });
  });

  test('says who is not let in, and where nobody answers', async () => {
    const other = join(controlPlane.folder, 'other.token');
    await writeFile(other, 'rwa1.guess\n');
    const refused = await rackwright(['rack', 'list', '--token-file', other]);
    expect(refused.code).toBe(5);
    expect(refused.err).toContain('The token is not one of this control plane');
    const nobody = await rackwright(words('rack list --server 127.0.0.1:1'));
    expect(nobody.code).toBe(6);
    expect(nobody.err).toContain('There is no connection');
  });

  test('makes a token that does what it may and no more, and takes it back', async () => {
    const made = await rackwright(words('token create ci --role viewer --expires 90d'));
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^rwo1\.ci\.\S{43}\n$/) });
    expect(made.err).toMatch(
      /^viewer for everything, until 20\d\d-\S+Z\. It is shown only now\.\n$/,
    );
    const tokenFile = join(controlPlane.folder, 'ci.token');
    await writeFile(tokenFile, made.out);
    const asCi = (line: string) => rackwright([...words(line), '--token-file', tokenFile]);
    const who = await asCi('whoami');
    expect(who.out).toMatch(/name +token:ci\nrole +viewer\nscope +everything\ntoken +tokens\/ci\n/);
    expect((await asCi('rack list')).code).toBe(0);
    const denied = await asCi('rack create r9');
    expect(denied.code).toBe(5);
    expect(denied.err).toContain('RackService.CreateRack needs the role admin');
    const list = await rackwright(words('token list'));
    expect(list.out).toMatch(/^tokens\/ci +viewer +everything/m);
    expect(list.err).toContain('tokens/admin never expires');
    expect((await rackwright(words('token delete ci --reason left'))).code).toBe(0);
    const revoked = await asCi('rack list');
    expect(revoked.code).toBe(5);
    expect(revoked.err).toContain('tokens/ci was revoked at');
    const wrong = await rackwright(words('token create ci --role viewer --expires soon'));
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain('--expires is "soon"; it must be a duration as 12h or 90d');
  });

  test('prints the key that certificates verify with', async () => {
    const { out } = await rackwright(words('erasure trust'));
    expect(out).toMatch(/^-----BEGIN PUBLIC KEY-----/);
    expect((await rackwright(words('erasure list'))).code).toBe(0);
  });

  test('lets in what one team needs, and takes nothing from the others', async () => {
    const first = 'fleet update --webhook-url https://hooks.example.org/one/';
    expect((await rackwright(words(first))).code).toBe(0);
    const second = 'fleet update --webhook-url https://other.example.org/two/ --wipe-budget 8';
    const both = await rackwright(words(second));
    expect(both.out).toContain('https://hooks.example.org/one/');
    expect(both.out).toContain('https://other.example.org/two/');
    const back = 'fleet update --no-webhook-url https://other.example.org/two/';
    const one = await rackwright(words(back));
    expect(one.out).toContain('https://hooks.example.org/one/');
    expect(one.out).not.toContain('https://other.example.org/two/');
    const again = await rackwright(words(back));
    expect(again.code).toBe(2);
    expect(again.err).toContain('which is not there; there is https://hooks.example.org/one/');
    const none = await rackwright(words('fleet update --webhook-url none --wipe-budget none'));
    expect(none.out).not.toContain('https://');
  });

  test('freezes and limits racks and the fleet, and says what it was given wrongly', async () => {
    await rackwright(words('rack create r7'));
    const limits = '--runs 2 --wipe-budget 3/60 --power-mismatch enforce --power-sync-seconds 30';
    const limited = await rackwright(words(`rack update r7 ${limits} --display-name Hall`));
    expect(limited.out).toMatch(/display name +Hall/);
    expect(limited.out).toMatch(/runs at once +2/);
    expect(limited.out).toMatch(/wipe budget +3 hosts in 60 s/);
    const free = await rackwright(words('rack update r7 --runs none --wipe-budget none'));
    expect(free.out).not.toMatch(/(runs at once|wipe budget) +\d/);
    const frozen = await rackwright([...words('rack freeze r7 --reason'), 'a drill']);
    expect((await rackwright(words('rack list'))).out).toMatch(
      /r7 .* rack frozen by user:admin: a d/,
    );
    expect(frozen.out).toMatch(/frozen +by user:admin .*: a drill/);
    expect((await rackwright(words('rack explain r7'))).out).toContain('rackwright rack thaw r7');
    expect((await rackwright(words('rack thaw r7 --reason over'))).out).not.toContain('frozen');
    const restored = await rackwright(words('rack accept-restored-store r7 --reason x'));
    expect(restored.code).toBe(1);
    expect(restored.err).toContain('has seen nothing that this store lacks');
    const fleet = 'fleet update --wipe-budget 9 --priority bios.reset=0 --pool-priority gpu:a.b=5';
    const set = await rackwright(words(fleet));
    expect(set.out).toMatch(/wipe budget +9 hosts in 3600 s/);
    expect(set.out).toMatch(/priority +bios\.reset=0/);
    expect(set.out).toMatch(/pool gpu +a\.b=5/);
    expect((await rackwright(words('fleet freeze --reason drill'))).out).toContain(': drill');
    expect((await rackwright(words('fleet thaw --reason over'))).code).toBe(0);
    expect((await rackwright(words('fleet thaw --reason over'))).code).toBe(1);
    expect((await rackwright(words('fleet get -o json'))).out).toContain('"wipeBudget"');
    const more = await rackwright(words('fleet update --priority a.b=1 --pool-priority gpu:c.d=2'));
    expect(more.out).toMatch(/priority +bios\.reset=0/);
    expect(more.out).toMatch(/pool gpu +a\.b=5/);
    const undo = '--priority a.b- --priority bios.reset- --pool-priority gpu:a.b-';
    const undone = await rackwright(words(`fleet update ${undo}`));
    expect(undone.out).toMatch(/pool gpu +c\.d=2/);
    expect(undone.out).not.toMatch(/a\.b|bios/);
    for (const [command, why] of [
      ['rack update r7', 'nothing to change: give --display-name'],
      ['rack update r7 --wipe-budget many', 'it must be HOSTS/SECONDS'],
      ['rack update r7 --runs few', 'it must be a whole number, or none'],
      ['fleet update --pool-priority a.b=5', 'it must be POOL:INTERFACE.STEP=NUMBER'],
      ['fleet update --priority a.b', 'it must be INTERFACE.STEP=NUMBER'],
    ] as const) {
      const refused = await rackwright(words(command));
      expect(refused.code, refused.out).toBe(2);
      expect(refused.err).toContain(why);
    }
  });

  test('holds, claims and adopts a host, and says who keeps it from what', async () => {
    await rackwright(words('rack create r9'));
    await rackwright(words('credential create bmc9 --username root'), 'calvin\n');
    const place = '--bmc 192.0.2.9 --credential bmc9 --mac 52:54:00:aa:00:09';
    const made = await rackwright(words(`host create h9 --rack r9 --goal manageable ${place}`));
    expect(made.err).toBe('');
    const claimed = await rackwright([...words('host claim h9 --reason'), 'my database']);
    expect(claimed.out).toMatch(/claimed by +user:admin .*: my database/);
    const busy = await rackwright(words('host delete h9 --yes'));
    expect(busy.code).toBe(1);
    expect(busy.err).toContain('busy: claimed by user:admin (my database) since 2');
    expect((await rackwright(words('host unclaim h9'))).out).not.toContain('my database');
    const hold = words('host hold h9 --scope release --for 2h --reason audit');
    expect((await rackwright(hold)).out).toMatch(/release held +by user:admin .*ends in .*: audit/);
    expect((await rackwright(words('host delete h9 --yes'))).err).toContain('audit');
    expect((await rackwright(words('host release-hold h9 --hold audit'))).code).toBe(0);
    const adopt = words('host adopt h9 --to external --reason theirs');
    expect((await rackwright(adopt)).code).toBe(0);
    const kept = await rackwright(words('host explain h9'));
    expect(kept.out).toContain('hosts/h9');
    const image = `registry.example/os@sha256:${'a'.repeat(64)}`;
    for (const [command, why] of [
      ['host rescue h9', 'busy: verify 1'],
      ['host service h9 --step management.clear_event_log', 'busy: verify 1'],
      ['host release h9 --yes', 'busy: verify 1'],
      [`host provision h9 ${image} --yes`, 'busy: verify 1'],
      [`host reimage h9 ${image} --yes`, 'busy: verify 1'],
    ] as const) {
      const refused = await rackwright(words(command));
      expect(refused.code, refused.out).toBe(1);
      expect(refused.err).toContain(why);
    }
    const retried = await rackwright(words('host retry h9'));
    expect(retried.code, retried.out).toBe(1);
    expect(retried.err).toContain('see rackwright host explain h9');
    expect((await rackwright(words('host delete h9 --yes'))).code).toBe(0);
  });

  test('shows the authorities, rotates them, and says what a token is for', async () => {
    const before = await rackwright(words('trust show'));
    expect(before.out).toMatch(/^AUTHORITY +STAGE .*\n[0-9a-f]{16} +active /);
    const first = before.out.split('\n')[1]?.slice(0, 16) ?? '';
    const rotated = await rackwright(words('trust rotate --reason yearly'));
    expect(rotated.code, rotated.err).toBe(0);
    expect(rotated.out).toMatch(/waits: operators need it .*\(ends by itself in 23h 59m/);
    expect(rotated.err).toContain('rackwright trust bundle, into the CA file');
    expect((await rackwright(words('trust rotate --reason again'))).code).toBe(1);
    const bundle = await rackwright(words('trust bundle'));
    expect(bundle.out.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);

    const next = /^([0-9a-f]{16}) +next /m.exec(rotated.out)?.[1] ?? '';
    const wrong = await rackwright(words(`trust advance ${next} --give-up r9 --reason now`));
    expect(wrong.err).toContain('it does not wait for racks/r9');
    const active = await rackwright(words(`trust advance ${first} --reason now`));
    expect(active.err).toContain('signs already');
    // Its token, not used yet, names the one before.
    const given = `trust advance ${next} --give-up r1 --reason now`;
    const forced = await rackwright(words(given));
    expect(forced.out, forced.err).toMatch(new RegExp(`^${next} +active`, 'm'));
    expect(forced.out).toMatch(new RegExp(`^${first} +retired`, 'm'));

    await rackwright(words('rack create r7'));
    const token = await rackwright(words('rack join-token r7'));
    const { out, err } = token;
    expect(out).toContain(`rwj1.${next}`);
    expect(err).toContain(`Certificate authority (SHA-256): ${next}`);
    expect(err).toContain(`rackwright-agent join ${controlPlane.operators} - `);
    expect(err).not.toContain(out.trim());
    const revoked = await rackwright(words('rack revoke r7 --reason stolen'));
    expect(revoked.code).toBe(1);
    expect(revoked.err).toContain('no registered agent');
  });
});

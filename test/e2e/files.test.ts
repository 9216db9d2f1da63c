/** What people keep in files: applied, printed and applied again, against a real control plane. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ControlPlaneProcess,
  startControlPlaneProcess,
} from '../peers-tests/python-client/control-plane-process.ts';
import { typed } from './command.ts';
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

const words = (line: string) => line.split(' ');

const rackwright = (line: string, input?: string) =>
  typed({ RACKWRIGHT_CONFIG: config, BMC_PASSWORD: 'sesame-open' }, words(line), input);

const site = `---
kind: Workflow
name: hosts/h1/workflows/settle
spec: { disabled: true, pendingTimeout: 120s, variables: { pause: 2s } }
---
kind: Host
name: h1
labels: { role: worker }
spec:
  rack: racks/r1
  bmc: { address: 192.0.2.1, credential: credentials/bmc, protocol: redfish, port: 8443 }
  bootMacs: ["52:54:00:00:00:01"]
  goal: manageable
  power: unmanaged
  cleaning: { level: full, priorityOverrides: { deploy.erase_devices: 20 }, allowDiskless: false }
---
kind: ExpectedHost
name: h7
match: { serial: SN-7, mac: "52:54:00:00:00:07" }
labels: { role: spare }
spec:
  rack: racks/r1
  bmc: { address: 192.0.2.7, credential: credentials/bmc }
---
kind: Template
name: settle
labels: { owner: me }
source: |
  description: Wait a little
  variables:
    pause: { type: duration, default: 1s }
  steps:
    - { name: settle, wait: "{{ vars.pause }}" }
---
kind: Fleet
spec:
  wipeBudget: { hosts: 20, seconds: 3600 }
  pools: [{ pool: fast, priorityOverrides: { deploy.erase_devices: 5 } }]
---
kind: Credential
name: bmc
username: root
password: { env: BMC_PASSWORD }
---
kind: Rack
name: r1
labels: { site: berlin }
spec:
  displayName: Hall 1
  limits: { runs: 4 }
  wipeBudget: { hosts: 2 }
  powerMismatch: report
  powerSyncSeconds: 60
  discovery: { enabled: true, machinesMax: 10 }
`;

test('a bad file changes nothing, and each of its mistakes has its place', async () => {
  const typo = await rackwright('apply -f - --yes', site.replace('bootMacs', 'bootMac'));
  expect(typo.code).toBe(2);
  expect(typo.err).toMatch(/^-:12:3: unknown field spec\.bootMac; did you mean bootMacs\?$/m);
  const wrong = site.replace('52:54:00:00:00:01', '01:54:00:00:00:01').replace('wait:', 'wiat:');
  const refused = await rackwright('apply -f - --yes', wrong);
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(/^-:12:14: hosts\/h1: host\.spec\.boot_macs\[0\] .*group address/m);
  expect(refused.err).toMatch(/^-:\d+:9: templates\/settle: /m);
  expect(refused.err).toContain('nothing was changed');
  expect((await rackwright('rack list')).out).not.toContain('r1');
  const unasked = await rackwright('apply -f -', site);
  expect(unasked.code).toBe(2);
  expect(unasked.err).toContain('Give --yes');
  expect((await rackwright('rack list')).out).not.toContain('r1');
});

test('a file of every kind is made in the order of its needs, then changes nothing', async () => {
  const dry = await rackwright('apply -f - --dry-run', site);
  expect(dry).toMatchObject({ code: 0, err: '' });
  expect(dry.out).toContain('6 to create, 1 to change, 0 unchanged');
  const made = await rackwright('apply -f - --yes', site);
  expect(made).toMatchObject({ code: 0, err: '' });
  expect(made.out.match(/^\S+ (created|changed)$/gm)).toEqual([
    'racks/r1 created',
    'credentials/bmc created',
    'fleet changed',
    'templates/settle created',
    'expectedHosts/h7 created',
    'hosts/h1 created',
    'hosts/h1/workflows/settle created',
  ]);
  expect(dry.out + made.out).not.toContain('sesame');
  const again = await rackwright('apply -f - --yes', site);
  expect(again).toMatchObject({ code: 0, err: '' });
  expect(again.out).toContain('0 to create, 0 to change, 7 unchanged');
});

test('the printed fleet is accepted again and changes nothing, in every form', async () => {
  for (const form of ['yaml', 'json']) {
    const printed = await rackwright(`get all -o ${form}`);
    expect(printed).toMatchObject({ code: 0, err: '' });
    expect(printed.out).not.toContain('sesame');
    const applied = await rackwright('apply -f - --yes', printed.out);
    expect(applied).toMatchObject({ code: 0, err: '' });
    expect(applied.out).toContain('0 to create, 0 to change, 7 unchanged');
  }
});

test('a printed object is accepted again, for every kind', async () => {
  let all = '';
  for (const one of [
    'rack r1',
    'credential bmc',
    'fleet fleet',
    'template settle',
    'expected-host h7',
    'host h1',
    'workflow hosts/h1/workflows/settle',
  ]) {
    const printed = await rackwright(`get ${one}`);
    expect(printed.out).toMatch(/^---\nkind: /);
    all += printed.out;
  }
  const applied = await rackwright('apply -f - --dry-run', all);
  expect(applied.out).toContain('0 to create, 0 to change, 7 unchanged');
});

test('the JSON of other commands is accepted, and a wrong kind is reported', async () => {
  const json = await rackwright('host get h1 -o json');
  const applied = await rackwright('apply -f - --dry-run', `{"kind": "Host", ${json.out.slice(1)}`);
  expect(applied.out).toContain('0 to create, 0 to change, 1 unchanged');
  expect((await rackwright('get hots')).err).toContain('did you mean hosts?');
});

test('a change is shown before it is made; after a failure the file goes on', async () => {
  const { out } = await rackwright('get all');
  const second = `---
kind: Host
name: h2
spec:
  rack: racks/r1
  bmc: { address: 192.0.2.2, credential: credentials/bmc }
  bootMacs: ["52:54:00:00:00:01"]
`;
  const changed =
    out.replace('role: worker', 'role: db').replace('displayName: Hall 1', 'displayName: Hall 2') +
    second;
  const shown = await rackwright('apply -f - --dry-run', changed);
  expect(shown.out).toContain('hosts/h1: change\n  labels.role: worker → db\n');
  expect(shown.out).toContain('racks/r1: change\n  spec.displayName: Hall 1 → Hall 2\n');
  const half = await rackwright('apply -f - --yes', changed);
  expect(half.code).toBe(4);
  expect(half.out).toContain('racks/r1 changed\nhosts/h1 changed\n');
  expect(half.err).toContain('hosts/h2 could not be created. Done: 2 of 3, as listed.');
  expect(half.err).toContain('belongs to hosts/h1');
  const mended = changed.replace(/(name: h2[\s\S]*)00:01/, '$100:02');
  const rest = await rackwright('apply -f - --yes', mended);
  expect(rest).toMatchObject({ code: 0, err: '' });
  expect(rest.out).toContain('1 to create, 0 to change, 7 unchanged');
  expect((await rackwright('host delete h2 --yes')).code).toBe(0);
  const gone = await rackwright('host watch h2 --until deleted --timeout 60');
  expect(gone.code).toBe(0);
  const anew = await rackwright('apply -f - --yes', mended);
  expect(anew.out).toContain('hosts/h2 created');
  expect((await rackwright('host list')).out).toContain('hosts/h2');
});

test('a person is asked first, and only yes is yes', async () => {
  const file = join(controlPlane.folder, 'site.yaml');
  await writeFile(file, 'kind: Rack\nname: r5\n');
  const asked: string[] = [];
  const answered = (answer: string | undefined) =>
    typed({ RACKWRIGHT_CONFIG: config }, ['apply', '-f', file], '', {
      ask: async (question) => {
        asked.push(question);
        return answer;
      },
      writeFile: () => Promise.reject(new Error('nothing is to be written')),
    });
  for (const [answer, says] of [
    ['n', 'nothing was changed'],
    ['', 'nothing was changed'],
    [undefined, 'Give --yes'],
  ] as const) {
    const refused = await answered(answer);
    expect(refused.code).toBe(2);
    expect(refused.err).toContain(says);
    expect(refused.out).not.toContain('racks/r5 created');
  }
  expect(await answered('y')).toMatchObject({ code: 0, out: expect.stringMatching(/r5 created/) });
  expect(asked).toEqual(Array.from({ length: 4 }, () => 'Apply this? [y/N] '));
  expect((await answered(undefined)).out).toContain('1 unchanged');
});

test('the pool of the manual is planned from its file, made, and planned again', async () => {
  const manual = await readFile(
    join(import.meta.dirname, '../../controlplane/OPERATING.md'),
    'utf8',
  );
  const [, shown = ''] = /```yaml\n(kind: Pool\n[^`]*`[^`]*`[^`]*)```/.exec(manual) ?? [];
  expect(shown).toContain('waves:');
  const checked = await rackwright('apply -f - --dry-run', shown);
  expect([checked.code, checked.err]).toEqual([0, '']);
  // Here is no registry to look the tag up in.
  const file = shown.replace('os:stable', `os@sha256:${'ab'.repeat(32)}`);
  const planned = await rackwright('pool plan web -f -', file);
  expect([planned.code, planned.err]).toEqual([0, '']);
  expect(planned.out).toContain('it would hold no host');
  expect((await rackwright('pool list')).out).not.toContain('pools/web');
  expect((await rackwright('apply -f - --yes', file)).code).toBe(0);
  const changed = file.replace('role: web', 'role: db');
  expect((await rackwright('pool plan web -f -', changed)).out).toContain('hosts/h1 is ');
  const asked = 'pool update web --label role=db --dry-run';
  expect((await rackwright(asked)).out).toContain('hosts/h1 is ');
  const [, image = ''] = /image: (\S+)/.exec(file) ?? [];
  const made = `pool create web2 --label role=none --paused --image ${image}`;
  expect((await rackwright(`${made} --dry-run`)).out).toContain('nothing begins now: it is paused');
  expect((await rackwright(made)).out).toMatch(/^paused +yes$/m);
  for (const id of ['web', 'web2']) expect((await rackwright(`pool delete ${id}`)).code).toBe(0);
});

test('a password is set again only when that is asked for', async () => {
  const file = 'kind: Credential\nname: bmc\nusername: root\npassword: { env: BMC_PASSWORD }\n';
  expect((await rackwright('apply -f - --yes', file)).out).toContain('1 unchanged');
  const set = await rackwright('apply -f - --yes --set-passwords', file);
  expect(set.out).toContain('credentials/bmc: change\n  password: set anew\n');
  const both = `kind: Rack\nname: r1\nspec: { displayName: Hall 9 }\n---\n${file}`;
  const long = both.replace('root', 'r'.repeat(100));
  for (const [bad, flag] of [
    [long, '--dry-run'],
    [long, '--yes'],
    [both.replace('env: BMC_PASSWORD', `file: ${import.meta.filename}`), '--yes --set-passwords'],
  ]) {
    const half = await rackwright(`apply -f - ${flag}`, bad);
    expect(half.code).toBe(2);
    expect(half.err).toMatch(/credentials\/bmc: credential\.(username|password) must have 1 to/);
    expect((await rackwright('rack get r1')).out).not.toContain('Hall 9');
  }
  const bare = 'kind: Credential\nname: other\nusername: root\n';
  const refused = await rackwright('apply -f - --yes', bare);
  expect(refused.err).toContain('-:1:1: credentials/other: has no password; give it as password:');
});

test('variables of a workflow that are not named stay as they are', async () => {
  const variables = async () => {
    const { out } = await rackwright('workflow get h1 settle -o json');
    return (JSON.parse(out) as { spec: { variables: object } }).spec.variables;
  };
  expect(await rackwright('workflow update h1 settle --var ntp=a')).toMatchObject({ code: 0 });
  expect(await variables()).toEqual({ pause: '2s', ntp: 'a' });
  const line = 'workflow update h1 settle --var ntp=b --unset-var pause --request-id once';
  for (const _ of [1, 2]) expect(await rackwright(line)).toMatchObject({ code: 0, err: '' });
  expect(await variables()).toEqual({ ntp: 'b' });
  const both = await rackwright('workflow update h1 settle --var ntp=b --unset-var ntp');
  expect(both.err).toContain('--var and --unset-var both name ntp');
  expect((await rackwright('workflow update h1 settle')).err).toContain('nothing to change');
});

test('one request is made of all hosts with a label, and each answers for itself', async () => {
  const asked = await rackwright('host each claim --selector role=db --reason mine');
  expect(asked.code).toBe(2);
  expect(asked.err).toContain('claim: 1 host in 1 rack: h1');
  expect(asked.err).toContain('give --yes');
  const claimed = await rackwright('host each claim --rack r1 --reason mine --yes');
  expect(claimed).toMatchObject({ code: 0, err: '' });
  expect(claimed.out).toMatch(/^hosts\/h1 +done/m);
  expect(claimed.out).toMatch(/^hosts\/h2 +done/m);
  const one = await rackwright('host each unclaim --selector role=db --yes');
  expect(one.out).not.toContain('hosts/h2');
  const cleaned = await rackwright('host each clean --rack r1 --parallel 2 --yes');
  expect(cleaned.code).toBe(1);
  expect(cleaned.out).toMatch(/^hosts\/h1 +refused +.*verify 1/m);
  expect(cleaned.err).toContain('2 of 2 hosts not done');
  expect((await rackwright('host each retry --selector role=none --yes')).code).toBe(2);
});

test('past changes are read back: history, as of a time, difference, audit', async () => {
  const history = await rackwright('host history h1 -o json --limit 1000');
  const { revisions } = JSON.parse(history.out) as { revisions: { time: string; cause: string }[] };
  expect(revisions.at(-1)?.cause).toBe('created');
  const first = revisions.at(-1)?.time ?? '';
  const then = JSON.parse((await rackwright(`host get h1 --at ${first} -o json`)).out) as object;
  expect(then).toMatchObject({ labels: { role: 'worker' } });
  const difference = await rackwright(`host diff h1 --from ${first}`);
  expect(difference.out).toMatch(/^labels\[role\] +worker +db$/m);
  const early = await rackwright('host get h1 --at 3d');
  expect(early.code).toBe(3);
  expect(early.err).toContain('did not exist at');
  const recent = await rackwright('host history h1 --since 1h --limit 2');
  expect(recent.out.split('\n')[0]).toMatch(/^WHEN +WHO +STATE +WHY$/);
  expect(recent.out.trim().split('\n')).toHaveLength(3);
  const audit = await rackwright('audit list --resource hosts/h1 --action UpdateHost -o json');
  const { records } = JSON.parse(audit.out) as {
    records: { outcome: string; requestId: string }[];
  };
  expect(records[0]).toMatchObject({ outcome: 'ok' });
  expect(records[0]?.requestId).toMatch(/^apply-[0-9a-f]{40}$/);
  const refusals = await rackwright('audit list --outcome already_exists');
  expect(refusals.out).toContain('hosts/h2');
  expect((await rackwright('audit list')).out).not.toContain('sesame');
});

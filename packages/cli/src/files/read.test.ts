import { expect, test } from 'vitest';
import { positionOfField, readObjects } from './read.ts';
import { fileObject, jsonText, yamlText } from './write.ts';
import type { YamlProblem } from './yaml.ts';

function problems(text: string): string[] {
  const read = readObjects(text);
  if (read.kind === 'ok') return [];
  return read.problems.map(
    ({ line, column, message }: YamlProblem) => `${line}:${column} ${message}`,
  );
}

function objects(text: string) {
  const read = readObjects(text);
  if (read.kind === 'bad') throw new Error(JSON.stringify(read.problems));
  return read.objects;
}

const everything = `---
kind: Rack
name: r1
labels: { site: berlin }
spec:
  displayName: Hall 1
  limits: { runs: 4 }
  powerMismatch: enforce
---
kind: Credential
name: bmc
username: root
password: { env: BMC_PASSWORD }
---
kind: Fleet
spec:
  priorityOverrides: { deploy.erase_devices: 10 }
---
kind: Template
name: clock
source: |
  description: Set the clock
  steps:
    - { name: settle, wait: 1s }
---
kind: ExpectedHost
name: h9
match: { serial: "12345" }
spec:
  rack: racks/r1
  bmc: { address: 192.0.2.9, credential: credentials/bmc }
---
kind: Host
name: h1
spec:
  rack: racks/r1
  bmc: { address: 192.0.2.1, credential: credentials/bmc, protocol: redfish, port: 8443 }
  bootMacs: ["52:54:00:00:00:01"]
  goal: manageable
  cleaning: { level: metadata-only, allowDiskless: false }
---
kind: Workflow
name: hosts/h1/workflows/clock
spec:
  variables: { ntp: time.example.org }
  disabled: true
  pendingTimeout: 90s
`;

test('the reader reads an object of every kind, and writes what it reads the same again', () => {
  const read = objects(everything);
  expect(read.map(({ name }) => name)).toEqual([
    'racks/r1',
    'credentials/bmc',
    'fleet',
    'templates/clock',
    'expectedHosts/h9',
    'hosts/h1',
    'hosts/h1/workflows/clock',
  ]);
  expect(read[5]?.value).toMatchObject({
    spec: { goal: 'manageable', cleaning: { level: 'metadata-only', allowDiskless: false } },
  });
  expect(read[1]?.password).toEqual({ kind: 'env', variable: 'BMC_PASSWORD' });
  const written = read.map(({ kind, name, value }) => fileObject(kind, { name, etag: '', value }));
  for (const text of [yamlText(written), jsonText(written)]) {
    expect(objects(text).map(({ name, value }) => [name, value])).toEqual(
      read.map(({ name, value }) => [name, value]),
    );
  }
  expect(yamlText(written)).toContain('source: |\n  description: Set the clock\n');
});

test.each(['0012345', '1e5', '0x1F', 'true', '1_0.50', '9007199254740993'])(
  'the error for serial %s advises the text as written, not the number YAML reads',
  (serial) => {
    const text = `kind: ExpectedHost\nname: h9\nmatch: { serial: ${serial} }\n`;
    const read = readObjects(text);
    if (read.kind === 'ok') {
      expect(read.objects[0]?.value).toMatchObject({ match: { serial } });
      return;
    }
    expect(read.problems).toMatchObject([
      { line: 3, message: `match.serial must be text: write "${serial}"` },
    ]);
  },
);

test('a key is the text that stands there', () => {
  const [host] = objects('kind: Host\nname: h1\nlabels: { 007: bond }\nspec: { rack: r1 }\n');
  expect(host?.value).toMatchObject({ labels: { '007': 'bond' } });
});

test.each(['%YAML 1.1', '%TAG !e! tag:example.org,2000:'])('directive %s is refused', (line) => {
  const read = readObjects(`${line}\n---\nkind: Rack\nname: r1\n`);
  const message = `${line} is not taken; write plain YAML 1.2`;
  expect(read).toMatchObject({ kind: 'bad', problems: [{ line: 1, column: 1, message }] });
});

test('all unknown fields are refused at once, with place and nearest name', () => {
  const text = `kind: Host
name: h1
spec:
  rakc: racks/r1
  lables: {a: b}
  bmc:
    adress: 192.0.2.1
    port: "623"
  bootMacs: 52:54:00:00:00:01
  goal: availabel
labels:
  ok: 1
colour: red
`;
  expect(problems(text)).toEqual([
    '4:3 unknown field spec.rakc; did you mean rack?',
    '5:3 unknown field spec.lables; labels stands beside spec',
    '7:5 unknown field spec.bmc.adress; did you mean address?',
    '8:11 spec.bmc.port must be a whole number',
    '9:13 spec.bootMacs must be a list',
    '10:9 spec.goal must be one of manageable, available; did you mean available?',
    '12:7 labels[ok] must be text: write "1"',
    '13:1 unknown field colour',
  ]);
});

test.each([
  ['kind: Hots\nname: h1', '1:7 kind is "Hots"; it must be one of Rack, Credential, Fleet'],
  ['name: h1', '1:1 has no kind; write one of Rack'],
  ['kind: Host', '1:1 name is ""; it must be hosts/ID, or ID'],
  ['kind: Host\nname: racks/r1', '2:7 name is "racks/r1"; it must be hosts/ID, or ID'],
  ['kind: Workflow\nname: clock', '2:7 name is "clock"; it must be hosts/HOST/workflows/TEMPLATE'],
  ['kind: Rack\nname: r1\nspec:', '3:6 spec is empty; leave it out, or give it a value'],
  ['- 1', '1:3 is no object; write kind, name and what belongs to it'],
  ['kind: [', '1:8 Flow sequence'],
  ['kind: Rack\nname: r1\nname: r2', '3:1 Map keys must be unique'],
  ['kind: Rack\nname: r1\nlabels: &a {}\nspec: *a', '4:7 spec is an alias (*); write it out'],
  [
    'kind: Rack\nname: r1\n---\nkind: Rack\nname: racks/r1',
    '4:1 racks/r1 stands in line 1 already',
  ],
  [
    'kind: Workflow\nname: hosts/h/workflows/t\nspec: {pendingTimeout: 1 hour}',
    '3:24 spec.pendingTimeout is "1 hour"',
  ],
])('the reader refuses %j', (text, message) => {
  expect(problems(text).join('\n')).toContain(message);
});

test('an error does not repeat a password written in place of its file’s path', () => {
  for (const password of ['sesame', '{value: sesame}', '{file: /p, env: P}']) {
    const text = `kind: Credential\nname: bmc\nusername: root\npassword: ${password}`;
    const told = problems(text).join('\n');
    expect(told).toContain('4:11 password must be {file: PATH} or {env: VARIABLE}');
    expect(told).not.toContain('sesame');
  }
});

test('fields that the control plane sets are left out, and named', () => {
  const [host] = objects(`{"kind": "Rack", "name": "racks/r1", "uid": "u", "etag": "e",
    "createTime": "2026-01-01T00:00:00Z", "status": {"anything": [1]}, "labels": {}}`);
  expect(host?.ignored).toEqual(['uid', 'etag', 'createTime', 'status']);
  expect(host?.value).toEqual({});
  const [full] = objects(`{"kind": "Host", "name": "hosts/h1", "spec": {"rack": "racks/r1",
    "goal": "HOST_GOAL_UNSPECIFIED", "power": "HOST_POWER_ON"}}`);
  expect(full?.value).toEqual({ spec: { rack: 'racks/r1', power: 'on' } });
});

test('the reader reads the output of other commands: enums by name, long numbers as text', () => {
  const discovery = '{"rules": [{"name": "a", "memoryBytesMin": "1000000"}]}';
  const [rack, host, fleet] = objects(`[{"name": "racks/r1", "spec": {"discovery": ${discovery}}},
    {"name": "hosts/h1"}, {"name": "fleet"}]`);
  expect(rack?.value).toMatchObject({
    spec: { discovery: { rules: [{ memoryBytesMin: 1_000_000 }] } },
  });
  expect([rack, host, fleet].map((each) => each?.kind.name)).toEqual(['Rack', 'Host', 'Fleet']);
  const long = 'name: racks/r1\nspec: {discovery: {rules: [{memoryBytesMin: "1e6"}]}}';
  expect(problems(long)).toEqual([expect.stringContaining('must be a whole number')]);
});

test('the reader keeps each map key as written, or refuses it', () => {
  const [rack] = objects('kind: Rack\nname: r1\nlabels: { 01: a, 0x10: b }');
  expect(rack?.value).toEqual({ labels: { '01': 'a', '0x10': 'b' } });
  expect(problems('kind: Rack\nname: r1\nlabels: { 01: a, __proto__: x, "01": y }')).toEqual([
    '3:18 "__proto__" cannot be a name',
    '3:32 "01" stands there already',
  ]);
});

test.each(['[', '{a: ', '- '])('the reader is bounded in depth: %j', (open) => {
  const deep = problems(`kind: Rack\nname: r1\nspec:\n  ${open.repeat(20_000)}`);
  expect(deep).toEqual([expect.stringContaining('is nested too deeply; at most 32')]);
});

test('the reader is bounded in problems and bytes', () => {
  const labels = Array.from({ length: 200 }, (_, at) => `  a${at}: 1\n`).join('');
  expect(problems(`kind: Rack\nname: r1\nlabels:\n${labels}`)).toHaveLength(50);
  expect(problems(`# ${'ä'.repeat(8 * 1024 * 1024)}\n`)).toEqual([
    '1:1 is larger than 16777216 bytes',
  ]);
});

test('the reader is bounded in objects', () => {
  const text = 'kind: Rack\nname: r1\n---\n'.repeat(10_001);
  expect(problems(text)).toEqual(['1:1 has 10001 objects; at most 10000 are read at once']);
});

const pool = (policy: string) => `kind: Pool
name: web
spec:
  hosts: { labels: { pool: web } }
  image: registry.example/os:stable
  pollInterval: 1m
  rollout:
${policy}`;

test('durations and amounts are read as flags take them, and as JSON has them', () => {
  const short = pool(`    soak: 10m
    maxUnavailable: 25%
    failureThreshold: 2
    windows: [{ cron: 0 2 * * 6, duration: 4h, timeZone: Europe/Berlin }]`);
  const long = pool(`    soak: 600s
    maxUnavailable: { percent: 25 }
    failureThreshold: { count: 2 }
    windows: [{ cron: 0 2 * * 6, duration: 14400s, timeZone: Europe/Berlin }]`);
  expect(objects(short)[0]?.value).toEqual(objects(long)[0]?.value);
  expect(objects(short)[0]?.value['spec']).toMatchObject({
    ...{ pollInterval: '60s', rollout: { soak: '600s', maxUnavailable: { percent: 25 } } },
  });
});

test('a wrong duration or amount is shown by field and line, with what would be right', () => {
  const wrong = pool(`    soak: long
    healthTimeout: 5
    maxUnavailable: many
    failureThreshold: { count: 2, percent: 5 }`);
  expect(problems(wrong)).toEqual([
    '8:11 spec.rollout.soak is "long"; it must be text as 90s, 30m, 2h or 3d',
    '9:20 spec.rollout.healthTimeout is "5"; it must be text as 90s, 30m, 2h or 3d',
    '10:21 spec.rollout.maxUnavailable is "many"; it must be 2, 25%, {count: 2} or {percent: 25}',
    '11:23 spec.rollout.failureThreshold has count and percent; give one of them',
  ]);
});

test('a violation that the control plane reports is shown at its field’s line', () => {
  const [read] = objects(pool('    windows: [{ cron: 0 2 * * 6, duration: 4h, timeZone: Mars }]'));
  if (read === undefined) throw new Error('it has no object');
  const place = (field: string) => Object.values(positionOfField(read, field)).join(':');
  expect(place('pool.spec.rollout.windows[0].time_zone')).toBe('8:58');
  expect(place('pool.spec.rollout.gate.webhook_url')).toBe('8:5');
  expect(place('pool.spec.pins["hosts/h1"]')).toBe('4:3');
  expect(place('pool_id')).toBe('1:1');
});

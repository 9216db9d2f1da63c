import { BmcProtocol, ShutdownMode } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { parseManifest } from './manifest.ts';

function problems(fileName: string, text: string): string[] {
  const manifest = parseManifest(fileName, text);
  if (manifest.kind === 'lines') throw new Error('expected problems');
  return manifest.problems.map(({ line, message }) => `${line}: ${message}`);
}

function lines(fileName: string, text: string) {
  const manifest = parseManifest(fileName, text);
  if (manifest.kind === 'bad') throw new Error(JSON.stringify(manifest.problems));
  return manifest.lines;
}

const yaml = `defaults: { rack: r1, credential: bmc1, protocol: redfish }
hosts:
  - { host: h1, serial: 0123, bmc: "10.0.0.21:8443", labels: { role: db } }
  - host: h2
    mac: 52-54-00-00-00-0A
    rack: racks/r2
`;

const csv = `host,rack,serial,mac,bmc,credential,protocol,labels
h1,r1,0123,,10.0.0.21:8443,bmc1,redfish,role=db

"h2",racks/r2,,52-54-00-00-00-0A,,bmc1,redfish,
`;

test.each([
  ['hosts.yaml', yaml, [3, 4]],
  ['hosts.CSV', csv, [2, 4]],
])('the reader reads %s with its defaults, its texts as they are written', (name, text, at) => {
  const [first, second] = lines(name, text);
  expect([first?.line, second?.line]).toEqual(at);
  expect(first).toMatchObject({
    hostId: 'h1',
    expected: {
      match: { serial: '0123', mac: '', bmcAddress: '' },
      labels: { role: 'db' },
      spec: {
        rack: 'racks/r1',
        bmc: {
          address: '10.0.0.21',
          port: 8443,
          credential: 'credentials/bmc1',
          protocol: BmcProtocol.REDFISH,
        },
      },
    },
  });
  expect(second).toMatchObject({
    hostId: 'h2',
    expected: { match: { mac: '52:54:00:00:00:0a' }, spec: { rack: 'racks/r2' } },
  });
});

test('the reader reports all problems of a YAML file, each with its line', () => {
  const text = `default: {}
hosts:
  - { host: h1, rack: r1, serial: a }
  - host: h1
    rack: r1
    serial: b
    colour: red
  - { rack: r1, serial: [c], protocol: telnet }
  - word
`;
  expect(problems('m.yml', text)).toEqual([
    '1: has "default"; known are defaults and hosts',
    '4: repeats the host h1 of line 3',
    expect.stringMatching(/^7: has "colour"; known are host, rack, serial/),
    '8: serial must be a text',
    '8: names no host',
    expect.stringContaining('8: does not say which machine it is'),
    '8: has "telnet"; it must be ipmi or redfish or webhook or manual',
    '9: is no host: it must be fields with values',
  ]);
  expect(problems('m.yml', 'hosts: [')[0]).toMatch(/^1: /);
  const twice = 'hosts: []\nhosts: []\n';
  expect(problems('m.yml', twice)[0]).toMatch(/^2: /);
  expect(problems('m.yml', 'hosts: []\n---\nhosts: []\n')).toEqual([
    '3: is another document; one is read',
  ]);
  expect(problems('m.yml', 'defaults: r1\nhosts: []\n')).toEqual([
    '1: defaults must be fields with values',
  ]);
  expect(problems('m.yml', `hosts: ${'['.repeat(200)}${']'.repeat(200)}`)[0]).toContain(
    'nested too deeply',
  );
  expect(problems('m.yml', '- a')).toEqual(['1: must have hosts: and a list of them']);
});

test('the reader reports all problems of a CSV file, each with its line', () => {
  const text = 'host,rack,serial,size\nh1,r1,a,1\nh2,,"b,\nc",2\nh3,r1,d\n';
  expect(problems('m.csv', text)).toEqual([
    expect.stringMatching(/^1: has the column "size"; known are host/),
    '3: names no rack; give it here or in defaults',
    '5: has 3 columns; the first line has 4',
  ]);
  expect(problems('m.csv', 'host,labels\nh1,a\n')).toContain(
    '2: has the label "a"; it must be NAME=VALUE',
  );
  expect(problems('m.csv', 'host\n"h1\n')).toContain('2: has a quoted text without its end');
  expect(problems('m.csv', '')[0]).toContain('1: is empty');
});

test('the reader reads how power is taken from the system of a host', () => {
  const [plain, forced] = lines(
    'm.yaml',
    `defaults: { rack: r1, shutdown: graceful, shutdownTimeout: 90 }
hosts:
  - { host: h1, serial: a }
  - { host: h2, serial: b, shutdown: force }
`,
  );
  const graceful = { mode: ShutdownMode.GRACEFUL, timeoutSeconds: 90 };
  expect(plain?.expected.spec?.shutdown).toMatchObject(graceful);
  expect(forced?.expected.spec?.shutdown?.mode).toBe(ShutdownMode.FORCE);
  expect(
    problems('m.csv', 'host,rack,serial,shutdown,shutdownTimeout\nh1,r1,a,softly,90s\n'),
  ).toEqual([
    '2: has "softly"; it must be graceful or force',
    '2: has "90s" as shutdownTimeout; it must be whole seconds',
  ]);
});

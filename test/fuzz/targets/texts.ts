/** Texts of people and peers: templates, addresses, terminals, signed documents. */

import { MaskedStream } from '../../../agent/src/console/masked.ts';
import { Screen } from '../../../agent/src/console/screen.ts';
import { ConsoleText } from '../../../packages/cli/src/commands/host/console-text.ts';
import { canonicalMac } from '../../../packages/dhcp/src/mac.ts';
import {
  joinEvidence,
  parseEvidence,
  separateEvidence,
} from '../../../packages/erasure/src/certificate.ts';
import {
  buildManifest,
  buildRevocation,
  parseDocument,
} from '../../../packages/erasure/src/documents.ts';
import { ShapeError } from '../../../packages/erasure/src/shape.ts';
import { parseStatement } from '../../../packages/erasure/src/statement.ts';
import { trustedKeys } from '../../../packages/erasure/src/trusted-keys.ts';
import { verifyCertificate, verifyDocument } from '../../../packages/erasure/src/verify.ts';
import { networkOf } from '../../../packages/platform/src/caller-network.ts';
import { internalAddress, readAddress } from '../../../packages/platform/src/internal-address.ts';
import { hostOfPeer, networkOfPeer } from '../../../packages/rpc/src/wire/caller-address.ts';
import { parseTemplate } from '../../../packages/template/src/parse.ts';
import { parseTraceparent } from '../../../packages/trace/src/context.ts';
import { readCorpus } from '../corpus.ts';
import { type Target, textOf, texts } from '../target.ts';

const template = `description: Set the clock
timeout: 2h
variables:
  ntp: { type: string, default: "{{ host.rack }}.example.org" }
  often: { type: integer, default: 3 }
  mode: { type: choice, values: [one, two], default: one }
steps:
  - name: clock
    if: host.labels.role in ["worker", "spare"] and not (vars.mode == 'two')
    script: |
      ntpd -q -p {{ quote(vars.ntp) }}
    environment: { A: "b\\u0041{{ host.id }}", C: 'it''s {{ "}}" }}' }
    timeout: 5m
    retries: 2
    onFailure: tidy-up
  - name: check
    if: steps.clock.exitCode == 0 or steps.clock.state != "failed"
    webhook:
      url: https://x.example/{{ host.id }}
      body: >-
        folded
  - { name: settle, wait: "{{ default(host.labels.wait, '5s') }}" }
handlers:
  - { name: tidy-up, script: "rm -f /run/x" }
`;

const host = { name: 'hosts/h1', uid: 'uid-1' };
const createdAt = '2026-11-23T01:02:03.000Z';
const manifest = buildManifest({
  ...{ host, useEpoch: 3, createdAt, runnerSession: 's', previousSha256: null },
  devices: [
    {
      ...{ sources: ['kernel', 'bmc'], kind: 'disk', name: 'sda', model: 'M', serial: 'S' },
      ...{ wwn: '', sizeBytes: 1_000, decision: { kind: 'listed', reason: 'a stick' } },
    },
  ],
});
const revocation = buildRevocation({
  ...{ host, createdAt, certificate: 'erasureCertificates/c1', reason: 'byPerson' },
  ...{ certificateSha256: 'ab'.repeat(32), deviceSerial: 'S', detail: 'd', offset: null },
  useEpoch: 3,
});

const secret = 'deadbeefdeadbeef';
const terminal = texts(
  '\x1b[2J\x1b[1;1HBooting\r\n\x1b[31mred\x1b[0m\tok\x1b]0;title\x07\n',
  '\x1b(B\x1b[5A\x1b[999;999Hx\x1b[K\x1b[1P\x1bP1$r\x1b\\é\u{1f600}\n',
);
const escapes = ['\x1b[', '\x1b]', '\x1bP', '\x1b\\', 'H', '2J', ';', '9999', '\x07', '\r', '\b'];
const signature = new Uint8Array(70).fill(48);
const trust = [{ pem: '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n' }];

/** A terminal's bytes in two pieces, as they may come. */
function halves(input: Uint8Array): readonly Uint8Array[] {
  const middle = Math.floor(input.length / 2);
  return [input.subarray(0, middle), input.subarray(middle)];
}

export const targets: readonly Target[] = [
  {
    name: 'texts.template',
    form: 'text',
    seeds: texts(template),
    parse: (input) => parseTemplate(textOf(input)),
    refusals: [],
    tokens: [
      ...['{{', '}}', '&a ', '*a', '!t ', '|', '>', '- ', '---\n', 'vars.', 'steps.', 'host.'],
      ...['if: ', 'steps:\n', '[', ']', '(', ')', ' and ', ' not ', 'default(', "'", '"', '<<: '],
    ],
    // The text itself, its problems, and a tree of the document.
    bounds: { resultBytesPerByte: 256, inputBytesMax: 8 * 1024 },
  },
  {
    name: 'texts.addresses',
    form: 'text',
    seeds: texts(
      '192.0.2.1',
      '::ffff:192.0.2.1',
      'fe80::1%eth0',
      '52:54:00:00:00:01',
      'ipv4:1.2.3.4:80',
    ),
    parse: (input) => {
      const text = textOf(input);
      const peer = [hostOfPeer(text), networkOfPeer(text), networkOf(text)];
      return [readAddress(text), internalAddress(text), canonicalMac(text), ...peer];
    },
    refusals: [],
    tokens: ['::', ':', '.', '%', 'ffff:', '64:ff9b::', 'ipv6:[', ']', '0x7f'],
  },
  {
    name: 'texts.traceparent',
    form: 'text',
    seeds: texts('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
    parse: (input) => parseTraceparent(textOf(input)),
    refusals: [],
    tokens: ['-', '00', 'ff'],
  },
  {
    name: 'texts.screen',
    form: 'bytes',
    seeds: terminal,
    parse: (input) => {
      const screen = new Screen();
      for (const half of halves(input)) screen.write(half);
      return screen.lines();
    },
    refusals: [],
    tokens: escapes,
  },
  {
    name: 'texts.masked-console',
    form: 'bytes',
    seeds: texts(`token=${secret} and more`, 'deadbeef'),
    parse: (input) => {
      const stream = new MaskedStream(secret);
      const shown = halves(input).map((half) => stream.take(half));
      if (Buffer.concat(shown).includes(secret)) throw new Error('shows the secret');
      return shown;
    },
    refusals: [],
    tokens: [secret, secret.slice(1), 'deadbeef'],
    bounds: { inputBytesMax: 64 * 1024 },
  },
  {
    name: 'texts.shown-console',
    form: 'bytes',
    seeds: terminal,
    parse: (input) =>
      [true, false].map((isTerminal) => {
        const text = new ConsoleText(isTerminal);
        return halves(input).map((half) => text.take(half));
      }),
    refusals: [],
    tokens: escapes,
  },
  {
    name: 'texts.statement',
    form: 'json',
    // Signed by keys that are made anew each time: the seeds stand in the corpus.
    seeds: readCorpus('texts.statement'),
    parse: (input) => {
      const check = verifyCertificate({ statement: input, signature }, trust);
      const separated = separateEvidence(input);
      return [check, parseStatement(input), joinEvidence(separated.rest, separated.evidence)];
    },
    refusals: [ShapeError],
    tokens: ['evidence', 'format', 'verdict', 'host', 'device', '\n  "'],
  },
  {
    name: 'texts.document',
    form: 'json',
    seeds: [manifest, revocation].map((bytes) => Uint8Array.from(bytes)),
    parse: (input) => [
      verifyDocument({ statement: input, signature }, trust),
      parseDocument(input),
    ],
    refusals: [ShapeError],
    tokens: ['devices', 'decision', 'kind', 'complete', 'format', 'rackwright-erasure-addendum-1'],
  },
  {
    name: 'texts.trusted-keys',
    form: 'text',
    seeds: texts(`not-before: ${createdAt}\n${trust[0]?.pem}not-after: ${createdAt}\n`),
    parse: (input) => trustedKeys(textOf(input)),
    refusals: [],
    tokens: ['-----BEGIN PUBLIC KEY-----', '-----END PUBLIC KEY-----', 'not-before: ', '\n'],
  },
  {
    name: 'texts.evidence',
    form: 'bytes',
    seeds: readCorpus('texts.evidence'),
    parse: parseEvidence,
    refusals: [ShapeError],
    bounds: { resultBytesMax: 2 ** 20, resultBytesPerByte: 512 },
  },
];

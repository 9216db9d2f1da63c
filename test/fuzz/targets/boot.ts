/** What a machine sends while it boots. */

import { decideRange, isUnchanged } from '../../../agent/src/boot/ranges.ts';
import { parseTarget, parseTftpName, targetForm } from '../../../agent/src/boot/urls.ts';
import { DecodeError } from '../../../packages/bytes/src/index.ts';
import { answerBootRequest, readBootRequest } from '../../../packages/dhcp/src/answer.ts';
import { dhcpOption } from '../../../packages/dhcp/src/options.ts';
import { decodeDhcp, encodeDhcp } from '../../../packages/dhcp/src/packet.ts';
import { LeaseBook } from '../../../packages/dhcp/src/server/lease-book.ts';
import { readServerRequest } from '../../../packages/dhcp/src/server/request.ts';
import { serve } from '../../../packages/dhcp/src/server/serve.ts';
import {
  mac,
  packetOf,
  planOf,
  serverAddress,
  settingsOf,
  usualPlan,
} from '../../../packages/dhcp/src/server/test-site.ts';
import { SideOptions } from '../../../packages/dhcp/src/side-options.ts';
import { captures } from '../../../packages/dhcp/src/test-captures.ts';
import { parseContentRange } from '../../../packages/platform/src/content-range.ts';
import { decodePacket, encodePacket, type TftpPacket } from '../../../packages/tftp/src/packet.ts';
import { decideRequest, tftpLimitsDefault } from '../../../packages/tftp/src/request.ts';
import { type Target, textOf, texts } from '../target.ts';

const nobody = { address: '0.0.0.0', port: 68 };
const settings = settingsOf(planOf(usualPlan));

const options = Object.values(dhcpOption);
/** One option: its code, then its value. */
const optionSeeds = Object.values(captures).flatMap((bytes) =>
  [...decodeDhcp(bytes).options].map(([code, value]) => Uint8Array.of(code, ...value)),
);

const tftpPackets: readonly TftpPacket[] = [
  {
    kind: 'readRequest',
    fileName: 'snponly.efi',
    mode: 'octet',
    options: [
      ['blksize', '1468'],
      ['tsize', '0'],
      ['windowsize', '4'],
      ['timeout', '3'],
    ],
  },
  { kind: 'writeRequest', fileName: 'a', mode: 'netascii', options: [] },
  { kind: 'data', block: 1, bytes: Uint8Array.of(1, 2, 3) },
  { kind: 'ack', block: 7 },
  { kind: 'error', code: 8, message: 'User aborted' },
  { kind: 'optionAck', options: [['tsize', '4194304']] },
];

function dhcpAnswers(input: Uint8Array): unknown {
  const packet = decodeDhcp(input);
  return (['dhcp', 'pxe'] as const).map((service) => {
    const asked = readBootRequest(packet, service, nobody);
    if (asked.kind === 'silence') return asked;
    const answer = answerBootRequest(asked.request, 'runner', settings);
    return answer.kind === 'silence' ? answer : encodeDhcp(answer.packet);
  });
}

function dhcpServing(input: Uint8Array): unknown {
  const asked = readServerRequest(decodeDhcp(input), nobody);
  if (asked.kind !== 'asked') return asked;
  const book = new LeaseBook();
  const isKnown = () => true;
  const state = { book, nowMs: 1_000, isKnown, quiet: false, permission: 'runner' as const };
  const decision = serve(asked.request, state, settings);
  return [decision, decision.reply === undefined ? [] : encodeDhcp(decision.reply.packet)];
}

export const targets: readonly Target[] = [
  {
    name: 'boot.dhcp-packet',
    form: 'bytes',
    seeds: Object.values(captures),
    parse: decodeDhcp,
    refusals: [DecodeError],
  },
  {
    name: 'boot.dhcp-option',
    form: 'bytes',
    seeds: optionSeeds,
    parse: ([code = 0, ...value]) => {
      const bytes = Uint8Array.from(value);
      return options.find((option) => option.code === code)?.codec.decode(bytes);
    },
    refusals: [DecodeError],
    tokens: options.map(({ code }) => String.fromCharCode(code)).filter((text) => text < '\x80'),
  },
  {
    name: 'boot.dhcp-side-options',
    form: 'bytes',
    seeds: Object.values(captures),
    parse: (input) => {
      const side = new SideOptions(decodeDhcp(input));
      return [options.map((option) => side.read(option as never)), side.ignored];
    },
    refusals: [DecodeError],
  },
  {
    name: 'boot.dhcp-proxy',
    form: 'bytes',
    seeds: Object.values(captures),
    parse: dhcpAnswers,
    refusals: [DecodeError],
  },
  {
    name: 'boot.dhcp-server',
    form: 'bytes',
    seeds: [
      ...Object.values(captures),
      ...(['discover', 'request', 'decline', 'release', 'inform'] as const).map((type) =>
        encodeDhcp(packetOf(mac.one, { type, requested: '10.77.0.51', server: serverAddress })),
      ),
    ],
    parse: dhcpServing,
    refusals: [DecodeError],
  },
  {
    name: 'boot.tftp-packet',
    form: 'bytes',
    seeds: tftpPackets.map(encodePacket),
    parse: decodePacket,
    refusals: [DecodeError],
    tokens: ['blksize\0', 'tsize\0', 'windowsize\0', 'timeout\0', '65464\0', '0\0'],
  },
  {
    name: 'boot.tftp-request',
    form: 'bytes',
    seeds: tftpPackets.map(encodePacket),
    parse: (input) => {
      const load = { all: 0, ofThisClient: 0, unanswered: undefined };
      const file = { kind: 'file', bytes: new Uint8Array(5_000) } as const;
      const refused = { kind: 'refused', code: 1, message: 'no such file' } as const;
      return decideRequest(input, load, tftpLimitsDefault, (name) => {
        return parseTftpName(name).kind === 'loader' ? file : refused;
      });
    },
    refusals: [],
    tokens: ['blksize\0', 'tsize\0', 'windowsize\0', 'timeout\0', 'octet\0', '/', '\\'],
    // A transfer holds the file.
    bounds: { resultBytesMax: 256 * 1024 },
  },
  {
    name: 'boot.http-target',
    form: 'text',
    seeds: texts(
      '/boot/52:54:00:78:00:01/script.ipxe',
      '/boot/52-54-00-78-00-01/files/snponly.efi',
      '/files/vmlinuz',
      `/v2/blobs/sha256/${'ab'.repeat(32)}`,
      '/boot/52:54:00:78:00:01/grub.cfg?a=b',
      '/grub/x86_64-efi/grub.cfg',
      'http://10.0.0.1:8080/seed/id/token/user-data',
      '/phone-home/id/token',
      'pxelinux.cfg/01-52-54-00-78-00-01',
      '52:54:00:78:00:01/shimx64.efi',
    ),
    parse: (input) => {
      const text = textOf(input);
      return [targetForm(text), parseTarget(text), parseTftpName(text)];
    },
    refusals: [],
    tokens: ['/', '//', '%2f', '..', '/blobs/', '/seed/', '/phone-home/', '/grub/', '?', '#'],
  },
  {
    name: 'boot.http-ranges',
    form: 'text',
    seeds: texts('bytes=0-99', 'bytes=-5', 'bytes=5-', 'bytes 0-9/10', '"tag", W/"other"', '*'),
    parse: (input) => {
      const text = textOf(input);
      const range = decideRange(text, 1_000);
      if (range.kind === 'part' && !(range.start >= 0 && range.end < 1_000)) {
        throw new Error(`outside of the file: ${JSON.stringify(range)}`);
      }
      return [range, isUnchanged(text, '"tag"'), parseContentRange(text)];
    },
    refusals: [],
    tokens: ['bytes=', 'bytes ', '"', 'W/', '-', '*'],
  },
];

/** Messages of agents, clients and peers, and what was stored of them. */

import { crc32 } from 'node:zlib';
import { create, type DescMessage, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { ApiFailure, HostSchema, HostStateSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as googleRpc from '@rackwright/messages/google-rpc';
import * as store from '@rackwright/messages/store';
import { parseLeases } from '../../../agent/src/boot/lease-file.ts';
import { encodeFrames, readFrames } from '../../../agent/src/journal/frame.ts';
import { applyRecords, emptyJournal, makeRecord } from '../../../agent/src/journal/state.ts';
import { BackupError, parseManifest } from '../../../controlplane/src/backup/manifest.ts';
import {
  FilterError,
  type FilterFields,
  parseFilter,
} from '../../../controlplane/src/filter/index.ts';
import { parseOrder } from '../../../controlplane/src/filter/order.ts';
import { ConfigError } from '../../../packages/platform/src/config-reader.ts';
import { resultFromWire } from '../../../packages/results/src/wire.ts';
import { surveyJson } from '../../../packages/rpc/src/bounds/json-survey.ts';
import { readJson } from '../../../packages/rpc/src/http/json-request.ts';
import { messageIn } from '../../../packages/rpc/src/http/request-format.ts';
import { decodeMessage, weighMessage } from '../../../packages/rpc/src/wire/codec.ts';
import { fromStatus } from '../../../packages/rpc/src/wire/status.ts';
import { documents, type Target, textOf, texts } from '../target.ts';

const limits = {
  ...{ bytesMax: 64 * 1024, elementsMax: 4_096, unknownFieldsMax: 256 },
  unknownFields: 'kept' as const,
};
/** A message is an object with as many members as its schema has, however short its bytes are. */
const messageBounds = { resultBytesMax: 2 ** 20, resultBytesPerByte: 512 };

const host = create(HostSchema, {
  name: 'hosts/h1',
  labels: { a: '1', b: '2' },
  spec: { rack: 'racks/r1', bootMacs: ['52:54:00:00:00:01'] },
});
const report = create(agent.ReportSchema, {
  operationId: 'uid-1/1/2/1',
  result: { case: 'complete', value: {} },
});
const reports = [
  report,
  create(agent.ReportSchema, {
    result: { case: 'failed', value: { message: 'm', messageDetail: 'd' } as never },
  }),
  create(agent.ReportSchema, { result: { case: 'transientError', value: {} } }),
  create(agent.ReportSchema, { result: { case: 'retryAfter', value: {} } }),
  create(agent.ReportSchema, { result: { case: 'continuing', value: {} } }),
  create(agent.ReportSchema, { result: { case: 'hostUpdated', value: { observations: {} } } }),
];

/** A message as a server reads it: weighed first, then decoded. */
function messageTarget(
  name: string,
  schema: DescMessage,
  seeds: readonly Uint8Array[],
  after: (message: never) => unknown = (message) => message,
): Target {
  return {
    name: `records.${name}`,
    form: 'bytes',
    seeds,
    parse: (input) => {
      weighMessage(schema, input, limits);
      return after(decodeMessage(schema, input) as never);
    },
    refusals: [ApiFailure],
    bounds: messageBounds,
  };
}

const detail = (desc: DescMessage, fields: Record<string, unknown>) =>
  anyPack(desc, create(desc, fields));
const status = toBinary(
  googleRpc.StatusSchema,
  create(googleRpc.StatusSchema, {
    code: 3,
    message: 'm',
    details: [
      detail(googleRpc.ErrorInfoSchema, { reason: 'R', domain: 'd', metadata: { a: 'b' } }),
      detail(googleRpc.BadRequestSchema, {
        fieldViolations: [{ field: 'spec.rack', description: 'is unknown' }],
      }),
      detail(googleRpc.RetryInfoSchema, { retryDelay: { seconds: 3n } }),
    ],
  }),
);

const journal = encodeFrames(
  [
    makeRecord(1_000, { case: 'started', value: { id: 'j', generation: 1n, life: 7n } }),
    makeRecord(2_000, { case: 'storeSeen', value: { accepted: true } }),
    makeRecord(3_000, { case: 'grantClosed', value: { operationId: 'uid-1/1/2/1' } as never }),
  ],
  200,
);

/** The checksum of the first frame is made right, or no mutation would get past it. */
function withChecksum(input: Uint8Array): Uint8Array {
  const file = Buffer.from(input);
  if (file.length < 12) return file;
  const payload = file.subarray(12, 12 + file.readUInt32BE(4));
  file.writeUInt32BE(crc32(payload, crc32(file.subarray(4, 8))), 8);
  return file;
}

function journalState(input: Uint8Array): unknown {
  const contents = readFrames(withChecksum(input));
  if (contents.kind === 'damaged') return contents;
  return [contents, applyRecords(emptyJournal, contents.records)];
}

interface Thing {
  readonly name: string;
}
const fields: FilterFields<Thing> = {
  name: { kind: 'text', of: ({ name }) => name, collection: 'things' },
  state: { kind: 'choice', of: () => 3, choices: HostStateSchema },
  on: { kind: 'flag', of: () => true },
  cores: { kind: 'number', of: () => 8 },
  macs: { kind: 'texts', of: () => ['52:54:00:00:00:0a'], folds: true },
  labels: { kind: 'map', of: () => ({ site: 'fra 1' }) },
  time: { kind: 'time', of: () => 1_000 },
};
const thing = { name: 'w'.repeat(200) };

export const targets: readonly Target[] = [
  messageTarget('host', HostSchema, [toBinary(HostSchema, host)]),
  messageTarget('agent-message', agent.SessionRequestSchema, [
    toBinary(agent.SessionRequestSchema, create(agent.SessionRequestSchema)),
    Uint8Array.from([0x42, 0x04, 0x22, 0x02, 0x0a, 0x00]),
    ...reports.map((each) => {
      const bytes = toBinary(agent.ReportSchema, each);
      return Uint8Array.of(0x12, bytes.length, ...bytes);
    }),
  ]),
  messageTarget(
    'report',
    agent.ReportSchema,
    reports.map((each) => toBinary(agent.ReportSchema, each)),
    (message) => resultFromWire(message),
  ),
  messageTarget('stored-host', store.HostRecordSchema, [
    toBinary(store.HostRecordSchema, create(store.HostRecordSchema, { host })),
    toBinary(HostSchema, host),
  ]),
  messageTarget('stored-pool', store.PoolRecordSchema, [
    toBinary(store.PoolRecordSchema, create(store.PoolRecordSchema, {})),
    toBinary(HostSchema, host),
  ]),
  {
    name: 'records.status-details',
    form: 'bytes',
    seeds: [status],
    parse: (input) => [3, 14, 13, 99].map((code) => fromStatus(code, 'm', Buffer.from(input))),
    refusals: [],
  },
  {
    name: 'records.json-request',
    form: 'json',
    seeds: documents({ name: 'hosts/h1', labels: { a: '1' }, spec: { bootMacs: ['m'] } }),
    parse: (input) => readJson(HostSchema, input, limits),
    refusals: [ApiFailure],
    tokens: ['name', 'labels', 'spec', 'bootMacs', 'createTime', '2026-01-01T00:00:00Z', '@type'],
    bounds: messageBounds,
  },
  {
    name: 'records.json-survey',
    form: 'json',
    seeds: documents({ a: [1, { b: 'x,"]' }] }, [[], {}]),
    parse: (input) => surveyJson(input, limits),
    refusals: [],
  },
  {
    name: 'records.envelope',
    form: 'bytes',
    seeds: [Uint8Array.of(0, 0, 0, 0, 2, 0x0a, 0)],
    parse: (input) => messageIn(Buffer.from(input), { isJson: false, isEnveloped: true }),
    refusals: [ApiFailure],
  },
  {
    name: 'records.journal',
    form: 'bytes',
    seeds: [Uint8Array.from(Buffer.concat(journal)), ...journal.map((one) => Uint8Array.from(one))],
    parse: journalState,
    refusals: [],
    bounds: messageBounds,
  },
  {
    name: 'records.leases',
    form: 'json',
    seeds: documents({
      version: 1,
      writtenAtMs: 5,
      leases: [{ mac: '52:54:00:00:00:01', address: '10.0.0.2', state: 'bound', untilMs: 9 }],
      setAside: [{ mac: '52:54:00:00:00:01', address: '10.0.0.3', untilMs: 9 }],
    }),
    parse: (input) => parseLeases(textOf(input)),
    refusals: [ConfigError, SyntaxError],
    tokens: ['leases', 'setAside', 'mac', 'address', 'untilMs', 'bound'],
  },
  {
    name: 'records.backup-manifest',
    form: 'json',
    seeds: documents({
      format: 'rackwright-backup/1',
      time: '2026-01-01T00:00:00.000Z',
      store: { driver: 'sqlite', incarnation: 'i', revision: 4 },
      secretsKey: { keyIds: ['a'], source: 's', included: true },
      files: [{ name: 'state.db', bytes: 4, sha256: 'ab'.repeat(32) }],
    }),
    parse: (input) => parseManifest(textOf(input)),
    refusals: [BackupError],
    tokens: ['files', 'name', 'sha256', 'rackwright-backup/2', 'identity/key', 'store', 'keyIds'],
  },
  {
    name: 'records.filter',
    form: 'text',
    seeds: texts(
      'name = web* AND (state = available OR NOT on = true)',
      '-labels."site" = "fra 1" AND cores >= 8',
      'time < 2026-01-01T00:00:00Z AND macs:"52:54:00"',
    ),
    parse: (input) => parseFilter(textOf(input), fields).matches(thing),
    refusals: [FilterError],
    tokens: [' AND ', ' OR ', 'NOT ', '-', '(', ')', '=', '!=', ':', '"', '*', 'labels.', 'name'],
  },
  {
    name: 'records.order',
    form: 'text',
    seeds: texts('state, time desc', 'name'),
    parse: (input) => parseOrder(textOf(input), fields)?.keyOf(thing),
    refusals: [FilterError],
    tokens: [', ', ' desc', ' asc', 'labels.', 'name', 'time'],
  },
];

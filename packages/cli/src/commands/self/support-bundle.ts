/**
 * rackwright support-bundle: data that helps others to find a problem.
 *
 * Invariant: no secret is in it. It holds only data that calls return. Fields that may hold a
 * secret of a person (first-boot data, variables, arguments, sources, outputs, the part after "?"
 * in a URL) are left out.
 */
import { gzipSync } from 'node:zlib';
import { type DescMessage, type JsonValue, type MessageShape, toJson } from '@bufbuild/protobuf';
import {
  AccessService,
  AuditService,
  CountHostsResponseSchema,
  ExplanationSchema,
  FleetSchema,
  FleetService,
  HostService,
  ListAuditRecordsResponseSchema,
  ListHostsResponseSchema,
  ListPoolsResponseSchema,
  ListRacksResponseSchema,
  PoolService,
  RackService,
  SecretsKeySchema,
  SecretsService,
  WhoAmIResponseSchema,
} from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { createClient } from '@rackwright/rpc';
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags, textFlag } from '../../flags.ts';
import { redacted } from '../../output/redacted.ts';
import type { Connection, ConnectionFlags } from '../../settings.ts';
import { version } from '../../version.ts';
import { withConnection } from '../frame/calls.ts';

/** So many of each kind, however many there are. */
const most = { hosts: 100, explained: 20, racks: 1_000, pools: 100, audit: 500 } as const;

interface BundleFlags extends ConnectionFlags {
  readonly filename?: string;
}

export const supportBundle = buildCommand({
  docs: {
    brief: briefs['support-bundle'],
    fullDescription:
      'Writes one compressed JSON file (zcat shows it): versions, counts, the fleet, racks, ' +
      'pools, hosts that fail or run with why, and the newest of the audit log. Passwords and ' +
      'keys are never in it; first-boot data, variables, arguments, template sources and outputs ' +
      'are left out. Names, addresses and serial numbers are in it: look before you send it.',
  },
  parameters: {
    flags: { ...connectionFlags, filename: textFlag('Where it is written', 'file') },
    aliases: { f: 'filename' },
  },
  async func(this: CliContext, flags: BundleFlags) {
    const { io } = this;
    const time = new Date(io.clock.nowMs()).toISOString().replaceAll(/[:-]|\.\d+/g, '');
    const path = flags.filename ?? `rackwright-support-${time}.json.gz`;
    const sections = await withConnection(io, flags, (connection) => collect(io, connection));
    const text = `${JSON.stringify(sections, undefined, 2)}\n`;
    await io.writePrivateFile(path, gzipSync(text));
    const failed = Object.values(sections).filter(isFailure).length;
    const lacks = failed === 0 ? '' : `; ${failed} parts could not be read, and say why`;
    io.err.write(`${path} is written${lacks}. Look at it before you send it: zcat ${path}\n`);
  },
});

type Sections = Readonly<Record<string, JsonValue>>;

async function collect(io: CommandIo, connection: Connection): Promise<Sections> {
  const { channel, defaults } = connection;
  const hosts = createClient(HostService, channel, defaults);
  const count = (groupBy: string, filter: string) =>
    part(CountHostsResponseSchema, () => hosts.countHosts({ groupBy, filter }));
  const hostsBy = (filter: string) =>
    part(ListHostsResponseSchema, () =>
      hosts.listHosts({ filter, pageSize: most.hosts }).then((page) => page),
    );
  return {
    about: {
      command: version,
      time: new Date(io.clock.nowMs()).toISOString(),
      server: connection.server,
    },
    ...(await wholeFleet(connection)),
    states: await count('state', ''),
    waiting: await count('waiting', 'waiting:*'),
    faults: await count('fault', 'fault:*'),
    failures: await count('failure', 'failure:*'),
    faulty: await hostsBy('fault:*'),
    failed: await hostsBy('failure:*'),
    running: await hostsBy('run:*'),
    explanations: await explanations(connection),
  };
}

async function wholeFleet({ channel, defaults }: Connection): Promise<Sections> {
  const access = createClient(AccessService, channel, defaults);
  const fleet = createClient(FleetService, channel, defaults);
  const racks = createClient(RackService, channel, defaults);
  const pools = createClient(PoolService, channel, defaults);
  const audit = createClient(AuditService, channel, defaults);
  const secrets = createClient(SecretsService, channel, defaults);
  return {
    caller: await part(WhoAmIResponseSchema, () => access.whoAmI({})),
    fleet: await part(FleetSchema, () => fleet.getFleet({})),
    secretsKey: await part(SecretsKeySchema, () => secrets.getSecretsKey({})),
    racks: await part(ListRacksResponseSchema, () => racks.listRacks({ pageSize: most.racks })),
    pools: await part(ListPoolsResponseSchema, () => pools.listPools({ pageSize: most.pools })),
    audit: await part(ListAuditRecordsResponseSchema, () =>
      audit.listAuditRecords({ pageSize: most.audit }),
    ),
  };
}

async function explanations({ channel, defaults }: Connection): Promise<JsonValue> {
  const hosts = createClient(HostService, channel, defaults);
  try {
    const filter = 'fault:* OR failure:*';
    const page = await hosts.listHosts({ filter, pageSize: most.explained });
    const all: JsonValue[] = [];
    for (const { name } of page.hosts) {
      all.push(await part(ExplanationSchema, () => hosts.explainHost({ name })));
    }
    return all;
  } catch (error) {
    return failureOf(error);
  }
}

/** An answer without fields that may be secret, or why there is none. */
async function part<D extends DescMessage>(
  schema: D,
  call: () => Promise<MessageShape<D>>,
): Promise<JsonValue> {
  try {
    return redacted(toJson(schema, await call(), { alwaysEmitImplicit: true }));
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): JsonValue {
  return { couldNotBeRead: errorText(error) };
}

function isFailure(value: JsonValue): boolean {
  return value instanceof Object && 'couldNotBeRead' in value;
}

/**
 * A rack's agent that lies: every field that names something, with what is another rack's, over
 * real TLS with its own certificate. Nothing of the other rack changes, and nothing of it is told.
 */
import { generateKeyPairSync } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import {
  ApiFailure,
  agent,
  FailureType,
  InventorySchema,
  type OperationId,
  signCertificateProof,
} from '@rackwright/messages';
import { connect, createClient } from '@rackwright/rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { classes } from './hostile-agent-classes.ts';
import { AgentStream, HostileSite } from './hostile-agent-site.ts';
import { type Leaf, leavesOf, setLeaf } from './hostile-agent-walk.ts';

const session = leavesOf(agent.SessionRequestSchema);
const enrolment = leavesOf(agent.IssueCertificateRequestSchema);
const isOfHello = ({ through }: Leaf) => through[0]?.name === 'hello';
/** Hello comes last: what some of them say keeps the rack from work until a person has looked. */
const named = session
  .filter(({ kind }) => kind !== undefined && kind !== 'free')
  .sort((one, other) => Number(isOfHello(one)) - Number(isOfHello(other)));

let site: HostileSite;
let before: ReadonlyMap<string, string>;

beforeAll(async () => {
  site = await HostileSite.start();
  before = await site.records();
});
afterAll(() => site.stop());

/** A message that A may send, of the kind that a leaf belongs to. */
function honest(
  leaf: Leaf,
  operationId: OperationId,
  powerGeneration: bigint,
): agent.SessionRequest {
  const request = create(agent.SessionRequestSchema);
  const [first] = leaf.through;
  const hostUid = site.aHostUid;
  switch (first?.name) {
    case 'hello':
      request.message = {
        case: 'hello',
        value: create(agent.HelloSchema, {
          journal: site.nextJournal(),
          operationKinds: ['verifyAccess'],
        }),
      };
      break;
    case 'report': {
      const isFact = leaf.through[1]?.name === 'host_updated';
      const ids = isFact ? { operationId: '' } : { operationId, sequence: 1n };
      request.message = {
        case: 'report',
        value: create(agent.ReportSchema, {
          hostUid,
          ...ids,
          result: {
            case: 'failed',
            value: create(agent.FailedSchema, { type: FailureType.INTERNAL, message: 'no' }),
          },
        }),
      };
      break;
    }
    case 'discovered': {
      const system = { serial: 'ALPHA-SN-9' };
      const bootMac = '52:54:00:55:77:88';
      const inventory = create(InventorySchema, { system });
      const value = create(agent.DiscoveredSchema, { id: 'alpha-finding', bootMac, inventory });
      request.message = { case: 'discovered', value };
      break;
    }
    case 'power_digest': {
      const hosts = [create(agent.HostPowerStateSchema, { hostUid, poweredOn: true })];
      const value = create(agent.PowerDigestSchema, { generation: powerGeneration, hosts });
      request.message = { case: 'powerDigest', value };
      break;
    }
    case 'step_log': {
      const content = Buffer.from('log');
      const value = create(agent.StepLogSchema, { hostUid, operationId, content });
      request.message = { case: 'stepLog', value };
      break;
    }
    default:
  }
  return request;
}

/** A's own order, made anew where there is none. */
async function ownOperation(stream: AgentStream): Promise<string> {
  const { hosts } = site.fixture;
  const name = 'hosts/alpha-one';
  // What it said before may hold it; refused when nothing does.
  await hosts.releaseHold({ name }).catch(() => undefined);
  // Refused while one is under way: that one is sent again.
  await hosts.verifyHost({ name }).catch(() => undefined);
  return (await stream.operationOf(site.aHostUid)).id;
}

async function expectNothingOfB(stream: AgentStream, sent: Uint8Array): Promise<void> {
  const after = await site.records();
  for (const [key, value] of before) expect(after.get(key), key).toBe(value);
  const fresh = [...after].filter(([key]) => !before.has(key));
  for (const [key, value] of fresh) {
    expect(value.includes('racks/bravo'), `${key} is new, and of rack B`).toBe(false);
  }
  const said = Buffer.from(sent).toString('latin1');
  const told = Buffer.concat(stream.bytes).toString('latin1');
  for (const secret of site.secrets) {
    // What it said itself may come back to it.
    if (said.includes(secret)) continue;
    expect(told.includes(secret), `rack A was told ${secret}`).toBe(false);
  }
}

/** Sends a message of A in which these leaves, all of one kind of message, are another rack's. */
async function attack(lies: readonly (readonly [Leaf, unknown])[]): Promise<void> {
  const [[leaf] = []] = lies;
  if (leaf === undefined) throw new Error('no lie');
  const kind = leaf.through[0]?.name ?? '';
  const first = await site.connectA();
  const operationId = ['report', 'step_log'].includes(kind) ? await ownOperation(first) : '';
  const [generation = 0n] = first.received.flatMap((each) => {
    return each.case === 'powerSync' ? [each.value.generation] : [];
  });
  const request = honest(leaf, operationId, generation);
  for (const [each, value] of lies) {
    setLeaf(reflect(agent.SessionRequestSchema, request), each, value);
  }
  const bytes = toBinary(agent.SessionRequestSchema, request);
  if (isOfHello(leaf)) first.stream.cut();
  const stream = isOfHello(leaf) ? new AgentStream(site.port, site.a) : first;
  stream.stream.sendBytes(bytes);
  if (kind === 'discovered') {
    await stream.until(() => stream.received.some((each) => each.case === 'discoveredAnswer'));
  }
  await stream.settled();
  await expectNothingOfB(stream, bytes);
  stream.stream.cut();
}

/** "report.failed", "hello": what can be said in one message. */
function sayingOf({ through }: Leaf): string {
  const [first, second] = through.map(({ name }) => name);
  return first === 'report' ? `report.${second ?? ''}` : (first ?? '');
}

describe('every field of what an agent sends', () => {
  test('is known to name something or not', () => {
    const unknown = [...session, ...enrolment].filter(({ kind }) => kind === undefined);
    expect(unknown.map(({ path }) => path)).toEqual([]);
  });

  test('every field that the table names exists', () => {
    const fields = new Set(
      [...session, ...enrolment].map(({ field }) => `${field.parent.typeName}.${field.name}`),
    );
    const types = new Set([...fields].map((each) => each.slice(0, each.lastIndexOf('.'))));
    const gone = Object.entries(classes).flatMap(([type, table]) =>
      Object.keys(table).filter((name) =>
        name === '*' ? !types.has(type) : !fields.has(`${type}.${name}`),
      ),
    );
    expect(gone).toEqual([]);
  });

  test('a field that names something has values of another rack', () => {
    const without = named.filter(({ kind }) => site.others[kind ?? 'free'].length === 0);
    expect(without.map(({ path }) => path)).toEqual([]);
    expect(named.length).toBeGreaterThan(40);
  });
});

describe('an agent that names what is another rack’s', () => {
  // Hello comes last here as well.
  const sayings = [...Map.groupBy(named, sayingOf)];
  const ofReport = named.filter(({ path }) => /^report\.[a-z_]+$/.test(path));
  const everywhere = async (saying: string, leaves: readonly Leaf[]) => {
    const all = saying.startsWith('report.') ? [...ofReport, ...leaves] : leaves;
    // The same place in each list of values: they belong together.
    for (const at of [0, 1]) {
      const lies = all.map((leaf) => {
        const values = site.others[leaf.kind ?? 'free'];
        return [leaf, values[at] ?? values[0]] as const;
      });
      await attack(lies);
    }
  };
  const timeout = 60_000;
  const isHello = (saying: string) => saying === 'hello';

  test.each(sayings.filter(([saying]) => !isHello(saying)))(
    'an agent that names another rack’s things all over %s changes and learns nothing',
    { timeout },
    everywhere,
  );

  test.each(named.map((leaf) => [leaf.path, leaf] as const))(
    'an agent that names another rack’s things in %s changes and learns nothing',
    {
      timeout: 60_000,
    },
    async (_path, leaf) => {
      for (const value of site.others[leaf.kind ?? 'free']) await attack([[leaf, value]]);
    },
  );

  test.each(sayings.filter(([saying]) => isHello(saying)))(
    'an agent that names another rack’s things all over %s changes and learns nothing',
    { timeout },
    everywhere,
  );
});

describe('an agent that asks for a certificate', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const own = publicKey.export({ type: 'spki', format: 'der' });

  /** What the call ends with, and what it tells. */
  async function ask(lie: (request: agent.IssueCertificateRequest) => void): Promise<string> {
    const nonce = Buffer.alloc(16, 'nonce');
    const signature = signCertificateProof(privateKey, own, nonce);
    const request = create(agent.IssueCertificateRequestSchema, {
      publicKey: own,
      nonce,
      signature,
    });
    lie(request);
    const { controlPlane } = site.fixture;
    const target = `127.0.0.1:${controlPlane.operatorsPort}`;
    const channel = connect({ target, caPem: site.a.caPem });
    try {
      await createClient(agent.EnrolmentService, channel).issueCertificate(request);
      return 'issued';
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      const told = JSON.stringify(error.error);
      const said = Buffer.from(toBinary(agent.IssueCertificateRequestSchema, request));
      for (const secret of site.secrets.filter((each) => !said.includes(each))) {
        expect(told.includes(secret), secret).toBe(false);
      }
      return error.error.kind;
    } finally {
      channel.close();
    }
  }

  test.each(enrolment.map((leaf) => [leaf.path, leaf] as const))(
    'a request with another rack’s %s gets no certificate, and changes nothing',
    async (_path, leaf) => {
      // A token that was stolen before its use is a key to its rack: no other lie is one.
      const lies = leaf.kind === 'joinToken' ? ['bravo.x'] : site.others[leaf.kind ?? 'free'];
      for (const value of lies) {
        const schema = agent.IssueCertificateRequestSchema;
        const answer = await ask((request) => setLeaf(reflect(schema, request), leaf, value));
        expect(['permissionDenied', 'invalidArgument']).toContain(answer);
      }
      for (const [key, value] of before) expect((await site.records()).get(key), key).toBe(value);
    },
  );
});

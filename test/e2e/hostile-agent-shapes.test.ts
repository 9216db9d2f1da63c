/**
 * What no agent says: values out of every range, oneofs of nothing, texts without end, more than
 * anybody reads. The control plane goes on, the other rack's work with it, and what is stored of
 * the rack itself can be read.
 */
import { create, ScalarType, toBinary } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import { agent, FailureType } from '@rackwright/messages';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AgentStream, HostileSite } from './hostile-agent-site.ts';
import { type Leaf, leavesOf, setLeaf } from './hostile-agent-walk.ts';

const leaves = leavesOf(agent.SessionRequestSchema);
const long = 200_000;

/** Values that its type can hold and nobody means. */
function oddOf({ field }: Leaf): readonly unknown[] {
  const { scalar } = field;
  if (field.enum !== undefined) return [99, -1];
  switch (scalar) {
    case ScalarType.STRING:
      return ['x'.repeat(long), '\u0000\u001b[2J', '../../etc/passwd', '__proto__'];
    case ScalarType.BYTES:
      return [new Uint8Array(long)];
    case ScalarType.UINT32:
      return [0xffff_ffff];
    case ScalarType.INT32:
    case ScalarType.SINT32:
      return [-0x8000_0000, 0x7fff_ffff];
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return [2n ** 64n - 1n, 2n ** 63n];
    case ScalarType.INT64:
      // Seconds of a Timestamp or Duration among them: past the year 9999, before the year 1.
      return [253_402_300_800n, -(2n ** 63n), 2n ** 63n - 1n];
    case ScalarType.DOUBLE:
      return [Number.NaN, Number.POSITIVE_INFINITY, -Number.MAX_VALUE];
    default:
      return [true];
  }
}

let site: HostileSite;
let before: ReadonlyMap<string, string>;

beforeAll(async () => {
  site = await HostileSite.start();
  before = await site.records();
});
afterAll(() => site.stop());

/** The other rack has noticed nothing, and this one can still be shown. */
async function expectUnharmed(): Promise<void> {
  expect(await site.bStream.settled(), 'rack B is served').toBe(true);
  const after = await site.records();
  for (const [key, value] of before) {
    // Its session says there now and then that it stands.
    if (key === 'racks.bravo') continue;
    expect(after.get(key), key).toBe(value);
  }
  const { hosts, racks } = site.fixture;
  expect((await hosts.getHost({ name: 'hosts/alpha-one' })).uid).toBe(site.aHostUid);
  expect((await racks.getRack({ name: 'racks/alpha' })).name).toBe('racks/alpha');
  await hosts.explainHost({ name: 'hosts/alpha-one' });
}
afterEach(expectUnharmed);

const hello = () => ({ journal: site.nextJournal(), operationKinds: ['verifyAccess'] });

/** Says it, after a Hello unless it is one; waits until it was heard or the stream has ended. */
async function say(bytes: Uint8Array, isHello = false): Promise<AgentStream> {
  const stream = isHello ? new AgentStream(site.port, site.a) : await site.connectA();
  stream.stream.sendBytes(bytes);
  await stream.settled();
  stream.stream.cut();
  return stream;
}

/** Says them one after another in one session, or in as many as it takes. */
async function sayInSession(messages: readonly Uint8Array[]): Promise<void> {
  let stream: AgentStream | undefined;
  for (const bytes of messages) {
    stream ??= await site.connectA();
    stream.stream.sendBytes(bytes);
    if (!(await stream.settled())) stream = undefined;
  }
  stream?.stream.cut();
}

function odd(leaf: Leaf, value: unknown): Uint8Array {
  const request = create(agent.SessionRequestSchema);
  const message = reflect(agent.SessionRequestSchema, request);
  const kind = leaf.through[0]?.name;
  if (kind === 'hello')
    request.message = { case: 'hello', value: create(agent.HelloSchema, hello()) };
  if (kind === 'report') {
    const operationId = `${site.aHostUid}/1/0/1`;
    const own = { hostUid: site.aHostUid, operationId, sequence: 1n };
    request.message = { case: 'report', value: create(agent.ReportSchema, own) };
  }
  setLeaf(message, leaf, value);
  return toBinary(agent.SessionRequestSchema, request, { writeUnknownFields: true });
}

describe('an agent that says what nobody means', () => {
  const byMessage = Map.groupBy(leaves, ({ through }) => {
    return through.map(({ name }) => name).join('.');
  });
  test.each([...byMessage])('the control plane survives odd values in %s', async (path, inside) => {
    for (const leaf of inside) {
      const messages = oddOf(leaf).map((value) => odd(leaf, value));
      if (path.startsWith('hello')) for (const bytes of messages) await say(bytes, true);
      else await sayInSession(messages);
    }
  });

  test('says messages that are none, or of kinds that do not exist', async () => {
    const messages = [
      Buffer.alloc(0),
      Buffer.from([0xff, 0xff, 0xff, 0xff]),
      // Field 999 with bytes in it; a group that never ends; a length beyond the end.
      Buffer.from([0xba, 0x3e, 0x02, 0x01, 0x02]),
      Buffer.from([0x0b, 0x0b, 0x0b]),
      Buffer.from([0x1a, 0x7f, 0x01]),
      // A report with two results: the last one counts.
      toBinary(
        agent.SessionRequestSchema,
        create(agent.SessionRequestSchema, {
          message: { case: 'report', value: { hostUid: site.aHostUid, sequence: 9n } },
        }),
      ),
    ];
    for (const bytes of messages) {
      await say(bytes);
      await say(bytes, true);
    }
  });

  test('names more in its Hello than is taken in, and is refused with the bound', async () => {
    const operation = create(agent.JournalledOperationSchema, { operationId: 'x/1/0/1' });
    const operations = Array.from({ length: 50_000 }, () => operation);
    const value = create(agent.HelloSchema, { ...hello(), operations });
    const request = create(agent.SessionRequestSchema, { message: { case: 'hello', value } });
    const stream = await say(toBinary(agent.SessionRequestSchema, request), true);
    expect(stream.received).toMatchObject([
      { case: 'refused', value: { reason: 'badHello', message: expect.stringContaining('8192') } },
    ]);
  });

  test('counts its reports as it likes, and settles no other', async () => {
    const stream = await site.connectA();
    const report = (sequence: bigint) => {
      const operationId = `${site.aHostUid}/77/0/1`;
      const result = { case: 'failed', value: { type: FailureType.INTERNAL } } as const;
      stream.send({
        case: 'report',
        value: { sequence, operationId, hostUid: site.aHostUid, result },
      });
    };
    const sequences = [5n, 5n, 1n, 2n ** 64n - 1n, 0n, 3n];
    for (const sequence of sequences) report(sequence);
    const answers = () =>
      stream.received.flatMap((each) => (each.case === 'reportAnswer' ? [each.value] : []));
    await stream.until(() => answers().length === 5);
    expect(
      answers()
        .map((each) => each.sequence)
        .sort((a, b) => Number(a - b)),
    ).toEqual(sequences.filter((each) => each > 0n).sort((a, b) => Number(a - b)));
    stream.stream.cut();
  });
});

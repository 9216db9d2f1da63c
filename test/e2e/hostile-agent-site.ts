/**
 * A control plane with two racks: A, whose agent is hostile, and B, with something of everything
 * that a rack can have. Both speak with it over real TLS.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Fixture, startFixture } from '@rackwright/controlplane/testing';
import {
  type AgentSessionId,
  actors,
  agent,
  type agent as agentMessages,
  asAgentSessionId,
  HostGoal,
  type HostId,
  type HostUid,
  type OperationId,
  type RackId,
  store as wire,
} from '@rackwright/messages';
import {
  type Credentials,
  enrol,
  LeanStream,
  type Message,
  type Request,
} from '../bench/agents/lean-agent.ts';
import type { NameClass } from './hostile-agent-classes.ts';

type Operation = agentMessages.Operation;
type Journal = { readonly id: string; readonly generation: bigint };

const spki = { type: 'spki', format: 'der' } as const;
const operationKinds = ['verifyAccess', 'setPower', 'inspect', 'runStep', 'cancel'];
/** Longest wait for an answer. */
const answerMs = 300_000;

/** One stream of an agent, and all that came on it. */
export class AgentStream {
  readonly received: Message[] = [];
  /** The same as it came. */
  readonly bytes: Buffer[] = [];
  readonly stream: LeanStream;
  isOver = false;
  #beat = 0n;
  #wake: () => void = () => undefined;

  constructor(port: number, credentials: Credentials) {
    this.stream = new LeanStream(port, credentials, (message, bytes) => {
      this.received.push(message);
      this.bytes.push(Buffer.from(bytes));
      this.#wake();
    });
    void this.stream.ended.then(() => {
      this.isOver = true;
      this.#wake();
    });
  }

  send(message: Request): void {
    this.stream.send(message);
  }

  hello(journal: Journal): void {
    this.send({ case: 'hello', value: { journal, operationKinds } });
  }

  /** Waits until what came is enough; false: the stream has ended before. */
  async until(isEnough: () => boolean): Promise<boolean> {
    const end = performance.now() + answerMs;
    while (!isEnough()) {
      if (this.isOver) return false;
      if (performance.now() > end) {
        throw new Error(`not within ${answerMs} ms: ${String(isEnough)}`);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 100);
      });
    }
    return true;
  }

  /** What was sent before has been heard: a heartbeat after it is answered. */
  async settled(): Promise<boolean> {
    this.#beat += 1n;
    const sequence = this.#beat;
    this.send({ case: 'heartbeat', value: { sequence } });
    return this.until(() =>
      this.received.some((message) => {
        return message.case === 'leaseRenewal' && message.value.heartbeatSequence === sequence;
      }),
    );
  }

  operations(): Operation[] {
    return this.received.flatMap((message) =>
      message.case === 'operation' ? [message.value] : [],
    );
  }

  /** The order that came last for a host. */
  async operationOf(hostUid: HostUid, after = 0): Promise<Operation> {
    const own = () => this.operations().filter((each) => each.hostUid === hostUid);
    if (!(await this.until(() => own().length > after))) throw new Error('no order came');
    const last = own().at(-1);
    if (last === undefined) throw new Error('no order came');
    return last;
  }
}

/** Made of a uid, and without it: what A says comes back to A. */
const digestOf = (uid: string) => createHash('sha256').update(uid).digest();
const guidOf = (uid: string) => digestOf(uid).subarray(0, 16);
const serialOf = (uid: string) => `SN-${digestOf(uid).toString('hex').slice(0, 12)}`;
const systemUuid = Buffer.from('b0b0b0b0c1c1d2d2e3e3f4f4a5a5b6b6', 'hex');

export class HostileSite {
  readonly fixture: Fixture;
  readonly a: Credentials;
  readonly b: Credentials;
  readonly aHostUid: HostUid;
  readonly bStream: AgentStream;
  /** Values of rack B, by what a field names. */
  readonly others: Readonly<Record<NameClass, readonly unknown[]>>;
  readonly secrets: readonly string[];
  #generation = 0n;

  private constructor(made: Made) {
    const { fixture, a, b, aHostUid, bStream, others, secrets } = made;
    this.fixture = fixture;
    this.a = a;
    this.b = b;
    this.aHostUid = aHostUid;
    this.bStream = bStream;
    this.others = others;
    this.secrets = secrets;
  }

  static async start(): Promise<HostileSite> {
    return new HostileSite(await make());
  }

  get port(): number {
    return this.fixture.controlPlane.agentsPort;
  }

  /** A's stream, welcomed; its journal is the same one, started anew. */
  async connectA(): Promise<AgentStream> {
    const stream = new AgentStream(this.port, this.a);
    stream.hello(this.nextJournal());
    if (!(await stream.settled())) throw new Error('the hostile agent was not welcomed');
    return stream;
  }

  nextJournal(): Journal {
    this.#generation += 1n;
    return { id: 'alpha-journal', generation: this.#generation };
  }

  /**
   * Every record that is not A's own, as text by key. The replica that reads secrets says in one of
   * them, once a minute, that it is up.
   */
  async records(): Promise<Map<string, string>> {
    await this.#lookedAtMachines();
    const { entries } = await this.fixture.store.list('');
    const isOwn = (key: string) => /^audit|^secrets\.readers\.|alpha/.test(key);
    return new Map(
      entries
        .filter(({ key }) => !isOwn(key))
        .map(({ key, value }) => [key, Buffer.from(value).toString('latin1')]),
    );
  }

  /** What was said may change what becomes of listed machines: all of them have been looked at. */
  async #lookedAtMachines(): Promise<void> {
    const { discovery } = this.fixture.controlPlane;
    discovery.wake();
    // It comes to this one's turn when that look is over.
    const nobody = {
      hostId: 'nobody',
      labels: {},
      spec: undefined,
      by: actors.unknown,
      requestId: '',
      actor: actors.unknown,
    };
    await discovery.accept('nobody', nobody, true);
  }

  async stop(): Promise<void> {
    this.bStream.stream.cut();
    await this.fixture.stop();
  }
}

interface Made {
  readonly fixture: Fixture;
  readonly a: Credentials;
  readonly b: Credentials;
  readonly aHostUid: HostUid;
  readonly bStream: AgentStream;
  readonly others: Readonly<Record<NameClass, readonly unknown[]>>;
  readonly secrets: readonly string[];
}

async function rackOf({ racks, channel }: Fixture, rackId: RackId): Promise<Credentials> {
  const discovery = { enabled: true };
  await racks.createRack({ rackId, rack: { spec: { discovery } } });
  const { token } = await racks.createJoinToken({ rack: `racks/${rackId}` });
  return enrol(channel, token);
}

async function hostOf(fixture: Fixture, rack: string, hostId: HostId, net: string, n: number) {
  const credential = `credentials/${rack}-secret`;
  const spec = {
    rack: `racks/${rack}`,
    bmc: { address: `10.${net}.0.${n}`, credential },
    bootMacs: [`52:54:00:${net}:00:0${n}`],
    goal: HostGoal.MANAGEABLE,
  };
  return fixture.hosts.createHost({ hostId, host: { spec } });
}

async function make(): Promise<Made> {
  // What is under way stays so to the last test, however long they take.
  const engine = { operationTimeoutMs: 3_600_000 };
  const fixture = await startFixture({ config: { engine } });
  const a = await rackOf(fixture, 'alpha');
  const b = await rackOf(fixture, 'bravo');
  for (const rack of ['alpha', 'bravo']) {
    const credential = { username: `${rack}-user`, password: `${rack}-password` };
    await fixture.credentials.createCredential({ credentialId: `${rack}-secret`, credential });
  }
  const own = await hostOf(fixture, 'alpha', 'alpha-one', '55', 1);
  const waiting = await hostOf(fixture, 'bravo', 'bravo-one', '66', 1);
  const proved = await hostOf(fixture, 'bravo', 'bravo-two', '66', 2);
  const booting = await hostOf(fixture, 'bravo', 'bravo-three', '66', 3);
  const bStream = new AgentStream(fixture.controlPlane.agentsPort, b);
  bStream.hello({ id: 'bravo-journal', generation: 7n });
  for (const { uid } of [proved, booting]) await prove(bStream, uid);
  const inFlight = await bStream.operationOf(waiting.uid);
  const grant = await bootsRunner(fixture, bStream, booting.uid);
  await addTombstone(fixture);
  bStream.send({
    case: 'stepLog',
    value: {
      operationId: inFlight.id,
      hostUid: waiting.uid,
      offset: 0n,
      content: Buffer.from('bravo-log'),
    },
  });
  bStream.send({ case: 'discovered', value: discovered });
  await bStream.until(() => bStream.received.some((each) => each.case === 'discoveredAnswer'));
  const spare = await fixture.racks.createJoinToken({ rack: 'racks/bravo', replaceAgent: true });
  const [welcome] = bStream.received;
  const sessionId = welcome?.case === 'welcome' ? welcome.value.sessionId : asAgentSessionId('');
  const uids = [...[waiting, proved, booting].map(({ uid }) => uid), tombstone];
  const operations = [inFlight.id, grant.id];
  return {
    ...{ fixture, a, b, aHostUid: own.uid, bStream },
    others: othersOf(uids, operations, b, spare.token.split('.').slice(2).join('.'), sessionId),
    secrets: [
      ...uids,
      ...operations,
      ...['bravo', '10.66.0.', '52:54:00:66:00:', discovered.bootMac, discovered.bmcAddress],
    ],
  };
}

/** Uid of a host that was removed by force, and that B's agent has not forgotten. */
const tombstone = 'bravo-tombstone';

async function addTombstone({ store }: Fixture): Promise<void> {
  for (;;) {
    const kept = await store.get('racks.bravo');
    if (kept.kind !== 'found') throw new Error('rack B is gone');
    const record = fromBinary(wire.RackRecordSchema, kept.value);
    record.tombstones.push(tombstone);
    const value = toBinary(wire.RackRecordSchema, record);
    if ((await store.put('racks.bravo', value, kept.revision)).kind === 'ok') return;
  }
}

const discovered = {
  id: 'bravo-finding',
  bootMac: '52:54:00:66:77:88',
  bmcAddress: '10.66.9.9',
  inventory: {
    system: { manufacturer: 'Maker', product: 'Box', serial: 'BRAVO-SN-9', uuid: systemUuid },
    interfaces: [{ name: 'eth0', mac: '52:54:00:66:77:88' }],
  },
};

/** Its BMC is its own; then it is manageable. */
async function prove(stream: AgentStream, uid: string): Promise<void> {
  const { id } = await stream.operationOf(uid);
  report(stream, id, uid, { bmcIdentity: { guid: guidOf(uid), serial: serialOf(uid) } });
  await stream.until(() =>
    stream.received.some((each) => each.case === 'reportAnswer' && each.value.operationId === id),
  );
}

let sequence = 0n;

function report(
  stream: AgentStream,
  operationId: OperationId,
  hostUid: HostUid,
  observations: object,
) {
  sequence += 1n;
  const result = { case: 'complete' as const, value: { observations } };
  stream.send({ case: 'report', value: { sequence, operationId, hostUid, result } });
}

/** An inspection, up to the boot of its runner, whose order stays without an answer. */
async function bootsRunner(fixture: Fixture, stream: AgentStream, uid: string): Promise<Operation> {
  await fixture.hosts.inspectHost({ name: 'hosts/bravo-three' });
  for (let count = 1; ; count += 1) {
    const order = await stream.operationOf(uid, count);
    const { kind } = order;
    if (kind.case === 'setPower' && kind.value.on === true) return order;
    report(stream, order.id, uid, { poweredOn: false });
  }
}

function othersOf(
  uids: readonly string[],
  operations: readonly string[],
  b: Credentials,
  joinToken: string,
  sessionId: AgentSessionId,
): Record<NameClass, readonly unknown[]> {
  const [waiting = '', proved = ''] = uids;
  const evidence = toBinary(
    agent.StepEvidenceSchema,
    create(agent.StepEvidenceSchema, {
      operationId: operations[0] ?? '',
      hostUid: waiting,
      runnerSession: 'bravo-runner',
      bootId: 'bravo-boot',
      mode: agent.StepMode.RUN,
    }),
  );
  return {
    free: [],
    hostUid: uids,
    hostName: ['hosts/bravo-one'],
    operationId: operations,
    mac: ['52:54:00:66:00:01', discovered.bootMac],
    bmcAddress: ['10.66.0.1', discovered.bmcAddress],
    bmcGuid: [guidOf(proved)],
    serial: [serialOf(proved), discovered.inventory.system.serial],
    machineUuid: [systemUuid, guidOf(proved)],
    journalId: ['bravo-journal'],
    sequence: [0n, 1n, 7n, 2n ** 64n - 1n],
    incarnation: ['another-incarnation'],
    publicKey: [new X509Certificate(b.certificatePem).publicKey.export(spki)],
    nonce: [Buffer.alloc(16, 'bravo')],
    signature: [Buffer.alloc(70, 'bravo')],
    joinToken: [joinToken],
    evidence: [evidence],
    runnerSession: ['bravo-runner'],
    findingId: [discovered.id],
    sessionId: [sessionId],
    caSha256: ['b'.repeat(64)],
    rack: ['racks/bravo'],
  };
}

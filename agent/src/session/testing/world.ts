/**
 * One agent with its disk, the devices it works on, and a control plane, on one clock. The agent
 * can be killed anywhere and started again; only disk, devices and control plane outlive it.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent, type OperationId } from '@rackwright/messages';
import type { Clock, Log, Random } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import type { FinalResult } from '@rackwright/results';
import { Journal } from '../../journal/index.ts';
import { MemoryDisk } from '../../journal/testing/disk.ts';
import {
  AgentSession,
  type Executor,
  type OperationContext,
  type PowerReadings,
} from '../index.ts';
import { TestClock } from './clock.ts';
import { ControlPlane } from './control-plane.ts';

/** A command that a device got; `touch` is the moment at which something outside changes. */
export type Work = (
  operation: agent.Operation,
  context: OperationContext,
  touch: () => void,
) => Promise<FinalResult>;

export const journalPath = '/state/journal';
export const snapshotPath = '/state/boot-snapshot';

/** The parts of one life of the agent, and its session. */
export interface Life {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly session: AgentSession;
}

/** A long time for any deadline in these tests. */
const deadlineMsDefault = 3_600_000;

type PowerFields = Pick<
  MessageInitShape<typeof agent.SetPowerSchema>,
  'on' | 'bootFrom' | 'grantExpireTime' | 'bootMacs'
>;

export class World {
  readonly clock = new TestClock();
  readonly disk = new MemoryDisk();
  readonly controlPlane = new ControlPlane(this.clock);
  /** Operation ids, one for each change of a device by it: the content of the devices' own logs. */
  readonly touched: string[] = [];
  readonly forgotten: string[] = [];
  readonly endedHooks: string[] = [];
  /** Hand-offs that were answered: operation, and whether it acts. */
  readonly handOffs: string[] = [];
  /** The hand-off whose runner does not know it yet. */
  handOffUnderWay: string | undefined;
  readonly logged: string[] = [];
  /** Kills the agent at the n-th time it passes this place. */
  crashAt: { name: string; occurrence: number } | undefined;
  readonly passed: string[] = [];
  work: Work = async (_operation, context, touch) => {
    await context.begin();
    touch();
    await this.clock.sleep(20);
    return { kind: 'complete' };
  };
  resume: Executor['resume'] = () => 'interrupted';
  credentialsStartedOver: Executor['credentialsStartedOver'];
  kinds: Executor['operationKinds'] = ['verifyAccess', 'setPower', 'inspect', 'runStep'];
  limits: ConstructorParameters<typeof AgentSession>[0]['limits'] = {};
  /** Makes what polls power, for each life. */
  powerReadings: ((life: Life) => PowerReadings) | undefined;
  /** The present life's session. */
  session: AgentSession | undefined;
  #kill: () => void = () => undefined;
  #alive = false;
  #lives = 0;
  readonly #seed: number;

  constructor(seed = 1) {
    this.#seed = seed;
    this.disk.delay = () => this.clock.sleep(1);
  }

  /** Whether a life of the agent is under way, its start included. */
  get alive(): boolean {
    return this.#alive;
  }

  /** Starts a life of the agent. It is up after some milliseconds. */
  boot(): void {
    if (this.#alive) throw new Error('the agent is running');
    this.#alive = true;
    this.#lives += 1;
    const life = this.#openLife();
    const { clock, disk, transport } = life;
    this.#kill = () => {
      if (!life.alive()) return;
      life.kill();
      this.#alive = false;
      this.session = undefined;
    };
    const kill = this.#kill;
    const log = this.#log();
    const random = this.#random();
    const crashPoint = (name: string) => this.#passCrashPoint(name);
    const starting = async () => {
      const journal = await Journal.open({ disk, path: journalPath, clock, random, log });
      this.session = new AgentSession({
        journal,
        disk,
        snapshotPath,
        clock,
        random,
        log,
        crashPoint,
        transport,
        agentVersion: '0.0.0',
        limits: this.limits ?? {},
      });
      const { session } = this;
      const looks = this.powerReadings?.({ clock, random, log, session });
      await session.start(this.#executor(life.alive), looks);
    };
    // Without a journal the program does not start.
    starting().catch(kill);
  }

  /** kill -9 */
  kill(): void {
    this.#kill();
  }

  async restart(): Promise<void> {
    this.kill();
    await this.bootAndConnect();
  }

  async bootAndConnect(): Promise<void> {
    this.boot();
    await this.clock.run(100);
  }

  run(durationMs: number): Promise<void> {
    return this.clock.run(durationMs);
  }

  /** Issues an operation and lets time pass. */
  async issue(operation: agent.Operation, runMs = 100): Promise<void> {
    this.controlPlane.issue(operation);
    await this.run(runMs);
  }

  /** A clean step that destroys data. */
  erase(id: string, fields: MessageInitShape<typeof agent.RunStepSchema> = {}): agent.Operation {
    return this.operation(id, {
      case: 'runStep',
      value: {
        step: 'deploy.erase_devices',
        mode: agent.StepMode.RUN,
        destructive: true,
        bootOperationId: `${id}-boot`,
        ...fields,
      },
    });
  }

  power(id: string, fields: PowerFields = {}): agent.Operation {
    const bmc = { address: '192.0.2.7', credential: 'credentials/bmc', credentialVersion: 1n };
    return this.operation(id, { case: 'setPower', value: { bmc, on: false, ...fields } });
  }

  verify(id: string): agent.Operation {
    const bmc = { address: '192.0.2.7', credential: 'credentials/bmc', credentialVersion: 1n };
    return this.operation(id, { case: 'verifyAccess', value: { bmc } });
  }

  cancel(id: string, operationId: OperationId): agent.Operation {
    return this.operation(id, { case: 'cancel', value: { operationId } });
  }

  operation(
    id: string,
    kind: NonNullable<MessageInitShape<typeof agent.OperationSchema>['kind']>,
    deadlineInMs = deadlineMsDefault,
  ): agent.Operation {
    const hostUid = id.slice(0, id.indexOf('/'));
    const nowMs = this.clock.wallAheadMs + this.clock.nowMs;
    const deadline = timestampFromMs(nowMs + deadlineInMs);
    return create(agent.OperationSchema, { id, hostUid, hostName: 'h1', deadline, kind });
  }

  #openLife() {
    const clock = this.clock.open();
    const disk = this.disk.open();
    const transport = this.controlPlane.open();
    let alive = true;
    return {
      clock: clock.clock,
      disk: disk.disk,
      transport: transport.transport,
      alive: () => alive,
      kill: () => {
        alive = false;
        clock.kill();
        disk.kill();
        transport.kill();
      },
    };
  }

  #executor(alive: () => boolean): Executor {
    return {
      operationKinds: this.kinds,
      execute: (operation, context) =>
        this.work(operation, context, () => alive() && this.touched.push(operation.id)),
      resume: (operation, context) => this.resume(operation, context),
      noteReportDurable: (operationId) => alive() && this.endedHooks.push(operationId),
      handOffUnderWay: () => this.handOffUnderWay,
      credentialsStartedOver: () => this.credentialsStartedOver?.(),
      handOffAnswered: ({ operationId }, acts) => {
        if (alive()) this.handOffs.push(`${operationId} ${acts ? 'acts' : 'never acts'}`);
      },
      forgetHost: async (hostUid) => {
        if (alive()) this.forgotten.push(hostUid);
      },
    };
  }

  #passCrashPoint(name: string): void {
    if (!this.alive) return;
    this.passed.push(name);
    if (this.crashAt === undefined || this.crashAt.name !== name) return;
    this.crashAt.occurrence -= 1;
    if (this.crashAt.occurrence > 0) return;
    this.crashAt = undefined;
    this.kill();
  }

  #random(): Random {
    // xorshift32: a different sequence for each seed and life.
    let state = (this.#seed * 7919 + this.#lives * 104_729) | 1;
    const next = () => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return state >>> 0;
    };
    return {
      bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
      fraction: () => next() / 2 ** 32,
    };
  }

  #log(): Log {
    return recordingLog(({ fields, message }) => {
      this.logged.push(`${message} ${JSON.stringify(fields)}`);
    });
  }
}

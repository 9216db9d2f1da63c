/**
 * The production runner in a simulated ramdisk: its own process, files in memory, the machine's
 * disks, and a stream to the production gateway of the agent that booted it.
 */
import { generateKeyPairSync } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { SystemIdentitySchema, runner as wire } from '@rackwright/messages';
import type { Disk } from '@rackwright/platform';
import {
  type AgentConnection,
  type AgentDialer,
  eraseDevices,
  eraseDevicesMetadata,
  type Machine,
  runRunner,
  type Step,
  verifyErased,
} from '@rackwright/runner';
import { type Link, openLink, SimPlatters, type SimProcess, simDisk } from '@rackwright/sim';
import { blockDevices, type DiskImage, type DriveEvent, type SimDrive } from './drives.ts';
import { Inbox } from './inbox.ts';
import type { PartView } from './part-view.ts';
import { flashStep, imageStep } from './runner-steps.ts';
import { templateSteps, type WorkEvent } from './workflows/programs.ts';

/** Making a key takes time, and the key means nothing here. */
const keyPems = Array.from({ length: 8 }, () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString(),
);

/** What a machine says of itself in band. */
export interface Board {
  readonly uuid: Uint8Array;
  readonly serial: string;
  readonly product: string;
}

/** What a ramdisk finds of the machine that it runs in. */
export interface BoxedMachine {
  readonly name: string;
  readonly guid: readonly number[];
  readonly macs: readonly string[];
  readonly board: Board;
  readonly toldBmcAddress: string;
  readonly drives: readonly SimDrive[];
  readonly flashable: boolean;
  listed: boolean;
  panic(): void;
  /** A program that runs in its ramdisk writes to the first disk. */
  scribble(): void;
  writeImage(image: DiskImage): void;
}

export interface RunnerBoot {
  readonly machine: BoxedMachine;
  /** The agent's box that the ramdisk came from, and that it dials. */
  readonly box: string;
  readonly bootToken: string;
  readonly bootId: string;
  readonly log: (event: DriveEvent) => void;
  /** The machine's own log of what it begins. */
  readonly begins: (step: string) => void;
  /** The same of what steps of templates do. */
  readonly works: (event: WorkEvent) => void;
}

type RunnerLink = Link<wire.SessionRequest, wire.SessionResponse>;

export class RunnerBox {
  readonly boot: RunnerBoot;
  readonly #view: PartView;
  readonly #platters = new SimPlatters();
  readonly #kernelStartedMs: number;
  #process: SimProcess | undefined;
  #link: RunnerLink | undefined;
  #over = false;

  constructor(view: PartView, boot: RunnerBoot) {
    this.#view = view;
    this.boot = boot;
    this.#kernelStartedMs = view.heap.nowMs;
    // Two boots of one key would be one boot to the agent.
    const privateKeyPem = keyPems[bootNumber(boot.bootId) % keyPems.length];
    const key = JSON.stringify({ bootId: boot.bootId, privateKeyPem });
    this.#platters.files.set('/run/key.json', new TextEncoder().encode(key));
  }

  start(): void {
    if (this.#over) return;
    const { machine } = this.boot;
    const process = this.#view.makeProcess(`runner ${machine.name}`);
    this.#process = process;
    process.whenKilled(() => {
      this.#link?.cut();
      for (const drive of machine.drives) drive.close();
      this.#view.heap.after(this.#view.chance.around(2_000), () => this.start());
    });
    // It ends only by an error; whoever starts it in the ramdisk starts it again.
    runRunner(this.#parts(process), new AbortController().signal).then(
      () => process.kill(),
      () => process.kill(),
    );
  }

  /** The runner's process dies; the machine stays up. */
  kill(): void {
    this.#process?.kill();
  }

  /** The stream to the agent breaks. */
  cut(): void {
    this.#link?.cut();
  }

  powerLost(): void {
    this.#over = true;
    this.#process?.kill();
  }

  #parts(process: SimProcess): Parameters<typeof runRunner>[0] {
    const { boot } = this;
    const { chance, heap, random } = this.#view;
    const disk = simDisk(this.#platters, process, {
      latencyMs: () => 1,
      tornBytes: (length) => random.below(length + 1),
    });
    return {
      dialer: this.#dialer(process),
      devices: blockDevices({
        ...{ heap, chance, process },
        machine: boot.machine.name,
        drives: () => boot.machine.drives,
        listed: () => {
          boot.machine.listed = true;
        },
        log: boot.log,
      }),
      machine: this.#machine(),
      steps: this.#steps(process, disk),
      clock: process.clock,
      random,
      disk,
      log: this.#view.log(process.name),
      crashPoint: process.crashPoint,
      stateFolder: '/run',
      bootToken: boot.bootToken,
      runnerVersion: 'sim',
      verdictSwitchedOff: false,
    };
  }

  #steps(process: SimProcess, disk: Disk): Step[] {
    const { machine, begins, bootId, works } = this.boot;
    const around = {
      ...{ begins, chance: this.#view.chance },
      drive: () => machine.drives[0],
      writeImage: (image: DiskImage) => machine.writeImage(image),
      isReadable: (deployment: string, digest: string) =>
        this.#view.imageProofs.isReadable(deployment, digest),
    };
    const flash = machine.flashable ? [flashStep(around)] : [];
    const erasing = [eraseDevices, eraseDevicesMetadata, verifyErased];
    const own = [...erasing, imageStep(around), ...flash];
    if (!this.#view.workflows) return own;
    const platters = this.#platters;
    const place = { view: this.#view, process, platters, disk, boot: bootId, log: works };
    const reboot = () => machine.panic();
    const scribble = () => machine.scribble();
    return [...own, ...templateSteps({ ...place, machine: machine.name, reboot, scribble })];
  }

  #machine(): Machine {
    const { machine, bootId } = this.boot;
    const bmcGuid = Uint8Array.from(machine.guid);
    // As it is when the machine starts: another disguise is for the next boot.
    const { board, macs, toldBmcAddress } = machine;
    return {
      identity: async () => create(SystemIdentitySchema, { ...board, bmcGuid }),
      hardware: async () => ({
        cpus: [],
        memoryBytes: 1_073_741_824n,
        interfaces: macs.map((mac, at) => ({ name: `eth${at}`, mac, linkUp: true })),
      }),
      bmcAddress: async () => toldBmcAddress,
      bootId: async () => bootId,
      uptimeMs: async () => this.#view.heap.nowMs - this.#kernelStartedMs,
      toolVersions: async () => ({ simulated: '1' }),
    };
  }

  #dialer(process: SimProcess): AgentDialer {
    return {
      dial: async () => {
        await process.answer(this.#view.chance.around(20), () => undefined);
        const agent = this.#view.agents().find(({ box }) => box === this.boot.box);
        if (agent === undefined) throw new Error('connection refused');
        return this.#connect(process, agent);
      },
    };
  }

  #connect(process: SimProcess, agent: ReturnType<PartView['agents']>[number]): AgentConnection {
    const { heap, chance } = this.#view;
    const toRunner = new Inbox<wire.SessionResponse>();
    const toAgent = new Inbox<wire.SessionRequest>();
    const over = new AbortController();
    const link: RunnerLink = openLink(
      { heap, delayMs: () => chance.around(4) },
      {
        onMessage: (message) => process.enter(() => toRunner.push(message)),
        onClosed: () => process.enter(() => toRunner.end()),
      },
      {
        onMessage: (message) => agent.process.enter(() => toAgent.push(message)),
        onClosed: () =>
          agent.process.enter(() => {
            over.abort();
            toAgent.end();
          }),
      },
    );
    this.#link = link;
    agent.process.whenKilled(() => link.cut());
    const call = { signal: over.signal, peerAddress: this.boot.machine.name };
    void pump(agent.core.gateway.session(toAgent, call), (message) => {
      if (!agent.process.alive) return;
      link.far.send(create(wire.SessionResponseSchema, message));
    })
      .catch(() => undefined)
      .finally(() => link.far.close());
    return {
      messages: toRunner,
      send: (message) => {
        if (process.alive) link.near.send(create(wire.SessionRequestSchema, { message }));
      },
      close: () => link.near.close(),
    };
  }
}

function bootNumber(bootId: string): number {
  return Number(/\d+$/.exec(bootId)?.[0] ?? 0);
}

async function pump<T>(messages: AsyncIterable<T>, send: (message: T) => void): Promise<void> {
  for await (const message of messages) send(message);
}

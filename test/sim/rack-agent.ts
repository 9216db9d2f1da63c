/**
 * A box in the rack with the production agent on it. The box has a disk with the agent's journal
 * and identity; lives of the agent come one after another on it.
 */
import { generateKeyPairSync } from 'node:crypto';
import { openCore, type SessionTransport, work } from '@rackwright/agent';
import {
  defaultGovernorLimits,
  defaultReadBackTimings,
  defaultRedfishOptions,
} from '@rackwright/bmc';
import type { agent } from '@rackwright/messages';
import {
  type Direction,
  type Link,
  openLink,
  SimPlatters,
  type SimProcess,
  simDisk,
} from '@rackwright/sim';
import { type BmcNetwork, simIpmitool } from './bmc.ts';
import type { AgentStream, ControlPlaneReplica } from './control-plane.ts';
import type { LiveAgent } from './part-view.ts';
import { simHostImages } from './pools/images.ts';
import type { WorldView } from './view.ts';
import { simImages } from './workflows/images.ts';

const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const publicKeyDer = keys.publicKey.export({ type: 'spki', format: 'der' });
/** The rack's registered key; the same for every life, as the identity on disk is. */
export const agentPublicKey: Uint8Array = publicKeyDer;

const config = Object.freeze({
  stateFolder: '/agent',
  bmc: {
    ipmitool: { path: 'ipmitool', callTimeoutMs: 20_000 },
    redfish: defaultRedfishOptions,
    readBack: defaultReadBackTimings,
    governor: defaultGovernorLimits,
    firmware: 'uefi' as const,
  },
  netboots: {
    repeatAfterMs: 60_000,
    missingAfterMs: 120_000,
    hostsMax: 1_000,
    pendingMax: 256,
  },
});

type SessionLink = Link<agent.SessionRequest, agent.SessionResponse>;

export interface BoxOptions {
  readonly name: string;
  readonly bmcs: BmcNetwork;
  /** The control planes, in the order in which this agent tries them now. */
  readonly dial: () => ControlPlaneReplica | undefined;
  /** Told of each heartbeat that is sent on a stream. */
  readonly onHeartbeat: (box: AgentBox, stream: AgentStream, sequence: bigint) => void;
  /** May deliver copies of messages that are on their way up. */
  readonly onUp: (message: agent.SessionRequest, deliver: AgentStream['receive']) => void;
}

export class AgentBox {
  readonly name: string;
  readonly platters = new SimPlatters();
  /** By how much its wall clock is off. */
  clockOffsetMs = 0;
  /** How much longer than usual its disk takes. */
  diskSlowMs = 0;
  /** Until when its disk takes nothing. */
  diskFullUntilMs = 0;
  #retired = false;
  readonly #blocked = new Set<Direction>();
  readonly #view: WorldView;
  readonly #options: BoxOptions;
  readonly #wallStartMs: number;
  #live: LiveAgent | undefined;
  #process: SimProcess | undefined;
  #link: SessionLink | undefined;

  constructor(view: WorldView, options: BoxOptions, wallStartMs: number) {
    this.name = options.name;
    this.#view = view;
    this.#options = options;
    this.#wallStartMs = wallStartMs;
  }

  get live(): LiveAgent | undefined {
    return this.#live;
  }

  get link(): SessionLink | undefined {
    return this.#link;
  }

  kill(): void {
    this.#process?.kill();
  }

  suspend(durationMs: number): void {
    this.#process?.suspend(durationMs);
  }

  /** For a while nothing comes through in these directions; it waits, or the streams give up. */
  partition(directions: readonly Direction[], durationMs: number): void {
    for (const direction of directions) {
      this.#blocked.add(direction);
      this.#link?.block(direction, true);
    }
    this.#view.heap.after(durationMs, () => this.#heal(directions));
  }

  #heal(directions: readonly Direction[]): void {
    for (const direction of directions) {
      this.#blocked.delete(direction);
      this.#link?.block(direction, false);
    }
  }

  /** Ends every fault of the box. */
  mend(): void {
    this.clockOffsetMs = 0;
    this.diskSlowMs = 0;
    this.diskFullUntilMs = 0;
    this.#heal(['toFar', 'toNear']);
  }

  /** Switched off for good. */
  retire(): void {
    this.#retired = true;
    this.kill();
  }

  start(): void {
    if (this.#retired || this.#process?.alive === true) return;
    const { heap, chance } = this.#view;
    const process = this.#view.makeProcess(
      this.name,
      () => this.#wallStartMs + heap.nowMs + this.clockOffsetMs,
    );
    this.#process = process;
    process.whenKilled(() => {
      this.#live = undefined;
      this.#link?.cut();
      heap.after(chance.around(8_000), () => this.start());
    });
    this.#operate(process).catch((error: unknown) => {
      this.#view.trace(`${this.name} did not start: ${String(error)}`);
      process.kill();
    });
  }

  async #operate(process: SimProcess): Promise<void> {
    const { chance, random, heap } = this.#view;
    const disk = simDisk(this.platters, process, {
      latencyMs: () => chance.around(3 + this.diskSlowMs),
      tornBytes: (length) => random.below(length + 1),
      failure: () => this.#diskFailure(heap.nowMs),
    });
    const { clock } = process;
    const core = await openCore({
      ...{ disk, random, clock, config },
      log: this.#view.log(this.name),
      crashPoint: process.crashPoint,
      exec: simIpmitool(this.#options.bmcs, process, chance),
      httpClient: noRedfish,
      transport: this.#transport(process),
      loadWork: async () => work,
      signer: { privateKey: keys.privateKey, publicKeyDer },
      agentVersion: 'sim',
      hostImages: simHostImages(this.#view, process),
      imageEndpoint: () => 'agent.sim',
      ...(this.#view.workflows ? { images: simImages(this.#view, process) } : {}),
    });
    if (!process.alive) return;
    this.#live = { box: this.name, process, core };
    await core.start();
  }

  #diskFailure(nowMs: number): string | undefined {
    if (nowMs < this.diskFullUntilMs) return 'ENOSPC: no space left on device';
    if (!this.#view.chance.happens(0.004)) return undefined;
    this.#view.count('fsync failed');
    return 'EIO: i/o error, fsync';
  }

  #transport(process: SimProcess): SessionTransport {
    const { heap, chance } = this.#view;
    return {
      connect: (handlers) => {
        const link: SessionLink = openLink(
          { heap, delayMs: () => chance.around(20) },
          {
            onMessage: (message) => process.enter(() => handlers.onMessage(message)),
            onClosed: () => process.enter(() => handlers.onClosed('the stream ended')),
          },
          {
            onMessage: (message) => stream.receive(message),
            onClosed: () => stream.closed(),
          },
        );
        const stream: AgentStream = {
          send: (message) => link.far.send(message),
          close: () => link.far.close(),
          receive: () => {},
          closed: () => {},
        };
        this.#link = link;
        for (const direction of this.#blocked) link.block(direction, true);
        if (this.#options.dial()?.accept(stream) !== true) link.cut();
        return {
          send: (message) => {
            if (!process.alive) return;
            this.#watch(message, stream);
            link.near.send(message);
          },
          close: () => link.near.close(),
        };
      },
    };
  }

  #watch(request: agent.SessionRequest, stream: AgentStream): void {
    const { message } = request;
    if (message.case === 'heartbeat') {
      this.#options.onHeartbeat(this, stream, message.value.sequence);
    }
    this.#options.onUp(request, (copy) => stream.receive(copy));
  }
}

/** The simulated BMCs speak IPMI. */
const noRedfish = {
  peer: () => {
    throw new Error('no simulated BMC speaks Redfish');
  },
};

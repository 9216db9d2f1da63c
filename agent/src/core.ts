/**
 * The agent without its doors to the network: session, operations, runners' desk, netboot watch,
 * wired together as they run in production and in the simulation alike.
 *
 * Must not: open a socket. `program.ts` does that around it.
 */
import type { Log } from '@rackwright/platform';
import { type BmcPlatform, createBmcDrivers } from './bmc-drivers.ts';
import type { AgentConfig } from './config.ts';
import { Journal } from './journal/index.ts';
import { type NetbootSighting, NetbootWatch } from './netboot-watch.ts';
import { createExecutor } from './operations/index.ts';
import { PowerSync } from './power-sync.ts';
import {
  defaultDeskLimits,
  defaultGatewayLimits,
  type EvidenceSigner,
  RunnerDesk,
  RunnerGateway,
} from './runner-gateway/index.ts';
import { AgentSession, type SessionOptions, type Transport } from './session/index.ts';

export interface CoreParts
  extends BmcPlatform,
    Pick<SessionOptions, 'clock' | 'random' | 'disk' | 'crashPoint'> {
  readonly log: Log;
  readonly config: Pick<AgentConfig, 'stateFolder' | 'bmc' | 'netboots'>;
  readonly transport: Transport;
  readonly signer: EvidenceSigner;
  readonly agentVersion: string;
}

export interface AgentCore {
  readonly session: AgentSession;
  /** Not listening yet. */
  readonly gateway: RunnerGateway;
  /** To be told of every request to the boot services. */
  onNetboot(sighting: NetbootSighting): void;
  /** Takes up what the last life left and dials the control plane, for ever. */
  start(): Promise<void>;
  stop(): void;
}

/** Opens the journal and wires everything; nothing runs before `start`. */
export async function openCore(parts: CoreParts): Promise<AgentCore> {
  const { clock, config, disk, log, random, signer } = parts;
  const journalPath = `${config.stateFolder}/journal`;
  const journal = await Journal.open({ disk, path: journalPath, clock, random, log });
  const snapshotPath = `${config.stateFolder}/boot-snapshot`;
  const session = new AgentSession({ ...parts, journal, snapshotPath });
  const desk = new RunnerDesk({
    ...{ clock, log, signer },
    operationState: (id) => session.operationState(id),
    limits: defaultDeskLimits,
  });
  const watch = new NetbootWatch({
    clock,
    memory: session.bootMemory,
    publish: (hostUid, unexpectedNetboot) => session.publishFacts(hostUid, { unexpectedNetboot }),
    limits: config.netboots,
  });
  const drivers = createBmcDrivers(config.bmc, parts);
  const looks = new PowerSync({ clock, random, log, drivers, session, orders: desk });
  return {
    session,
    gateway: makeGateway(parts, session, desk),
    onNetboot: (sighting) => {
      watch.observe(sighting);
      if (sighting.hostUid !== undefined) desk.sawNetboot(sighting.hostUid);
    },
    start: () => session.start(createExecutor({ drivers, orders: desk }), looks),
    stop: () => {
      session.stop();
      watch.stop();
    },
  };
}

function makeGateway(
  { clock, log, random }: CoreParts,
  session: AgentSession,
  desk: RunnerDesk,
): RunnerGateway {
  return new RunnerGateway({
    ...{ clock, random, log, desk },
    grants: session.grants,
    facts: {
      runnerReady: (hostUid, runnerReady) => session.publishFacts(hostUid, { runnerReady }),
      runnerGone: (hostUid, runnerSession) => session.runnerGone(hostUid, runnerSession),
    },
    limits: defaultGatewayLimits,
  });
}

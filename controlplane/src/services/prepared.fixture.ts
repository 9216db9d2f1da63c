/**
 * Hosts in the store as after a real history, in every state and with every kind of run, so that
 * every request can be tried on them. Their agent was never connected: nothing changes them.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  type CleanStepRequest,
  DeletionSchema,
  GivenUpCause,
  GoalBackoffSchema,
  HoldScope,
  HostGoal,
  HostState,
  PowerAction,
  RerunClass,
  type Run,
  RunKind,
  RunPhase,
  RunSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import type { OperatorClients } from '@rackwright/rpc';
import { type StateStore, storeKey } from '@rackwright/store';
import { reservedValues } from '../host/index.ts';
import { idOf } from '../records/index.ts';

export interface Situation {
  readonly state: HostState;
  /** Unset: no run. */
  readonly kind: RunKind | undefined;
}

const states = [
  HostState.NEW,
  HostState.MANAGEABLE,
  HostState.AVAILABLE,
  HostState.PROVISIONED,
  HostState.EXTERNAL,
];

const kinds = Object.values(RunKind).filter((kind) => kind !== RunKind.UNSPECIFIED);

/** Every stable state with every kind of run, and without one. */
export const situations: readonly Situation[] = states.flatMap((state) =>
  [undefined, ...kinds].map((kind) => ({ state, kind })),
);

/** Addresses unique to each number up to 65535. */
function specOf(n: number, { state }: Situation) {
  const [high, low] = [Math.floor(n / 256), n % 256];
  const hex = (part: number) => part.toString(16).padStart(2, '0');
  const goal = state === HostState.AVAILABLE ? HostGoal.AVAILABLE : HostGoal.MANAGEABLE;
  return {
    rack: 'racks/r1',
    bmc: { address: `10.0.${high}.${low}`, credential: 'credentials/bmc' },
    bootMacs: [`52:54:00:00:${hex(high)}:${hex(low)}`],
    goal,
  };
}

const firstSteps: Readonly<Record<number, string>> = {
  [RunKind.VERIFY]: 'bmc.verifyAccess',
  [RunKind.ADOPT]: 'bmc.verifyAccess',
  [RunKind.DELETE]: 'host.forget',
};

/** A record that a reconcile does not change: its run waits for the agent. */
export function preparedHost(n: number, situation: Situation): wire.HostRecord {
  const { state, kind } = situation;
  const time = timestampFromMs(nodeClock().nowMs());
  const uid = `u${n}`;
  const record = create(wire.HostRecordSchema, {
    host: {
      name: `hosts/h${n}`,
      uid,
      createTime: time,
      spec: specOf(n, situation),
      status: { state, dirty: state !== HostState.AVAILABLE, useEpoch: 1n, poweredOn: false },
    },
    change: { actor: 'user:admin', cause: 'prepared', time },
  });
  const { host } = record;
  if (host?.status === undefined || host.spec?.bmc === undefined) throw new Error('no host');
  const { status } = host;
  if (state === HostState.NEW) {
    status.backoff = create(GoalBackoffSchema, {
      failures: 1,
      givenUp: GivenUpCause.TOO_MANY_FAILURES,
      givenUpReason: 'prepared',
    });
  } else {
    record.verifiedBmc = host.spec.bmc;
  }
  if (kind === undefined) return record;
  record.runCount = 1n;
  status.run = runOf(kind, time);
  if (kind === RunKind.DELETE) {
    record.forgetting = true;
    status.deletion = create(DeletionSchema, { by: 'user:admin', reason: 'prepared', at: time });
  } else {
    record.operation = create(wire.OperationRecordSchema, {
      operation: { id: `${uid}/1/0/1`, hostUid: uid, kind: { case: 'verifyAccess', value: {} } },
      createTime: time,
      sendTime: time,
      sentTo: { id: 'j1', generation: 1n },
    });
  }
  return record;
}

const dayMs = 24 * 3_600_000;

function runOf(kind: RunKind, since: Timestamp): Run {
  return create(RunSchema, {
    kind,
    number: asRunNumber(1),
    phase: RunPhase.WAITING,
    waiting: { reason: 'agent', message: 'the agent of the rack is not connected', since },
    steps: [
      {
        name: firstSteps[kind] ?? 'power.off',
        state: StepState.RUNNING,
        attempt: 1,
        rerunClass: RerunClass.SAFE,
        startTime: since,
      },
    ],
    startTime: since,
    deadline: timestampFromMs(nodeClock().nowMs() + dayMs),
    requestedBy: 'user:admin',
  });
}

/** A step that the rack's agent runs by itself. */
const agentStep = 'management.tried_out';

/** A host that accepts a clean. */
export function manageableHost(n: number): wire.HostRecord {
  return preparedHost(n, { state: HostState.MANAGEABLE, kind: undefined });
}

/** Gives the rack of the hosts an agent that has announced its steps. */
export async function offerAgentStep(store: StateStore): Promise<void> {
  const key = storeKey('racks', 'r1');
  const kept = await store.get(key);
  if (kept.kind !== 'found') throw new Error('no rack');
  const rack = fromBinary(wire.RackRecordSchema, kept.value);
  const { journal, agentSteps } = create(wire.RackRecordSchema, {
    journal: { id: 'j1', generation: 1n },
    agentSteps: [{ name: agentStep, rerunClass: RerunClass.SAFE, destructive: false }],
  });
  Object.assign(rack, { journal, agentSteps });
  await store.put(key, toBinary(wire.RackRecordSchema, rack), kept.revision);
}

/** Puts a host into the store with all its reservations. */
export async function putHost(store: StateStore, record: wire.HostRecord): Promise<void> {
  const { host } = record;
  if (host?.spec === undefined) throw new Error('no spec');
  const put = (key: string, value: Uint8Array) => store.put(key, value, 'absent');
  const reservation = create(wire.ReservationSchema, { holder: host.name, holderUid: host.uid });
  for (const { key } of reservedValues(host.spec)) {
    await put(key, toBinary(wire.ReservationSchema, reservation));
  }
  const id = idOf(host.name);
  await put(storeKey('hosts', id), toBinary(wire.HostRecordSchema, record));
}

type HostClient = OperatorClients['hosts'];

const erase: readonly Pick<CleanStepRequest, 'step'>[] = [{ step: 'deploy.erase_devices' }];
const image = `registry.example/os@sha256:${'1'.repeat(64)}`;

type Ask = (hosts: HostClient, name: string, requestId: string) => Promise<unknown>;

function power(action: PowerAction): Ask {
  return (hosts, name, requestId) =>
    hosts.setHostPower({ name, action, bootOldDiskReason: 'tried out', requestId });
}

function hold(scope: HoldScope): Ask {
  return (hosts, name, requestId) =>
    hosts.holdHost({ name, scope, reason: 'tried out', requestId });
}

/** Every request to one host, by its name in the tests. */
export const asks: Readonly<Record<string, Ask>> = {
  verify: (hosts, name, requestId) => hosts.verifyHost({ name, requestId }),
  inspect: (hosts, name, requestId) => hosts.inspectHost({ name, requestId }),
  clean: (hosts, name, requestId) => hosts.cleanHost({ name, requestId }),
  cleanByList: (hosts, name, requestId) => hosts.cleanHost({ name, steps: [...erase], requestId }),
  service: (hosts, name, requestId) =>
    hosts.serviceHost({ name, steps: [{ step: agentStep }], requestId }),
  provision: (hosts, name, requestId) => hosts.provisionHost({ name, image, requestId }),
  reimage: (hosts, name, requestId) => hosts.reimageHost({ name, image, requestId }),
  release: (hosts, name, requestId) => hosts.releaseHost({ name, requestId }),
  rescue: (hosts, name, requestId) => hosts.rescueHost({ name, requestId }),
  adoptExternal: (hosts, name, requestId) =>
    hosts.adoptHost({ name, to: HostState.EXTERNAL, requestId }),
  adoptProvisioned: (hosts, name, requestId) =>
    hosts.adoptHost({ name, to: HostState.PROVISIONED, requestId }),
  powerOn: power(PowerAction.ON),
  powerOff: power(PowerAction.OFF),
  powerReset: power(PowerAction.RESET),
  skipWait: power(PowerAction.SKIP_WAIT),
  confirmPower: power(PowerAction.CONFIRM_OFF),
  abort: (hosts, name, requestId) => hosts.abortRun({ name, requestId }),
  resume: (hosts, name, requestId) => hosts.resumeRun({ name, requestId }),
  skip: (hosts, name, requestId) => hosts.skipStep({ name, reason: 'tried out', requestId }),
  retry: (hosts, name, requestId) => hosts.retryHost({ name, requestId }),
  claim: (hosts, name, requestId) => hosts.claimHost({ name, reason: 'tried out', requestId }),
  unclaim: (hosts, name, requestId) => hosts.unclaimHost({ name, requestId }),
  holdWork: hold(HoldScope.WORK),
  holdPower: hold(HoldScope.POWER),
  holdRelease: hold(HoldScope.RELEASE),
  releaseHold: (hosts, name, requestId) => hosts.releaseHold({ name, requestId }),
  delete: (hosts, name, requestId) => hosts.deleteHost({ name, requestId }),
  forceDelete: (hosts, name, requestId) => hosts.deleteHost({ name, mode: 2, requestId }),
  cancelDelete: (hosts, name, requestId) => hosts.cancelHostDeletion({ name, requestId }),
  update: (hosts, name, requestId) =>
    hosts.updateHost({ host: { name, labels: { tried: 'out' } }, requestId }),
} satisfies Record<string, Ask>;

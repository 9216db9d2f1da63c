/** What operators do at random, each act one call of the API with arguments that chance chooses. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  DeletionMode,
  HoldScope,
  HostGoal,
  HostState,
  PowerAction,
  PowerCycleCheck,
  PowerMismatchPolicy,
  ShutdownMode,
} from '@rackwright/messages';
import { bmcPassword } from '../bmc.ts';
import type { SimMachine } from '../machine.ts';
import { imageReferenceOf } from '../pools/registry.ts';
import type { WorldView } from '../view.ts';
import type { Counter } from './counter.ts';
import { addressOf, type KeptHost } from './records.ts';

/** What an operator looks at before an act. */
export interface Scene {
  readonly view: WorldView;
  readonly host: KeptHost;
  /** The machine that the host really is. */
  readonly machine: SimMachine;
  readonly nowMs: number;
  readonly requestId: string;
  /** One of several, by chance; also after the faults have stopped. */
  readonly pick: <T>(choices: readonly T[]) => T;
}

/** Calls with arguments that are chosen already, so that it can be said again word by word. */
export type Call = (counter: Counter) => Promise<unknown>;

export interface Act {
  readonly name: string;
  /** How often, among the others. */
  readonly weight: number;
  readonly prepare: (scene: Scene) => Call;
}

interface HostActRequest {
  readonly name: string;
  readonly requestId: string;
}

const hostAct = (
  name: string,
  weight: number,
  call: (counter: Counter, asked: HostActRequest) => Promise<unknown>,
): Act => ({
  name,
  weight,
  prepare: ({ host, requestId }) => {
    const asked = { name: host.host.name, requestId };
    return (counter) => call(counter, asked);
  },
});

/** An act whose only arguments are the host and a reason. */
const plain = (
  name: string,
  weight: number,
  method:
    | 'verifyHost'
    | 'inspectHost'
    | 'retryHost'
    | 'abortRun'
    | 'resumeRun'
    | 'skipStep'
    | 'claimHost'
    | 'unclaimHost'
    | 'releaseHost'
    | 'rescueHost'
    | 'cancelHostDeletion',
): Act =>
  hostAct(name, weight, ({ hosts }, asked) => {
    const ask: (request: object) => Promise<unknown> = hosts[method];
    return ask({ ...asked, reason: `${name} by chance` });
  });

/** Lists of manual steps, sensible and not. */
const manualLists = [
  [{ step: 'deploy.erase_devices' }],
  [{ step: 'deploy.erase_devices_metadata' }],
  [{ step: 'hold' }, { step: 'deploy.erase_devices' }],
  [{ step: 'deploy.erase_devices' }, { step: 'hold' }],
  [{ step: 'wait', arguments: { seconds: '30' } }, { step: 'deploy.erase_devices' }],
  [{ step: 'deploy.erase_devices' }, { step: 'reboot' }],
  [{ step: 'reboot' }, { step: 'deploy.erase_devices' }],
  [{ step: 'management.clear_event_log' }, { step: 'hold' }],
  [{ step: 'management.clear_event_log' }, { step: 'deploy.erase_devices' }, { step: 'reboot' }],
  [{ step: 'deploy.erase_devices' }, { step: 'reboot' }, { step: 'hold' }, { step: 'powerOff' }],
  [{ step: 'powerOff' }],
  [{ step: 'powerOff' }, { step: 'powerOn' }, { step: 'deploy.erase_devices' }],
  [{ step: 'no.such_step' }],
  [{ step: 'deploy.erase_devices', arguments: { nonsense: 'yes' } }],
];

const manualClean: Act = {
  name: 'clean by hand',
  weight: 6,
  prepare: ({ host, requestId, pick }) => {
    const steps = pick(manualLists);
    return ({ hosts }) => hosts.cleanHost({ name: host.host.name, steps, requestId });
  },
};

const power: Act = {
  name: 'power',
  weight: 6,
  prepare: ({ host, requestId, pick }) => {
    const { ON, OFF, RESET, SKIP_WAIT, CONFIRM_OFF } = PowerAction;
    const action = pick([ON, OFF, RESET, SKIP_WAIT, CONFIRM_OFF]);
    const bootOldDiskReason = pick(['', '', 'to see what is on it']);
    const { name } = host.host;
    const asked = pick([{}, {}, { shutdown: { mode: ShutdownMode.GRACEFUL, timeoutSeconds: 40 } }]);
    const request = { name, action, bootOldDiskReason, requestId, ...asked };
    return ({ hosts }) => hosts.setHostPower(request);
  },
};

const images = [imageReferenceOf('a'), imageReferenceOf('b')];

const image: Act = {
  name: 'image',
  weight: 6,
  prepare: ({ host, requestId, pick }) => {
    const request = { name: host.host.name, image: pick(images), requestId };
    const provisioned = host.status.state === HostState.PROVISIONED;
    return ({ hosts }) => (provisioned ? hosts.reimageHost(request) : hosts.provisionHost(request));
  },
};

const hold: Act = {
  name: 'hold',
  weight: 3,
  prepare: ({ host, requestId, nowMs, pick }) => {
    const scope = pick([HoldScope.WORK, HoldScope.WORK, HoldScope.POWER, HoldScope.RELEASE]);
    const lastsMs = pick([undefined, 60_000, 300_000, -1]);
    const until = lastsMs === undefined ? {} : { until: timestampFromMs(nowMs + lastsMs) };
    const request = { name: host.host.name, scope, reason: 'looked at', requestId, ...until };
    return ({ hosts }) => hosts.holdHost(request);
  },
};

const releaseHold: Act = {
  name: 'release hold',
  weight: 4,
  prepare: ({ host, requestId, pick }) => {
    const hold = pick(['', 'looked at', ...host.status.holds.map(({ reason }) => reason)]);
    const physicallyDisconnected = pick([false, true]);
    const { name } = host.host;
    return ({ hosts }) =>
      hosts.releaseHold({ name, hold, reason: 'seen to', requestId, physicallyDisconnected });
  },
};

const remove: Act = {
  name: 'delete',
  weight: 6,
  prepare: ({ host, requestId, pick }) => {
    const { NORMAL, FORCE } = DeletionMode;
    const mode = pick([NORMAL, NORMAL, FORCE]);
    const { name } = host.host;
    return ({ hosts }) => hosts.deleteHost({ name, mode, reason: 'not needed', requestId });
  },
};

/** Wrong and right ones: who sees `explain` finds the right one. */
const bmc: Act = {
  name: 'update the BMC',
  weight: 2,
  prepare: ({ host, machine, requestId, pick }) => {
    const address = pick(['10.0.9.9', addressOf(machine), addressOf(machine)]);
    const update = { name: host.host.name, spec: { bmc: { address } } };
    const updateMask = { paths: ['spec.bmc.address'] };
    return ({ hosts }) => hosts.updateHost({ host: update, updateMask, requestId });
  },
};

const spec: Act = {
  name: 'update the spec',
  weight: 4,
  prepare: ({ host, machine, requestId, pick }) => {
    const [path, change] = pick([
      ['spec.goal', { goal: HostGoal.MANAGEABLE }],
      ['spec.goal', { goal: HostGoal.AVAILABLE }],
      ['spec.retired', { retired: true }],
      ['spec.retired', { retired: false }],
      ['spec.boot_macs', { bootMacs: [machine.mac, '52:54:00:00:0f:0f'] }],
      ['spec.boot_macs', { bootMacs: [machine.mac] }],
      ['spec.cleaning', { cleaning: { priorityOverrides: { 'deploy.erase_devices': 0 } } }],
      ['spec.cleaning', { cleaning: {} }],
      ['spec.cleaning', { cleaning: { powerCycleCheck: PowerCycleCheck.IMMEDIATE } }],
      ['spec.cleaning', { cleaning: { powerCycleCheck: PowerCycleCheck.NEXT_BOOT } }],
      ['spec.boot_macs', { bootMacs: ['nonsense'] }],
      ['spec.shutdown.mode', { shutdown: { mode: ShutdownMode.FORCE } }],
      ['spec.shutdown.mode', { shutdown: { mode: ShutdownMode.UNSPECIFIED } }],
    ] as const);
    const update = { name: host.host.name, spec: change as object };
    const updateMask = { paths: [path] };
    return ({ hosts }) => hosts.updateHost({ host: update, updateMask, requestId });
  },
};

const credential: Act = {
  name: 'change the password',
  weight: 2,
  prepare: ({ pick }) => {
    const password = pick(['wrong', bmcPassword, bmcPassword]);
    const wanted = { name: 'credentials/c1', password };
    const updateMask = { paths: ['password'] };
    return ({ credentials }) => credentials.updateCredential({ credential: wanted, updateMask });
  },
};

const adopt: Act = {
  name: 'adopt',
  weight: 1,
  prepare: ({ host, requestId, pick }) => {
    const to = pick([HostState.EXTERNAL, HostState.PROVISIONED]);
    const { name } = host.host;
    return ({ hosts }) => hosts.adoptHost({ name, to, reason: 'runs already', requestId });
  },
};

const brakes: readonly Act[] = [
  {
    name: 'freeze',
    weight: 5,
    prepare: ({ requestId }) => {
      const request = { name: 'racks/r1', reason: 'smoke', requestId };
      return ({ racks }) => racks.freezeRack(request);
    },
  },
  {
    name: 'thaw',
    weight: 5,
    prepare: ({ requestId }) => {
      const request = { name: 'racks/r1', reason: 'it was steam', requestId };
      return ({ racks }) => racks.thawRack(request);
    },
  },
  {
    name: 'freeze the fleet',
    weight: 1,
    prepare: ({ requestId }) => {
      return ({ fleet }) => fleet.freezeFleet({ reason: 'audit', requestId });
    },
  },
  {
    name: 'thaw the fleet',
    weight: 2,
    prepare: ({ requestId }) => {
      return ({ fleet }) => fleet.thawFleet({ reason: 'audit is over', requestId });
    },
  },
];

/** How much may happen at once, and what follows when the power is not as it shall be. */
const limits: Act = {
  name: 'limits',
  weight: 4,
  prepare: ({ pick }) => {
    const [path, change] = pick([
      ['spec.limits', { limits: { runs: 1 } }],
      ['spec.limits', {}],
      ['spec.wipe_budget', { wipeBudget: { hosts: 1, seconds: 180 } }],
      ['spec.wipe_budget', { wipeBudget: { hosts: 0 } }],
      ['spec.wipe_budget', {}],
      ['spec.power_mismatch', { powerMismatch: PowerMismatchPolicy.ENFORCE }],
      ['spec.power_mismatch', { powerMismatch: PowerMismatchPolicy.REPORT }],
    ] as const);
    const rack = { name: 'racks/r1', spec: change };
    return ({ racks }) => racks.updateRack({ rack, updateMask: { paths: [path] } });
  },
};

/** Somebody has seen to what a forced removal left. */
const resolve: Act = {
  name: 'resolve',
  weight: 2,
  prepare: ({ view, pick }) => {
    const left = view.storeDisk().lastChanges('abandonedResources');
    const uid = pick(['nobody', ...left.map(({ key }) => key.slice('abandonedResources.'.length))]);
    const request = { name: `abandonedResources/${uid}`, reason: 'seen to' };
    return ({ abandoned }) => abandoned.resolveAbandonedResource(request);
  },
};

/** Reading always works, and changes nothing. */
const read: Act = {
  name: 'read',
  weight: 3,
  prepare: ({ host, pick }) => {
    const { name } = host.host;
    return pick<Call>([
      ({ hosts }) => hosts.getHost({ name }),
      ({ hosts }) => hosts.listHosts({}),
      ({ hosts }) => hosts.explainHost({ name }),
      ({ hosts }) => hosts.listCleanSteps({ name }),
      ({ hosts }) => hosts.listHostRevisions({ name }),
      ({ racks }) => racks.explainRack({ name: 'racks/r1' }),
    ]);
  },
};

export const acts: readonly Act[] = [
  plain('verify', 3, 'verifyHost'),
  plain('inspect', 3, 'inspectHost'),
  hostAct('clean', 4, ({ hosts }, asked) => hosts.cleanHost(asked)),
  manualClean,
  hostAct('service', 2, ({ hosts }, asked) =>
    hosts.serviceHost({ ...asked, steps: [{ step: 'management.clear_event_log' }] }),
  ),
  image,
  plain('release', 3, 'releaseHost'),
  plain('rescue', 2, 'rescueHost'),
  adopt,
  power,
  plain('abort', 5, 'abortRun'),
  plain('resume', 4, 'resumeRun'),
  plain('skip', 3, 'skipStep'),
  plain('retry', 3, 'retryHost'),
  plain('claim', 3, 'claimHost'),
  plain('unclaim', 4, 'unclaimHost'),
  hold,
  releaseHold,
  remove,
  plain('cancel delete', 3, 'cancelHostDeletion'),
  bmc,
  spec,
  credential,
  ...brakes,
  limits,
  resolve,
  read,
];

/** Makes a host known again whose record is gone: under the old name or another one. */
export function createAgain(
  { pick, requestId, machine }: Omit<Scene, 'host'>,
  free: readonly string[],
): Call {
  const hostId = pick(free);
  const host = {
    spec: {
      rack: 'racks/r1',
      bmc: { address: addressOf(machine), credential: 'credentials/c1' },
      bootMacs: [machine.mac],
    },
  };
  return ({ hosts }) => hosts.createHost({ hostId, host, requestId });
}

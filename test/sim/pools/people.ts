/**
 * People who keep pools in a simulated rack: they make them, change their image and their policy,
 * pause, approve, pin, give hosts back and delete. When the faults stop they see to it that every
 * pool can come to rest: nothing is paused or waits for them, and a good image is wanted.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  HostState,
  type PoolSpec,
  PowerAction,
  RolloutSlotState,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { ask, type Counter, counterOf } from '../operators/counter.ts';
import { keptHosts } from '../operators/records.ts';
import type { WorldView } from '../view.ts';
import { auditHistory } from './audit.ts';
import { Encore } from './encore.ts';
import { gateUrl } from './gate-hook.ts';
import { badImage, digestOfImage, goodImages, imageReferenceOf, tagReference } from './registry.ts';
import { windows, wordsOf } from './windows.ts';

/** Between two acts, for as long as there are faults. */
const pauseMs = 12_000;
/** Between two rounds of whoever tidies up. */
const roundMs = 30_000;
/** Their requests are counted from here, so that nobody else's has the same id. */
const firstRequest = 2_000_000;
const poolIds = ['p1', 'p2'] as const;
/** Other images tried in the end: an agent whose clock was ahead boots nobody for hours. */
const rescuesMax = 60;
/** Nobody is given another image before this one could have come up. */
const betweenRescuesMs = 400_000;

type Call = (counter: Counter) => Promise<unknown>;

interface PoolAct {
  readonly name: string;
  /** How often, among the others. */
  readonly weight: number;
  readonly prepare: (scene: Scene) => Call;
}

interface Scene {
  readonly view: WorldView;
  readonly poolId: string;
  readonly pool: wire.PoolRecord | undefined;
  readonly requestId: string;
  readonly pick: <T>(choices: readonly T[]) => T;
}

const images = [...goodImages.map(imageReferenceOf), tagReference, tagReference];
const mostlyGood = [...images, imageReferenceOf(badImage)];

function selector({ view, pick }: Scene) {
  const names = keptHosts(view).flatMap(({ host }) => (pick([true, true, false]) ? host.name : []));
  return names.length === 0 || pick([true, true, false]) ? { rack: 'racks/r1' } : { names };
}

const update = (path: string, spec: object): ((scene: Scene) => Call) => {
  return ({ poolId, requestId }) => {
    const request = {
      ...{ pool: { name: `pools/${poolId}`, spec }, requestId },
      updateMask: { paths: [path] },
    };
    return ({ pools }) => pools.updatePool(request);
  };
};

const act = (name: string, weight: number, prepare: PoolAct['prepare']): PoolAct => ({
  ...{ name, weight, prepare },
});

const acts: readonly PoolAct[] = [
  act('move the tag', 8, ({ view, pick }) => {
    const letter = pick([...goodImages, ...goodImages, badImage]);
    return async () => view.tags.move(letter);
  }),
  act('change the image', 12, (scene) =>
    update('spec.image', { image: scene.pick(mostlyGood) })(scene),
  ),
  act('change how many may be out', 4, (scene) => {
    const amount = scene.pick([
      { case: 'count', value: 1 },
      { case: 'count', value: 1 },
      { case: 'count', value: 2 },
      { case: 'count', value: 0 },
      { case: 'percent', value: 50 },
    ] as const);
    const rollout = { maxUnavailable: { amount } };
    return update('spec.rollout.max_unavailable', { rollout })(scene);
  }),
  act('change the threshold', 2, (scene) => {
    const value = scene.pick([1, 2, 3]);
    const rollout = { failureThreshold: { amount: { case: 'count' as const, value } } };
    return update('spec.rollout.failure_threshold', { rollout })(scene);
  }),
  act('change the soak', 2, (scene) => {
    const soak = scene.pick([{ seconds: 0n }, { seconds: 30n }]);
    return update('spec.rollout.soak', { rollout: { soak } })(scene);
  }),
  act('change the gate', 3, (scene) => {
    const deadline = { seconds: 120n };
    const gate = scene.pick([
      { approval: true, deadline },
      { webhookUrl: gateUrl },
      { webhookUrl: gateUrl, approval: true, deadline: { seconds: 300n } },
      { webhookUrl: gateUrl, deadline },
      { approval: false },
    ]);
    return update('spec.rollout.gate', { rollout: { gate } })(scene);
  }),
  act('change the windows', 3, (scene) => {
    const chosen = scene.pick([[], [0], [0], [1], [2], [3], [1, 2]]);
    const open = chosen.flatMap((at) => windows.slice(at, at + 1)).map(wordsOf);
    return update('spec.rollout.windows', { rollout: { windows: open } })(scene);
  }),
  act('change the waves', 3, (scene) => {
    const { view, pick } = scene;
    const [one = '', two = '', ...more] = keptHosts(view).map(({ host }) => host.name);
    const rest = { name: 'rest', hosts: { rack: 'racks/r1' } };
    const waves = pick([
      [],
      [{ name: 'first', hosts: { names: [one] } }, rest],
      [{ name: 'first', hosts: { names: [two, ...more] } }],
      [
        { name: 'nobody', hosts: { names: ['hosts/none'] } },
        { name: 'first', hosts: { names: [two] } },
        rest,
      ],
    ]);
    return update('spec.rollout.waves', { rollout: { waves } })(scene);
  }),
  act('change how many of a rack may be out', 2, (scene) => {
    const maxUnavailablePerRack = scene.pick([undefined, 1, 1, 2]);
    const rollout = maxUnavailablePerRack === undefined ? {} : { maxUnavailablePerRack };
    return update('spec.rollout.max_unavailable_per_rack', { rollout })(scene);
  }),
  act('let it go back by itself', 1, (scene) => {
    return update('spec.rollout.rollback', { rollout: { rollback: scene.pick([true, false]) } })(
      scene,
    );
  }),
  act('pin a host', 3, (scene) => {
    const { view, pick } = scene;
    const names = keptHosts(view).map(({ host }) => host.name);
    const letter = pick([undefined, ...goodImages]);
    const pins =
      letter === undefined || names.length === 0 ? {} : { [pick(names)]: imageReferenceOf(letter) };
    return update('spec.pins', { pins })(scene);
  }),
  act('select other hosts', 4, (scene) => update('spec.hosts', { hosts: selector(scene) })(scene)),
  act('change the size', 2, (scene) => {
    const size = scene.pick([undefined, 1, 2]);
    return update('spec.size', size === undefined ? {} : { size })(scene);
  }),
  act('pause', 3, ({ poolId, requestId }) => {
    return ({ pools }) => pools.pausePool({ name: `pools/${poolId}`, requestId });
  }),
  act('resume', 5, ({ poolId, requestId }) => {
    return ({ pools }) => pools.resumePool({ name: `pools/${poolId}`, requestId });
  }),
  act('approve', 8, ({ poolId, requestId, pool }) => {
    const name = `pools/${poolId}`;
    return ({ pools }) => pools.approvePool({ name, requestId, digest: digestAtGate(pool) });
  }),
  act('delete a pool', 1, ({ poolId, requestId }) => {
    const request = { name: `pools/${poolId}`, reason: 'not needed', requestId };
    return ({ pools }) => pools.deletePool(request);
  }),
  act('release a host of it', 2, (scene) => onHost(scene, 'releaseHost')),
  act('abort a run of it', 2, (scene) => onHost(scene, 'abortRun')),
  act('look at a pool', 4, ({ poolId, pick }) => {
    const name = `pools/${poolId}`;
    return pick<Call>([
      ({ pools }) => pools.getPool({ name }),
      ({ pools }) => pools.listPools({}),
      ({ pools }) => pools.explainPool({ name }),
      ({ pools }) => pools.planRollout({ name }),
      ({ pools }) => pools.listPoolHosts({ parent: name }),
      ({ pools }) => pools.listDeployHistory({ parent: name }),
    ]);
  }),
];

function onHost({ pool, requestId, pick }: Scene, method: 'releaseHost' | 'abortRun'): Call {
  const name = pick([...(pool?.members ?? []).map(({ host }) => host), 'hosts/h1']);
  return ({ hosts }) => hosts[method]({ name, reason: 'by chance', requestId });
}

function digestAtGate(record: wire.PoolRecord | undefined): string {
  const slots = record?.pool?.status?.slots ?? [];
  const waiting = slots.find(({ state }) => state === RolloutSlotState.GATE);
  return waiting?.image.split('@')[1] ?? digestOfImage('a');
}

const createAct = act('make a pool', 1, (scene) => {
  const { poolId, requestId, pick } = scene;
  const value = pick([1, 1, 2]);
  const rollout = { maxUnavailable: { amount: { case: 'count' as const, value } } };
  const pollInterval = { seconds: 60n };
  const { netboot } = scene.view;
  const wanted = { hosts: selector(scene), image: pick(images), rollout, pollInterval };
  const spec = { ...wanted, deploy: { netboot } };
  return ({ pools }) => pools.createPool({ poolId, pool: { spec }, requestId });
});

export class PoolPeople {
  readonly #view: WorldView;
  #asked = firstRequest;
  readonly #rescues = new Map<string, { readonly count: number; readonly atMs: number }>();
  readonly #encore: Encore;

  constructor(view: WorldView) {
    this.#view = view;
    this.#encore = new Encore(view);
  }

  /** Whether they want nothing more. */
  isDone(): boolean {
    return this.#encore.isOver;
  }

  start(): void {
    const { heap, chance } = this.#view;
    const round = () => {
      heap.after(chance.around(this.#view.faulty() ? pauseMs : roundMs), round);
      if (this.#view.faulty()) this.#act();
      else this.#tidyUp();
    };
    heap.after(chance.around(pauseMs), round);
  }

  #act(): void {
    const pick = <T>(choices: readonly T[]) =>
      choices[Math.floor(this.#view.random.fraction() * choices.length)] as T;
    // The second one is a guest: two that select the same hosts stop each other.
    const poolId = pick(['p1', 'p1', 'p1', 'p2'] as const);
    const pool = poolOf(this.#view, poolId);
    const scene = { view: this.#view, poolId, pool, requestId: this.#nextId(), pick };
    const chosen = pool === undefined ? createAct : weighed(this.#view);
    this.#ask(chosen.name, poolId, chosen.prepare(scene));
  }

  #nextId(): string {
    this.#asked += 1;
    return `q${this.#asked}`;
  }

  #ask(name: string, poolId: string, call: Call): void {
    const view = this.#view;
    const replicas = view.replicas();
    if (replicas.length === 0) return;
    const replica = view.chance.pick(replicas);
    ask(view, () => call(counterOf(view, replica))).then(
      (answer) => {
        const text = answer.kind === 'refused' ? answer.error.message : '';
        view.trace(`keeper: ${name} ${poolId} ${answer.kind} ${text}`);
        view.count(`keeper ${answer.kind}`);
        if (answer.kind !== 'refused' || answer.error.kind !== 'internal') return;
        view.found('O3', `${name}: ${text}`);
      },
      (error: unknown) => view.found('O3', `${name} threw: ${String(error)}`),
    );
  }

  /** Nothing waits for people any more, and who failed gets another image. */
  #tidyUp(): void {
    for (const poolId of poolIds) {
      const record = poolOf(this.#view, poolId);
      if (record?.pool === undefined || record.deletion !== undefined) continue;
      const requestId = this.#nextId();
      const isPlayed = poolId === 'p1' && this.#encore.isRunning;
      if (!isPlayed && keepsBack(record.pool.spec)) this.#clear(poolId, requestId);
      else this.#rescue(poolId, record, requestId);
    }
    this.#playEncore();
    this.#mendHosts();
    for (const poolId of poolIds) void auditHistory(this.#view, poolId);
  }

  #clear(poolId: string, requestId: string): void {
    const maxUnavailable = { amount: { case: 'count' as const, value: 1 } };
    const cleared = { paused: false, gate: {}, maxUnavailable, rollback: false };
    const pool = { name: `pools/${poolId}`, spec: { pins: {}, rollout: cleared } };
    const updateMask = { paths: ['spec.pins', 'spec.rollout'] };
    this.#ask('clear', poolId, ({ pools }) => pools.updatePool({ pool, updateMask, requestId }));
  }

  /** Gives it another image where one has failed, now and then and so often. */
  #rescue(poolId: string, record: wire.PoolRecord, requestId: string): void {
    if (record.failures.length === 0 && !isBad(record, this.#view)) return;
    const { count: rescues = 0, atMs = 0 } = this.#rescues.get(poolId) ?? {};
    const { nowMs } = this.#view.heap;
    if (rescues >= rescuesMax || nowMs - atMs < betweenRescuesMs) return;
    this.#rescues.set(poolId, { count: rescues + 1, atMs: nowMs });
    const present = record.pool?.spec?.image ?? '';
    const other = goodImages.filter((each) => !present.endsWith(digestOfImage(each)));
    const image = imageReferenceOf(other[rescues % other.length] ?? 'a');
    const pool = { name: `pools/${poolId}`, spec: { image } };
    const request = { pool, updateMask: { paths: ['spec.image'] }, requestId };
    this.#ask('rescue', poolId, ({ pools }) => pools.updatePool(request));
  }

  /** The other pool must not want the same hosts. */
  #playEncore(): void {
    if (this.#encore.isOver) return;
    const [record, other] = poolIds.map((poolId) => poolOf(this.#view, poolId));
    if (record === undefined && !this.#encore.isRunning) {
      const hosts = { rack: 'racks/r1' };
      const deploy = { netboot: this.#view.netboot };
      const pool = { spec: { hosts, image: imageReferenceOf('a'), deploy } };
      const requestId = this.#nextId();
      this.#ask('make', 'p1', ({ pools }) => pools.createPool({ poolId: 'p1', pool, requestId }));
    }
    if (other !== undefined && other.deletion === undefined) {
      const request = { name: 'pools/p2', reason: 'of no use', requestId: this.#nextId() };
      this.#ask('delete', 'p2', ({ pools }) => pools.deletePool(request));
    }
    const spec = this.#encore.look(record?.deletion === undefined ? record : undefined);
    if (spec === undefined) return;
    const pool = { name: 'pools/p1', spec };
    const updateMask = { paths: ['spec.image', 'spec.rollout'] };
    const requestId = this.#nextId();
    this.#ask('encore', 'p1', ({ pools }) => pools.updatePool({ pool, updateMask, requestId }));
  }

  /** A host in service that is off is switched on; one that was left dirty is cleaned. */
  #mendHosts(): void {
    for (const { host, status } of keptHosts(this.#view)) {
      if (status.run !== undefined && status.run.phase !== RunPhase.ENDED) continue;
      const requestId = this.#nextId();
      const { name } = host;
      if (status.state === HostState.PROVISIONED && status.poweredOn === false) {
        this.#ask('switch on', host.name, ({ hosts }) =>
          hosts.setHostPower({ name, action: PowerAction.ON, requestId }),
        );
      }
      const isLeft = status.state === HostState.MANAGEABLE && status.claim !== undefined;
      if (isLeft) {
        this.#ask('clean', host.name, ({ hosts }) => hosts.cleanHost({ name, requestId }));
      }
    }
  }
}

function isBad({ pool }: wire.PoolRecord, { tags }: WorldView): boolean {
  const image = pool?.spec?.image ?? '';
  const isByTag = image === tagReference && tags.letter === badImage;
  return isByTag || image === imageReferenceOf(badImage);
}

/** The pool as it stands in the store. */
function poolOf(view: WorldView, poolId: string): wire.PoolRecord | undefined {
  const [change] = view.storeDisk().lastChanges(`pools.${poolId}`);
  if (change?.kind !== 'put') return undefined;
  return fromBinary(wire.PoolRecordSchema, change.value);
}

function weighed(view: WorldView): PoolAct {
  const sum = acts.reduce((total, { weight }) => total + weight, 0);
  let left = view.random.fraction() * sum;
  return acts.find(({ weight }) => (left -= weight) < 0) ?? createAct;
}

/** Whether its own rules may keep hosts from the image for ever. */
function keepsBack(spec: PoolSpec | undefined): boolean {
  const { paused = false, gate, maxUnavailable, windows = [], waves = [] } = spec?.rollout ?? {};
  return (
    paused ||
    gate?.approval === true ||
    maxUnavailable?.amount.value === 0 ||
    windows.length + waves.length > 0 ||
    Object.keys(spec?.pins ?? {}).length > 0
  );
}

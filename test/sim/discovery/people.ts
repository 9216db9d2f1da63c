/**
 * Machines that nobody knows, and the people around them: they are switched on and boot, from one
 * interface or another; a policy is switched on and off, a manifest written, machines accepted. In
 * some worlds somebody floods the rack with addresses, or netboots as another machine each time.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type DiscoveredMachine, store } from '@rackwright/messages';
import { askBootGate, type SimMachine } from '../machine.ts';
import { ask, type Counter, counterOf } from '../operators/counter.ts';
import { addressOf, keptHosts } from '../operators/records.ts';
import type { Replica, WorldView } from '../view.ts';
import { madeUpMacs } from './judge.ts';

/** Between two acts, for as long as there are faults. */
const pauseMs = 5_000;
/** Once they have stopped: looked after so often, and booted again when a machine may be. */
const roundMs = 30_000;
const bootAgainMs = 660_000;
/** Requests are counted from here, so that no operator's has the same id. */
const firstRequest = 2_000_000;
const floodMacs = 12;

const product = 'Box 1';
const bmcNetworks = ['10.0.0.0/24'];
const credential = 'credentials/c1';

/** Makes a machine one that nobody knows: two interfaces, and a board that may say little. */
export function makeStranger(machine: SimMachine, { random }: WorldView): void {
  const others = ['aa', 'ab', 'ac'].slice(random.below(3));
  machine.macs = [
    machine.mac,
    ...others.map((byte) => machine.mac.replace('52:54:00:00:00', `52:54:00:00:${byte}`)),
  ];
  machine.toldBmcAddress = random.fraction() < 0.8 ? addressOf(machine) : '';
  const { uuid, serial } = machine.board;
  machine.board = [
    { uuid, serial, product },
    { uuid: new Uint8Array(16), serial, product },
    { uuid, serial: 'To Be Filled By O.E.M.', product },
  ][random.below(3)] as SimMachine['board'];
}

type Pick = <T>(choices: readonly T[]) => T;

/** Asked with arguments that are chosen already, so that it can be said again word by word. */
type Call = (counter: Counter) => Promise<unknown>;

interface Act {
  readonly name: string;
  readonly weight: number;
  /** Undefined: there is nothing to ask. */
  readonly prepare: (scene: Scene) => Call | undefined;
}

interface Scene {
  readonly view: WorldView;
  readonly machine: SimMachine;
  readonly requestId: string;
  readonly pick: Pick;
}

function listedMachines(view: WorldView): DiscoveredMachine[] {
  const kept = view.storeDisk().lastChanges('discoveredMachines');
  return kept.flatMap((change) => {
    if (change.kind !== 'put') return [];
    const { machine } = fromBinary(store.DiscoveredMachineRecordSchema, change.value);
    return machine === undefined ? [] : [machine];
  });
}

function lineNames(view: WorldView): string[] {
  const kept = view.storeDisk().lastChanges('expectedHosts');
  return kept.filter(({ kind }) => kind === 'put').map(({ key }) => key.replace('.', '/'));
}

/** What a line may say of a machine: right, wrong, and some of both. */
function matchFor({ machine, view, pick }: Scene) {
  const [other] = view.strangers();
  const { serial } = machine.board;
  const mac = pick(machine.macs);
  const bmcAddress = addressOf(machine);
  return pick([
    { serial },
    { mac },
    { bmcAddress },
    { mac, bmcAddress },
    { serial, mac },
    { serial, mac: other?.mac ?? mac },
    { mac, serial: 'ANOTHER' },
  ]);
}

function setPolicy(policy: object): Call {
  const rack = { name: 'racks/r1', spec: { discovery: policy } };
  return ({ racks }) => racks.updateRack({ rack, updateMask: { paths: ['spec.discovery'] } });
}

const acts: readonly Act[] = [
  {
    name: 'switch on',
    weight: 10,
    prepare: ({ machine, pick }) => {
      boot(machine, pick(machine.macs));
      return undefined;
    },
  },
  {
    name: 'set the policy',
    weight: 4,
    prepare: ({ pick }) => {
      const rule = {
        ...{ name: 'boxes', product: 'Box*', hostId: 'r-{mac}', spec: { bmc: { credential } } },
        hostsMax: pick([1, 2]),
      };
      return setPolicy({
        enabled: pick([true, true, true, false]),
        machinesMax: pick([1, 2, 50]),
        rules: pick([[], [], [rule]]),
        bmcNetworks: pick([[], bmcNetworks, bmcNetworks]),
      });
    },
  },
  {
    name: 'expect a machine',
    weight: 5,
    prepare: (scene) => {
      const { machine, pick, requestId } = scene;
      const address = pick(['', '', addressOf(machine)]);
      const match = matchFor(scene);
      const spec = { rack: 'racks/r1', bmc: { address, credential } };
      const expectedHostId = pick([`e-${machine.name}`, `f-${machine.name}`]);
      const request = { expectedHostId, expectedHost: { match, spec }, requestId };
      return ({ discovery }) => discovery.createExpectedHost(request);
    },
  },
  {
    name: 'change a line',
    weight: 2,
    prepare: (scene) => {
      const names = lineNames(scene.view);
      if (names.length === 0) return undefined;
      // The BMC goes with the machine: nobody corrects that of a host which waits for a person.
      const bmc = { address: addressOf(scene.machine), credential };
      const spec = { rack: 'racks/r1', bmc };
      const expectedHost = { name: scene.pick(names), match: matchFor(scene), spec };
      const request = { expectedHost, updateMask: { paths: ['match', 'spec'] } };
      return ({ discovery }) => discovery.updateExpectedHost(request);
    },
  },
  {
    name: 'expect it no more',
    weight: 2,
    prepare: ({ view, pick }) => {
      const names = lineNames(view);
      if (names.length === 0) return undefined;
      const request = { name: pick(names) };
      return ({ discovery }) => discovery.deleteExpectedHost(request);
    },
  },
  {
    name: 'accept',
    weight: 6,
    prepare: ({ view, pick, requestId }) => {
      const own = listedMachines(view).filter(
        ({ inventory }) => inventory?.system?.product === product,
      );
      if (own.length === 0) return undefined;
      const { name, bootMac } = pick(own);
      const machine = view.strangers().find(({ macs }) => macs.includes(bootMac));
      const address = machine === undefined ? '' : addressOf(machine);
      const host = { spec: { bmc: { address, credential } } };
      const request = { name, hostId: pick(['d1', 'd2', 'd3']), host, requestId };
      return ({ discovery }) => discovery.acceptDiscoveredMachine(request);
    },
  },
  {
    name: 'drop from the list',
    weight: 1,
    prepare: ({ view, pick }) => {
      const listed = listedMachines(view);
      if (listed.length === 0) return undefined;
      const request = { name: pick(listed).name };
      return ({ discovery }) => discovery.deleteDiscoveredMachine(request);
    },
  },
  {
    name: 'look at the list',
    weight: 1,
    prepare: () => async (counter) => {
      await counter.discovery.listDiscoveredMachines({});
      await counter.racks.explainRack({ name: 'racks/r1' });
    },
  },
];

function boot(machine: SimMachine, mac: string): void {
  machine.bootMac = mac;
  if (machine.isOn()) machine.panic();
  else machine.pressButton();
}

export class DiscoveryPeople {
  readonly #view: WorldView;
  readonly #chameleon: SimMachine | undefined;
  readonly #floods: boolean;
  #asked = firstRequest;
  #booted = 0;
  #bootedMs = Number.NEGATIVE_INFINITY;

  /** `chameleon`: a machine that is another one at each of its boots. */
  constructor(view: WorldView, chameleon: SimMachine | undefined) {
    this.#view = view;
    this.#chameleon = chameleon;
    this.#floods = view.random.fraction() < 0.25;
  }

  /** Acts until the faults stop. */
  start(): void {
    const first = this.#view.random.fraction() < 0.8;
    if (first) this.#request('set the policy', setPolicy({ enabled: true, bmcNetworks }));
    this.#actLater();
    this.#disguiseLater();
    if (this.#floods) this.#floodLater();
  }

  #actLater(): void {
    const { heap, chance } = this.#view;
    heap.after(chance.around(pauseMs), () => {
      if (!this.#view.faulty()) return;
      this.#act();
      this.#actLater();
    });
  }

  #act(): void {
    const view = this.#view;
    const pick: Pick = (choices) => view.chance.pick(choices);
    const machine = pick(view.strangers());
    const requestId = `q${(this.#asked += 1)}`;
    const { name, prepare } = weighed(view);
    const call = prepare({ view, machine, requestId, pick });
    if (call !== undefined) this.#request(name, call);
  }

  /** Asks a replica, and now and then once more. */
  #request(name: string, call: Call): void {
    const { chance, heap, random } = this.#view;
    const replicas = this.#view.replicas();
    if (replicas.length === 0) return;
    void this.#ask(name, chance.pick(replicas), call).then((first) => {
      if (random.fraction() > 0.3) return;
      const disk = this.#view.storeDisk();
      heap.after(chance.around(4_000), () => {
        const [again] = this.#view.replicas();
        if (again === undefined) return;
        void this.#ask(`${name} again`, again, call).then((second) => {
          const isSame = disk === this.#view.storeDisk();
          if (name !== 'accept' || first !== 'accepted' || !isSame) return;
          if (['accepted', 'unknown', 'notFound', 'unavailable'].includes(second)) return;
          this.#view.found('O1', `a machine was accepted; asked again: ${second}`);
        });
      });
    });
  }

  async #ask(name: string, replica: Replica, call: Call): Promise<string> {
    const { trace, count, found } = this.#view;
    try {
      const answer = await ask(this.#view, () => call(counterOf(this.#view, replica)));
      const text = answer.kind === 'refused' ? answer.error.message : '';
      trace(`discoverer: ${name} ${answer.kind} ${text}`);
      count(`discoverer ${answer.kind}`);
      if (answer.kind !== 'refused') return answer.kind;
      if (answer.error.kind === 'internal') found('O3', `${name}: ${text}`);
      return answer.error.kind;
    } catch (error) {
      found('O3', `${name} threw: ${String(error)}`);
      return 'unknown';
    }
  }

  #disguiseLater(): void {
    const machine = this.#chameleon;
    if (machine === undefined) return;
    const { heap, chance, random } = this.#view;
    heap.after(chance.around(20_000), () => {
      if (!this.#view.faulty()) {
        if (machine.isOn()) machine.pressButton();
        return;
      }
      const byte = () => random.below(256).toString(16).padStart(2, '0');
      machine.macs = [`52:54:00:ff:${byte()}:${byte()}`];
      const uuid = Uint8Array.from({ length: 16 }, () => random.below(256));
      machine.board = { uuid, serial: `X${random.below(1e6)}`, product: 'Chameleon' };
      boot(machine, machine.macs[0] ?? '');
      this.#view.count('boot in disguise');
      this.#disguiseLater();
    });
  }

  #floodLater(): void {
    const { heap, chance, random } = this.#view;
    heap.after(chance.around(10_000), () => {
      if (!this.#view.faulty()) return;
      const [agent] = this.#view.agents();
      for (let n = 0; agent !== undefined && n < floodMacs; n++) {
        const mac = `${madeUpMacs}${[random.below(256), random.below(256)]
          .map((byte) => byte.toString(16).padStart(2, '0'))
          .join(':')}`;
        this.#view.count('flooded address');
        agent.process.enter(() => void askBootGate(this.#view, agent, mac));
      }
      this.#floodLater();
    });
  }

  /** The faults are over: the manifest is put right, and whoever is no host is booted. */
  repair(): void {
    for (const machine of this.#view.machines.values()) machine.bootMac = machine.mac;
    this.#lookAfterLater();
  }

  #lookAfterLater(): void {
    const { heap, chance } = this.#view;
    heap.after(chance.around(roundMs), () => {
      this.#lookAfter().catch((error: unknown) => {
        this.#view.found('O3', `a person's call threw: ${String(error)}`);
      });
      this.#lookAfterLater();
    });
  }

  async #lookAfter(): Promise<void> {
    const taken = new Set(keptHosts(this.#view).flatMap(({ host }) => host.spec?.bootMacs ?? []));
    const missing = this.#view.strangers().filter(({ mac }) => !taken.has(mac));
    const [replica] = this.#view.replicas();
    if (missing.length === 0 || replica === undefined) return;
    const { nowMs } = this.#view.heap;
    if (nowMs - this.#bootedMs < bootAgainMs) return;
    this.#bootedMs = nowMs;
    this.#booted += 1;
    // What was written at random names machines in contradiction.
    const doing: Call[] = lineNames(this.#view).map(
      (name) =>
        ({ discovery }) =>
          discovery.deleteExpectedHost({ name }),
    );
    doing.push(setPolicy({ enabled: true, machinesMax: 50, bmcNetworks }));
    for (const machine of missing) {
      const expectedHostId = `${machine.name}-at-last${this.#booted}`;
      const match = { mac: machine.mac };
      const spec = { rack: 'racks/r1', bmc: { address: addressOf(machine), credential } };
      doing.push(({ discovery }) =>
        discovery.createExpectedHost({ expectedHostId, expectedHost: { match, spec } }),
      );
    }
    for (const call of doing) await this.#ask('put right', replica, call);
    for (const machine of missing) boot(machine, machine.mac);
  }
}

function weighed({ random }: WorldView): Act {
  const sum = acts.reduce((total, { weight }) => total + weight, 0);
  let left = random.fraction() * sum;
  const [first] = acts;
  if (first === undefined) throw new Error('there is nothing to do');
  return acts.find(({ weight }) => (left -= weight) < 0) ?? first;
}

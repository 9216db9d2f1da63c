/** Defects of discovery: what of machines that nobody knows, and how they become hosts. */
import type { CaughtBy, Plant } from './plant.ts';

const test = (file: string, name: string): CaughtBy => ({ kind: 'test', file, name });
const bySimulation = { kind: 'simulation', discovery: true } as const;

export const discoveryPlants: readonly Plant[] = [
  {
    name: 'sameMachineListedTwice',
    breaks: 'D1: a machine is listed once, whatever interface it boots from',
    file: 'controlplane/src/discovery/intake.ts',
    find: 'const before = sameMachines.find(({ machine }) => machine.rack === rack);',
    replace: "const before = sameMachines.find(({ machine }) => machine.rack === '');",
    caughtBy: test('controlplane/src/discovery/api/discovery.test.ts', 'a machine is listed once'),
  },
  {
    name: 'hostStaysListed',
    breaks: 'D1: what is a host is listed no more, whoever died between the two',
    file: 'controlplane/src/discovery/discovery.ts',
    find: '        await seedFacts(this.#deps, decision.host, kept.machine);\n        await removeMachine(this.#deps, kept);',
    replace: '        await seedFacts(this.#deps, decision.host, kept.machine);',
    caughtBy: test(
      'controlplane/src/discovery/api/acceptance.test.ts',
      'a crash after the host was made',
    ),
  },
  {
    name: 'unknownMachineIsFlashed',
    breaks: 'D2: the runner of a machine that is no host is asked for its inventory alone',
    file: 'agent/src/runner-gateway/stranger.ts',
    find: "outgoing.push({ message: { case: 'reportReceived', value: { operationId } } });",
    replace:
      "outgoing.push({ message: { case: 'reportReceived', value: { operationId } } });\n" +
      "    const value = { step: 'firmware.flash', mode: 1, bootOperationId: operationId };\n" +
      '    const flash = { operationId: `${operationId}/x`, kind: { case: "runStep", value } };\n' +
      "    outgoing.push({ message: { case: 'order', value: flash as never } });",
    caughtBy: { ...bySimulation, from: 12 },
  },
  {
    name: 'identityNotRecorded',
    breaks: 'D3: who a machine said to be stands in the record of its host',
    file: 'controlplane/src/host/api/create-host.ts',
    find: '...(identity === undefined ? {} : { acceptedIdentity: identity }),',
    replace: '...(identity === undefined ? {} : {}),',
    caughtBy: { ...bySimulation, from: 2 },
  },
  {
    name: 'listWithoutEnd',
    breaks: 'D4: a rack lists so many machines and no more',
    file: 'controlplane/src/discovery/intake.ts',
    find: "const room = listed < most ? 'made'",
    replace: "const room = listed < 1e9 ? 'made'",
    caughtBy: test('controlplane/src/discovery/api/discovery.test.ts', 'machines up to its limit'),
  },
  {
    name: 'floodBoots',
    breaks: 'D4: so many unknown machines boot at once, however many addresses there seem to be',
    file: 'agent/src/boot/permission.ts',
    find: "if (underWay >= limits.bootsMax) return unknown('tooManyAtOnce');",
    replace: 'if (limits.bootsMax === 0) return unknown("tooManyAtOnce");',
    caughtBy: { ...bySimulation, from: 2 },
  },
  {
    name: 'bootsWithoutAPolicy',
    breaks: 'D5: nothing unknown boots before the policy of its rack says so',
    file: 'controlplane/src/discovery/discovery.ts',
    find: 'const enabled = policy?.enabled === true;',
    replace: 'const enabled = policy?.enabled !== false;',
    caughtBy: bySimulation,
  },
  {
    name: 'takenLineIsForgotten',
    breaks: 'D6: a line says which host it has made, whoever died between the two',
    file: 'controlplane/src/discovery/lines.ts',
    find: 'if (host !== undefined && isMadeBy(host, lineRequestId(expected.uid))) {',
    replace: 'if (host !== undefined && isMadeBy(host, expected.uid)) {',
    caughtBy: test(
      'controlplane/src/discovery/api/acceptance.test.ts',
      'a crash after the host was made',
    ),
  },
];
